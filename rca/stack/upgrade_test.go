package stack

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/stack/parts"
	"github.com/unpend/unpend/rca/view"
)

// An upgrade of the driver that keeps a node cordoned is told by how far it is, who holds it and
// for how long; a node that somebody else cordoned is not the upgrade's.
func TestUpgradesThatKeepANodeCordoned(t *testing.T) {
	since := func(d time.Duration) func(*lab, *corev1.Node) {
		return func(_ *lab, n *corev1.Node) {
			at := metav1.NewTime(noon.Add(-d))
			n.ManagedFields = []metav1.ManagedFieldsEntry{{}, {Time: &at, FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{"f:other":{}}}}`)}, {Time: &at, FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{"f:` + UpgradeState + `":{}}}}`)}}
		}
	}
	held := func(l *lab, _ *corev1.Node) {
		l.Pods = append(l.Pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "held"}, Spec: corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{view.WholeGPU: *quantity(1)}}}}}, Status: corev1.PodStatus{Phase: corev1.PodRunning}})
	}
	leaving := func(l *lab, n *corev1.Node) {
		held(l, n)
		l.Pods[len(l.Pods)-1].DeletionTimestamp = &metav1.Time{Time: noon}
	}
	const stuck, now = "is stuck in its driver's upgrade (drain-required) for 36 min", "has its driver upgraded now (drain-required)"
	for name, k := range map[string]struct {
		state string
		edit  func(*lab, *corev1.Node)
		is    State
		sure  diagnosis.Certainty
		says  string
		fact  string
		mends string
	}{
		"none":                           {"upgrade-done", func(*lab, *corev1.Node) {}, "", "", "", "", ""},
		"somebody had cordoned it":       {"drain-required", func(_ *lab, n *corev1.Node) { n.Annotations = map[string]string{cordonedBefore: "true"} }, "", "", "", "", ""},
		"it is open":                     {"drain-required", func(_ *lab, n *corev1.Node) { n.Spec.Unschedulable = false }, "", "", "", "", ""},
		"nobody knows since when":        {"drain-required", func(*lab, *corev1.Node) {}, Starting, diagnosis.Likely, now, "=drain-required", "Wait 36, RepairDeviceStack 20"},
		"since a moment ago":             {"drain-required", since(6 * time.Minute), Starting, diagnosis.Proven, now, "=drain-required since 2026-11-20 11:54 UTC", "Wait 30"},
		"for all the time that it takes": {"drain-required", since(upgradeTime), Starting, diagnosis.Proven, now, "=drain-required since 2026-11-20 11:24 UTC", "Wait 1"},
		"for longer":                     {"drain-required", since(upgradeTime + time.Second), Waiting, diagnosis.Proven, stuck, "=drain-required since 2026-11-20 11:23 UTC", "RepairDeviceStack 20"},
		"held by a pod":                  {"drain-required", held, Waiting, diagnosis.Proven, "cannot upgrade its driver while pods of users hold it", "=drain-required", "EvictPods 20, RebootNode 15"},
		"held by a pod that leaves":      {"drain-required", leaving, Starting, diagnosis.Likely, now, "=drain-required", "Wait 36, RepairDeviceStack 20"},
		"held, and it matters no more":   {"validation-required", held, Starting, diagnosis.Likely, "has its driver upgraded now (validation-required)", "=validation-required", "Wait 36, RepairDeviceStack 20"},
		"failed":                         {"upgrade-failed", func(*lab, *corev1.Node) {}, Failed, diagnosis.Proven, "failed to upgrade its driver, and stays cordoned for it", "=upgrade-failed", "RepairDeviceStack 20"},
		"failed, and held":               {"upgrade-failed", held, Failed, diagnosis.Proven, "failed to upgrade its driver, and stays cordoned for it", "=upgrade-failed", "EvictPods 20, RepairDeviceStack 20"},
		"failed by its pod": {"upgrade-failed", func(l *lab, _ *corev1.Node) { l.pod(parts.Driver, "n", crashes("no headers")) }, Failed, diagnosis.Proven,
			"failed to upgrade its driver, and stays cordoned for it: its driver's pod fails at nvidia-driver-ctr CrashLoopBackOff (9 restarts; last exit 1: no headers)", "=upgrade-failed", "RepairDeviceStack 20"},
		"failed, and its pod is well": {"upgrade-failed", func(l *lab, _ *corev1.Node) { l.pod(parts.Driver, "n", nil) }, Failed, diagnosis.Proven, "failed to upgrade its driver, and stays cordoned for it", "=upgrade-failed", "RepairDeviceStack 20"},
		"by the controller's Event": {"drain-required", func(l *lab, _ *corev1.Node) {
			l.Events = []*corev1.Event{{InvolvedObject: corev1.ObjectReference{Kind: "Node", Name: "n"}, Reason: "GPUDriverUpgrade", Message: "node state set to drain-required", LastTimestamp: metav1.NewTime(noon.Add(-6 * time.Minute))}}
		}, Starting, diagnosis.Proven, now, "=drain-required since 2026-11-20 11:54 UTC", "Wait 30"},
		"by an Event about another state": {"drain-required", func(l *lab, _ *corev1.Node) {
			l.Events = []*corev1.Event{{InvolvedObject: corev1.ObjectReference{Kind: "Node", Name: "n"}, Reason: "GPUDriverUpgrade", Message: "node state set to cordon-required", LastTimestamp: metav1.NewTime(noon.Add(-6 * time.Minute))}}
		}, Starting, diagnosis.Likely, now, "=drain-required", "Wait 36, RepairDeviceStack 20"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab()
			n := l.gpuNode("n")
			n.Labels[UpgradeState], n.Spec.Unschedulable = k.state, true
			k.edit(l, n)
			w := view.New(l.State)
			f := Of(w).Cordoned(w.Nodes["n"])
			if k.is == "" {
				if f != nil {
					t.Errorf("%+v", f)
				}
				return
			}
			var mends []string
			for _, m := range f.Mends {
				mends = append(mends, string(m.Kind)+" "+quantity(int64(m.Minutes)).String())
			}
			if f.State != k.is || f.Certainty != k.sure || f.Says != k.says || f.Evidence[0].Fact != "label "+UpgradeState+k.fact || strings.Join(mends, ", ") != k.mends {
				t.Errorf("%s %s %q, %q, mends %q", f.State, f.Certainty, f.Says, f.Evidence[0].Fact, mends)
			}
		})
	}
}
