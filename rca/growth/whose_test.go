package growth

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/rcatest"
	"github.com/unpend/unpend/rca/scaling"
)

// emptyPool has Karpenter say on a NodePool that it has no instance type left.
func emptyPool(w *rcatest.World, name string, ago time.Duration) {
	w.Events = append(w.Events, &corev1.Event{InvolvedObject: corev1.ObjectReference{Kind: "NodePool", Name: name}, Reason: "NoCompatibleInstanceTypes", Message: "NodePool requirements filtered out all compatible available instance types", ReportingController: "karpenter", LastTimestamp: metav1.Time{Time: rcatest.Noon.Add(-ago)}})
}

// requires has a NodePool ask for a value of a label.
func requires(w *rcatest.World, at int, key, value string) {
	spec := w.NodePools[at].Object["spec"].(map[string]any)
	spec["template"] = map[string]any{"spec": map[string]any{"requirements": []any{map[string]any{"key": key, "operator": "In", "values": []any{value}}}}}
}

// What Karpenter says of pools for others is no matter of the pod's, and a pool for it that is passed over it
// does not name at all.
func TestWhosePoolsKarpenterSpeaksOf(t *testing.T) {
	ready := condition("Ready", "True", "Ready", "", 0)
	const small = `incompatible with nodepool "x", no instance type has enough resources`
	const others = "AutoscalerCannotHelp likely: no instance type of its pools has room for what the pod asks for at once (1 nvidia.com/gpu with what DaemonSets take)"
	const over = "AutoscalerCannotHelp likely: NodePool gpu, which is for such a pod, has no instance type left, and Karpenter passes it over: what it requires leaves none, or the cloud has none of them now"
	both := func(w *rcatest.World) { plain(w, "x", ready); pool(w, "9", "2", ready) }
	run(t, map[string]row{
		"of the pool for others alone": {func(w *rcatest.World) { both(w); says(w, "karpenter", "FailedScheduling", small, 0) }, others},
		"passed over": {func(w *rcatest.World) {
			both(w)
			says(w, "karpenter", "FailedScheduling", small, 0)
			emptyPool(w, "gpu", time.Minute)
		}, over},
		"passed over long before": {func(w *rcatest.World) {
			both(w)
			says(w, "karpenter", "FailedScheduling", small, 0)
			emptyPool(w, "gpu", promised)
		}, others},
		"the other is": {func(w *rcatest.World) {
			both(w)
			says(w, "karpenter", "FailedScheduling", small, 0)
			emptyPool(w, "x", time.Minute)
		}, others},
		"for no such value": {func(w *rcatest.World) {
			both(w)
			requires(w, 1, "karpenter.sh/capacity-type", "ondemand")
			says(w, "karpenter", "FailedScheduling", small, 0)
			emptyPool(w, "gpu", time.Minute)
		}, "AutoscalerCannotHelp likely: NodePool gpu, which is for such a pod, takes no machine: it requires karpenter.sh/capacity-type In ondemand, and of that label there are on-demand, spot, reserved"},
	})
}

// Karpenter looks at taints before labels: a pool for GPUs that is refused for its taint, and whose labels the
// pod selects, is the one that it is meant for, whatever label the pools for others lack.
func TestPoolsBehindTheirTaint(t *testing.T) {
	for name, tc := range map[string]struct {
		operator, value, family string
		want                    diagnosis.CauseID
		tolerate                string
	}{
		"requires that the label exists": {"Exists", "", "p5", diagnosis.UntoleratedTaint, `{key: sku, operator: Equal, value: "gpu", effect: NoSchedule}`},
		"has it as asked":                {"In", "L40S", "p5", diagnosis.UntoleratedTaint, `{key: sku, operator: Equal, value: "gpu", effect: NoSchedule}`},
		"has another value of it":        {"In", "T4", "p5", diagnosis.NodeSelectorMismatch, ""},
		"is for others":                  {"Exists", "", "m5", diagnosis.NodeSelectorMismatch, ""},
	} {
		g := of(t, func(w *rcatest.World) {
			ready := condition("Ready", "True", "Ready", "", 0)
			plain(w, "x", ready)
			plain(w, "gpu", ready)
			label := map[string]any{"key": "model", "operator": tc.operator}
			if tc.value != "" {
				label["values"] = []any{tc.value}
			}
			w.NodePools[1].Object["spec"] = map[string]any{"template": map[string]any{"spec": map[string]any{
				"taints":       []any{map[string]any{"key": "sku", "value": "gpu", "effect": "NoSchedule"}},
				"requirements": []any{label, map[string]any{"key": "karpenter.k8s.aws/instance-family", "operator": "In", "values": []any{tc.family}}}}}}
			w.Wait.Spec.NodeSelector = map[string]string{"model": "L40S"}
			says(w, "karpenter", "FailedScheduling", `Failed to schedule pod, incompatible requirements, label "model" does not have known values (NodePool=x); did not tolerate taint (taint=sku=gpu:NoSchedule) (NodePool=gpu)`, 0)
		})
		if g.OfTemplate != tc.want || g.Tolerate != tc.tolerate {
			t.Errorf("%s: %s, %q", name, g.OfTemplate, g.Tolerate)
		}
		if g.Label != "" {
			t.Errorf("%s: no pool is said to have label %s, and one was not asked", name, g.Label)
		}
	}
}

// The cluster autoscaler counts groups by the reason and names none: those whose nodes are there account for
// what such a node would be refused for, and what is left over is said of the others.
func TestWhoseGroupsTheAutoscalerSpeaksOf(t *testing.T) {
	const down = "pod didn't trigger scale-up: "
	const startup = "1 node(s) had untolerated taint {acme.io/not-ready: true}"
	groups := grown("pool-cpu-1", 1, "") + grown("pool-gpu-1", 0, "")
	seen := func(w *rcatest.World) {
		status(w, 0, groups)
		member(w, "n1", "cpu", false).Status.Allocatable = rcatest.List("cpu", "64")
	}
	const lost = "AutoscalerCannotHelp likely: the cluster autoscaler takes machines of a group at zero (pool-gpu-1) for tainted acme.io/not-ready for good: by its name fresh nodes have that taint until something is up on them, of which it has not been told"
	run(t, map[string]row{
		"the taint is the empty one's": {func(w *rcatest.World) {
			seen(w)
			says(w, scaling.ClusterAutoscaler, "NotTriggerScaleUp", down+startup+", 1 Insufficient nvidia.com/gpu", 0)
		}, lost},
		"alone": {func(w *rcatest.World) {
			status(w, 0, grown("pool-gpu-1", 0, ""))
			says(w, scaling.ClusterAutoscaler, "NotTriggerScaleUp", down+startup, 0)
		}, lost},
		"no group is at zero": {func(w *rcatest.World) {
			status(w, 0, grown("pool-cpu-1", 1, ""))
			member(w, "n1", "cpu", false)
			says(w, scaling.ClusterAutoscaler, "NotTriggerScaleUp", down+startup, 0)
		}, "of the template UntoleratedTaint: it does not tolerate the taint of what a node group makes: node(s) had untolerated taint {acme.io/not-ready: true}"},
		"another taint": {func(w *rcatest.World) {
			seen(w)
			says(w, scaling.ClusterAutoscaler, "NotTriggerScaleUp", down+"1 node(s) had untolerated taint {acme.io/team: x}, 1 Insufficient nvidia.com/gpu", 0)
		}, "of the template UntoleratedTaint: it does not tolerate the taint of what a node group makes: node(s) had untolerated taint {acme.io/team: x}"},
	})
}
