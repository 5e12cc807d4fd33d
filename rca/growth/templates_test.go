package growth

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/rca/rcatest"
	"github.com/unpend/unpend/rca/scaling"
)

// Of several groups the one that was refused by the latest filter came nearest.
func TestTheGroupThatCameNearest(t *testing.T) {
	const (
		labels = "pod didn't trigger scale-up: 1 node(s) didn't match Pod's node affinity/selector"
		taint  = ", 1 node(s) had untolerated taint {team: vision}"
		others = "of the template UntoleratedTaint: the labels that it selects rule out every node group but those whose taint it does not tolerate: node(s) had untolerated taint {team: vision}"
		none   = "of the template NodeSelectorMismatch: its selector or affinity fits nothing that a node group makes: node(s) didn't match Pod's node affinity/selector"
	)
	refused := func(message string, fill ...func(*rcatest.World)) func(*rcatest.World) {
		return func(w *rcatest.World) {
			says(w, scaling.ClusterAutoscaler, "NotTriggerScaleUp", message, 0)
			w.Wait.Spec.NodeSelector = map[string]string{"team": "speech"}
			for _, f := range fill {
				f(w)
			}
		}
	}
	tainted := func(team string) func(*rcatest.World) {
		return func(w *rcatest.World) {
			w.Nodes = append(w.Nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"team": team}}, Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: "team", Value: "vision", Effect: corev1.TaintEffectNoSchedule}}}})
		}
	}
	run(t, map[string]row{
		"labels alone":                     {refused(labels), none},
		"a taint that nobody has seen":     {refused(labels + taint), others + "; their labels are looked at after that, and nobody has seen them"},
		"a taint of a node with the label": {refused(labels+taint, tainted("speech")), others},
		"a taint of a node without it":     {refused(labels+taint, tainted("vision")), none},
		"a taint alone":                    {refused("pod didn't trigger scale-up: 1 node(s) had untolerated taint {team: vision}"), "of the template UntoleratedTaint: it does not tolerate the taint of what a node group makes: node(s) had untolerated taint {team: vision}"},
		"a group at zero": {refused(labels, func(w *rcatest.World) { status(w, 0, grown("g", 0, "")) }),
			"AutoscalerCannotHelp possible: no node has label team, and of a group at zero (g) the cluster autoscaler knows no more labels than its template says\n" + none},
		"a group at zero, and a node with another value": {refused(labels, tainted("vision"), func(w *rcatest.World) { status(w, 0, grown("g", 0, "")) }), none},
		"a volume beside what lacks GPUs": {refused("pod didn't trigger scale-up: 4 Insufficient nvidia.com/gpu, 2 node(s) had volume node affinity conflict"),
			"AutoscalerCannotHelp likely: the cluster autoscaler brings no node, for the pod's volume could not be had on it: that is so of the node groups with all else that it asks for\nof the template VolumeConflict: its volume cannot be had where the node groups are that have what it asks for: node(s) had volume node affinity conflict"},
	})
}

// Below its cutoff the autoscaler says nothing of a pod, and is not asked again where it does speak.
func TestPodsThatAreLeftAlone(t *testing.T) {
	with := func(priority int32, fill ...func(*rcatest.World)) func(*rcatest.World) {
		return func(w *rcatest.World) {
			w.Wait.Spec.Priority = &priority
			status(w, 0, grown("g", 1, ""))
			for _, f := range fill {
				f(w)
			}
		}
	}
	const alone = "AutoscalerCannotHelp likely: the cluster autoscaler runs and has said nothing of it: below priority -10 it brings no node, unless its flag says otherwise (--expendable-pods-priority-cutoff), and the pod's is -11"
	run(t, map[string]row{
		"below":           {with(-11), alone},
		"at it":           {with(-10), ""},
		"it does not run": {with(-11, func(w *rcatest.World) { w.ConfigMaps = nil; status(w, silentAfter+time.Second, "") }), "AutoscalerCannotHelp likely: the cluster autoscaler has not written its status for 10 min: it does not run"},
		"it speaks of it": {with(-11, func(w *rcatest.World) {
			says(w, scaling.ClusterAutoscaler, "TriggeredScaleUp", "pod triggered scale-up: [{x 0->1 (max: 4)}]", 0)
		}), "ScalingUp likely: an autoscaler is bringing a node"},
		"without a status": {func(w *rcatest.World) { p := int32(-11); w.Wait.Spec.Priority = &p }, ""},
	})
}

// What Karpenter says of neighbours is told before what it says of pools that the pod cannot use.
func TestNeighboursThatNoNewNodeHas(t *testing.T) {
	other := func(w *rcatest.World) {
		w.NodePools = append(w.NodePools, &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "b"},
			"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"requirements": []any{map[string]any{"key": "slot", "operator": "In", "values": []any{"2", "3"}}}, "taints": []any{map[string]any{"key": "b", "effect": "NoSchedule"}}}}}}})
	}
	const spread = "AutoscalerCannotHelp likely: Karpenter brings no node, for none that it could make meets the pod's topology spread over slot"
	failed := func(message string, fill ...func(*rcatest.World)) func(*rcatest.World) {
		return func(w *rcatest.World) {
			pool(w, "9", "2", condition("Ready", "True", "Ready", "", 0))
			says(w, "karpenter", "FailedScheduling", "Failed to schedule pod, "+message, 0)
			for _, f := range fill {
				f(w)
			}
		}
	}
	run(t, map[string]row{
		"a spread":                     {failed("unsatisfiable topology constraint for topology spread, key=slot (counts = 1: 1) (NodePool=gpu); did not tolerate taint (taint=b:NoSchedule) (NodePool=b)"), spread},
		"a spread over others' values": {failed("unsatisfiable topology constraint for topology spread, key=slot (counts = 1: 1, 2: 0) (NodePool=gpu); did not tolerate taint (taint=b:NoSchedule) (NodePool=b)", other), spread + ": it counts the values of slot that NodePool b makes, where the pod cannot be"},
		"a spread over what has none":  {failed("unsatisfiable topology constraint for topology spread, key=slot (counts = : 0, 2: 1, 1: 1, podDomains = slot Exists, nodeDomains = slot In [1 2] (NodePool=gpu)"), spread + ": beside 1, 2 it counts machines that have no such value as one more, where none of its pods is"},
		"an affinity":                  {failed("unsatisfiable topology constraint for pod affinity, key=kubernetes.io/hostname (counts = n: 1) (NodePool=gpu)"), "AutoscalerCannotHelp likely: Karpenter brings no node, for none that it could make meets the pod's pod affinity over kubernetes.io/hostname"},
	})
}
