package growth

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/rcatest"
	"github.com/unpend/unpend/rca/scaling"
	"github.com/unpend/unpend/rca/view"
)

// of is what autoscalers make of pod a/w, which asks for a GPU and which no node would take, in
// a cluster that fill makes.
func of(t *testing.T, fill func(*rcatest.World)) *Growth {
	t.Helper()
	w := rcatest.NewWorld()
	w.Asking(rcatest.List("nvidia.com/gpu", "1"))
	fill(w)
	v, done, err := view.Open(t.Context(), w.State, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(done)
	return Of(Case{Cluster: v, Pod: w.Wait, Asks: view.AsksOf(w.Wait), Wants: view.PodRequests(w.Wait), NoNode: true})
}

// told is what is told, a line a cause.
func told(g *Growth) string {
	var out []string
	for _, id := range slices.Sorted(maps.Keys(g.told)) {
		out = append(out, fmt.Sprintf("%s %s: %s", id, g.told[id].Certainty, g.told[id].Says))
	}
	if g.OfTemplate != "" {
		out = append(out, fmt.Sprintf("of the template %s: %s", g.OfTemplate, g.Template.Says))
	}
	return strings.Join(out, "\n")
}

// says adds an Event about the pod, so long ago.
func says(w *rcatest.World, by, reason, message string, ago time.Duration) {
	w.Events = append(w.Events, &corev1.Event{InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: "a", Name: "w", UID: "w"}, Reason: reason, Message: message, ReportingController: by, LastTimestamp: metav1.Time{Time: rcatest.Noon.Add(-ago)}})
}

// status is the cluster autoscaler's ConfigMap, written so long ago.
func status(w *rcatest.World, ago time.Duration, groups string) {
	w.ConfigMaps = append(w.ConfigMaps, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: cluster.AutoscalerStatus,
		Annotations: map[string]string{"cluster-autoscaler.kubernetes.io/last-updated": rcatest.Noon.Add(-ago).Format(time.RFC3339)}},
		Data: map[string]string{"status": "autoscalerStatus: Running\nnodeGroups:\n" + groups}})
}

func condition(kind, status, reason, message string, ago time.Duration) any {
	return map[string]any{"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": rcatest.Noon.Add(-ago).Format(time.RFC3339)}
}

// machine is a NodeClaim of pool gpu for a GPU that Karpenter asked for so long ago.
func machine(w *rcatest.World, ago time.Duration, node string, conditions ...any) {
	w.NodeClaims = append(w.NodeClaims, &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": "gpu-abcde", "labels": map[string]any{"karpenter.sh/nodepool": "gpu"}, "creationTimestamp": rcatest.Noon.Add(-ago).Format(time.RFC3339)},
		"spec":     map[string]any{"resources": map[string]any{"requests": map[string]any{"nvidia.com/gpu": "1"}}},
		"status":   map[string]any{"nodeName": node, "conditions": conditions}}})
}

// pool is NodePool gpu, which makes machines with GPUs.
func pool(w *rcatest.World, limit, used string, conditions ...any) {
	w.NodePools = append(w.NodePools, &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "gpu"},
		"spec":   map[string]any{"limits": map[string]any{"nvidia.com/gpu": limit}},
		"status": map[string]any{"resources": map[string]any{"nvidia.com/gpu": used}, "conditions": conditions}}})
}

type row struct {
	fill func(*rcatest.World)
	want string
}

// run holds each row, in a cluster to which all of first is done before.
func run(t *testing.T, rows map[string]row, first ...func(*rcatest.World)) {
	t.Helper()
	for name, r := range rows {
		t.Run(name, func(t *testing.T) {
			g := of(t, func(w *rcatest.World) {
				for _, fill := range append(first, r.fill) {
					fill(w)
				}
			})
			if got := told(g); got != r.want {
				t.Errorf("%s\nwant\n%s", got, r.want)
			}
		})
	}
}

