package kubelet

import (
	"cmp"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/rcatest"
	"github.com/unpend/unpend/rca/stack/parts"
	"github.com/unpend/unpend/rca/view"
	"github.com/unpend/unpend/watcher/incident"
)

// refused is the case of pod a/w, which asks for two GPUs and which the kubelet of node n has
// refused at noon.
func refused(t *testing.T, w *rcatest.World, reason, message string) *Case {
	t.Helper()
	w.Asking(rcatest.List("nvidia.com/gpu", "2"))
	at := metav1.NewTime(rcatest.Noon)
	w.Wait.Spec.NodeName = "n"
	w.Wait.Status = corev1.PodStatus{Phase: corev1.PodFailed, Reason: reason, Message: message, StartTime: &at}
	v, done, err := view.Open(t.Context(), w.State, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(done)
	return &Case{Subject: view.Subject{Cluster: v, Pod: w.Wait}, Workload: incident.Ref{Kind: "Pod", Namespace: "a", Name: "w"}, Refusal: w.Wait.Status, On: "n", Asks: view.AsksOf(w.Wait), Scheduler: cmp.Or(w.Wait.Spec.SchedulerName, corev1.DefaultSchedulerName)}
}

// node is n with two whole GPUs.
func node(w *rcatest.World) { w.AddNode(sim.Node{Name: "n", GPUs: 2, MIGOff: []int{0, 1}}) }

// holdAll has two pods hold both GPUs of the node, which began so much after noon.
func holdAll(w *rcatest.World, after time.Duration) {
	for _, name := range []string{"x", "y"} {
		p := w.AddHolder(name, "n", "nvidia.com/gpu", 0)
		p.Status.StartTime = &metav1.Time{Time: rcatest.Noon.Add(after)}
	}
}

// beside adds a pod of node n that asks for a GPU.
func beside(w *rcatest.World, edit func(*corev1.Pod)) {
	p := w.AddHolder("x", "n", "nvidia.com/gpu", 0)
	edit(p)
}

// trial is that the pod is the one by which the GPU Operator tries its device plugin.
func trial(w *rcatest.World) {
	w.Wait.Labels = map[string]string{"app": "nvidia-device-plugin-validator"}
	w.Wait.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "nvidia-operator-validator", Controller: new(true)}}
}

