package kubelet

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/rcatest"
	"github.com/unpend/unpend/rca/view"
	"github.com/unpend/unpend/watcher/incident"
)

const few = "Allocate failed due to requested number of devices unavailable for nvidia.com/gpu. Requested: 2, Available: 1, which is unexpected"

// plugin adds the device plugin's pod of node n, which runs since then.
func plugin(w *rcatest.World, since time.Duration) {
	yes := true
	w.Pods = append(w.Pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "g", Name: "plugin", OwnerReferences: []metav1.OwnerReference{{Kind: "DaemonSet", Name: "d", UID: "d", Controller: &yes}}},
		Spec: corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{{Name: "nvidia-device-plugin"}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{Name: "nvidia-device-plugin", Ready: true,
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(rcatest.Noon.Add(since))}}}}}})
}

// up is since when node n is Ready.
func up(w *rcatest.World, since time.Duration) {
	w.Nodes[0].Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(rcatest.Noon.Add(since))}}
}

// more adds pods that the kubelet of a node has refused.
func more(w *rcatest.World, on string, count int, at time.Duration) {
	for i := range count {
		p := w.Wait.DeepCopy()
		p.Name, p.UID = fmt.Sprint(on, "-", i), types.UID(fmt.Sprint(on, i))
		when := metav1.NewTime(rcatest.Noon.Add(at))
		p.Spec.NodeName, p.Status = on, corev1.PodStatus{Phase: corev1.PodFailed, Reason: unexpectedAdmission, StartTime: &when}
		w.Pods = append(w.Pods, p)
	}
}

// asking has an init container ask for a GPU, too.
func asking(w *rcatest.World, count string) {
	w.Wait.Spec.InitContainers = []corev1.Container{{Name: "plain"}, {Name: "i", Resources: corev1.ResourceRequirements{Limits: rcatest.List("nvidia.com/gpu", count)}}}
}

// What stands behind a refusal is said with what the node shows of it now, and the kubelet's own
// words at the end.
func TestWhatIsSaidOfARefusal(t *testing.T) {
	const refusal, now = "the kubelet refused it at admission: ", " (now 2 of 2 nvidia.com/gpu are free)"
	const on = refusal + unexpectedAdmission + " on n"
	const quoted = "; it said: " + few
	for name, tc := range map[string]struct {
		reason, message string
		fill            func(*rcatest.World)
		want            string
	}{
		"its own words":          {"", "Pod was rejected: it\n said so", nil, on + "; it said: it said so"},
		"no word":                {"", "", nil, on},
		"sick":                   {"", "unhealthy devices", nil, on + ": the device plugin calls the devices unhealthy, until it restarts; it said: unhealthy devices"},
		"sick until a restart":   {"", "unhealthy devices", func(w *rcatest.World) { plugin(w, time.Second) }, on + ": the device plugin called the devices unhealthy; it has restarted since, and offers them all; it said: unhealthy devices"},
		"sick as it started":     {"", "unhealthy devices", func(w *rcatest.World) { plugin(w, 0) }, on + ": the device plugin calls the devices unhealthy, until it restarts; it said: unhealthy devices"},
		"the plugin was away":    {"", "code = Unavailable", func(w *rcatest.World) { up(w, -time.Hour) }, on + ": the device plugin was not there when the kubelet asked it; it said: code = Unavailable"},
		"it broke off meanwhile": {"", "code = Unavailable desc = error reading from server: EOF", func(w *rcatest.World) { up(w, -time.Hour) }, on + ": the device plugin broke off while it answered the kubelet; it said: code = Unavailable desc = error reading from server: EOF"},
		"on a node just booted":  {"", "code = Unavailable", func(w *rcatest.World) { up(w, -4*time.Minute) }, on + ": the device plugin was not there when the kubelet asked it: the node had been Ready for 4 min; it said: code = Unavailable"},
		"the kubelet is behind":  {"", few, func(w *rcatest.World) { up(w, -time.Hour) }, on + ": the kubelet's own table of devices had fewer free than the scheduler counts" + now + quoted},
		"one was leaving": {"", few, func(w *rcatest.World) {
			beside(w, func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: rcatest.Noon} })
		}, on + ": a/x was just leaving, and its devices were not given back yet" + quoted},
		"by hand": {"", few, func(w *rcatest.World) {
			w.Wait.Annotations = map[string]string{corev1.LastAppliedConfigAnnotation: `{"spec":{"nodeName":"n"}}`}
		}, on + ": its nodeName is written by hand, so no scheduler has counted what the node has left" + now + quoted},
		"two schedulers":         {"", few, func(w *rcatest.World) { beside(w, func(p *corev1.Pod) { p.Spec.SchedulerName = "volcano" }) }, on + ": scheduler default-scheduler chose the node, and volcano chose it for a/x: neither waits for the other (now 1 of 2 nvidia.com/gpu are free)" + quoted},
		"an init container":      {"", few, func(w *rcatest.World) { up(w, -time.Hour); asking(w, "1") }, on + ": its init container i asks for the devices too" + quoted},
		"one that asks none":     {"", few, func(w *rcatest.World) { up(w, -time.Hour); asking(w, "0") }, on + ": the kubelet's own table of devices had fewer free than the scheduler counts" + now + quoted},
		"beside what is known":   {"", "unhealthy devices", func(w *rcatest.World) { asking(w, "1") }, on + ": the device plugin calls the devices unhealthy, until it restarts; its init container i asks for the devices too; it said: unhealthy devices"},
		"beside its own words":   {"", "something", func(w *rcatest.World) { asking(w, "1") }, on + ": its init container i asks for the devices too; it said: something"},
		"its own count":          {"OutOfcpu", "", nil, refusal + "OutOfcpu on n: by the kubelet's own count the node was full (now 96 of 96 cpu are free)"},
		"of what no node has":    {"OutOfx", "", nil, refusal + "OutOfx on n: by the kubelet's own count the node was full"},
		"of a node that is gone": {"OutOfcpu", "", func(w *rcatest.World) { w.Nodes = nil }, refusal + "OutOfcpu on n: by the kubelet's own count the node was full"},
		"a storm":                {"", "something", func(w *rcatest.World) { more(w, "n", 2, 0) }, on + ": 3 refused pods lie on n, no other node has refused any; it said: something"},
		"two are no storm":       {"", "something", func(w *rcatest.World) { more(w, "n", 1, 0) }, on + "; it said: something"},
		"a storm everywhere":     {"", "something", func(w *rcatest.World) { more(w, "n", 2, 0); more(w, "m", 1, 0) }, on + ": 3 refused pods lie on n, other nodes have refused 1; it said: something"},
	} {
		t.Run(name, func(t *testing.T) {
			w := rcatest.NewWorld()
			node(w)
			w.Asking(rcatest.List("nvidia.com/gpu", "2"))
			if tc.fill != nil {
				tc.fill(w)
			}
			if tc.reason == "" {
				tc.reason = unexpectedAdmission
			}
			f, _ := refused(t, w, tc.reason, tc.message).Refused()
			if f.Says != tc.want {
				t.Errorf("%s\nwant\n%s", f.Says, tc.want)
			}
		})
	}
}