// Of an autoscaler that left no trace nothing is told, nor of Events about others.
func TestSilenceSaysNothing(t *testing.T) {
	run(t, map[string]row{
		"no trace": {func(*rcatest.World) {}, ""},
		"of a pod before it": {func(w *rcatest.World) {
			says(w, "karpenter", "Nominated", "Pod should schedule on: nodeclaim/gpu-abcde", 0)
			w.Events[0].InvolvedObject.UID = "before"
		}, ""},
		"another component's":   {func(w *rcatest.World) { says(w, "volcano", "FailedScheduling", "no", 0) }, ""},
		"its status is fresh":   {func(w *rcatest.World) { status(w, silentAfter, "") }, ""},
		"its status is old":     {func(w *rcatest.World) { status(w, silentAfter+time.Second, "") }, "AutoscalerCannotHelp likely: the cluster autoscaler has not written its status for 10 min: it does not run"},
		"old, and nodes unread": {func(w *rcatest.World) { status(w, time.Hour, ""); w.Unread["Node"] = "x" }, ""},
		"old, and a gate": {func(w *rcatest.World) {
			status(w, time.Hour, "")
			w.Wait.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "g"}}
		}, ""},
	})
}

// Karpenter's machine is on its way for as long as each step may take, then it is stuck; what
// the cloud refuses is told with its code.
func TestHowFarAMachineHasCome(t *testing.T) {
	launched, registered := condition("Launched", "True", "Launched", "", time.Minute), condition("Registered", "True", "Registered", "", time.Minute)
	waiting := func(kind string) any { return condition(kind, "Unknown", "Awaiting", "", time.Minute) }
	run(t, map[string]row{
		"is not, in time":   {func(w *rcatest.World) { machine(w, launchedBy+time.Second, "", waiting("Launched")) }, "ScaleUpStuck likely: the node that Karpenter asked for 5 min ago was never launched: Awaiting"},
		"is launched":       {func(w *rcatest.World) { machine(w, launchedBy, "", waiting("Launched")) }, "ScalingUp likely: Karpenter is bringing a node: NodeClaim gpu-abcde is being launched"},
		"is never launched": {func(w *rcatest.World) { machine(w, promised+time.Second, "", waiting("Launched")) }, "ScaleUpStuck likely: the node that Karpenter asked for 15 min ago was never launched: Awaiting"},
		"cannot be launched": {func(w *rcatest.World) {
			machine(w, 0, "", condition("Launched", "Unknown", "LaunchFailed", "no role", 0))
		}, "ScaleUpStuck likely: Karpenter cannot launch a node: NodeClaim gpu-abcde is not launched: LaunchFailed: no role"},
		"is not set up": {func(w *rcatest.World) {
			machine(w, 0, "", condition("Launched", "Unknown", "LaunchFailed", "UnauthorizedOperation", 0))
		}, "ScaleUpStuck likely: Karpenter cannot launch a node: NodeClaim gpu-abcde is not launched: LaunchFailed: UnauthorizedOperation"},
		"there is none left": {func(w *rcatest.World) {
			machine(w, 0, "", condition("Launched", "Unknown", "LaunchFailed", "InsufficientInstanceCapacity", 0))
		}, "CloudCapacityRefused proven: the cloud refuses the NodeClaim gpu-abcde with InsufficientInstanceCapacity: it has no such machine left there"},
		"has not joined yet": {func(w *rcatest.World) { machine(w, promised, "", launched, waiting("Registered")) }, "ScalingUp likely: Karpenter is bringing a node: NodeClaim gpu-abcde has not registered yet"},
		"has not joined":     {func(w *rcatest.World) { machine(w, promised+time.Second, "", launched) }, "ScaleUpStuck likely: the node that Karpenter asked for 15 min ago has not registered: NodeClaim gpu-abcde: no word of it"},
		"none of them joins": {func(w *rcatest.World) {
			machine(w, 0, "", launched, waiting("Registered"))
			pool(w, "9", "1", condition("NodeRegistrationHealthy", "False", "Failed", "", 0))
		}, "ScaleUpStuck likely: machines that Karpenter launches for NodePool gpu do not join the cluster (NodeRegistrationHealthy=False): NodeClaim gpu-abcde is the last of them"},
		"gets its GPUs": {func(w *rcatest.World) { machine(w, time.Hour, "n", launched, registered, waiting("Initialized")) }, "ScalingUp likely: Karpenter is bringing a node: NodeClaim gpu-abcde has registered as n and is not initialised yet"},
		"gets them no more": {func(w *rcatest.World) {
			machine(w, time.Hour, "n", launched, condition("Registered", "True", "Registered", "", equipped+time.Second), waiting("Initialized"))
		}, "ScaleUpStuck likely: the new node n came and is not usable: Awaiting"},
		"is there": {func(w *rcatest.World) {
			machine(w, time.Hour, "n", launched, registered, condition("Initialized", "True", "Initialized", "", 0))
		}, ""},
		"leaves": {func(w *rcatest.World) {
			machine(w, 0, "", waiting("Launched"))
			now := metav1.NewTime(rcatest.Noon)
			w.NodeClaims[0].SetDeletionTimestamp(&now)
		}, ""},
		"is for less": {func(w *rcatest.World) {
			machine(w, 0, "", waiting("Launched"))
			w.Asking(rcatest.List("nvidia.com/gpu", "2"))
		}, ""},
		"was for one before": {func(w *rcatest.World) {
			machine(w, time.Hour, "", waiting("Launched"))
			w.Wait.CreationTimestamp = metav1.NewTime(rcatest.Noon.Add(-time.Hour + promised + time.Second))
		}, ""},
	})
}

