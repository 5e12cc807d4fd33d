package mend

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/edit/edittest"
	"github.com/unpend/unpend/rca/rcatest"
	"github.com/unpend/unpend/rca/stack"
	"github.com/unpend/unpend/rca/view"
)

// What mends a broken link is proved on a copy where it is known what the node offers then, and
// told as unproven else; who may not leave is not evicted.
func TestWhatMendsAFinding(t *testing.T) {
	known := func(bool) (func(*corev1.Node), string) { return func(*corev1.Node) {}, "" }
	unknown := func(asked bool) (func(*corev1.Node), string) {
		return nil, fmt.Sprintf("nobody knows, asked %v", asked)
	}
	victim, other := rcatest.Victim("v", 0, 1, 0, "v"), rcatest.Victim("o", 9, 1, 0, "o")
	for name, tc := range map[string]struct {
		mend  stack.Mend
		after func(bool) (func(*corev1.Node), string)
		want  string
		node  bool
	}{
		"by hand, and known":     {stack.Mend{Kind: diagnosis.RepairDeviceStack, Title: "x", Until: "y", Risk: diagnosis.LowRisk}, known, "by hand, low risk: x until y", true},
		"by hand, and unknown":   {stack.Mend{Kind: diagnosis.RepairDeviceStack, Title: "x", Until: "y", Risk: diagnosis.LowRisk}, unknown, "by hand, low risk: x (nobody knows, asked false)", false},
		"a wait, and unknown":    {stack.Mend{Kind: diagnosis.Wait, Title: "x", Until: "y", Risk: diagnosis.NoRisk}, unknown, "by hand, none risk: x (nobody knows, asked true)", false},
		"unproven by itself":     {stack.Mend{Kind: diagnosis.RepairDeviceStack, Title: "x", Until: "y", Risk: diagnosis.LowRisk, Unproven: "z"}, known, "by hand, low risk: x (z)", false},
		"an eviction":            {stack.Mend{Kind: diagnosis.EvictPods, Title: "x", Until: "y", Risk: diagnosis.LowRisk, Victims: []*corev1.Pod{victim}}, known, "by plan, low risk: x until y, stops v", true},
		"of one who may not":     {stack.Mend{Kind: diagnosis.EvictPods, Title: "x", Risk: diagnosis.LowRisk, Victims: []*corev1.Pod{victim, other}}, known, "", false},
		"a reboot":               {stack.Mend{Kind: diagnosis.RebootNode, Title: "x", Until: "y", Risk: diagnosis.HighRisk}, known, "by hand, high risk: x until y, drains h", true},
		"a machine's new image":  {stack.Mend{Kind: diagnosis.RepairDeviceStack, Title: "x", Until: "y", Risk: diagnosis.MediumRisk, Reboots: true}, known, "by hand, medium risk: x until y, drains h", true},
		"a restart":              {stack.Mend{Kind: diagnosis.RestartDevicePlugin, Title: "x"}, unknown, "by hand, low risk: restart the device plugin on n until the device plugin of n has registered its devices again", true},
		"a restart that helps":   {stack.Mend{Kind: diagnosis.RestartDevicePlugin, Until: "y"}, known, "by hand, low risk: restart the device plugin on n until the device plugin of n has registered its devices again", true},
		"a restart, and unknown": {stack.Mend{Kind: diagnosis.RestartDevicePlugin, Until: "y"}, unknown, "by hand, low risk: restart the device plugin on n until the device plugin of n has registered its devices again", true},
		"a restart, unproven":    {stack.Mend{Kind: diagnosis.RestartDevicePlugin, Unproven: "z"}, unknown, "by hand, low risk: restart the device plugin on n (z) until the device plugin of n has registered its devices again", true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.Wholes("n")
			w.Pods[1].Name = "h"
			c := w.bench(t)
			got := ""
			for _, ch := range mends(c, c.Node("n"), &stack.Finding{Cause: diagnosis.GPUStackNotOnNode, Mends: []stack.Mend{tc.mend}}, tc.after) {
				got += edittest.Told(ch)
				if ch.Until != "" {
					got += " until " + ch.Until
				}
				for _, v := range ch.Victims {
					got += ", stops " + v.Name
				}
				for _, v := range ch.Drained {
					got += ", drains " + v.Name
				}
				if (ch.Node != nil) != tc.node || ch.Cause != diagnosis.GPUStackNotOnNode {
					t.Errorf("%+v", ch)
				}
			}
			if got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}

// What a plugin offers that starts again is told by what is written for it, where no report is.
func TestARestartOffersWhatIsWritten(t *testing.T) {
	w := newWorld()
	w.Wholes("n")
	delete(w.Geometries, "n")
	c := w.bench(t)
	for why, offers := range map[string]corev1.ResourceList{"": rcatest.List("nvidia.com/gpu", "12"), "nobody knows what it will offer: nothing reports the GPUs of n": nil} {
		all := mends(c, c.Node("n"), &stack.Finding{Cause: diagnosis.GPUsInUse, Mends: []stack.Mend{{Kind: diagnosis.RestartDevicePlugin, Offers: offers}}}, nil)
		if len(all) != 1 || all[0].Untestable != why {
			t.Fatalf("%+v, want %q", all, why)
		}
		if offers == nil {
			continue
		}
		node := c.Node("n").DeepCopy()
		all[0].Node(node)
		if a, b := node.Status.Allocatable[view.WholeGPU], node.Status.Capacity[view.WholeGPU]; a.Value() != 12 || b.Value() != 12 {
			t.Errorf("offers %v of %v", a.Value(), b.Value())
		}
	}
}

// What a node offers once its plugin has announced its GPUs is what its report shows, or as many
// as something says; of layouts and shares nobody knows before.
func TestWhatIsAnnounced(t *testing.T) {
	bare := func(labels ...string) func(*corev1.Node, *nodeprobe.NodeGeometry) {
		return func(n *corev1.Node, _ *nodeprobe.NodeGeometry) {
			n.Labels = map[string]string{}
			for i := 0; i < len(labels); i += 2 {
				n.Labels[labels[i]] = labels[i+1]
			}
			delete(n.Status.Capacity, view.WholeGPU)
			delete(n.Status.Allocatable, view.WholeGPU)
		}
	}
	count, some := []string{"nvidia.com/gpu.product", "x", view.LabelGPUCount, "4"}, []string{view.GPULabels[0], "true"}
	for name, tc := range map[string]struct {
		labels []string
		report bool
		asks   string
		asked  bool
		want   string
	}{
		"by its report":            {nil, true, "nvidia.com/gpu", false, "1"},
		"by a label":               {count, false, "nvidia.com/gpu", false, "4"},
		"a label, and as asked":    {count, false, "nvidia.com/gpu", true, "4"},
		"nothing tells":            {nil, false, "nvidia.com/gpu", false, "nothing says how many GPUs n has"},
		"one at least, of two":     {some, false, "nvidia.com/gpu", false, "nothing says how many GPUs n has"},
		"nothing, and as asked":    {nil, false, "nvidia.com/gpu", true, "2"},
		"instances":                {count, false, "nvidia.com/mig-1g.5gb", true, "nobody knows how the GPUs of n are laid out before they are announced"},
		"shares":                   {count, false, "nvidia.com/gpu.shared", true, "nobody knows how the GPUs of n are shared before they are announced"},
		"instances, by its report": {nil, true, "nvidia.com/mig-1g.5gb", true, "1"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.Asking(rcatest.List(tc.asks, "2"))
			w.AddNode(sim.Node{Name: "n", MIGOff: []int{0}}, bare(tc.labels...))
			if !tc.report {
				delete(w.Geometries, "n")
			}
			c := w.bench(t)
			n := c.Node("n")
			edit, unknown := announced(c, n, tc.asked)
			got := unknown
			if edit != nil {
				edit(&corev1.Node{}) // one of which the API server has no word yet
				o := n.DeepCopy()
				edit(o)
				has, offers := o.Status.Capacity[view.WholeGPU], o.Status.Allocatable[view.WholeGPU]
				if got += has.String(); has.Cmp(offers) != 0 {
					t.Errorf("has %s, offers %s", has.String(), offers.String())
				}
			}
			if got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}

// A machine that is known to have a GPU offers one at least, unless somebody asks for it in parts.
func TestOneAtLeastIsAnnounced(t *testing.T) {
	const unknown = "nothing says how many GPUs n has"
	for name, tc := range map[string]struct {
		labels map[string]string
		want   string
	}{
		"known by its board":           {map[string]string{view.GPULabels[0]: "true"}, ""},
		"and without MIG":              {map[string]string{view.GPULabels[0]: "true", view.LabelMIGConfig: "all-disabled"}, ""},
		"and in parts":                 {map[string]string{view.GPULabels[0]: "true", view.LabelMIGConfig: "all-1g.5gb"}, unknown},
		"its image was made for a GPU": {map[string]string{"extensions.talos.dev/nvidia-container-toolkit": "1"}, unknown},
		"nothing speaks of one":        {map[string]string{}, unknown},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.Asking(rcatest.List("nvidia.com/gpu", "1"))
			w.AddNode(sim.Node{Name: "n", MIGOff: []int{0}}, func(n *corev1.Node, _ *nodeprobe.NodeGeometry) {
				n.Labels = tc.labels
				delete(n.Status.Capacity, view.WholeGPU)
				delete(n.Status.Allocatable, view.WholeGPU)
			})
			delete(w.Geometries, "n")
			c := w.bench(t)
			edit, why := announced(c, c.Node("n"), false)
			if why != tc.want || (edit == nil) != (why != "") {
				t.Errorf("%q, want %q", why, tc.want)
			}
		})
	}
}

// A node is emptied of all but what belongs to it before it is booted.
func TestWhoIsDrained(t *testing.T) {
	w := newWorld()
	w.Wholes("n")
	for i, kind := range []string{"DaemonSet", "Node", "Job"} {
		w.AddHolder(kind, "n", "cpu", 0).OwnerReferences[0].Kind = kind
		_ = i
	}
	w.AddHolder("mirror", "n", "cpu", 0).Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"}
	w.AddHolder("nobody's", "n", "cpu", 0).OwnerReferences = nil
	n := w.bench(t).Node("n")
	before := len(n.Pods)
	var got []string
	for _, p := range Reboot(n, diagnosis.GPUUnhealthy).Drained {
		got = append(got, p.Name)
	}
	slices.Sort(got)
	if strings.Join(got, " ") != "Job h-n nobody's" || len(n.Pods) != before {
		t.Errorf("%q", got)
	}
}

// What the driver told a short while ago shows what GPUs are like; what a file of labels says, or
// an old report, does not.
func TestFreshReports(t *testing.T) {
	for name, tc := range map[string]struct {
		edit func(*nodeprobe.Report)
		want bool
	}{
		"just now": {func(*nodeprobe.Report) {}, true},
		"in time":  {func(r *nodeprobe.Report) { r.ObservedAt = metav1.NewTime(rcatest.Noon.Add(-5 * time.Minute)) }, true},
		"too old": {func(r *nodeprobe.Report) {
			r.ObservedAt = metav1.NewTime(rcatest.Noon.Add(-5*time.Minute - time.Second))
		}, false},
		"not driver": {func(r *nodeprobe.Report) { r.Source = nodeprobe.SourceLabels }, false},
	} {
		w := newWorld()
		w.AddNode(sim.Node{Name: "n", MIGOff: []int{0}})
		tc.edit(&w.Geometries["n"].Report)
		c := w.bench(t)
		if got := freshlyReported(c, c.Node("n")); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// A node that takes nobody for now is waited for, until what keeps it shut has passed; where the
// pod that opens it is kept off, that is let on.
func TestANodeIsWaitedFor(t *testing.T) {
	taint := func(key string) corev1.Taint { return corev1.Taint{Key: key, Effect: corev1.TaintEffectNoSchedule} }
	const cilium = "node.cilium.io/agent-not-ready"
	for name, tc := range map[string]struct {
		taints   []corev1.Taint
		want     string
		until    string
		commands int
		left     int // taints, once it is ready
	}{
		"who opens it crashes": {[]corev1.Taint{taint("node.cloudprovider.kubernetes.io/uninitialized")}, "by hand, none risk: see why kube-system/cloud-controller-manager does not work: it takes taint node.cloudprovider.kubernetes.io/uninitialized off", "n has lost taint node.cloudprovider.kubernetes.io/uninitialized", 3, 0},
		"not ready":            {[]corev1.Taint{taint(corev1.TaintNodeNotReady), taint("team")}, "by hand, none risk: wait until n is Ready", "n is Ready again", 1, 1},
		"a state":              {[]corev1.Taint{taint(corev1.TaintNodeDiskPressure)}, "by hand, none risk: wait until n has disk space again", "n has disk space again", 3, 0},
		"its agent is kept":    {[]corev1.Taint{taint(cilium), taint("team")}, "by hand, none risk: have DaemonSet/kube-system/cilium tolerate team:NoSchedule: its pod opens n", "n has lost taint " + cilium, 2, 1},
		"nothing":              {nil, "by hand, none risk: wait until n is Ready", "n is Ready again", 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.AddNode(sim.Node{Name: "n", Taints: tc.taints})
			d := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "cilium"}}
			d.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Key: cilium, Operator: corev1.TolerationOpExists}}
			w.DaemonSets = []*appsv1.DaemonSet{d}
			w.Pods = append(w.Pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "cloud-controller-manager", UID: "ccm"}, Spec: corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{{Name: "c"}}},
				Status: corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{Name: "c", RestartCount: 9, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}}}}})
			c := w.bench(t)
			n := c.Node("n")
			ch := WaitForReady(c, n)
			o := n.DeepCopy()
			ch.Node(o)
			if edittest.Told(ch) != tc.want || ch.Until != tc.until || len(ch.Commands) != tc.commands || len(o.Spec.Taints) != tc.left || len(n.Spec.Taints) != len(tc.taints) {
				t.Errorf("%s until %s, %q, %d taints left; want %s", edittest.Told(ch), ch.Until, ch.Commands, len(o.Spec.Taints), tc.want)
			}
		})
	}
}