// The node's own figures and times are evidence, as far as it is there.
func TestWhatTheNodeShows(t *testing.T) {
	const said, at = "Pod/a/w: UnexpectedAdmissionError: " + few, "Pod/a/w: refused at 2026-11-20 12:00:00 UTC"
	for name, tc := range map[string]struct {
		fill func(*rcatest.World)
		want []string
	}{
		"all of it": {func(w *rcatest.World) {
			up(w, -time.Hour)
			plugin(w, -time.Minute)
			beside(w, func(p *corev1.Pod) { p.Spec.SchedulerName = "volcano" })
		}, []string{said, "Node/n: nvidia.com/gpu: capacity 2, allocatable 2, 1 free by the requests of its pods", "Node/n: Ready since 2026-11-20 11:00:00 UTC", "Pod/g/plugin: the device plugin runs since 2026-11-20 11:59:00 UTC",
			"Pod/a/x: asks for the same there, and schedulerName is volcano", at}},
		"one before": {func(w *rcatest.World) {
			w.Nodes[0].Status.Conditions = nil
			beside(w, func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: rcatest.Noon} })
		}, []string{said, "Node/n: nvidia.com/gpu: capacity 2, allocatable 2, 1 free by the requests of its pods", "Pod/a/x: asked for the same devices there, and was leaving", at}},
		"nothing": {func(w *rcatest.World) { w.Nodes = nil }, []string{said, "Node/n: is not there any more, or was not read"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := rcatest.NewWorld()
			node(w)
			tc.fill(w)
			f, _ := refused(t, w, unexpectedAdmission, few).Refused()
			var got []string
			for _, e := range f.Evidence {
				got = append(got, e.Ref+": "+e.Fact)
			}
			if strings.Join(got, "\n") != strings.Join(tc.want, "\n") {
				t.Errorf("%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(tc.want, "\n"))
			}
		})
	}
}