// A nomination is believed for as long as a machine may take; where one machine after the other
// was given up its time runs from the first.
func TestHowLongANominationIsBelieved(t *testing.T) {
	const bringing, word = "ScalingUp likely: an autoscaler is bringing a node", "Pod should schedule on: nodeclaim/"
	unread := func(w *rcatest.World) { w.Unread["NodeClaim"] = "x" }
	run(t, map[string]row{
		"in time": {func(w *rcatest.World) { unread(w); says(w, "karpenter", "Nominated", word+"x-1", promised) }, bringing},
		"late":    {func(w *rcatest.World) { unread(w); says(w, "karpenter", "Nominated", word+"x-1", promised+time.Second) }, "ScaleUpStuck likely: an autoscaler promised a node 15 min ago, and none has come that helps"},
		"the newest, unread": {func(w *rcatest.World) {
			unread(w)
			says(w, "karpenter", "Nominated", word+"x-1", time.Hour)
			says(w, "karpenter", "Nominated", word+"x-2", 0)
		}, bringing},
		"each given up": {func(w *rcatest.World) {
			says(w, "karpenter", "Nominated", word+"x-1", time.Hour)
			says(w, "karpenter", "Nominated", word+"x-2", 0)
		}, "ScaleUpStuck likely: an autoscaler promised a node 1 h ago, and none has come that helps"},
		"failed since": {func(w *rcatest.World) {
			unread(w)
			says(w, "karpenter", "Nominated", word+"x-1", time.Minute)
			says(w, "karpenter", "FailedScheduling", `incompatible with nodepool "gpu", did not tolerate taint`, 0)
		}, "of the template UntoleratedTaint: it does not tolerate the taint of what a NodePool makes: incompatible with nodepool \"gpu\", did not tolerate taint"},
		"failed before": {func(w *rcatest.World) {
			unread(w)
			says(w, "karpenter", "FailedScheduling", "no", time.Minute)
			says(w, "karpenter", "Nominated", word+"x-1", 0)
		}, bringing},
	})
}

