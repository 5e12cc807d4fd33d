package causes

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/devices"
	"github.com/unpend/unpend/rca/diagnosis"
)

// A resource is misnamed where no node has ever had it, with what is nearly its name and of the same
// domain where one offers that; not where none of it is asked, nor while the pod is not there, nor where
// devices are claimed too, which the scheduler looks at first.
func TestMisnamedResource(t *testing.T) {
	const asked = "example.com/fpga"
	for name, tc := range map[string]struct {
		offers string
		edit   func(*Case)
		near   string // "-": none is
		others int
	}{
		"a longer name":       {offers: asked + "-u250", near: asked + "-u250"},
		"a shorter name":      {offers: "example.com/fp", near: "example.com/fp"},
		"of another domain":   {offers: "example.org/fpga", near: "-"},
		"another name":        {offers: "example.com/nic", near: "-"},
		"of none":             {offers: "example.com/nic", edit: func(c *Case) { c.Wants[asked] = *quantity(0) }},
		"one more is unknown": {offers: asked + "-u250", edit: func(c *Case) { c.Wants["example.com/nic"] = *quantity(1) }, near: asked + "-u250", others: 1},
		"no pod yet":          {offers: asked + "-u250", edit: func(c *Case) { c.Unborn = true }},
		"claims too":          {offers: asked + "-u250", edit: func(c *Case) { c.Claims = &devices.Claims{} }},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			n := w.gpuNode(l4("n1", 1))
			for _, list := range []corev1.ResourceList{n.Status.Capacity, n.Status.Allocatable} {
				list[corev1.ResourceName(tc.offers)] = *quantity(2)
			}
			w.pod("w", "", asked, 1)
			c := w.open(t)
			if tc.edit != nil {
				tc.edit(c)
			}
			got := c.MisnamedResource()
			if (got != nil) != (tc.near != "") {
				t.Fatalf("%+v, want %q", got, tc.near)
			}
			want := Misnamed{asked, corev1.ResourceName(tc.near), "n1", tc.others}
			if tc.near == "-" {
				want = Misnamed{Resource: asked}
			}
			if got != nil && *got != want {
				t.Errorf("%+v, want %+v", *got, want)
			}
		})
	}
}

// GPUs of a maker's are asked where nothing has ever announced one: that is the pod's own where no node is known to have
// such a GPU, and is told of the node where one is, or where it offers them by another name.
func TestGPUsOfAMakerThatNobodyAnnounces(t *testing.T) {
	const asked = corev1.ResourceName("amd.com/gpu")
	for name, tc := range map[string]struct {
		edit func(*world, *corev1.Node)
		want bool
		who  string // the device plugin that is there
	}{
		"nothing of the maker's":   {func(*world, *corev1.Node) {}, true, ""},
		"a node is known by label": {func(_ *world, n *corev1.Node) { n.Labels["feature.node.kubernetes.io/amd-gpu"] = "true" }, false, ""},
		"by another name":          {func(_ *world, n *corev1.Node) { n.Status.Allocatable["amd.com/cpx_nps4"] = *quantity(8) }, false, ""},
		"its plugin runs nowhere": {func(w *world, _ *corev1.Node) {
			d := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "plug"}}
			d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "dp", Image: "rocm/k8s-device-plugin"}}
			d.Spec.Template.Spec.NodeSelector = map[string]string{"rocm": "yes"}
			w.DaemonSets = append(w.DaemonSets, d)
		}, true, "kube-system/plug"},
	} {
		w := newWorld()
		n := plainNode("n1")
		w.Nodes = append(w.Nodes, n)
		tc.edit(w, n)
		w.pod("w", "", string(asked), 1)
		c := w.open(t)
		if got := c.MisnamedResource(); (got != nil) != tc.want || got != nil && *got != (Misnamed{Resource: asked}) {
			t.Errorf("%s: %+v", name, got)
		}
		who := ""
		if a := AnnouncerOf(c, asked); a != nil {
			who = a.Name()
		}
		if who != tc.who {
			t.Errorf("%s: %q, want %q", name, who, tc.who)
		}
	}
}

// GPUs are asked by a name that is nearly theirs, or was before they had one of their own: a card by its name is near to
// none, and what HAMi counts is no such name.
func TestNamesThatAreNearlyThoseOfGPUs(t *testing.T) {
	for asked, near := range map[corev1.ResourceName]corev1.ResourceName{
		"alpha.kubernetes.io/nvidia-gpu": "nvidia.com/gpu",
		"alpha.kubernetes.io/other":      "",
		"nvidia.com/gpus":                "nvidia.com/gpu",
		"nvidia.com/GA102GL_A10":         "",
		"nvidia.com/gpumem":              "-",
		"nvidia.com/mig-1g.5gb":          "-",
	} {
		w := newWorld()
		w.gpuNode(l4("n1", 1))
		w.pod("w", "", string(asked), 1)
		got := w.open(t).MisnamedResource()
		if (got == nil) != (near == "-") || got != nil && got.Near != near {
			t.Errorf("%s: %+v, want %q", asked, got, near)
		}
	}
}

// A headline says of a selector that it matches nothing only where it does.
func TestSelectorsInAHeadline(t *testing.T) {
	for label, want := range map[string]string{"yes": "nodes it selects cannot take it", "no": diagnosis.NodeSelectorMismatch.Words()} {
		w := newWorld()
		w.gpuNode(l4("n1", 1)).Labels["team"] = label
		w.gpuNode(l4("n2", 1))
		w.pod("h", "n1", "nvidia.com/gpu", 1)
		w.pod("w", "", "nvidia.com/gpu", 1, func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"team": "yes"} })
		c := w.open(t)
		c.Judge()
		if got := c.Headline(diagnosis.NodeSelectorMismatch); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// What is free in total is claimed as a sum where no more than selectors, affinity, taints and
// cordons say which nodes count; a node that something else keeps the pod from takes the claim away.
func TestWhatIsFreeInTotalIsClaimed(t *testing.T) {
	port := func(p *corev1.Pod) {
		p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: 80}}
	}
	for name, tc := range map[string]struct {
		edit func(*world)
		want int
	}{
		"room alone":       {func(*world) {}, 1},
		"a cordoned node":  {func(w *world) { w.gpuNode(l4("n3", 2)).Spec.Unschedulable = true }, 1},
		"a port is in use": {func(w *world) { w.gpuNode(l4("n3", 2)); w.pod("h3", "n3", "", 0, port) }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			for _, node := range []string{"n1", "n2"} {
				w.gpuNode(l4(node, 2))
				w.pod("h"+node, node, "nvidia.com/gpu", 1)
			}
			w.pod("w", "", "nvidia.com/gpu", 2, port)
			tc.edit(w)
			_, causes := w.open(t).Judge()
			claims := 0
			for _, cause := range causes {
				for _, e := range cause.Evidence {
					for _, claim := range e.Claims {
						if claim.Path == "sum(nodes.free[nvidia.com/gpu])" && claim.Value == "2" {
							claims = 1
						}
					}
				}
			}
			if claims != tc.want {
				t.Errorf("claimed %d times, want %d", claims, tc.want)
			}
		})
	}
}