// What stands behind a refusal the kubelet's words tell as far as they differ, else the node and
// who is on it.
func TestWhatStandsBehind(t *testing.T) {
	const none = "Allocate failed due to requested number of devices unavailable for nvidia.com/gpu. Requested: 2, Available: 1, which is unexpected"
	byName := func(w *rcatest.World) {
		w.Wait.ManagedFields = []metav1.ManagedFieldsEntry{{FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:nodeName":{}}}`)}}
	}
	const unbound = "Allocate failed due to rpc error: code = Unknown desc = no binding pod found on node n, which is unexpected"
	hami := func(w *rcatest.World) { w.Nodes[0].Annotations = map[string]string{hamisCards: "GPU-a"} }
	for name, tc := range map[string]struct {
		reason, message string
		fill            func(*rcatest.World)
		want            Behind
	}{
		"words of NVML":                        {unexpectedAdmission, "GPU is lost. Reboot", nil, GPULost},
		"unhealthy":                            {unexpectedAdmission, "unhealthy devices", nil, GPUsSick},
		"not registered":                       {unexpectedAdmission, "cannot allocate unregistered device nvidia.com/gpu", nil, PluginAway},
		"the plugin died":                      {unexpectedAdmission, "rpc error: code = Unavailable", nil, PluginAway},
		"fewer than asked":                     {unexpectedAdmission, "unexpectedly allocated less resources than required", nil, DevicesMoved},
		"a plugin's of an older kubelet":       {unexpectedAdmission, "Update plugin resources failed due to rpc error: code = Unknown desc = candidate pod not found, which is unexpected.", nil, PluginSays},
		"an older kubelet's own table":         {unexpectedAdmission, "Update plugin resources failed due to node has no room, which is unexpected.", nil, DevicesMoved},
		"a uid that was there":                 {unexpectedAdmission, "pod a changed request for resource nvidia.com/gpu", nil, SameUID},
		"no NUMA node":                         {topologyAffinity, none, nil, Unaligned},
		"words of its own":                     {unexpectedAdmission, "something else", nil, OwnWords},
		"another reason":                       {"Evicted", none + "?", nil, Behindhand},
		"nothing explains it":                  {unexpectedAdmission, none, nil, Behindhand},
		"the node's own count":                 {"OutOfcpu", "Node didn't have enough resource: cpu", nil, CountedOver},
		"placed by a name":                     {unexpectedAdmission, none, byName, PlacedByHand},
		"placed by a name, by its label":       {"NodeAffinity", "", byName, PlacedByHand},
		"placed by a name, by its taint":       {"TaintToleration", "", byName, PlacedByHand},
		"placed by a name, by a port":          {"NodePorts", "", byName, PlacedByHand},
		"a port, and a scheduler's choice":     {"NodePorts", "", nil, OwnWords},
		"placed by a name, for another reason": {"Evicted", "", byName, OwnWords},
		"another scheduler's":                  {unexpectedAdmission, none, func(w *rcatest.World) { beside(w, func(p *corev1.Pod) { p.Spec.SchedulerName = "volcano" }) }, TwoSchedulers},
		"the same scheduler's":                 {unexpectedAdmission, none, func(w *rcatest.World) { beside(w, func(*corev1.Pod) {}) }, Behindhand},
		"all was held before":                  {unexpectedAdmission, none, func(w *rcatest.World) { holdAll(w, -time.Hour) }, AllHeld},
		"all was taken later":                  {unexpectedAdmission, none, func(w *rcatest.World) { holdAll(w, time.Hour) }, Behindhand},
		"another, of another thing":            {"OutOfcpu", "", func(w *rcatest.World) { beside(w, func(p *corev1.Pod) { p.Spec.SchedulerName = "volcano" }) }, CountedOver},
		"one is just leaving": {unexpectedAdmission, none, func(w *rcatest.World) {
			beside(w, func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: rcatest.Noon} })
		}, NotReleased},
		"an init container asks": {unexpectedAdmission, none, func(w *rcatest.World) {
			w.Wait.Spec.InitContainers = []corev1.Container{{Name: "i", Resources: corev1.ResourceRequirements{Limits: rcatest.List("nvidia.com/gpu", "1")}}}
		}, InitAsksToo},
		"an init container alone asks": {unexpectedAdmission, none, func(w *rcatest.World) {
			w.Wait.Spec.InitContainers = []corev1.Container{{Name: "i", Resources: w.Wait.Spec.Containers[0].Resources}}
			w.Wait.Spec.Containers[0].Resources = corev1.ResourceRequirements{}
		}, Behindhand},
		"the operator's trial": {unexpectedAdmission, none, func(w *rcatest.World) {
			trial(w)
			w.AddHolder("x", "n", "nvidia.com/gpu", 0)
			w.AddHolder("y", "n", "nvidia.com/gpu", 0)
		}, Trial},
		"its trial, and some are free":              {unexpectedAdmission, none, func(w *rcatest.World) { trial(w); w.AddHolder("x", "n", "nvidia.com/gpu", 0) }, Behindhand},
		"HAMi has not placed it":                    {unexpectedAdmission, unbound, hami, NotByHAMi},
		"HAMi has not placed it, in newer words":    {unexpectedAdmission, "no node lock naming a pending pod on node n", hami, NotByHAMi},
		"HAMi has, by its pod":                      {unexpectedAdmission, unbound, func(w *rcatest.World) { hami(w); w.Wait.Spec.SchedulerName = "hami-scheduler" }, PluginSays},
		"such words of a plugin that is not HAMi's": {unexpectedAdmission, unbound, nil, PluginSays},
		"a plugin's words of shares":                {unexpectedAdmission, `Allocate failed due to rpc error: code = Unknown desc = invalid allocation request for "a/b": c, which is unexpected`, nil, OwnWords},
		"MIG that the plugin may not read":          {unexpectedAdmission, "device plugin GetPreferredAllocation rpc failed with err: error creating nvml.Device 5: nvml: Insufficient Permissions", nil, NotPermitted},
		"other words of HAMi's plugin":              {unexpectedAdmission, "something else", hami, OwnWords},
		"its trial, and a sick GPU":                 {unexpectedAdmission, "unhealthy devices", trial, GPUsSick},
		"one that is named so by hand":              {unexpectedAdmission, none, func(w *rcatest.World) { trial(w); w.Wait.OwnerReferences = nil }, Behindhand},
		"the node had just come up": {unexpectedAdmission, none, func(w *rcatest.World) {
			w.Nodes[0].Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(rcatest.Noon.Add(-5 * time.Minute))}}
		}, PluginAway},
		"it had been up for longer": {unexpectedAdmission, none, func(w *rcatest.World) {
			w.Nodes[0].Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(rcatest.Noon.Add(-5*time.Minute - time.Second))}}
		}, Behindhand},
	} {
		t.Run(name, func(t *testing.T) {
			w := rcatest.NewWorld()
			node(w)
			if tc.fill != nil {
				tc.fill(w)
			}
			c := refused(t, w, tc.reason, tc.message)
			if got := c.Turned().Behind; got != tc.want {
				t.Errorf("%d, want %d", got, tc.want)
			}
			if first := c.Turned(); first != c.Turned() {
				t.Error("worked out twice")
			}
		})
	}
}