// A NodePool at its limit is told where it is what the pod is for; one that could grow, or that
// is for others, is no limit. One that is not Ready Karpenter leaves out without a word.
func TestNodePoolsThatDoNotGrow(t *testing.T) {
	ready, not := condition("Ready", "True", "Ready", "", 0), condition("Ready", "False", "NodeClassNotReady", "no image", 0)
	const full = "AutoscalerLimit likely: NodePool gpu is at its limit: nvidia.com/gpu 2 of 2 used"
	run(t, map[string]row{
		"at its limit":          {func(w *rcatest.World) { pool(w, "2", "2", ready) }, full},
		"it could grow":         {func(w *rcatest.World) { pool(w, "3", "2", ready) }, ""},
		"one of two could grow": {func(w *rcatest.World) { pool(w, "2", "2", ready); pool(w, "3", "2", ready) }, ""},
		"for others": {func(w *rcatest.World) {
			pool(w, "2", "2", ready)
			w.Wait.Spec.NodeSelector = map[string]string{"team": "x"}
		}, ""},
		"a gate is closed": {func(w *rcatest.World) {
			pool(w, "2", "2", ready)
			w.Wait.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "g"}}
		}, ""},
		"Karpenter says so": {func(w *rcatest.World) {
			pool(w, "2", "2", ready)
			says(w, "karpenter", "FailedScheduling", `all available instance types exceed limits for nodepool: "gpu"`, 0)
		}, strings.Replace(full, "likely", "proven", 1)},
		"not Ready":  {func(w *rcatest.World) { pool(w, "9", "2", not) }, "AutoscalerCannotHelp likely: Karpenter leaves out what is not Ready, without a word: NodePool gpu (Ready=False NodeClassNotReady: no image)"},
		"another is": {func(w *rcatest.World) { pool(w, "9", "2", not); pool(w, "9", "2", ready) }, ""},
	})
}

