package audit

import (
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"

	"github.com/unpend/unpend/testdata/controlplane"
)

var shared controlplane.Shared

func TestMain(m *testing.M) { os.Exit(shared.Run(m)) }

var (
	web1 = corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: "ml", Name: "web-1", UID: "u1"}
	gpu1 = corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: "gpu-1", UID: "u2"}
)

func failures() prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{Name: "failures"})
}

func told(t *testing.T, client kubernetes.Interface, namespace string) []eventsv1.Event {
	t.Helper()
	list, err := client.EventsV1().Events(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return list.Items
}

func TestTell(t *testing.T) {
	client, failed := fake.NewClientset(), failures()
	events := NewEvents(client, "unpend-0", clock, failed)
	for range 2 { // by the next leader, which does not know
		if err := events.Tell(t.Context(), sample(1), web1, &gpu1); err != nil {
			t.Fatal(err)
		}
	}
	got := told(t, client, "")
	if len(got) != 1 || testutil.ToFloat64(failed) != 0 {
		t.Fatalf("got %+v", got)
	}
	name := got[0].Name
	if !strings.HasPrefix(name, "unpend-") || len(name) != len("unpend-")+32 {
		t.Errorf("name %q", name)
	}
	got[0].TypeMeta, got[0].ManagedFields = metav1.TypeMeta{}, nil
	want := eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ml"},
		EventTime:  metav1.NewMicroTime(noon.Add(time.Second)), ReportingController: "unpend.dev/executor", ReportingInstance: "unpend-0",
		Action: "Evict", Reason: "StepDone", Regarding: web1, Related: &gpu1, Type: "Normal",
		Note: `evict ml/web <&> "é…", of 2: done: its owner replaced it (plan ab12ab12ab12, approved by anna@example.com and ben@example.com)`,
	}
	if !equality.Semantic.DeepEqual(got[0], want) {
		t.Errorf("got  %+v\nwant %+v", got[0], want)
	}
}

func TestWordsOfAnEvent(t *testing.T) {
	type words struct{ action, reason, kind, namespace string }
	about := func(step string, result Result) words {
		e := eventFor(Record{Step: step, Result: result}, "", gpu1, nil)
		return words{e.Action, e.Reason, e.Type, e.Namespace}
	}
	got := map[string]words{}
	for _, result := range results {
		got[string(result)] = about("undo/0/release", result)
	}
	want := map[string]words{
		"begun":    {"Release", "StepBegun", "Normal", "default"},
		"done":     {"Release", "StepDone", "Normal", "default"},
		"failed":   {"Release", "StepFailed", "Warning", "default"},
		"stopped":  {"Release", "PlanStopped", "Normal", "default"},
		"undone":   {"Release", "StepUndone", "Normal", "default"},
		"approved": {"Release", "PlanApproved", "Normal", "default"},
		"rejected": {"Release", "PlanRejected", "Normal", "default"},
		"refused":  {"Release", "PlanRefused", "Warning", "default"},
		"parked":   {"Release", "PlanParked", "Warning", "default"},
		"torn":     {"Release", "PlanTorn", "Normal", "default"},
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %v", got)
	}
	for step, action := range map[string]string{"0/evict/ml/web-1": "Evict", "12/cordon": "Cordon", "approve": "Approve", "": "Done", "3": "Done"} {
		if got := about(step, Done).action; got != action {
			t.Errorf("%q: %q", step, got)
		}
	}
}

// Other news is another Event.
func TestNewsAreApart(t *testing.T) {
	names := map[string]bool{}
	for _, change := range []func(*Record){
		func(*Record) {}, func(r *Record) { r.Result = Failed }, func(r *Record) { r.Generation++ },
		func(r *Record) { r.Time = r.Time.Add(1) }, func(r *Record) { r.Step += "0" }, func(r *Record) { r.Plan = origin },
	} {
		r := sample(1)
		change(&r)
		names[eventName(r, web1)] = true
	}
	names[eventName(sample(1), gpu1)] = true
	if len(names) != 7 {
		t.Errorf("%v", slices.Sorted(maps.Keys(names)))
	}
}

// A step does not hear of what goes wrong with its Event, nor wait for long.
func TestTellIsBestEffort(t *testing.T) {
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}))
	defer silent.Close()
	failed := failures()
	events := NewEvents(kubernetes.NewForConfigOrDie(&rest.Config{Host: silent.URL}), "unpend-0", clock, failed)
	if events.patience != 5*time.Second {
		t.Errorf("waits for %s", events.patience)
	}
	events.patience = 10 * time.Millisecond
	err := events.Tell(t.Context(), sample(1), web1, nil)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.HasPrefix(err.Error(), "tell of step 0/evict/ml/web-1 on Pod web-1: ") {
		t.Errorf("got %v", err)
	}
	if n := testutil.ToFloat64(failed); n != 1 {
		t.Errorf("counted %v", n)
	}
}

// What the API server takes is what it says itself.
func TestTellTheRealServer(t *testing.T) {
	c := shared.Get(t)
	client, failed, namespace := c.Client(), failures(), c.Namespace(t)
	events := NewEvents(client, strings.Repeat("i", 300), clock, failed)
	about := web1
	about.Namespace = namespace
	wild := Record{
		Plan: plan, Step: "0/" + strings.Repeat("漢", 200) + "/x", Text: strings.Repeat("漢", 2000), Result: Parked,
		Why: "\xff" + strings.Repeat("é", 2000), Actor: "a", Approvers: []string{strings.Repeat("ß", 700)},
	}
	odd := about
	odd.Kind, odd.Name = "ClusterRole", "system:odd"
	for _, e := range []struct {
		r     Record
		about corev1.ObjectReference
	}{{wild, about}, {Record{Step: "x", Result: Begun}, odd}, {sample(1), about}, {sample(1), gpu1}} {
		if err := events.Tell(t.Context(), e.r, e.about, nil); err != nil {
			t.Error(err)
		}
	}
	got := told(t, client, namespace)
	if len(got) != 3 || len(told(t, client, "default")) == 0 || testutil.ToFloat64(failed) != 0 {
		t.Fatalf("got %+v", got)
	}
	for _, e := range got {
		if len(e.Note) > 1024 || !utf8.ValidString(e.Note) || len(e.Action) > 128 || e.EventTime.IsZero() {
			t.Errorf("got %+v", e)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := events.Tell(ctx, sample(7), about, nil); !errors.Is(err, context.Canceled) || testutil.ToFloat64(failed) != 1 {
		t.Errorf("got %v", err)
	}
}