// To have MIG manager look again its pod is deleted, by name where it is seen, once who holds GPUs
// is evicted; who does not come back makes that a risk.
func TestMIGManagerLooksAgain(t *testing.T) {
	w := newWorld()
	w.Laid("all-1g.5gb", "failed")
	w.AddHolder("h", "n", "nvidia.com/mig-1g.5gb", 0)
	c := w.bench(t)
	ch := Reapply(c, c.Node("n"), "it is so")
	want := []string{"kubectl cordon n", edit.EvictCommand(w.Pods[1]), "kubectl delete pod -A -l app=nvidia-mig-manager --field-selector spec.nodeName=n  # it is made again, and applies all-1g.5gb",
		"kubectl get node n -L nvidia.com/mig.config,nvidia.com/mig.config.state -w", "kubectl uncordon n"}
	if edittest.Told(ch) != `by hand, medium risk: have MIG manager apply "all-1g.5gb" to n again (by hand: it is so)` || !slices.Equal(ch.Commands, want) || len(ch.Drained) != 1 {
		t.Errorf("%s, %q", edittest.Told(ch), ch.Commands)
	}
	for _, comes := range []bool{true, false} {
		w := newWorld()
		w.Laid("all-1g.5gb", "failed")
		h := w.AddHolder("h", "n", "nvidia.com/mig-1g.5gb", 0)
		if !comes {
			h.OwnerReferences = nil
		}
		m := w.AddHolder("nvidia-mig-manager-x", "n", "cpu", 0)
		m.OwnerReferences[0].Kind = "DaemonSet"
		c := w.bench(t)
		ch := Unstick(c, c.Node("n"), diagnosis.MIGConfigFailed)[0]
		ch.Detail(&ch)
		if (ch.Risk == diagnosis.MediumRisk) != comes || !slices.Contains(ch.Commands, "kubectl -n a delete pod nvidia-mig-manager-x  # its DaemonSet makes it again, and it applies all-1g.5gb") || strings.Contains(strings.Join(ch.Commands, "\n"), "if still paused") {
			t.Errorf("comes back %v: %s risk, %q", comes, ch.Risk, ch.Commands)
		}
		if got := strings.Join(ch.Steps, "; "); got != "cordon n; evict a/h; have MIG manager try again; uncordon n" {
			t.Error(got)
		}
	}
}

// The device plugin of a maker that is known is told where nobody has ever looked for its GPUs: on the one machine
// that there is, or on any.
func TestAMakersPluginIsInstalled(t *testing.T) {
	for _, tc := range []struct {
		resource corev1.ResourceName
		more     bool
		want     string // part of the first command; empty: nothing is told
	}{
		{"amd.com/gpu", false, "kubectl debug node/n "},
		{"gpu.intel.com/xe", true, "kubectl debug node/NODE "},
		{"example.com/fpga", false, ""},
	} {
		w := newWorld()
		w.AddNode(sim.Node{Name: "n"})
		if tc.more {
			w.AddNode(sim.Node{Name: "m"})
		}
		ch := InstallMaker(w.bench(t), tc.resource)
		if (ch != nil) != (tc.want != "") {
			t.Fatalf("%s: %+v", tc.resource, ch)
		}
		if ch != nil && (!strings.HasPrefix(ch.Commands[0], tc.want) || ch.Untestable == "" || ch.Kind != diagnosis.Manual) {
			t.Errorf("%s: %+v", tc.resource, ch)
		}
	}
}