// A pool is shut by the kind of its node class where it is known that Karpenter does not use it:
// one that says nothing may be open.
func TestWhichClassShutsAPool(t *testing.T) {
	pool := func(kind, ready, class string) scaling.Pool {
		return scaling.Pool{Ready: scaling.Condition{Status: ready}, Class: scaling.Class{Kind: kind, Ready: scaling.Condition{Status: class}}}
	}
	const mine, other = "EC2NodeClass", "AKSNodeClass"
	for name, tc := range map[string]struct {
		pools []scaling.Pool
		want  bool
	}{
		"no pool":                  {nil, false},
		"it is Ready":              {[]scaling.Pool{pool(mine, "True", "")}, false},
		"it is not":                {[]scaling.Pool{pool(mine, "False", "")}, true},
		"its class is not":         {[]scaling.Pool{pool(mine, "", "False")}, true},
		"nothing is known":         {[]scaling.Pool{pool(mine, "", "")}, false},
		"of another kind":          {[]scaling.Pool{pool(other, "False", "")}, false},
		"one of several, of those": {[]scaling.Pool{pool(other, "True", ""), pool(mine, "True", ""), pool(mine, "False", "")}, true},
	} {
		if got := (&Growth{Pools: tc.pools}).ShutBy(mine); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// A label that machines of a pool would have is meant, where Karpenter refuses that pool for its instance types: it compares
// labels first, and where those do not fit it says that.
func TestWhatAPoolWouldMeetIsMeant(t *testing.T) {
	for name, k := range map[string]struct {
		message string
		met     bool
	}{
		"as it says":       {`incompatible with nodepool "x", no instance type has enough resources, requirements=env In [dev], resources={}`, true},
		"of an older one":  {`incompatible with provisioner "x", no instance type satisfied resources {} and requirements env In [dev] (no instance type which had enough resources and the required offering met the scheduling requirements)`, true},
		"of another value": {`incompatible with nodepool "x", no instance type has enough resources, requirements=env In [prod], resources={}`, false},
		"of several":       {`incompatible with nodepool "x", no instance type has enough resources, requirements=env In [dev prod], resources={}`, false},
		"for its labels":   {`incompatible with nodepool "x", incompatible requirements, label "env" does not have known values`, false},
	} {
		g := of(t, func(w *rcatest.World) {
			w.Wait.Spec.NodeSelector = map[string]string{"env": "dev"}
			says(w, "karpenter", "FailedScheduling", k.message, 0)
		})
		where := of(t, func(w *rcatest.World) {
			w.Wait.Spec.NodeSelector = map[string]string{"topology.kubernetes.io/zone": "dev"}
			says(w, "karpenter", "FailedScheduling", strings.ReplaceAll(k.message, "env", "topology.kubernetes.io/zone"), 0)
		})
		if where.Met() {
			t.Errorf("%s: where there is none, it is met", name)
		}
		if g.Met() != k.met || (g.Meant("type", "env") != "") != k.met || g.Meant("type") != "" {
			t.Errorf("%s: %v, %q", name, g.Met(), g.Meant("type", "env"))
		}
	}
}

// What Karpenter says of its pools is sorted by what keeps the machine away.
func TestKarpentersWords(t *testing.T) {
	for message, want := range map[string]string{
		"no instance type has enough resources":                                     "AutoscalerCannotHelp likely: no instance type of its pools has room for what the pod asks for at once (1 nvidia.com/gpu with what DaemonSets take)",
		"no instance type met the required offering":                                "AutoscalerCannotHelp likely: no machine of those that would do is to be had in the zone and at the price (capacity type) that pool and pod allow, or the cloud refused them in the last minutes",
		"Dynamic Resource Allocation is not supported":                              "AutoscalerCannotHelp likely: Karpenter brings no node for a pod that claims devices by DRA in this way",
		"allocating dynamic resources, no instance type can satisfy the allocation": "AutoscalerCannotHelp likely: Karpenter finds no instance type with the devices that the pod claims by DRA: of a machine that is not there yet it knows those that its provider names, and none that a driver would publish",
		"incompatible requirements, label x":                                        "of the template NodeSelectorMismatch: its selector or affinity fits nothing that a NodePool makes: incompatible requirements, label x",
		"no instance type met all requirements":                                     "AutoscalerCannotHelp likely: Karpenter knows no instance type that meets what pod and NodePool require: no instance type met all requirements",
		"did not tolerate taint":                                                    "of the template UntoleratedTaint: it does not tolerate the taint of what a NodePool makes: did not tolerate taint",
		"something that no version has said before this":                            "AutoscalerCannotHelp likely: Karpenter looked and brings no node: something that no version has said before this",
	} {
		run(t, map[string]row{message: {func(w *rcatest.World) { says(w, "karpenter", "FailedScheduling", message, 0) }, want}})
	}
}

// What the cluster autoscaler promised is followed: to a group that is left alone, to machines
// that came without GPUs, or until its time is over.
func TestWhatTheClusterAutoscalerPromised(t *testing.T) {
	const up = "pod triggered scale-up: [{gpu-grp 0->1 (max: 3)}]"
	group := func(rest string) string {
		return "- name: gpu-grp\n  health: {status: Healthy, cloudProviderTarget: 1, maxSize: 3, nodeCounts: {registered: {total: 1, ready: 0" + rest
	}
	run(t, map[string]row{
		"in time": {func(w *rcatest.World) { says(w, "cluster-autoscaler", "TriggeredScaleUp", up, promised) }, "ScalingUp likely: an autoscaler is bringing a node"},
		"late":    {func(w *rcatest.World) { says(w, "cluster-autoscaler", "TriggeredScaleUp", up, promised+time.Second) }, "ScaleUpStuck likely: an autoscaler promised a node 15 min ago, and none has come that helps"},
		"taken back": {func(w *rcatest.World) {
			says(w, "cluster-autoscaler", "TriggeredScaleUp", up, time.Minute)
			says(w, "cluster-autoscaler", "NotTriggerScaleUp", "pod didn't trigger scale-up: 1 max node group size reached", 0)
		}, "AutoscalerLimit likely: the cluster autoscaler may not grow: max node group size reached"},
		"without GPUs": {func(w *rcatest.World) {
			says(w, "cluster-autoscaler", "TriggeredScaleUp", up, 0)
			status(w, 0, group(", unready: {total: 1, resourceUnready: 1}}}}"))
		}, "ScaleUpStuck likely: 1 node of node group gpu-grp came without GPUs"},
		"in back-off": {func(w *rcatest.World) {
			says(w, "cluster-autoscaler", "TriggeredScaleUp", up, 0)
			status(w, 0, group("}}}\n  scaleUp: {status: Backoff, backoffInfo: {errorCode: QUOTA_EXCEEDED, errorMessage: no}}"))
		}, "CloudCapacityRefused proven: the cloud refuses node group gpu-grp a machine with QUOTA_EXCEEDED: the account's quota is used up"},
		"by no code": {func(w *rcatest.World) {
			says(w, "cluster-autoscaler", "TriggeredScaleUp", up, 0)
			status(w, 0, group("}}}\n  scaleUp: {status: Backoff, backoffInfo: {errorCode: OTHER, errorMessage: it said so}}"))
		}, "CloudCapacityRefused likely: the cloud refuses node group gpu-grp a machine with OTHER: it said so"},
		"another group": {func(w *rcatest.World) {
			says(w, "cluster-autoscaler", "TriggeredScaleUp", "pod triggered scale-up: [{x 0->1 (max: 3)}]", 0)
			status(w, 0, group(", unready: {total: 1, resourceUnready: 1}}}}"))
		}, "ScalingUp likely: an autoscaler is bringing a node"},
	})
}

// Why no group of the cluster autoscaler's grows: its own limits before anything else, but not
// the size of groups none of which could hold the pod.
func TestWhyNoGroupGrows(t *testing.T) {
	no := func(reasons string, more ...func(*rcatest.World)) func(*rcatest.World) {
		return func(w *rcatest.World) {
			says(w, "cluster-autoscaler", "NotTriggerScaleUp", "pod didn't trigger scale-up: "+reasons, 0)
			for _, fill := range more {
				fill(w)
			}
		}
	}
	group := func(target string) func(*rcatest.World) {
		return func(w *rcatest.World) {
			status(w, 0, "- name: gpu-grp\n  health: {status: Unhealthy, cloudProviderTarget: "+target+", maxSize: 1, nodeCounts: {registered: {total: "+target+", ready: "+target+"}}}\n")
		}
	}
	cpu := func(w *rcatest.World) {
		w.Nodes = append(w.Nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "c"}})
	}
	run(t, map[string]row{
		"the size of a group":      {no("1 max node group size reached", group("1"), func(w *rcatest.World) { w.AddNode(sim.Node{Name: "n", MIGOff: []int{0}}) }), "AutoscalerLimit likely: at their largest size: node group gpu-grp (1 of 1)"},
		"of one without GPUs":      {no("1 max node group size reached, 1 Insufficient nvidia.com/gpu", group("1"), cpu), "AutoscalerCannotHelp likely: no fresh node of a group that may grow, as the cluster autoscaler knows them, has the nvidia.com/gpu that the pod asks for (1 Insufficient nvidia.com/gpu)"},
		"a quota of its own":       {no("1 exceeded quota: gpus"), "AutoscalerLimit likely: the cluster autoscaler's own limits are reached (no ResourceQuota, and not the cloud's): exceeded quota: gpus"},
		"none has GPUs":            {no("2 Insufficient nvidia.com/gpu"), "AutoscalerCannotHelp likely: no fresh node of any group, as the cluster autoscaler knows them, has the nvidia.com/gpu that the pod asks for (2 Insufficient nvidia.com/gpu)"},
		"one at zero may":          {no("1 Insufficient nvidia.com/gpu", group("0")), "AutoscalerCannotHelp likely: no fresh node of any group, as the cluster autoscaler knows them, has the nvidia.com/gpu that the pod asks for (1 Insufficient nvidia.com/gpu); of a group at zero (gpu-grp) it knows no more than its template says"},
		"none knows of instances":  {no("1 Insufficient nvidia.com/mig-1g.5gb", func(w *rcatest.World) { w.Asking(rcatest.List("nvidia.com/mig-1g.5gb", "1")) }), "AutoscalerCannotHelp likely: the cluster autoscaler knows no machine that offers nvidia.com/mig-1g.5gb: MIG instances and shares are made on the node, and no instance type or template speaks of them"},
		"its nodes are not ready":  {no("1 not ready for scale-up", group("1")), "AutoscalerCannotHelp likely: the cluster autoscaler leaves a node group alone whose nodes are not ready"},
		"the selector":             {no("1 node(s) didn't match Pod's node affinity/selector"), "of the template NodeSelectorMismatch: its selector or affinity fits nothing that a node group makes: node(s) didn't match Pod's node affinity/selector"},
		"a label of the node's":    {no("1 node(s) didn't match Pod's node affinity/selector", func(w *rcatest.World) { w.Wait.Spec.NodeSelector = map[string]string{"nvidia.com/gpu.product": "x"} }), "AutoscalerCannotHelp likely: the cluster autoscaler cannot know that nodes of a group at zero will have label nvidia.com/gpu.product, which the pod asks for: it is written on the node"},
		"the taint":                {no("1 node(s) had untolerated taint {a: b}"), "of the template UntoleratedTaint: it does not tolerate the taint of what a node group makes: node(s) had untolerated taint {a: b}"},
		"the volume":               {no("1 node(s) had volume node affinity conflict"), "AutoscalerCannotHelp likely: the cluster autoscaler brings no node, for the pod's volume could not be had on it\nof the template VolumeConflict: its volume cannot be had where the node groups are that have what it asks for: node(s) had volume node affinity conflict"},
		"another thing":            {no("1 something else"), "AutoscalerCannotHelp likely: the cluster autoscaler looked and cannot help"},
		"and one is at zero":       {no("1 something else", group("0")), "AutoscalerCannotHelp likely: the cluster autoscaler looked and cannot help: of a group at zero (gpu-grp) it knows what its template says, and counts no nvidia.com/gpu where that speaks of none"},
		"a group that just failed": {no("1 in backoff after failed scale-up"), "CloudCapacityRefused possible: a node group failed to grow shortly before, and is left alone for a while; with what code the cloud refused was not read"},
	})
}

