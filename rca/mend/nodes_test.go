package mend

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/edit/edittest"
	"github.com/unpend/unpend/rca/rcatest"
	"github.com/unpend/unpend/rca/upkeep"
	"github.com/unpend/unpend/rca/view"
)

// world is a small cluster that a test fills, in which pod a/w of deployment a/w waits.
type world struct{ *edittest.World }

func newWorld() *world { return &world{edittest.New()} }

// bench is what the pod that waits is made from, of a workload of that kind named w.
func (w *world) bench(t *testing.T) *edit.Workload {
	t.Helper()
	return edit.New(w.Case(t, "Deployment"))
}

// A node is opened with care, more so one that is closed for its GPU.
func TestUncordon(t *testing.T) {
	for _, quarantined := range []bool{false, true} {
		w := newWorld()
		taints := []corev1.Taint{{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}, {Key: "team", Effect: corev1.TaintEffectNoSchedule}}
		w.AddNode(sim.Node{Name: "n", Cordoned: true, Taints: taints}, func(n *corev1.Node, _ *nodeprobe.NodeGeometry) {
			if quarantined {
				edittest.Mark(t, n, diagnosis.Operation{Plan: strings.Repeat("a", 64), ID: "u", Step: "cordon", Quarantined: "GPU 0"})
			}
		})
		n := w.bench(t).Node("n")
		ch := Uncordon(n, nil)
		ch.Detail(&ch)
		want, step := "by plan, medium risk: uncordon n", "uncordon n (ask who cordoned it first)"
		if quarantined {
			want, step = "by plan, high risk: uncordon n, which unpend keeps closed for its sick GPU", "uncordon n (see first that its GPU is mended)"
		}
		o := n.DeepCopy()
		ch.Node(o)
		if edittest.Told(ch) != want || !slices.Equal(ch.Steps, []string{step}) || o.Spec.Unschedulable || len(o.Spec.Taints) != 1 || o.Spec.Taints[0].Key != "team" || len(n.Spec.Taints) != 2 {
			t.Errorf("%s, %q; %+v", edittest.Told(ch), ch.Steps, o.Spec)
		}
	}
}

// Who has closed a node for upkeep is named, with what shows how far that is; a node that is closed for its GPU
// is unpend's own.
func TestUncordonWhatIsKeptUp(t *testing.T) {
	for again, want := range map[bool]string{false: "by plan, medium risk: uncordon n, which kured has closed", true: "by plan, medium risk: uncordon n, which kured has closed and closes again when it goes on"} {
		w := newWorld()
		w.AddNode(sim.Node{Name: "n", Cordoned: true})
		by := &upkeep.Closure{Who: "kured", Again: again, See: "see its drain", Look: []string{"look"}}
		ch := Uncordon(w.bench(t).Node("n"), by)
		ch.Detail(&ch)
		if edittest.Told(ch) != want || !slices.Equal(ch.Steps, []string{"uncordon n (see its drain)"}) || !slices.Equal(ch.Commands, []string{"look", "kubectl uncordon n"}) || len(by.Look) != 1 {
			t.Errorf("%s, %q, %q", edittest.Told(ch), ch.Steps, ch.Commands)
		}
	}
	w := newWorld()
	w.AddNode(sim.Node{Name: "n", Cordoned: true}, func(n *corev1.Node, _ *nodeprobe.NodeGeometry) {
		edittest.Mark(t, n, diagnosis.Operation{Plan: strings.Repeat("a", 64), ID: "u", Step: "cordon", Quarantined: "GPU 0"})
	})
	ch := Uncordon(w.bench(t).Node("n"), &upkeep.Closure{Who: "kured", See: "see its drain"})
	ch.Detail(&ch)
	if edittest.Told(ch) != "by plan, high risk: uncordon n, which unpend keeps closed for its sick GPU" || ch.Steps[0] != "uncordon n (see first that its GPU is mended)" {
		t.Errorf("%s, %q", edittest.Told(ch), ch.Steps)
	}
}

