package changes

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit/edittest"
	"github.com/unpend/unpend/rca/placement"
	"github.com/unpend/unpend/rca/rcatest"
	"github.com/unpend/unpend/rca/relayout"
	"github.com/unpend/unpend/rca/view"
)

// Taints that somebody has set are tolerated, all at once, by what they say; those that pass
// by themselves are not, and a node that goes is left alone.
func TestTaintsAreTolerated(t *testing.T) {
	team := corev1.Taint{Key: "team", Value: "x", Effect: corev1.TaintEffectNoSchedule}
	bare := corev1.Taint{Key: "gpu", Effect: corev1.TaintEffectNoExecute}
	for name, tc := range map[string]struct {
		taints []corev1.Taint
		has    []corev1.Toleration
		want   string
		add    []corev1.Toleration
	}{
		"one":                  {[]corev1.Taint{team}, nil, "tolerate team=x:NoSchedule in deployment/w", []corev1.Toleration{{Key: "team", Operator: "Equal", Value: "x", Effect: "NoSchedule"}}},
		"without a value":      {[]corev1.Taint{bare}, nil, "tolerate gpu:NoExecute in deployment/w", []corev1.Toleration{{Key: "gpu", Operator: "Exists", Effect: "NoExecute"}}},
		"two":                  {[]corev1.Taint{team, bare}, nil, "tolerate team=x:NoSchedule, gpu:NoExecute in deployment/w", []corev1.Toleration{{Key: "team", Operator: "Equal", Value: "x", Effect: "NoSchedule"}, {Key: "gpu", Operator: "Exists", Effect: "NoExecute"}}},
		"beside its own":       {[]corev1.Taint{team}, []corev1.Toleration{{Key: "a", Operator: "Exists"}}, "tolerate team=x:NoSchedule in deployment/w", []corev1.Toleration{{Key: "a", Operator: "Exists"}, {Key: "team", Operator: "Equal", Value: "x", Effect: "NoSchedule"}}},
		"not one that passes":  {[]corev1.Taint{team, {Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}}, nil, "tolerate team=x:NoSchedule in deployment/w", []corev1.Toleration{{Key: "team", Operator: "Equal", Value: "x", Effect: "NoSchedule"}}},
		"none where it leaves": {[]corev1.Taint{team, {Key: "karpenter.sh/disrupted", Effect: corev1.TaintEffectNoSchedule}}, nil, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.AddNode(sim.Node{Name: "n", Taints: tc.taints})
			w.Wait.Spec.Tolerations = tc.has
			w.Deployed()
			c := w.bench(t, "Deployment")
			got := c.addToleration(c.Node("n"))
			if tc.want == "" {
				if len(got) > 0 {
					t.Errorf("%s", edittest.ToldAll(got))
				}
				return
			}
			p := w.Wait.DeepCopy()
			got[0].Pod(p)
			if got[0].Title != tc.want || fmt.Sprint(p.Spec.Tolerations) != fmt.Sprint(tc.add) {
				t.Errorf("%s: %v, want %s: %v", got[0].Title, p.Spec.Tolerations, tc.want, tc.add)
			}
			want, _ := json.Marshal(tc.add)
			if patch := string(got[0].Actions[0].Patch); patch != `{"spec":{"template":{"spec":{"tolerations":`+string(want)+`}}}}` {
				t.Errorf("%s", patch)
			}
		})
	}
}