// Who had the devices before is one that is leaving, or had ended within two minutes of the
// refusal; not one that asks for other things or was refused itself.
func TestWhoHadTheDevicesBefore(t *testing.T) {
	ended := func(at time.Duration) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Status.Phase = corev1.PodSucceeded
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: metav1.NewTime(rcatest.Noon.Add(at - time.Hour))}}},
				{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: metav1.NewTime(rcatest.Noon.Add(at))}}}, {}}
		}
	}
	leaves := func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: rcatest.Noon} }
	for name, tc := range map[string]struct {
		edit   func(*corev1.Pod)
		before bool
		fine   bool
	}{
		"it runs":                    {func(*corev1.Pod) {}, false, false},
		"it leaves":                  {leaves, true, false},
		"it had ended":               {ended(-2*time.Minute + time.Second), true, true},
		"it had ended before":        {ended(-2 * time.Minute), false, true},
		"it has ended since":         {ended(2*time.Minute - time.Second), true, true},
		"it has ended long since":    {ended(2 * time.Minute), false, true},
		"it leaves, from elsewhere":  {func(p *corev1.Pod) { leaves(p); p.Spec.NodeName = "m" }, false, true},
		"it leaves, with other than": {func(p *corev1.Pod) { leaves(p); p.Spec.Containers[0].Resources = corev1.ResourceRequirements{} }, false, true},
		"it leaves, and asked none": {func(p *corev1.Pod) {
			leaves(p)
			p.Spec.Containers[0].Resources.Requests = rcatest.List("nvidia.com/gpu", "0")
		}, false, true},
		"it was refused, too": {func(p *corev1.Pod) {
			ended(0)(p) // it ran before its kubelet started again
			p.Status.Phase, p.Status.Reason = corev1.PodFailed, unexpectedAdmission
		}, false, true},
		"it was refused, and leaves": {func(p *corev1.Pod) {
			leaves(p)
			p.Status = corev1.PodStatus{Phase: corev1.PodFailed, Reason: unexpectedAdmission}
		}, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := rcatest.NewWorld()
			node(w)
			up(w, -time.Hour)
			beside(w, tc.edit)
			got := refused(t, w, unexpectedAdmission, few).Turned()
			if (got.Behind == NotReleased) != tc.before || len(got.Before) > 0 != tc.before || got.Fine != tc.fine {
				t.Errorf("%d, %d before, fine %v", got.Behind, len(got.Before), got.Fine)
			}
		})
	}
}

// A node that refuses one pod after the other is tried again only once its plugin, or its kubelet,
// has come back after the newest of them.
func TestAfterAStorm(t *testing.T) {
	for name, tc := range map[string]struct {
		message string
		fill    func(*rcatest.World)
		want    bool
	}{
		"of words":                        {"something", func(w *rcatest.World) { up(w, -time.Hour) }, false},
		"the node is back":                {"something", func(w *rcatest.World) { up(w, 11*time.Minute) }, true},
		"the node was, before the newest": {"something", func(w *rcatest.World) { up(w, 10*time.Minute) }, false},
		"the plugin is back":              {"something", func(w *rcatest.World) { up(w, -time.Hour); plugin(w, 11*time.Minute) }, true},
		"the plugin was, before it":       {"something", func(w *rcatest.World) { up(w, -time.Hour); plugin(w, 10*time.Minute) }, false},
		"of a lost GPU, reported well":    {"GPU is lost", func(w *rcatest.World) { up(w, -time.Hour) }, false},
		"for a NUMA node":                 {topologyAffinity, func(w *rcatest.World) { up(w, time.Hour) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := rcatest.NewWorld()
			node(w)
			tc.fill(w)
			more(w, "n", 2, 10*time.Minute)
			reason := unexpectedAdmission
			if tc.message == topologyAffinity {
				reason = topologyAffinity
			}
			got := refused(t, w, reason, tc.message).Turned()
			if got.Fine != tc.want || !got.Storm() || !got.Last.Equal(rcatest.Noon.Add(10*time.Minute)) {
				t.Errorf("fine %v, %+v", got.Fine, got)
			}
		})
	}
}