// Where what the containers ask is left and what the RuntimeClass adds is not, another scheduler than the
// default one has left that out; it would do so again.
func TestAnOverheadThatIsLeftOut(t *testing.T) {
	cpu := rcatest.List("cpu", "1")
	for name, tc := range map[string]struct {
		asks     string
		overhead corev1.ResourceList
		by, on   string
		want     Behind
	}{
		"it is short by that":       {"95500m", cpu, "kai-scheduler", "n", OverheadLeftOut},
		"all of the rest is asked":  {"96", cpu, "kai-scheduler", "n", OverheadLeftOut},
		"there is room for both":    {"95", cpu, "kai-scheduler", "n", CountedOver},
		"there is room for neither": {"97", cpu, "kai-scheduler", "n", CountedOver},
		"the default one counts it": {"95500m", cpu, corev1.DefaultSchedulerName, "n", CountedOver},
		"it adds something else":    {"97", rcatest.List("memory", "1Gi"), "kai-scheduler", "n", CountedOver},
		"it adds nothing":           {"97", nil, "kai-scheduler", "n", CountedOver},
		"the node is gone":          {"95500m", cpu, "kai-scheduler", "gone", CountedOver},
	} {
		w := rcatest.NewWorld()
		node(w)
		w.Wait.Spec.Overhead, w.Wait.Spec.RuntimeClassName = tc.overhead, new("kata")
		w.Wait.Spec.Containers = append(w.Wait.Spec.Containers, corev1.Container{Name: "d", Resources: corev1.ResourceRequirements{Requests: rcatest.List("cpu", tc.asks)}})
		w.Nodes[0].Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(rcatest.Noon.Add(-time.Hour))}}
		c := refused(t, w, "OutOfcpu", "")
		c.Scheduler, c.On = tc.by, tc.on
		got := c.Turned()
		f, words := c.Refused()
		if left := got.Behind == OverheadLeftOut; got.Behind != tc.want || left && got.Fine || left != (words == "overhead was not counted") || left != strings.Contains(f.Says, "with the overhead of RuntimeClass kata, 1 cpu: kai-scheduler has placed it as if it had none") {
			t.Errorf("%s: %d, fine %v, %q: %s", name, got.Behind, got.Fine, words, f.Says)
		}
	}
}

// A pod is tried again where the node has what it asks and what was behind the refusal is over;
// what is unknown is not fine.
func TestWhereItIsTriedAgain(t *testing.T) {
	ready := func(w *rcatest.World, at time.Duration) {
		w.Nodes[0].Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(rcatest.Noon.Add(at))}}
	}
	for name, tc := range map[string]struct {
		message string
		fill    func(*rcatest.World)
		want    bool
	}{
		"the node is well":        {"something", func(w *rcatest.World) { ready(w, -time.Hour) }, true},
		"nobody says it is ready": {"something", func(w *rcatest.World) { w.Nodes[0].Status.Conditions = nil }, false},
		"it is closed":            {"something", func(w *rcatest.World) { ready(w, -time.Hour); w.Nodes[0].Spec.Unschedulable = true }, false},
		"devices are missing": {"something", func(w *rcatest.World) {
			ready(w, -time.Hour)
			w.Nodes[0].Status.Allocatable["nvidia.com/gpu"] = rcatest.List("x", "1")["x"]
		}, false},
		"somebody holds one":        {"something", func(w *rcatest.World) { ready(w, -time.Hour); beside(w, func(*corev1.Pod) {}) }, false},
		"a lost GPU, reported well": {"GPU is lost", func(w *rcatest.World) { ready(w, -time.Hour) }, true},
		"a lost GPU, no report":     {"GPU is lost", func(w *rcatest.World) { ready(w, -time.Hour); delete(w.Geometries, "n") }, false},
		"unhealthy, reported well":  {"unhealthy devices", func(w *rcatest.World) { ready(w, -time.Hour) }, true},
		"unhealthy, no report":      {"unhealthy devices", func(w *rcatest.World) { ready(w, -time.Hour); delete(w.Geometries, "n") }, false},
		"unhealthy, HAMi is back":   {"unhealthy devices", func(w *rcatest.World) { ready(w, -time.Hour); delete(w.Geometries, "n"); hamisPlugin(w, time.Minute) }, true},
		"unhealthy, HAMi was there": {"unhealthy devices", func(w *rcatest.World) { ready(w, -time.Hour); delete(w.Geometries, "n"); hamisPlugin(w, -time.Minute) }, false},
		"a share of HAMi's, too": {"unhealthy devices", func(w *rcatest.World) {
			ready(w, -time.Hour)
			w.Wait.Spec.Containers = append(w.Wait.Spec.Containers, corev1.Container{Name: "s", Resources: corev1.ResourceRequirements{Requests: rcatest.List("nvidia.com/gpumem", "3000")}})
		}, true},
		"refused again since it came up": {"GPU is lost", func(w *rcatest.World) {
			ready(w, time.Minute)
			delete(w.Geometries, "n")
			saysAgain(w, 2*time.Minute)
		}, false},
		"MIG that may not be read": {parts.NotPermitted, func(w *rcatest.World) { ready(w, time.Minute) }, false},
		"it has come up since":     {"GPU is lost", func(w *rcatest.World) { ready(w, time.Minute); delete(w.Geometries, "n") }, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := rcatest.NewWorld()
			node(w)
			tc.fill(w)
			if got := refused(t, w, unexpectedAdmission, tc.message).Turned().Fine; got != tc.want {
				t.Errorf("fine: %v", got)
			}
		})
	}
}

