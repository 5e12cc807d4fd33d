package watcher

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/unpend/unpend/watcher/incident"
	"github.com/unpend/unpend/watcher/incident/incidenttest"
)

func meta(name string, owner []metav1.OwnerReference) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "ml", Name: name, OwnerReferences: owner}
}

// replica is a waiting pod of Deployment serve.
func replica(name string) *corev1.Pod {
	return incidenttest.WaitingPod(name, "nvidia.com/gpu", incidenttest.Owned("ReplicaSet", "serve-1"))
}

func serving(objects ...runtime.Object) *api {
	return newAPI(append(objects, &appsv1.ReplicaSet{ObjectMeta: meta("serve-1", incidenttest.Owned("Deployment", "serve"))})...)
}

func TestThreeReplicasAreOneIncidentToldOnce(t *testing.T) {
	a := serving()
	a.set(replica("a"), replica("b"), replica("c"))
	watching(t, a, nil, func(t *testing.T, p *taken) {
		want := incident.Incident{Workload: incident.Ref{Kind: "Deployment", Namespace: "ml", Name: "serve"}, Requests: map[string]string{"nvidia.com/gpu": "1"}, Waiting: 3, Since: incidenttest.Start, Newest: "103",
			Pods: []incident.PodRef{{Name: "a", UID: "uid-a", Reason: "Unschedulable"}, {Name: "b", UID: "uid-b", Reason: "Unschedulable"}, {Name: "c", UID: "uid-c", Reason: "Unschedulable"}}}
		want.ID = incident.ID(want.Workload, want.Requests)
		if got := p.one(t); !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v\nwant %+v", got, want)
		}
		event := &corev1.Event{ObjectMeta: meta("again", nil), Reason: incident.FailedCreate, ReportingController: "job-controller"}
		if _, err := a.CoreV1().Events("ml").Create(t.Context(), event, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		p.none(t, "an event told the same again")
		pass(10 * time.Minute)
		p.none(t, "ten sweeps saw the same")
	})
}

func TestNewsIsTold(t *testing.T) {
	a := serving()
	a.set(replica("a"))
	watching(t, a, nil, func(t *testing.T, p *taken) {
		ids := []string{}
		wants := func(i incident.Incident, newest string, pods ...string) {
			t.Helper()
			id, _, err := i.Message()
			if err != nil || slices.Contains(ids, id) {
				t.Errorf("%v has the id of an earlier message, %v", i, err)
			}
			ids = append(ids, id)
			if i.Newest != newest || i.Waiting != len(pods) || !slices.Equal(names(i), pods) || i.Resolved {
				t.Errorf("got %v, want %v@%s", i, pods, newest)
			}
		}
		wants(p.one(t), "101", "a")
		wants(p.after(t, func() { a.set(replica("b")) }), "102", "a", "b")
		other := replica("a")
		other.Status.Conditions[0].Message = "0/1 nodes are available: 1 node(s) were unschedulable."
		wants(p.after(t, func() { a.set(other) }), "103", "a", "b")
		// One less is not the message of before that one came.
		wants(p.after(t, func() { a.bind("b") }), "104", "a")
		a.set(a.get("b"))
		p.none(t, "what runs changed")
		wants(p.after(t, func() { a.set(replica("c")) }), "106", "a", "c")
		wants(p.after(t, func() { a.remove("c") }), "107", "a")
		last := p.after(t, func() { a.bind("a") })
		if want := (incident.Incident{ID: last.ID, Workload: incident.Ref{Kind: "Deployment", Namespace: "ml", Name: "serve"}, Requests: map[string]string{"nvidia.com/gpu": "1"}, Pods: []incident.PodRef{}, Newest: "108", Resolved: true}); !reflect.DeepEqual(last, want) {
			t.Errorf("got %+v\nwant %+v", last, want)
		}
		a.set(a.get("a"))
		pass(10 * time.Minute)
		p.none(t, "nobody waits")
		wants(p.after(t, func() { a.set(replica("d")) }), "110", "d")
	})
}

// after is the only news after something happened.
func (p *taken) after(t *testing.T, happen func()) incident.Incident {
	t.Helper()
	happen()
	return p.one(t)
}