// Which NUMA node has what is told where the node has a NodeResourceTopology; else that by count
// there is enough, where the scheduler would take the node.
func TestWhatCouldNotBeAligned(t *testing.T) {
	zone := func(name, kind string, pairs ...string) any {
		var list []any
		for i := 0; i < len(pairs); i += 3 {
			list = append(list, map[string]any{"name": pairs[i], "available": pairs[i+1], "allocatable": pairs[i+2]})
		}
		return map[string]any{"name": name, "type": kind, "resources": list}
	}
	topology := func(of string, zones ...any) func(*rcatest.World) {
		return func(w *rcatest.World) {
			w.NodeTopologies = append(w.NodeTopologies, &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": of}, "zones": zones}})
		}
	}
	const says, end = "the kubelet of n could not align its devices and CPUs on one NUMA node", "; it said: x"
	const count = "; by count the node has them free, so it is where they lie"
	const one = "node-0 has 1 of 2 nvidia.com/gpu and 4 of 48 cpu"
	var many []any
	for i := range mostZones + 1 {
		many = append(many, zone(fmt.Sprint("z", i), "Node", "cpu", "1", "2"))
	}
	for name, tc := range map[string]struct {
		fill func(*rcatest.World)
		fits bool
		want string
	}{
		"nothing is known":      {nil, false, says},
		"there is enough":       {nil, true, says + count + ", which no object read here tells"},
		"zones":                 {topology("n", zone("node-0", "Node", "cpu", "4", "48", "nvidia.com/gpu", "1", "2"), zone("node-1", "Node", "nvidia.com/gpu", "1", "2"), zone("socket", "Socket", "cpu", "1", "1"), "odd"), true, says + count + ": by its NodeResourceTopology " + one + ", node-1 has 1 of 2 nvidia.com/gpu"},
		"zones of a full node":  {topology("n", zone("node-0", "Node", "cpu", "4", "48", "nvidia.com/gpu", "1", "2")), false, says + ": by its NodeResourceTopology " + one},
		"of another node":       {topology("m", zone("node-0", "Node", "cpu", "4", "48")), false, says},
		"of other things":       {topology("n", zone("node-0", "Node", "memory", "4", "48"), map[string]any{"name": "x", "type": "Node"}), false, says},
		"no numbers":            {topology("n", zone("node-0", "Node", "cpu", "x", "48"), zone("node-1", "Node", "cpu", "4", "x")), false, says},
		"so many, and no more":  {topology("n", many...), false, says + ": by its NodeResourceTopology z0 has 1 of 2 cpu, z1 has 1 of 2 cpu, z2 has 1 of 2 cpu, z3 has 1 of 2 cpu, z4 has 1 of 2 cpu, z5 has 1 of 2 cpu, z6 has 1 of 2 cpu, z7 has 1 of 2 cpu"},
		"the node is not there": {func(w *rcatest.World) { w.Nodes = nil }, true, says},
		"a storm":               {func(w *rcatest.World) { more(w, "n", 2, 0) }, false, says + "; 3 refused pods lie on n, no other node has refused any"},
	} {
		t.Run(name, func(t *testing.T) {
			w := rcatest.NewWorld()
			node(w)
			if tc.fill != nil {
				tc.fill(w)
			}
			var fits []string
			if tc.fits {
				fits = []string{"m", "n"}
			}
			f := refused(t, w, topologyAffinity, "x").Aligned(fits)
			if f.Says != tc.want+end {
				t.Errorf("%s\nwant\n%s", f.Says, tc.want+end)
			}
			if cpu := f.Evidence[len(f.Evidence)-1].Fact; len(w.Nodes) > 0 && cpu != "cpu: allocatable 96, 96 free by the requests of its pods" {
				t.Error(cpu)
			}
		})
	}
}

// What the kubelet could not prepare is told in its words, with each pod and its claims, which the
// claim shows where it is reserved for the pod, and else the pod; where the API server does not serve the version that an old kubelet asks for, that is why.
func TestWhatCouldNotBePrepared(t *testing.T) {
	const unserved = "Failed to prepare dynamic resources: prepare dynamic resources: could not fetch claim: the server could not find the requested resource"
	pod := func(w *rcatest.World, message string) []*corev1.Pod {
		claim := "mine"
		w.Wait.Spec.NodeName, w.Wait.Spec.ResourceClaims = "n", []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: &claim}}
		w.Wait.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Reason: incident.FailedPrepare, Message: "not this"}, {Type: corev1.PodReadyToStartContainers, Reason: "Other", Message: "nor this"},
			{Type: corev1.PodReadyToStartContainers, Reason: incident.FailedPrepare, Message: message}}
		return []*corev1.Pod{w.Wait}
	}
	there := func(w *rcatest.World) {
		w.ResourceClaims = []*resourcev1.ResourceClaim{{ObjectMeta: metav1.ObjectMeta{Namespace: "b", Name: "mine", UID: "b"}}, {ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "mine", UID: "m"}}}
	}
	const cannot = "proven: the kubelet of n could not prepare its devices: "
	const byPod, byClaim = "Pod/a/w spec.resourceClaims contains mine", "ResourceClaim/a/mine status.reservedFor[name=w] exists "
	reserved := func(name string) func(*rcatest.World) {
		return func(w *rcatest.World) { there(w); reserve(w.ResourceClaims[1], name, "") }
	}
	for name, tc := range map[string]struct {
		message string
		fill    func(*rcatest.World)
		want    string
		facts   int
		uses    string
	}{
		"its words":                   {"prepare dynamic resources: NodePrepareResources failed:\n no", there, cannot + "NodePrepareResources failed: no", 3, byPod},
		"a version that is not there": {unserved, there, "proven: the kubelet of n (v1.33.1) asks the API server for a version of resource.k8s.io that it does not serve, so it cannot read the claim, which is there; it said: could not fetch claim: the server could not find the requested resource", 4, byPod},
		"the claim is not there":      {unserved, func(w *rcatest.World) { there(w); w.ResourceClaims = w.ResourceClaims[:1] }, cannot + "could not fetch claim: the server could not find the requested resource", 3, byClaim},
		"the node is not there":       {unserved, func(w *rcatest.World) { there(w); w.Nodes = nil }, cannot + "could not fetch claim: the server could not find the requested resource", 3, byPod},
		"reserved for it":             {"no", reserved("w"), cannot + "no", 3, byClaim},
		"reserved for another":        {"no", reserved("other"), cannot + "no", 3, byPod},
	} {
		t.Run(name, func(t *testing.T) {
			w := rcatest.NewWorld()
			node(w)
			w.Nodes[0].Status.NodeInfo.KubeletVersion = "v1.33.1"
			tc.fill(w)
			unprepared := pod(w, tc.message)
			v := view.New(w.State)
			f := Prepared(v, unprepared)
			if got := fmt.Sprintf("%s: %s", f.Certainty, f.Says); got != tc.want || len(f.Evidence) != tc.facts {
				t.Errorf("%s, with %d\nwant\n%s", got, len(f.Evidence), tc.want)
			}
			last := f.Evidence[len(f.Evidence)-1]
			if k := last.Claims[0]; last.Ref != "ResourceClaim/a/mine" || fmt.Sprintf("%s %s %s %s", k.Ref, k.Path, k.Op, k.Value) != tc.uses {
				t.Errorf("%+v", last)
			}
		})
	}
	if f := Prepared(nil, nil); f != nil {
		t.Errorf("%+v of no pod", f)
	}
}

