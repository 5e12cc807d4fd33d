package growth

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/rcatest"
)

// refusal has Karpenter say that the cloud has refused a machine, whose NodeClaim is gone.
func refusal(w *rcatest.World, claim, message string, ago time.Duration) {
	w.Events = append(w.Events, &corev1.Event{InvolvedObject: corev1.ObjectReference{Kind: "NodeClaim", Name: claim}, Reason: "InsufficientCapacityError", Message: message, ReportingController: "karpenter", LastTimestamp: metav1.Time{Time: rcatest.Noon.Add(-ago)}})
}

// plain is a NodePool that says nothing of GPUs.
func plain(w *rcatest.World, name string, conditions ...any) {
	w.NodePools = append(w.NodePools, &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": name}, "spec": map[string]any{}, "status": map[string]any{"conditions": conditions}}})
}

// A machine that the cloud refused is told for the pod that it was asked for: by its name, by a
// pool for such pods, or by the only pool that there is; and no more once the pool got one.
func TestMachinesThatTheCloudRefused(t *testing.T) {
	ready := condition("Ready", "True", "Ready", "", 0)
	const none = "CloudCapacityRefused likely: the cloud refuses Karpenter the NodeClaim gpu-abcde with InsufficientInstanceCapacity: it has no such machine left there"
	const out = "InsufficientInstanceCapacity: we have none"
	const bringing = "ScalingUp likely: an autoscaler is bringing a node"
	nominated := func(w *rcatest.World, claim string) {
		w.Unread["NodeClaim"] = "x"
		says(w, "karpenter", "Nominated", "Pod should schedule on: nodeclaim/"+claim, 0)
	}
	run(t, map[string]row{
		"of a pool for GPUs":  {func(w *rcatest.World) { pool(w, "9", "2", ready); refusal(w, "gpu-abcde", out, 0) }, none},
		"in no code":          {func(w *rcatest.World) { pool(w, "9", "2", ready); refusal(w, "gpu-abcde", "no", 0) }, "CloudCapacityRefused likely: the cloud refuses Karpenter the NodeClaim gpu-abcde: no machine of the wanted types is available"},
		"of the only pool":    {func(w *rcatest.World) { plain(w, "gpu", ready); refusal(w, "gpu-abcde", out, 0) }, none},
		"of one of two pools": {func(w *rcatest.World) { plain(w, "gpu", ready); plain(w, "x", ready); refusal(w, "gpu-abcde", out, 0) }, ""},
		"of a pool for others": {func(w *rcatest.World) {
			pool(w, "9", "2", ready)
			refusal(w, "gpu-abcde", out, 0)
			w.Wait.Spec.NodeSelector = map[string]string{"team": "x"}
		}, ""},
		"the newest": {func(w *rcatest.World) {
			pool(w, "9", "2", ready)
			refusal(w, "gpu-aaaaa", "QUOTA_EXCEEDED", time.Minute)
			refusal(w, "gpu-abcde", out, 0)
		}, none},
		"before the pod's time": {func(w *rcatest.World) {
			pool(w, "9", "2", ready)
			refusal(w, "gpu-abcde", out, promised+time.Second)
			w.Wait.CreationTimestamp = metav1.NewTime(rcatest.Noon)
		}, ""},
		"shortly before the pod": {func(w *rcatest.World) {
			pool(w, "9", "2", ready)
			refusal(w, "gpu-abcde", out, promised)
			w.Wait.CreationTimestamp = metav1.NewTime(rcatest.Noon)
		}, none},
		"the pool got one since": {func(w *rcatest.World) {
			pool(w, "9", "2", ready)
			refusal(w, "gpu-abcde", out, time.Minute)
			machine(w, 0, "n", condition("Launched", "True", "Launched", "", 0), condition("Registered", "True", "Registered", "", 0), condition("Initialized", "True", "Initialized", "", 0))
		}, ""},
		"the pool asks for one": {func(w *rcatest.World) {
			pool(w, "9", "2", ready)
			refusal(w, "gpu-abcde", out, time.Minute)
			machine(w, 0, "", condition("Launched", "Unknown", "Awaiting", "", 0))
			w.NodeClaims[0].Object["spec"] = map[string]any{}
		}, none},
		"the pool got one before": {func(w *rcatest.World) {
			pool(w, "9", "2", ready)
			refusal(w, "gpu-abcde", out, 0)
			machine(w, time.Minute, "n", condition("Launched", "True", "Launched", "", 0), condition("Registered", "True", "Registered", "", 0), condition("Initialized", "True", "Initialized", "", 0))
		}, none},
		"by the name promised": {func(w *rcatest.World) {
			w.Unread["NodePool"] = "x"
			nominated(w, "gpu-abcde")
			refusal(w, "gpu-abcde", out, 0)
			refusal(w, "other-abcde", out, time.Minute)
		}, none},
		"pools unread, one refused": {func(w *rcatest.World) {
			w.Unread["NodePool"] = "x"
			nominated(w, "x-1")
			refusal(w, "gpu-abcde", out, 0)
			refusal(w, "gpu-aaaaa", out, time.Minute)
		}, none},
		"pools unread, two refused": {func(w *rcatest.World) {
			w.Unread["NodePool"] = "x"
			nominated(w, "x-1")
			refusal(w, "gpu-abcde", out, 0)
			refusal(w, "x-abcde", out, 0)
		}, bringing},
		"pools read, and it is gone": {func(w *rcatest.World) { nominated(w, "x-1"); refusal(w, "gpu-abcde", out, 0) }, bringing},
		"pools unread, no device asked": {func(w *rcatest.World) {
			w.Unread["NodePool"] = "x"
			nominated(w, "x-1")
			refusal(w, "gpu-abcde", out, 0)
			w.Asking(rcatest.List("cpu", "1"))
		}, bringing},
	})
}

// A promise was kept where its machine is there: nothing is told of it. Of several the newest
// word counts, and one that was given up alone is no series.
func TestPromisesThatWereKept(t *testing.T) {
	launched, registered, usable := condition("Launched", "True", "Launched", "", 0), condition("Registered", "True", "Registered", "", 0), condition("Initialized", "True", "Initialized", "", 0)
	const bringing = "ScalingUp likely: an autoscaler is bringing a node"
	run(t, map[string]row{
		"by the claim": {func(w *rcatest.World) {
			says(w, "karpenter", "Nominated", "Pod should schedule on: nodeclaim/gpu-abcde", 0)
			machine(w, time.Minute, "n", launched, registered, usable)
		}, ""},
		"by the node": {func(w *rcatest.World) {
			says(w, "karpenter", "Nominated", "Pod should schedule on: node/n", 0)
			machine(w, time.Minute, "n", launched, registered, usable)
		}, ""},
		"of another claim": {func(w *rcatest.World) {
			says(w, "karpenter", "Nominated", "Pod should schedule on: nodeclaim/x-1", 0)
			machine(w, time.Minute, "n", launched, registered, usable)
		}, bringing},
		"named, for less": {func(w *rcatest.World) {
			says(w, "karpenter", "Nominated", "Pod should schedule on: nodeclaim/gpu-abcde", 0)
			machine(w, 0, "", condition("Launched", "Unknown", "Awaiting", "", 0))
			w.Asking(rcatest.List("nvidia.com/gpu", "2"))
		}, "ScalingUp likely: Karpenter is bringing a node: NodeClaim gpu-abcde is being launched"},
		"one given up, one there": {func(w *rcatest.World) {
			says(w, "karpenter", "Nominated", "Pod should schedule on: nodeclaim/x-1", time.Hour)
			says(w, "karpenter", "Nominated", "Pod should schedule on: nodeclaim/gpu-abcde", 0)
			machine(w, 0, "", launched)
			w.NodeClaims[0].SetDeletionTimestamp(&metav1.Time{Time: rcatest.Noon})
		}, "ScaleUpStuck likely: an autoscaler promised a node 1 h ago, and none has come that helps"},
		"one given up, said twice": {func(w *rcatest.World) {
			says(w, "karpenter", "Nominated", "Pod should schedule on: nodeclaim/x-1", time.Hour)
			says(w, "karpenter", "Nominated", "Pod should schedule on: nodeclaim/x-1", 0)
		}, "ScaleUpStuck likely: an autoscaler promised a node 1 h ago, and none has come that helps"},
		"one given up": {func(w *rcatest.World) {
			says(w, "karpenter", "Nominated", "Pod should schedule on: nodeclaim/x-1", time.Minute)
			w.Events[0].FirstTimestamp = metav1.Time{Time: rcatest.Noon.Add(-promised)}
		}, bringing},
	})
}

// A NodePool that is not Ready is told with what it says, and what the class behind it says;
// where Karpenter has spoken of the others, only one that is for GPUs counts.
func TestNodePoolsThatAreNotReady(t *testing.T) {
	ready, not := condition("Ready", "True", "Ready", "", 0), condition("Ready", "False", "NodeClassNotReady", "no image", 0)
	const left = "AutoscalerCannotHelp likely: Karpenter leaves out what is not Ready, without a word: NodePool "
	class := func(w *rcatest.World, of int, name string, conditions ...any) {
		if err := unstructured.SetNestedMap(w.NodePools[of].Object, map[string]any{"kind": "EC2NodeClass", "name": name}, "spec", "template", "spec", "nodeClassRef"); err != nil {
			t.Fatal(err)
		}
		w.NodeClasses.AWS = append(w.NodeClasses.AWS, &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": name}, "status": map[string]any{"conditions": conditions}}})
	}
	failed := func(w *rcatest.World) {
		says(w, "karpenter", "FailedScheduling", `did not tolerate taint, for nodepool "cpus"`, 0)
	}
	const taint = `of the template UntoleratedTaint: it does not tolerate the taint of what a NodePool makes: did not tolerate taint, for nodepool "cpus"`
	run(t, map[string]row{
		"it may be for GPUs": {func(w *rcatest.World) { plain(w, "any", not) }, left + "any (Ready=False NodeClassNotReady: no image)"},
		"with why": {func(w *rcatest.World) {
			pool(w, "9", "2", not, condition("ValidationSucceeded", "False", "Bad", "label", 0))
		}, left + "gpu (Ready=False NodeClassNotReady: no image; ValidationSucceeded=False Bad: label)"},
		"another may be for GPUs":   {func(w *rcatest.World) { pool(w, "9", "2", not); plain(w, "any", ready) }, left + "gpu (Ready=False NodeClassNotReady: no image)"},
		"it says nothing of itself": {func(w *rcatest.World) { plain(w, "any") }, ""},
		"its class": {func(w *rcatest.World) {
			pool(w, "9", "2", not)
			class(w, 0, "one", condition("Ready", "False", "AMI", "none", 0))
		}, left + "gpu (its EC2NodeClass one says Ready=False AMI: none)"},
		"its class is fine": {func(w *rcatest.World) { pool(w, "9", "2", not); class(w, 0, "one", ready) }, left + "gpu (Ready=False NodeClassNotReady: no image)"},
		"the class of the second": {func(w *rcatest.World) {
			pool(w, "9", "2", not)
			plain(w, "any", not)
			class(w, 1, "one", condition("Ready", "False", "AMI", "none", 0))
		}, left + "gpu, any (Ready=False NodeClassNotReady: no image)"},
		"Karpenter spoke of others":  {func(w *rcatest.World) { pool(w, "9", "2", not); plain(w, "cpus", ready); failed(w) }, left + "gpu (Ready=False NodeClassNotReady: no image)"},
		"and it may be for GPUs":     {func(w *rcatest.World) { plain(w, "any", not); plain(w, "cpus", ready); failed(w) }, taint},
		"and one for GPUs was asked": {func(w *rcatest.World) { pool(w, "9", "2", not); pool(w, "9", "2", ready); failed(w) }, taint},
	})
}

// What Karpenter says of limits counts of pools that could be for the pod; where no limit is
// seen to be used up the whole machine is more than is left.
func TestWhatKarpenterSaysOfLimits(t *testing.T) {
	ready := condition("Ready", "True", "Ready", "", 0)
	limit := func(of string) string { return `all available instance types exceed limits for nodepool: "` + of + `"` }
	const lacks = `; incompatible with nodepool "cpus", no instance type has enough resources`
	says := func(w *rcatest.World, message string) { says(w, "karpenter", "FailedScheduling", message, 0) }
	const left = "AutoscalerLimit likely: NodePool gpu has no limit left for a whole machine: nvidia.com/gpu 2 of 3 used (a limit is held against the instance type, not the pod)"
	run(t, map[string]row{
		"some is left":          {func(w *rcatest.World) { pool(w, "3", "2", ready); says(w, limit("gpu")) }, left},
		"of a pool unread":      {func(w *rcatest.World) { says(w, limit("gone")) }, "AutoscalerLimit likely: NodePool gone has reached its limits (what is used of them was not read)"},
		"of a pool without one": {func(w *rcatest.World) { says(w, "limits have been exhausted") }, "AutoscalerLimit likely: the node pool has reached its limits: limits have been exhausted"},
		"beside one that lacks": {func(w *rcatest.World) { pool(w, "3", "2", ready); plain(w, "cpus", ready); says(w, limit("gpu")+lacks) }, left},
		"of a pool for others": {func(w *rcatest.World) {
			plain(w, "cpus", ready)
			pool(w, "3", "2", ready)
			w.NodePools[1].Object["spec"].(map[string]any)["template"] = map[string]any{"spec": map[string]any{"taints": []any{map[string]any{"key": "a", "effect": "NoSchedule"}}}}
			says(w, limit("gpu")+lacks)
		}, "AutoscalerCannotHelp likely: no instance type of its pools has room for what the pod asks for at once (1 nvidia.com/gpu with what DaemonSets take)"},
		"instances, and nobody knows": {func(w *rcatest.World) {
			plain(w, "gpu", ready)
			w.Asking(rcatest.List("nvidia.com/mig-1g.5gb", "1"))
			says(w, limit("gpu")+lacks)
		}, "AutoscalerCannotHelp likely: Karpenter knows no machine that offers nvidia.com/mig-1g.5gb: MIG instances and shares are made on the node, and no instance type or template speaks of them"},
		"instances, of all pools": {func(w *rcatest.World) {
			plain(w, "gpu", ready)
			w.Asking(rcatest.List("nvidia.com/mig-1g.5gb", "1"))
			says(w, limit("gpu"))
		}, "AutoscalerLimit likely: NodePool gpu has no limit left for a whole machine:  (a limit is held against the instance type, not the pod)"},
	})
}

// An autoscaler takes a pool for one that the pod fits where all that it says is of limits, or where
// a pool at its limit is sure to suit.
func TestWhetherAPoolIsTakenForThePods(t *testing.T) {
	karpenter := func(message string) func(*rcatest.World) {
		return func(w *rcatest.World) {
			pool(w, "3", "2", condition("Ready", "True", "Ready", "", 0))
			says(w, "karpenter", "FailedScheduling", message, 0)
		}
	}
	limit := func(of string) string { return `all available instance types exceed limits for nodepool: "` + of + `"` }
	const taint = `; incompatible with nodepool "cpus", did not tolerate taint`
	groups := func(reasons string) func(*rcatest.World) {
		return func(w *rcatest.World) {
			says(w, "cluster-autoscaler", "NotTriggerScaleUp", "pod didn't trigger scale-up: "+reasons, 0)
		}
	}
	const most = "1 max node group size reached"
	for name, tc := range map[string]struct {
		fill func(*rcatest.World)
		want bool
	}{
		"a pool for GPUs":           {karpenter(limit("gpu")), true},
		"beside another's words":    {karpenter(limit("gpu") + taint), true},
		"a pool that was not read":  {karpenter(limit("gone")), true},
		"beside others, not read":   {karpenter(limit("gone") + taint), false},
		"groups at their size":      {groups(most), true},
		"beside a group for others": {groups(most + ", 1 node(s) had untolerated taint {a: b}"), false},
	} {
		if g := of(t, tc.fill); g.Suits != tc.want || g.Told(diagnosis.AutoscalerLimit) == nil {
			t.Errorf("%s: %v; %s", name, g.Suits, told(g))
		}
	}
}

// What a pod asks for beside GPUs is told with what DaemonSets take.
func TestWhatIsAskedForAtOnce(t *testing.T) {
	g := of(t, func(w *rcatest.World) {
		w.Asking(rcatest.List("nvidia.com/gpu", "8", "cpu", "90", "memory", "1Ti"))
		says(w, "karpenter", "FailedScheduling", "no instance type has enough resources", 0)
	})
	if got := told(g); !strings.HasSuffix(got, "(8 nvidia.com/gpu with 90 cpu and 1Ti memory, and what DaemonSets take)") {
		t.Error(got)
	}
}