// hamisPlugin has HAMi's device plugin on node n, begun that long after noon.
func hamisPlugin(w *rcatest.World, after time.Duration) {
	w.Pods = append(w.Pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "hami-device-plugin-x", OwnerReferences: []metav1.OwnerReference{{Kind: "DaemonSet", Name: "hami-device-plugin", Controller: new(true)}}},
		Spec: corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{{Name: "device-plugin"}, {Name: "vgpu-monitor"}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{
			{Name: "vgpu-monitor", Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}},
			{Name: "device-plugin", Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(rcatest.Noon.Add(after))}}}}}})
}

// saysAgain has the kubelet of n say that long after noon that it refuses the pod, and another that it refuses another.
func saysAgain(w *rcatest.World, after time.Duration) {
	w.Wait.UID = "w"
	for uid, at := range map[types.UID]time.Duration{"w": after, "other": time.Hour} {
		w.Events = append(w.Events, &corev1.Event{Reason: unexpectedAdmission, InvolvedObject: corev1.ObjectReference{Kind: "Pod", UID: uid}, LastTimestamp: metav1.NewTime(rcatest.Noon.Add(at))})
	}
}

// Which kind of refusal a pod's status has, and what is said of it.
func TestWhichRefusalItIs(t *testing.T) {
	for name, tc := range map[string]struct {
		phase           corev1.PodPhase
		reason, message string
		want            string
	}{
		"none":             {corev1.PodPending, "Unschedulable", "x", ""},
		"failed by itself": {corev1.PodFailed, "", "x", ""},
		"two shares":       {corev1.PodFailed, unexpectedAdmission, "maximum request size for shared resources is 1", "shares"},
		"no alignment":     {corev1.PodFailed, topologyAffinity, "x", "aligned"},
		"another":          {corev1.PodFailed, unexpectedAdmission, "x", "refused"},
	} {
		w := rcatest.NewWorld()
		node(w)
		c := refused(t, w, tc.reason, tc.message)
		c.Refusal.Phase = tc.phase
		got := ""
		if c.Shares() != nil {
			got += "shares"
		}
		if c.Aligned(nil) != nil {
			got += "aligned"
		}
		if f, _ := c.Refused(); f != nil {
			got += "refused"
		}
		if got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// A node that refuses one pod after the other is named with how many, here and elsewhere.
func TestAStormOfRefusals(t *testing.T) {
	w := rcatest.NewWorld()
	node(w)
	for i := range 2 {
		p := w.Wait.DeepCopy()
		p.Name, p.UID = fmt.Sprint("other", i), types.UID(fmt.Sprint(i))
		p.Spec.NodeName, p.Status = "n", corev1.PodStatus{Phase: corev1.PodFailed, Reason: unexpectedAdmission}
		w.Asking(rcatest.List("nvidia.com/gpu", "2"))
		p.Spec.Containers = w.Wait.Spec.Containers
		w.Pods = append(w.Pods, p)
	}
	c := refused(t, w, unexpectedAdmission, "GPU is lost")
	f, words := c.Refused()
	const want = "the kubelet refused it at admission: UnexpectedAdmissionError on n: NVML fails on a GPU of the node, and the device plugin looks at every one before it gives any: one lost GPU refuses all pods that ask for whole GPUs; 3 refused pods lie on n, no other node has refused any; it said: GPU is lost"
	if f.Says != want || words != "a lost GPU refuses all" || f.Certainty != diagnosis.Proven || c.Turned().Fine {
		t.Errorf("%q, %q; %+v", f.Says, words, c.Turned())
	}
}
