package watcher

import (
	"reflect"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/watcher/incident"
	"github.com/unpend/unpend/watcher/incident/incidenttest"
)

// It is told when the event comes, not when the pod is bound, and resolved when the
// pod runs, as of that moment.
func TestUnpreparedDevicesAreToldAndResolved(t *testing.T) {
	a := newAPI()
	p := incidenttest.StartingPod("train")
	a.set(p)
	watching(t, a, nil, func(t *testing.T, told *taken) {
		told.none(t, "it is starting")
		pass(3 * time.Minute) // sweeps
		told.none(t, "it is starting slowly")
		if _, err := a.CoreV1().Events("ml").Create(t.Context(), incidenttest.UnpreparedEvent(p), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		first := told.one(t)
		w := incident.Ref{Kind: "Pod", Namespace: "ml", Name: "train"}
		want := incident.Incident{ID: incident.ID(w, map[string]string{}), Workload: w, Requests: map[string]string{}, Pods: []incident.PodRef{{Name: "train", UID: "u-train", Reason: incident.FailedPrepare}}, Waiting: 1, Since: incidenttest.Start, Newest: "101"}
		if !reflect.DeepEqual(first, want) {
			t.Errorf("got %+v\nwant %+v", first, want)
		}
		pass(3 * time.Minute)
		told.none(t, "nothing has changed")
		a.deafen(true)
		a.bind("train") // only a sweep sees that it runs
		pass(2 * time.Minute)
		last := told.one(t)
		if want := (incident.Incident{ID: first.ID, Workload: w, Requests: map[string]string{}, Pods: []incident.PodRef{}, Newest: last.Newest, Resolved: true}); !reflect.DeepEqual(last, want) {
			t.Errorf("got %+v\nwant %+v", last, want)
		}
	})
	b := newAPI(incidenttest.UnpreparedEvent(p))
	b.set(p)
	watching(t, b, nil, func(t *testing.T, told *taken) {
		first := told.one(t)
		last := told.after(t, func() { b.bind("train") })
		if !last.Resolved || last.ID != first.ID || last.Newest != "102" {
			t.Errorf("it runs: %+v", last)
		}
	})
}