// No event, no watch: the sweep alone finds what waits and what waits no more,
// and what it found stays so in the passes between two sweeps.
func TestTheSweepFindsWhatNobodyTold(t *testing.T) {
	a := serving()
	a.set(replica("a"))
	watching(t, a, nil, func(t *testing.T, p *taken) {
		p.one(t)
		a.deafen(true)
		a.set(incidenttest.WaitingPod("lone", "nvidia.com/gpu", nil))
		pass(30 * time.Second)
		p.none(t, "nobody told of it")
		pass(30 * time.Second)
		if got := p.one(t); got.Workload != (incident.Ref{Kind: "Pod", Namespace: "ml", Name: "lone"}) || got.Waiting != 1 {
			t.Errorf("got %v", got)
		}
		event := &corev1.Event{ObjectMeta: meta("wake", nil), Reason: incident.FailedCreate, ReportingController: "job-controller"}
		if _, err := a.CoreV1().Events("ml").Create(t.Context(), event, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		p.none(t, "a pass between two sweeps")
		a.bind("a")
		a.remove("lone")
		pass(time.Minute)
		got := p.news(t)
		slices.SortFunc(got, func(x, y incident.Incident) int { return len(x.Workload.Kind) - len(y.Workload.Kind) })
		if len(got) != 2 || !got[0].Resolved || got[0].Workload.Kind != "Pod" || !got[1].Resolved || got[1].Workload.Kind != "Deployment" {
			t.Errorf("got %v, want both resolved", got)
		}
		a.deafen(false)
		if got := p.after(t, func() { a.set(replica("b")) }); !slices.Equal(names(got), []string{"b"}) {
			t.Errorf("got %v", got)
		}
	})
}

// What was deleted since the sweep saw it is not brought back by it.
func TestTheSweepBringsNothingBack(t *testing.T) {
	a := serving()
	watching(t, a, nil, func(t *testing.T, p *taken) {
		a.deafen(true)
		a.set(replica("a"))
		pass(time.Minute)
		p.one(t)
		a.deafen(false)
		a.set(a.get("a")) // the watch knows it again
		p.one(t)
		if got := p.after(t, func() { a.remove("a") }); !got.Resolved {
			t.Errorf("got %v", got)
		}
		pass(10 * time.Minute)
		p.none(t, "it is gone")
	})
}

func TestABrokerThatIsAwayLosesNothing(t *testing.T) {
	a := serving()
	a.set(replica("a"), incidenttest.WaitingPod("lone", "nvidia.com/gpu", nil))
	watching(t, a, nil, func(t *testing.T, p *taken) {
		lone := incident.ID(incident.Ref{Kind: "Pod", Namespace: "ml", Name: "lone"}, map[string]string{"nvidia.com/gpu": "1"})
		p.away(func(i incident.Incident) bool { return i.ID != lone && p.refused < 2 })
		pass(300 * time.Millisecond)
		synctest.Wait()
		if all := p.told(); len(all) != 1 || all[0].ID != lone || p.tries() != 1 {
			t.Errorf("%v were taken, %d refused: the one that is taken must not wait for the other", all, p.tries())
		}
		a.set(replica("b")) // by the time the broker is back more is true
		pass(5 * time.Second)
		got := p.news(t)
		if len(got) != 2 || !slices.Equal(names(got[1]), []string{"a", "b"}) || p.tries() != 2 {
			t.Errorf("%v were taken, %d refused; want what is true after two refusals", got, p.tries())
		}
	})
}

// A broker that has lost all it had is told everything again at once, not at the next sweep,
// and one that is back is not kept waiting for the next try.
func TestABrokerThatLostAllIsToldAgain(t *testing.T) {
	a := serving()
	a.set(replica("a"))
	watching(t, a, nil, func(t *testing.T, p *taken) {
		first := p.one(t)
		p.lose()
		if got := p.one(t); String(got) != String(first) {
			t.Errorf("told %v, want %v", got, first)
		}
		p.none(t, "it is told")
		p.away(func(incident.Incident) bool { return true })
		a.set(replica("b"))
		pass(35 * time.Second) // the pauses between the tries have grown
		p.away(nil)
		p.again <- struct{}{}
		if got := p.one(t); !slices.Equal(names(got), []string{"a", "b"}) {
			t.Errorf("got %v", got)
		}
	})
}

// A broker that is away for long is not asked in a hurry, storm or not; a
// resolution that it missed is told.
func TestTriesArePaced(t *testing.T) {
	a := serving()
	watching(t, a, nil, func(t *testing.T, p *taken) {
		p.after(t, func() { a.set(replica("a")) })
		p.away(func(incident.Incident) bool { return true })
		a.bind("a")
		for range 300 {
			a.set(a.get("a"))
			pass(time.Second)
		}
		if n := p.tries(); n < 10 || n > 80 {
			t.Errorf("%d tries in five minutes", n)
		}
		p.away(nil)
		pass(2 * maxRetry)
		if got := p.one(t); !got.Resolved {
			t.Errorf("got %v", got)
		}
	})
}

// What another watcher said last, and wrongly, is put right by the next sweep.
func TestTheLastWordIsTrue(t *testing.T) {
	a := serving()
	a.set(replica("a"))
	watching(t, a, nil, func(t *testing.T, p *taken) {
		first := p.one(t)
		wrong := first.AsResolved()
		wrong.Newest = "999"
		strange := incident.Incident{ID: "gpu-0123456789", Workload: incident.Ref{Kind: "Job", Namespace: "ml", Name: "gone"}, Newest: "7"}
		for _, i := range []incident.Incident{wrong, strange} {
			if err := p.publish(t.Context(), i); err != nil {
				t.Fatal(err)
			}
		}
		p.news(t)
		pass(time.Minute)
		got := p.news(t)
		first.Newest = wrong.Newest // or it would seem to be of an earlier moment
		if len(got) != 2 || !reflect.DeepEqual(got[0], first) || got[1].ID != strange.ID || !got[1].Resolved {
			t.Errorf("got %v", got)
		}
	})
}

// What an earlier watcher told is not told again; what it did not live to tell is.
func TestARestartGoesOn(t *testing.T) {
	a := serving()
	a.set(replica("a"), incidenttest.WaitingPod("lone", "nvidia.com/gpu", nil))
	var before []incident.Incident
	watching(t, a, nil, func(t *testing.T, p *taken) { before = p.news(t) })
	if len(before) != 2 {
		t.Fatalf("published %v", before)
	}
	a.set(replica("b"))
	watching(t, a, before, func(t *testing.T, p *taken) {
		got := p.one(t)
		before = append(before[:0:0], got)
		if !slices.Equal(names(got), []string{"a", "b"}) {
			t.Errorf("got %v", got)
		}
	})
	a.remove("b") // nobody sees that
	a.remove("lone")
	before = append(before, incident.Incident{ID: "gpu-0123456789", Workload: incident.Ref{Kind: "Job", Namespace: "ml", Name: "gone"}, Newest: "7"})
	watching(t, a, before, func(t *testing.T, p *taken) {
		got := p.news(t)
		if len(got) != 2 || !slices.Equal(names(got[0]), []string{"a"}) || got[0].Newest != before[0].Newest || got[1].ID != "gpu-0123456789" || !got[1].Resolved {
			t.Errorf("got %v, want one less, later than what was told, and the other resolved", got)
		}
	})
}

// The watcher follows incidenttest.Owners through the same kinds as a diagnosis does, or the
// two would not mean the same incident.
func TestOwnersOfEveryKindAreFollowed(t *testing.T) {
	custom := func(name string) []metav1.OwnerReference { return incidenttest.Owned("Custom", name) }
	a := newAPI(
		&appsv1.ReplicaSet{ObjectMeta: meta("rs", incidenttest.Owned("Deployment", "d"))}, &appsv1.Deployment{ObjectMeta: meta("d", custom("of-d"))},
		&appsv1.StatefulSet{ObjectMeta: meta("s", custom("of-s"))}, &appsv1.DaemonSet{ObjectMeta: meta("n", custom("of-n"))},
		&batchv1.Job{ObjectMeta: meta("j", incidenttest.Owned("CronJob", "c"))}, &batchv1.CronJob{ObjectMeta: meta("c", custom("of-c"))})
	for i, owner := range [][]metav1.OwnerReference{incidenttest.Owned("ReplicaSet", "rs"), incidenttest.Owned("StatefulSet", "s"), incidenttest.Owned("DaemonSet", "n"), incidenttest.Owned("Job", "j"), incidenttest.Owned("Other", "o")} {
		a.set(incidenttest.WaitingPod(fmt.Sprint("p", i), "nvidia.com/gpu", owner))
	}
	watching(t, a, nil, func(t *testing.T, p *taken) {
		var got []string
		for _, i := range p.news(t) {
			got = append(got, i.Workload.Kind+"/"+i.Workload.Name)
		}
		slices.Sort(got)
		if want := []string{"Custom/of-c", "Custom/of-d", "Custom/of-n", "Custom/of-s", "Other/o"}; !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}

// Without the right to list an owner's kind its name ends the chain; nothing
// waits for the right.
func TestAMissingRightEndsTheChain(t *testing.T) {
	a := serving()
	a.PrependReactor("list", "replicasets", func(act clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(act.GetResource().GroupResource(), "", errors.New("no role"))
	})
	a.set(replica("a"))
	watching(t, a, nil, func(t *testing.T, p *taken) {
		if got := p.one(t); got.Workload != (incident.Ref{Kind: "ReplicaSet", Namespace: "ml", Name: "serve-1"}) {
			t.Errorf("got %v", got)
		}
	})
}

// A Deployment that is deleted takes its ReplicaSet first and its pods after it:
// they are nobody else's incident in between.
func TestPodsOutliveTheirOwnersForAMoment(t *testing.T) {
	a := serving(&appsv1.Deployment{ObjectMeta: meta("serve", nil)})
	a.set(replica("a"))
	watching(t, a, nil, func(t *testing.T, p *taken) {
		p.one(t)
		if err := errors.Join(a.AppsV1().Deployments("ml").Delete(t.Context(), "serve", metav1.DeleteOptions{}), a.AppsV1().ReplicaSets("ml").Delete(t.Context(), "serve-1", metav1.DeleteOptions{})); err != nil {
			t.Fatal(err)
		}
		p.none(t, "the incidenttest.Owners are gone")
		if got := p.after(t, func() { a.remove("a") }); got.Workload != (incident.Ref{Kind: "Deployment", Namespace: "ml", Name: "serve"}) || !got.Resolved {
			t.Errorf("got %v", got)
		}
		// Those that stay are the ReplicaSet's in the end: nobody is above it any more.
		p.after(t, func() { a.set(replica("b")) })
		pass(3 * time.Minute)
		if got := p.news(t); len(got) != 2 || got[0].Workload != (incident.Ref{Kind: "ReplicaSet", Namespace: "ml", Name: "serve-1"}) || got[1].Workload.Kind != "Deployment" || !got[1].Resolved {
			t.Errorf("got %v", got)
		}
	})
}
