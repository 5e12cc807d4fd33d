package watcher

import (
	"reflect"
	"testing"
	"time"

	"github.com/unpend/unpend/watcher/incident/incidenttest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The kubelet's event has a pod wait that has its node, a claim and no sandbox; no
// other pod, and no event of anybody else's.
func TestWhoseDevicesAreNotPreparedWaits(t *testing.T) {
	for name, c := range map[string]struct {
		edit  func(p *corev1.Pod, e *corev1.Event)
		waits bool
	}{
		"as it is":                {func(*corev1.Pod, *corev1.Event) {}, true},
		"a dump without a source": {func(_ *corev1.Pod, e *corev1.Event) { e.Source = corev1.EventSource{} }, true},
		"a dump without uids":     {func(_ *corev1.Pod, e *corev1.Event) { e.InvolvedObject.UID = "" }, true},
		"the new API's event": {func(_ *corev1.Pod, e *corev1.Event) {
			e.Source, e.ReportingController = corev1.EventSource{}, "kubelet"
		}, true},
		"an extended resource": {func(p *corev1.Pod, _ *corev1.Event) {
			p.Spec.ResourceClaims, p.Status.ExtendedResourceClaimStatus = nil, &corev1.PodExtendedResourceClaimStatus{ResourceClaimName: "x"}
		}, true},
		"without conditions": {func(p *corev1.Pod, _ *corev1.Event) { p.Status.Conditions = nil }, true},
		"it runs":            {func(p *corev1.Pod, _ *corev1.Event) { p.Status.Phase = corev1.PodRunning }, false},
		"it has a sandbox":   {func(p *corev1.Pod, _ *corev1.Event) { p.Status.Conditions[1].Status = corev1.ConditionTrue }, false},
		"it is being deleted": {func(p *corev1.Pod, _ *corev1.Event) {
			at := metav1.NewTime(incidenttest.Start)
			p.DeletionTimestamp = &at
		}, false},
		"no claims":                 {func(p *corev1.Pod, _ *corev1.Event) { p.Spec.ResourceClaims = nil }, false},
		"another reason":            {func(_ *corev1.Pod, e *corev1.Event) { e.Reason = "FailedMount" }, false},
		"another pod of its name":   {func(_ *corev1.Pod, e *corev1.Event) { e.InvolvedObject.UID = "former" }, false},
		"another pod":               {func(_ *corev1.Pod, e *corev1.Event) { e.InvolvedObject.Name = "other" }, false},
		"another namespace":         {func(_ *corev1.Pod, e *corev1.Event) { e.InvolvedObject.Namespace = "other" }, false},
		"somebody else's words":     {func(_ *corev1.Pod, e *corev1.Event) { e.Source.Component = "chaos" }, false},
		"it waits for a node again": {func(p *corev1.Pod, _ *corev1.Event) { p.Spec.NodeName = "" }, true},
	} {
		t.Run(name, func(t *testing.T) {
			p := incidenttest.StartingPod("train")
			e := incidenttest.UnpreparedEvent(p)
			c.edit(p, e)
			before := p.DeepCopy()
			got := Group(WithKubelet([]*corev1.Pod{p}, []*corev1.Event{e}), incidenttest.Owners{}.Find)
			if !reflect.DeepEqual(p, before) {
				t.Errorf("the pod given was changed: %+v", p)
			}
			if len(got) != 0 != c.waits {
				t.Fatalf("incidents %+v", got)
			}
			if c.waits && p.Spec.NodeName != "" && (got[0].Waiting != 1 || !reflect.DeepEqual(got[0].Pods, []PodRef{{"train", "u-train", FailedPrepare}}) || !got[0].Since.Equal(incidenttest.Start)) {
				t.Errorf("got %+v", got[0])
			}
		})
	}
}

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
		w := Ref{"Pod", "ml", "train"}
		want := Incident{ID: IncidentID(w, map[string]string{}), Workload: w, Requests: map[string]string{}, Pods: []PodRef{{"train", "u-train", FailedPrepare}}, Waiting: 1, Since: incidenttest.Start, Newest: "101"}
		if !reflect.DeepEqual(first, want) {
			t.Errorf("got %+v\nwant %+v", first, want)
		}
		pass(3 * time.Minute)
		told.none(t, "nothing has changed")
		a.deafen(true)
		a.bind("train") // only a sweep sees that it runs
		pass(2 * time.Minute)
		last := told.one(t)
		if want := (Incident{ID: first.ID, Workload: w, Requests: map[string]string{}, Pods: []PodRef{}, Newest: last.Newest, Resolved: true}); !reflect.DeepEqual(last, want) {
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