// A ProvisioningRequest that has no capacity is told by the condition that says so.
func TestCapacityThatWasAskedForAhead(t *testing.T) {
	request := func(name string, k ...any) func(*rcatest.World) {
		return func(w *rcatest.World) {
			w.Wait.Annotations = map[string]string{"autoscaling.x-k8s.io/consume-provisioning-request": "r"}
			w.ProvisioningRequests = []*unstructured.Unstructured{{Object: map[string]any{"metadata": map[string]any{"namespace": "a", "name": name}, "status": map[string]any{"conditions": k}}}}
		}
	}
	const none = "AutoscalerCannotHelp likely: its ProvisioningRequest r has no capacity: "
	run(t, map[string]row{
		"it failed":       {request("r", condition("Failed", "True", "Out", "of stock", 0)), none + "Out: of stock"},
		"not yet":         {request("r", condition("Provisioned", "False", "Waiting", "", 0)), none + "Waiting"},
		"it has it":       {request("r", condition("Provisioned", "True", "Done", "", 0), condition("Failed", "False", "No", "", 0)), ""},
		"another's":       {request("s", condition("Failed", "True", "Out", "of stock", 0)), ""},
		"it says nothing": {request("r"), ""},
	})
}

// The age of a promise runs from when it was first made.
func TestAgeOfAPromise(t *testing.T) {
	if got := (&Growth{}).PromiseAge(rcatest.Noon); got != 0 {
		t.Errorf("%s for none", got)
	}
	g := of(t, func(w *rcatest.World) {
		w.Unread["NodeClaim"] = "x"
		says(w, "karpenter", "Nominated", "Pod should schedule on: nodeclaim/x-1", time.Minute)
		w.Events[0].FirstTimestamp = metav1.Time{Time: rcatest.Noon.Add(-5 * time.Minute)}
	})
	if got := g.PromiseAge(rcatest.Noon); got != 5*time.Minute || !g.By.Equal(rcatest.Noon.Add(promised-5*time.Minute)) || g.Told(diagnosis.ScalingUp) == nil || !g.Suits || !g.Karpenter {
		t.Errorf("%s, by %s: %+v", got, g.By, g)
	}
}