// A pod that asks for nothing has nothing that could be aligned, so nothing of the sort is said of it.
func TestAPodThatAsksForNothing(t *testing.T) {
	for name, k := range map[string]struct {
		requests corev1.ResourceList
		want     string
	}{
		"nothing":    {nil, "the Topology Manager of the kubelet of n refuses it, though it asks for no CPU, memory or device that could be aligned: older kubelets do so; it said: x"},
		"some CPU":   {rcatest.List("cpu", "1"), "the kubelet of n could not align its CPUs and memory on one NUMA node; it said: x"},
		"of a claim": {nil, "the kubelet of n could not align its devices and CPUs on one NUMA node; it said: x"},
	} {
		w := rcatest.NewWorld()
		node(w)
		c := refused(t, w, topologyAffinity, "x")
		c.Pod.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: k.requests}
		if name == "of a claim" {
			c.Pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu"}}
		}
		if f := c.Aligned(nil); f.Says != k.want {
			t.Errorf("%s: %s", name, f.Says)
		}
	}
}

// A device plugin's own refusal is told in its words; that no other node refuses such pods is no sign against one
// that alone has such devices.
func TestAPluginsOwnRefusal(t *testing.T) {
	const words = "Allocate failed due to rpc error: code = Unknown desc = no slot, which is unexpected"
	for name, other := range map[string]string{"": "nobody else has them", ", no other node has refused any": "another node has some"} {
		w := rcatest.NewWorld()
		node(w)
		if name != "" {
			w.AddNode(sim.Node{Name: "m", MIGOff: []int{0}})
		}
		more(w, "n", 2, 0)
		f, title := refused(t, w, unexpectedAdmission, words).Refused()
		if want := "the kubelet refused it at admission: UnexpectedAdmissionError on n: the device plugin itself did not give it the device: no slot; 3 refused pods lie on n" + name + "; it said: " + words; f.Says != want || title != "device plugin gave none" {
			t.Errorf("%s: %s (%s)\nwant\n%s", other, f.Says, title, want)
		}
	}
}
