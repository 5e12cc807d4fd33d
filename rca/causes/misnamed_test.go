package causes

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/devices"
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