// A node is opened with care, more so one that is closed for its GPU.
func TestUncordon(t *testing.T) {
	for _, quarantined := range []bool{false, true} {
		w := newWorld()
		taints := []corev1.Taint{{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}, {Key: "team", Effect: corev1.TaintEffectNoSchedule}}
		w.AddNode(sim.Node{Name: "n", Cordoned: true, Taints: taints}, func(n *corev1.Node, _ *nodeprobe.NodeGeometry) {
			if quarantined {
				mark(t, n, diagnosis.Operation{Plan: strings.Repeat("a", 64), ID: "u", Step: "cordon", Quarantined: "GPU 0"})
			}
		})
		n := w.bench(t, "Deployment").Node("n")
		ch := uncordon(n)
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

func mark(t *testing.T, n *corev1.Node, op diagnosis.Operation) {
	t.Helper()
	text, err := op.Annotation()
	if err != nil {
		t.Fatal(err)
	}
	n.Annotations = map[string]string{diagnosis.OperationAnnotation: text}
}

// What can be done about a node that unpend has taken is to wait for a plan, to open one that
// is mended, or a person's.
func TestNodesThatAreTaken(t *testing.T) {
	plan := strings.Repeat("a", 64)
	const see = "by hand, none risk: see to n, which is %s (nothing is planned with n before a person has released it)"
	const open = "by plan, high risk: uncordon n, which unpend keeps closed for its sick GPU"
	quarantined := diagnosis.Operation{Plan: plan, ID: "u", Step: "cordon", Quarantined: "GPU 0"}
	closed := fmt.Sprintf(see, "quarantined by unpend: GPU 0")
	for name, tc := range map[string]struct {
		mark diagnosis.Operation
		edit func(*view.Node)
		also []diagnosis.CauseID
		want string
	}{
		"worked on":              {diagnosis.Operation{Plan: plan, ID: "u", Step: "cordon"}, nil, nil, "by hand, none risk: wait until unpend's plan aaaaaaa… for n has ended (what the plan makes of n is not known before it has ended)"},
		"parked":                 {diagnosis.Operation{Plan: plan, ID: "u", Step: "cordon", Parked: "it failed"}, nil, nil, fmt.Sprintf(see, "parked by unpend: it failed")},
		"quarantined, and well":  {quarantined, nil, nil, open},
		"and sick":               {quarantined, nil, nil, closed},
		"and nobody can read it": {quarantined, func(n *view.Node) { n.Unreadable = true }, nil, closed},
		"and it lacks something": {quarantined, nil, []diagnosis.CauseID{diagnosis.GPUsInUse}, closed},
		"with a way by hand":     {diagnosis.Operation{Plan: plan, ID: "u", Step: "cordon", Parked: "it failed"}, nil, []diagnosis.CauseID{diagnosis.MIGModePending}, fmt.Sprintf(see, "parked by unpend: it failed") + "; by hand, high risk: reboot n, or reset its GPUs (a reboot cannot be tried on a copy)"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.AddNode(sim.Node{Name: "n", MIGOff: []int{0}, Cordoned: true}, func(n *corev1.Node, g *nodeprobe.NodeGeometry) {
				mark(t, n, tc.mark)
				g.Report.GPUs[0].Healthy = name != "and sick"
			})
			c := w.bench(t, "Deployment")
			if tc.edit != nil {
				tc.edit(c.Node("n"))
			}
			if got := edittest.ToldAll(c.OfTaken(c.Node("n"), tc.also)); got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
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
	}{
		"it is down":      {true, true, diagnosis.DevicePluginDown, "by plan, low " + says},
		"its pod is gone": {false, true, diagnosis.DevicePluginDown, "by hand, low " + says},
		"nothing reports": {true, false, diagnosis.DevicePluginDown, "by plan, low " + says + " (nobody knows what it will offer: nothing reports the GPUs of n)"},
		"for a sick GPU":  {true, true, diagnosis.GPUUnhealthy, "by plan, low " + says},
		"still sick?":     {true, false, diagnosis.GPUUnhealthy, "by plan, low " + says + " (nothing reports whether the unhealthy devices of n are sound again: if they are, it offers them again, for health is one-way until it restarts)"},
		"for instances":   {true, true, diagnosis.MIGLayoutDrift, "by plan, low " + says},
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
		c := w.bench(t, "Deployment")
		ch := c.restartPlugin(c.Node("n"), tc.cause)
		if edittest.Told(ch) != tc.want || ch.Cause != tc.cause || (ch.Detail == nil) == tc.plugin {
			t.Errorf("%s: %s, want %s", name, edittest.Told(ch), tc.want)
		}
	}
}

// A ticket has all that who mends the hardware has to know.
func TestTicketOfASickGPU(t *testing.T) {
	w := newWorld()
	w.AddNode(sim.Node{Name: "n", GPUs: 2, MIGOff: []int{0, 1}}, func(n *corev1.Node, g *nodeprobe.NodeGeometry) {
		g.Report.GPUs[1].Healthy = false
		n.Status.NodeInfo.SystemUUID = "machine-1"
		n.Status.Allocatable = list("nvidia.com/gpu", "1", "cpu", "1")
	})
	w.AddNode(sim.Node{Name: "well", MIGOff: []int{0}})
	c := w.bench(t, "Deployment")
	want := []string{"Hardware ticket: GPU unhealthy on node n", "machine: system UUID machine-1", "GPU 1: NVIDIA A100-SXM4-40GB, GPU-n-1, driver 580.126.09, unhealthy", "the device plugin offers 1 of 2 nvidia.com/gpu",
		"attach, from the node: nvidia-smi -q; dmesg | grep -i xid; nvidia-bug-report.sh"}
	if got := ticket(c.Node("n")); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := ticket(c.Node("well")); len(got) != 2 {
		t.Errorf("%q", got)
	}
	if a, b := sickSince(c.Node("n")), sickSince(c.Node("well")); !slices.Equal(a, []string{"reported at 2026-11-20 12:00 UTC"}) || b != nil {
		t.Errorf("%q, %q", a, b)
	}
}

// What the pod asks besides what a layout is for has to be there too: more who hold it leave,
// or it cannot be.
func TestWhatAPodLacksBesideALayout(t *testing.T) {
	a := view.Ask{Resource: mig2g, Profile: "2g.10gb", Count: 1}
	for name, tc := range map[string]struct {
		asks  corev1.ResourceList
		fill  func(*world)
		want  string
		cause diagnosis.CauseID
	}{
		"nothing":                  {list(string(mig2g), "1"), nil, "map[]", diagnosis.HostResourcesShort},
		"CPU":                      {list(string(mig2g), "1", "cpu", "96"), func(w *world) { w.AddHolder("h", "n", "cpu", 0) }, "map[cpu:1000]", diagnosis.HostResourcesShort},
		"more CPU than there is":   {list(string(mig2g), "1", "cpu", "97"), nil, "", ""},
		"a whole GPU that is free": {list(string(mig2g), "1", "nvidia.com/gpu", "1"), nil, "map[]", diagnosis.HostResourcesShort},
		"a whole GPU that is held": {list(string(mig2g), "1", "nvidia.com/gpu", "1"), func(w *world) { w.AddHolder("h", "n", view.WholeGPU, 0) }, "map[nvidia.com/gpu:1000]", diagnosis.GPUsInUse},
		"more whole GPUs":          {list(string(mig2g), "1", "nvidia.com/gpu", "2"), nil, "", ""},
		"instances that are made":  {list(string(mig2g), "1", string(mig1g), "2"), nil, "map[]", diagnosis.HostResourcesShort},
		"instances that are held":  {list(string(mig2g), "1", string(mig1g), "2"), func(w *world) { w.AddHolder("h", "n", mig1g, 0) }, "map[nvidia.com/mig-1g.5gb:1000]", diagnosis.MIGInstancesInUse},
		"more than are made":       {list(string(mig2g), "1", string(mig1g), "3"), nil, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.AddNode(sim.Node{Name: "n", GPUs: 2, MIGOff: []int{1}, Layouts: [][]sim.Placed{sim.All("A100-40GB", "1g.5gb")}})
			if tc.fill != nil {
				tc.fill(w)
			}
			w.Asking(tc.asks)
			c := w.bench(t, "Deployment")
			n := c.Node("n")
			r := relayout.Way{Node: n, Now: c.Cluster.ClassOf(n).Layouts, Wanted: map[int]placement.Layout{0: {"1g.5gb": 2, "2g.10gb": 1}}, Remade: []int{0}}
			rest, ok := c.deficitsBeside(n, a, r)
			if got := fmt.Sprint(rest); ok != (tc.want != "") || ok && strings.Replace(got, "<nil>", "", 1) != tc.want {
				t.Errorf("%s, %v; want %s", got, ok, tc.want)
			}
			if ok && c.heldBeside(rest) != tc.cause {
				t.Errorf("for %s, want %s", c.heldBeside(rest), tc.cause)
			}
		})
	}
}