// The pod of the device plugin is one that a DaemonSet makes again, known by its container, or
// by its name where no container tells.
func TestWhichPodIsThePlugin(t *testing.T) {
	daemon := func(name, container string) *corev1.Pod {
		p := rcatest.Victim(name, 0, 0, 0, "x")
		p.OwnerReferences[0].Kind, p.Spec.Containers[0].Name = "DaemonSet", container
		return p
	}
	stray := daemon("nvidia-device-plugin-stray", "nvidia-device-plugin")
	stray.OwnerReferences = nil
	job := daemon("nvidia-device-plugin-job", "nvidia-device-plugin")
	job.OwnerReferences[0].Kind = "Job"
	for name, tc := range map[string]struct {
		pods []*corev1.Pod
		want string
	}{
		"by its container":           {[]*corev1.Pod{daemon("other", "c"), daemon("named-so", "nvidia-device-plugin-ctr")}, "named-so"},
		"before one by its name":     {[]*corev1.Pod{daemon("nvidia-device-plugin-a", "c"), daemon("b", "nvidia-device-plugin")}, "b"},
		"by its name":                {[]*corev1.Pod{daemon("nvidia-device-plugin-a", "c")}, "nvidia-device-plugin-a"},
		"not the daemon for sharing": {[]*corev1.Pod{daemon("nvidia-device-plugin-mps-control-daemon-a", "c")}, ""},
		"not one of nobody":          {[]*corev1.Pod{stray, job}, ""},
	} {
		n := &view.Node{Node: &corev1.Node{}, Pods: tc.pods}
		got := ""
		if p := n.PluginPod(); p != nil {
			got = p.Name
		}
		if got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// The plugin is restarted by evicting its pod, by hand where that is not known; what it will
// offer nobody knows of a node without a report.
func TestThePluginIsRestarted(t *testing.T) {
	const says = "risk: restart the device plugin on n"
	for name, tc := range map[string]struct {
		plugin, report bool
		cause          diagnosis.CauseID
		want           string
		sick           bool // its device is not offered
		shown          bool // and its driver calls it sick
	}{
		"it is down":      {true, true, diagnosis.DevicePluginDown, "by plan, low " + says, false, false},
		"its pod is gone": {false, true, diagnosis.DevicePluginDown, "by hand, low " + says, false, false},
		"nothing reports": {true, false, diagnosis.DevicePluginDown, "by plan, low " + says + " (nobody knows what it will offer: nothing reports the GPUs of n)", false, false},
		"for a sick GPU":  {true, true, diagnosis.GPUUnhealthy, "by plan, low " + says, false, false},
		"still sick?":     {true, false, diagnosis.GPUUnhealthy, "by plan, low " + says + " (nothing reports whether the unhealthy devices of n are sound again: if they are, it offers them again, for health is one-way until it restarts)", true, false},
		"one is missing":  {true, false, diagnosis.GPUUnhealthy, "by plan, low " + says + " (nothing reports whether the driver of n finds the missing GPU by now: if it does, the device plugin offers it once it starts again)", false, false},
		"for instances":   {true, true, diagnosis.MIGLayoutDrift, "by plan, low " + says, false, false},
		"sick still":      {true, true, diagnosis.GPUUnhealthy, "by hand, low " + says + " (the driver shows GPU 0 of n sick still: only once that has passed does a restart give it back, for health is one-way until then)", true, true},
		"not marked":      {true, true, diagnosis.GPUUnhealthy, "by plan, low " + says, false, true},
	} {
		w := newWorld()
		w.AddNode(sim.Node{Name: "n", MIGOff: []int{0}})
		if tc.plugin {
			p := w.AddHolder("plugin", "n", "cpu", 0)
			p.OwnerReferences[0].Kind, p.Spec.Containers[0].Name = "DaemonSet", "nvidia-device-plugin"
		}
		if !tc.report {
			delete(w.Geometries, "n")
		}
		if tc.shown {
			w.Geometries["n"].Report.GPUs[0].Healthy = false
			w.Asking(rcatest.List("nvidia.com/gpu", "1"))
		}
		if tc.sick {
			w.Nodes[0].Status.Allocatable[view.WholeGPU] = resource.MustParse("0")
		}
		c := w.bench(t)
		ch := RestartPlugin(c, c.Node("n"), tc.cause)
		if edittest.Told(ch) != tc.want || ch.Cause != tc.cause || (ch.Detail == nil) == tc.plugin {
			t.Errorf("%s: %s, want %s", name, edittest.Told(ch), tc.want)
		}
		if ch.Detail != nil {
			if ch.Detail(&ch); (len(ch.Actions) == 0) != ch.Manual || len(ch.Commands) != 1 {
				t.Errorf("%s: %v, %q", name, ch.Actions, ch.Commands)
			}
		}
	}
}

// A ticket has all that who mends the hardware has to know.
func TestTicketOfASickGPU(t *testing.T) {
	w := newWorld()
	w.AddNode(sim.Node{Name: "n", GPUs: 2, MIGOff: []int{0, 1}}, func(n *corev1.Node, g *nodeprobe.NodeGeometry) {
		g.Report.GPUs[1].Healthy = false
		n.Status.NodeInfo.SystemUUID = "machine-1"
		n.Status.Allocatable = rcatest.List("nvidia.com/gpu", "1", "cpu", "1")
	})
	w.AddNode(sim.Node{Name: "well", MIGOff: []int{0}})
	c := w.bench(t)
	want := []string{"Hardware ticket: GPU unhealthy on node n", "machine: system UUID machine-1", "GPU 1: NVIDIA A100-SXM4-40GB, GPU-n-1, driver 580.126.09, unhealthy", "the device plugin offers 1 of 2 nvidia.com/gpu",
		"attach, from the node: nvidia-smi -q; dmesg | grep -i xid; nvidia-bug-report.sh"}
	if got := ticket(c.Node("n")); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := ticket(c.Node("well")); len(got) != 2 {
		t.Errorf("%q", got)
	}
	of := c.Node("well").Node
	of.Status.Capacity, of.Status.Allocatable = rcatest.List("amd.com/gpu", "1", "cpu", "1"), rcatest.List("cpu", "1")
	if got := ticket(c.Node("well")); strings.Contains(strings.Join(got, "\n"), "nvidia") {
		t.Errorf("of another maker: %q", got)
	}
	if some, no := SickText(c.Node("n")), SickText(c.Node("well")); some != "GPU 1" || no != "its GPUs" {
		t.Errorf("%q, %q", some, no)
	}
	delete(w.Geometries, "n")
	if some := SickText(w.bench(t).Node("n")); some != "the unhealthy ones of its GPUs" {
		t.Errorf("%q", some)
	}
	if a, b := sickSince(c.Node("n")), sickSince(c.Node("well")); !slices.Equal(a, []string{"reported at 2026-11-20 12:00 UTC"}) || b != nil {
		t.Errorf("%q, %q", a, b)
	}
}
