package watcher

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/unpend/unpend/watcher/incident"
	"github.com/unpend/unpend/watcher/incident/incidenttest"
)

// said is what a watcher logs.
type said struct {
	mu   sync.Mutex
	text strings.Builder
}

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *said) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(s, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
}

// lines are those that were said since the last time.
func (s *said) lines() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := strings.FieldsFunc(s.text.String(), func(r rune) bool { return r == '\n' })
	s.text.Reset()
	return out
}

func (s *said) wants(t *testing.T, want ...string) {
	t.Helper()
	if got := s.lines(); !slices.Equal(got, want) {
		t.Errorf("said %q, want %q", got, want)
	}
}

// still is a watcher that is not run.
func still(t *testing.T, edit func(*Options)) (*Watcher, *said) {
	t.Helper()
	s := &said{}
	o := Options{Client: newAPI(), Logger: s.logger(), Registerer: prometheus.NewRegistry()}
	edit(&o)
	w, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return w, s
}

// What is not set is a sweep a minute and five passes a second.
func TestDefaults(t *testing.T) {
	w, _ := still(t, func(*Options) {})
	if w.opts.Sweep != time.Minute || w.opts.Debounce != 200*time.Millisecond {
		t.Errorf("%+v", w.opts)
	}
	w, _ = still(t, func(o *Options) { o.Sweep, o.Debounce = time.Hour, time.Second })
	if w.opts.Sweep != time.Hour || w.opts.Debounce != time.Second {
		t.Errorf("%+v", w.opts)
	}
}

// What cannot be watched is said once for as long as it is the same, and not at all at the end.
func TestTroubleIsSaidOnce(t *testing.T) {
	w, s := still(t, func(*Options) {})
	ctx, cancel := context.WithCancel(t.Context())
	const first, other, job = `level=WARN msg="watching fails and is tried again" kind=Pod error=one`, `level=WARN msg="watching fails and is tried again" kind=Pod error=two`, `level=WARN msg="watching fails and is tried again" kind=Job error=one`
	for _, c := range []struct {
		kind, err string
		want      []string
	}{{"Pod", "one", []string{first}}, {"Pod", "one", nil}, {"Job", "one", []string{job}}, {"Pod", "two", []string{other}}, {"Pod", "one", []string{first}}} {
		w.trouble(ctx, c.kind, errors.New(c.err))
		s.wants(t, c.want...)
	}
	cancel()
	w.trouble(ctx, "Pod", errors.New("three"))
	s.wants(t)
}

