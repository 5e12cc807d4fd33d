package layouts

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/view"
)

// Nothing of MIG manager's goes on on a node whose kubelet has been away for longer than a boot takes.
func TestWhatMIGManagerHasLeft(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		state string
		ready corev1.ConditionStatus
		since time.Duration
		want  bool
	}{
		"it was at work":        {"pending", corev1.ConditionUnknown, bootTime + time.Second, true},
		"it reboots":            {"rebooting", corev1.ConditionFalse, bootTime, false},
		"it is there":           {"pending", corev1.ConditionTrue, time.Hour, false},
		"it had done its work":  {"success", corev1.ConditionUnknown, time.Hour, false},
		"it was never asked":    {"", corev1.ConditionUnknown, time.Hour, false},
		"it had failed, before": {"failed", corev1.ConditionFalse, time.Hour, true},
	} {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{view.LabelMIGState: c.state}}}
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse}, {Type: corev1.NodeReady, Status: c.ready, LastTransitionTime: metav1.NewTime(now.Add(-c.since))}}
		w := view.New(&cluster.State{Now: now, Nodes: []*corev1.Node{n}})
		if got := Left(w, w.Nodes["n"]); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
