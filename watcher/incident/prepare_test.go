package incident

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/watcher/incident/incidenttest"
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