// A sweep that cannot ask, or cannot hear what was published, says so, and does the rest all
// the same; at the end nobody is told.
func TestSweepsThatFailAreSaid(t *testing.T) {
	asked := 0
	full := errors.New("etcd is full")
	w, s := still(t, func(o *Options) {
		a := newAPI()
		a.PrependReactor("list", "pods", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, full })
		o.Client = a
		o.Published = func(context.Context) ([]incident.Incident, error) {
			asked++
			return nil, errAway
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	w.swept.at = "7"
	w.sweep(ctx)
	s.wants(t, `level=WARN msg="a sweep fails and is done again at its time" error="list pods with spec.nodeName=,status.phase=Pending: etcd is full"`, `level=WARN msg="a sweep fails and is done again at its time" error="the broker is away"`)
	if asked != 1 || w.swept.at != "7" {
		t.Errorf("asked %d times, swept at %s", asked, w.swept.at)
	}
	cancel()
	w.sweep(ctx)
	s.wants(t)
	w, s = still(t, func(*Options) {})
	w.sweep(t.Context())
	s.wants(t)
}

// What is taken over of what was published is what still waits; of all of it, how late it was
// told. An answer that does not come takes nothing away.
func TestWhatIsRecalled(t *testing.T) {
	waits := incident.Incident{ID: "gpu-1", Waiting: 1, Newest: "7"}
	over := incident.Incident{ID: "gpu-2", Newest: "9", Resolved: true}
	var err error
	w, _ := still(t, func(o *Options) {
		o.Published = func(context.Context) ([]incident.Incident, error) { return []incident.Incident{waits, over}, err }
	})
	w.known["gpu-3"], w.last["gpu-3"] = incident.Incident{ID: "gpu-3"}, "x"
	id, _, _ := waits.Message()
	for _, err = range []error{nil, errAway} {
		if got := w.recall(t.Context()); !errors.Is(got, err) {
			t.Errorf("%v, want %v", got, err)
		}
		if !reflect.DeepEqual(w.known, map[string]incident.Incident{"gpu-1": waits}) || !reflect.DeepEqual(w.last, map[string]string{"gpu-1": id}) || !reflect.DeepEqual(w.left, map[string]string{"gpu-1": "7", "gpu-2": "9"}) {
			t.Errorf("known %v, last %v, left %v", w.known, w.last, w.left)
		}
	}
}

// A broker that does not take an incident, or does not answer, is said.
func TestABrokerThatIsAwayIsSaid(t *testing.T) {
	a, s := serving(), &said{}
	a.set(replica("a"))
	var deaf atomic.Bool
	watchingWith(t, a, nil, func(o *Options) {
		o.Logger = s.logger()
		published := o.Published
		o.Published = func(ctx context.Context) ([]incident.Incident, error) {
			if deaf.Load() {
				return nil, errAway
			}
			return published(ctx)
		}
	}, func(t *testing.T, p *taken) {
		p.one(t)
		s.wants(t)
		p.away(func(incident.Incident) bool { return p.refused < 1 })
		a.set(replica("b"), incidenttest.WaitingPod("lone", "nvidia.com/gpu", nil))
		pass(5 * time.Second)
		if got := p.news(t); len(got) != 2 {
			t.Errorf("got %v", got)
		}
		s.wants(t, `level=WARN msg="incidents are published again later" incidents=1 error="the broker is away"`)
		deaf.Store(true)
		p.again <- struct{}{}
		p.none(t, "nobody answers")
		s.wants(t, `level=WARN msg="what was published is asked for again at the next sweep" error="the broker is away"`)
		deaf.Store(false)
		p.again <- struct{}{}
		p.none(t, "nothing is lost")
		s.wants(t)
	})
	s.wants(t)
}

// With one less the moment is later than any that was told; pods that never existed are missed
// since the first refusal.
func TestWhatAMessageIsDatedBy(t *testing.T) {
	late, early := incidenttest.Start.Add(time.Hour), incidenttest.Start
	missing := func(n int, since time.Time, newest string, pods ...string) incident.Incident {
		i := incident.Incident{ID: "gpu-1", Missing: n, Since: since, Newest: newest}
		for _, p := range pods {
			i.Pods = append(i.Pods, incident.PodRef{Name: p})
		}
		return i
	}
	for name, c := range map[string]struct {
		before, now incident.Incident
		left        string
		newest      string
		since       time.Time
	}{
		"its own version is the latest": {missing(0, early, "5"), missing(0, late, "9"), "7", "9", late},
		"one that left is later":        {missing(0, early, "5"), missing(0, late, "6"), "7", "7", late},
		"what was told is later":        {missing(0, early, "8"), missing(0, late, "6"), "7", "8", late},
		"missed since before":           {missing(2, early, "5"), missing(1, late, "6"), "", "6", early},
		"missed for the first time":     {missing(0, early, "5"), missing(1, late, "6"), "", "6", late},
		"missed no more":                {missing(2, early, "5"), missing(0, late, "6"), "", "6", late},
		"missed since later":            {missing(2, late, "5"), missing(1, early, "6"), "", "6", early},
		"one exists now":                {missing(2, early, "5"), missing(1, late, "6", "a"), "", "6", late},
		"one existed before":            {missing(2, early, "5", "a"), missing(1, late, "6"), "", "6", late},
		"one exists, as before":         {missing(2, early, "5", "a"), missing(1, late, "6", "a"), "", "6", late},
	} {
		w, _ := still(t, func(*Options) {})
		w.known["gpu-1"], w.left["gpu-1"] = c.before, c.left
		if got := w.dated(c.now); got.Newest != c.newest || !got.Since.Equal(c.since) || got.Missing != c.now.Missing {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// Pods that never existed are wanted no more as of their own owner's version.
func TestRefusalsAreOverByTheirOwner(t *testing.T) {
	rs := incidenttest.ReplicaSet(2, 0, 0, true)
	other := incidenttest.ReplicaSet(2, 2, 2, false)
	other.Name, other.UID, other.OwnerReferences, other.ResourceVersion = "zero-1", "other", incidenttest.Owned("Deployment", "zero"), "900"
	a := newAPI(rs, other)
	watching(t, a, nil, func(t *testing.T, p *taken) {
		first := p.one(t)
		if first.Workload != (incident.Ref{Kind: "Deployment", Namespace: "ml", Name: "serve"}) || first.Missing != 2 || first.Newest != "50" {
			t.Errorf("got %+v", first)
		}
		made := incidenttest.ReplicaSet(2, 2, 0, false)
		made.ResourceVersion = "60"
		last := p.after(t, func() { update(t, a, made) })
		if last.ID != first.ID || !last.Resolved || last.Newest != "60" {
			t.Errorf("got %+v", last)
		}
	})
}

func update(t *testing.T, a *api, rs *appsv1.ReplicaSet) {
	t.Helper()
	if _, err := a.AppsV1().ReplicaSets(rs.Namespace).Update(t.Context(), rs, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// Who is not the one that publishes follows everything and says nothing; once it is, it tells
// what is true by then.
func TestOnlyWhoLeadsPublishes(t *testing.T) {
	a := serving()
	a.set(replica("a"))
	var leads atomic.Bool
	var asked atomic.Int32
	term, end := context.WithCancel(t.Context())
	defer end()
	watchingWith(t, a, nil, func(o *Options) {
		o.Lead = func(ctx context.Context) (context.Context, error) {
			if asked.Add(1); !leads.Load() || term.Err() != nil {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			within, cancel := context.WithCancel(context.WithoutCancel(ctx))
			context.AfterFunc(term, cancel)
			return within, nil
		}
	}, func(t *testing.T, p *taken) {
		pass(150 * time.Second)
		p.none(t, "another leads")
		if n := asked.Load(); n != 3 {
			t.Errorf("asked %d times in two minutes and a half, want at every sweep", n)
		}
		leads.Store(true)
		pass(time.Minute)
		if got := p.one(t); !slices.Equal(names(got), []string{"a"}) {
			t.Errorf("got %v", got)
		}
		end()
		a.remove("a")
		pass(3 * time.Minute)
		p.none(t, "another leads again")
	})
}

// Who is deleted while it lacks pods is noted: one made again under its name tells of a later
// moment. Who had all it wants, or more, tells nothing, and who makes no pods neither.
func TestMakersThatAreDeletedAreNoted(t *testing.T) {
	lacks := func(has int32) *appsv1.ReplicaSet { return incidenttest.ReplicaSet(2, has, 0, false) }
	for name, c := range map[string]struct {
		kind    string
		deleted metav1.Object
		want    []string // versions
	}{
		"one of two pods":  {"ReplicaSet", lacks(1), []string{"50"}},
		"both":             {"ReplicaSet", lacks(2), nil},
		"one too many":     {"ReplicaSet", lacks(3), nil},
		"it makes no pods": {"CronJob", &batchv1.CronJob{ObjectMeta: incidenttest.Object("CronJob", "c", "5", nil)}, nil},
	} {
		w, _ := still(t, func(*Options) {})
		ctx, end := context.WithCancel(t.Context())
		end() // nothing is listed: the informers are empty
		stop, err := w.follow(ctx)
		if err != nil {
			t.Fatal(err)
		}
		stop()
		w.noteDeleted(c.kind, c.deleted)
		if got := slices.Collect(maps.Values(w.left)); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
		if o, ok := w.owner(c.kind, c.deleted.GetNamespace(), c.deleted.GetName()); !ok || o != c.deleted {
			t.Errorf("%s: it is not found for its pods' sake: %v", name, o)
		}
		w.noteDeleted("Pod", incidenttest.WaitingPod("p", "nvidia.com/gpu", nil))
		if len(w.former[0]) != 1 || !w.gone["uid-p"] {
			t.Errorf("%s: a pod owns none, and is only gone: %v, %v", name, w.former[0], w.gone)
		}
	}
}

// How long an incident waited is measured when it is resolved, where it is known since when it did.
func TestResolvedIncidentsAreMeasured(t *testing.T) {
	metrics := prometheus.NewRegistry()
	w, _ := still(t, func(o *Options) {
		o.Registerer, o.Now = metrics, func() time.Time { return incidenttest.Start.Add(time.Hour) }
		o.Publish = func(context.Context, incident.Incident) error { return nil }
	})
	w.known = map[string]incident.Incident{"dated": {ID: "dated", Since: incidenttest.Start}, "undated": {ID: "undated"}}
	for _, id := range []string{"dated", "undated", "unknown"} {
		if err := w.publish(t.Context(), incident.Incident{ID: id, Resolved: true}); err != nil {
			t.Fatal(err)
		}
	}
	families, err := metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if h := f.GetMetric()[0].GetHistogram(); f.GetName() == "unpend_incident_duration_seconds" && (h.GetSampleCount() != 1 || h.GetSampleSum() != 3600) {
			t.Errorf("%d measured, %v seconds", h.GetSampleCount(), h.GetSampleSum())
		}
	}
	if len(w.known) != 0 {
		t.Errorf("still known: %v", w.known)
	}
}
