package kubelet

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/rcatest"
	"github.com/unpend/unpend/rca/view"
	"github.com/unpend/unpend/watcher/incident"
)

// A pod that its kubelet does not begin with: on a node that is Ready the kubelet hangs, as far as can be told; one that is not
// Ready is the cause. Nothing of it is done by a pod on that node.
func TestAPodThatNoKubeletTakesUp(t *testing.T) {
	for ready, want := range map[corev1.ConditionStatus]struct {
		cause diagnosis.CauseID
		sure  diagnosis.Certainty
		title string
	}{
		corev1.ConditionTrue:    {diagnosis.Unknown, diagnosis.Likely, "restart the kubelet of n, on the machine"},
		corev1.ConditionUnknown: {diagnosis.NodeNotReady, diagnosis.Proven, "see on the machine of n why its kubelet is not ready"},
	} {
		w := rcatest.NewWorld()
		pods := unprepared(w, "")
		pods[0].Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReadyToStartContainers, Status: corev1.ConditionFalse, Reason: incident.Untaken}}
		w.Nodes[0].Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}
		s := StopOf(view.New(w.State), pods)
		if s == nil || s.Cause != want.cause || s.Certainty != want.sure || !strings.HasPrefix(s.Title, want.title) || s.Kind != diagnosis.RestartKubelet || len(s.Evidence) != 3 {
			t.Errorf("%s: %+v", ready, s)
			continue
		}
		for _, command := range s.Commands {
			if strings.HasPrefix(command, "kubectl debug") {
				t.Errorf("%s: a pod is to begin there: %s", ready, command)
			}
		}
	}
}
