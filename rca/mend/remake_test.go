package mend

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/edit/edittest"
	"github.com/unpend/unpend/rca/rcatest"
)

// Instances that went with a reboot are made again by hand, with those profiles that are asked and were there; one of a
// profile is tried, for there was one at least, and how many more there were nothing tells.
func TestInstancesAreMadeAgain(t *testing.T) {
	const one, title = "nvidia.com/mig-1g.5gb", "by hand, low risk: make the MIG instances of n again, as they were"
	for count, want := range map[string]string{"1": title, "2": title + " (nothing says how many 1g.5gb n had)"} {
		w := newWorld()
		w.AddNode(sim.Node{Name: "n"}, func(n *corev1.Node, _ *nodeprobe.NodeGeometry) { n.Status.Capacity = rcatest.List(one, "0") })
		plugin := w.AddHolder("nvidia-device-plugin-x", "n", "cpu", 0)
		plugin.OwnerReferences[0].Kind = "DaemonSet"
		w.Wait.Spec.Containers[0].Resources.Limits = rcatest.List(one, count, "nvidia.com/mig-2g.10gb", "1")
		c := w.bench(t)
		ch := Remake(c, c.Node("n"))
		host := "kubectl debug node/n -it --image=busybox --profile=sysadmin -- chroot /host nvidia-smi mig "
		commands := []string{host + "-lgi  # none, where they went with the reboot", host + "-cgi 1g.5gb -C  # each as often as it was, and the other profiles that there were", edit.EvictCommand(plugin) + "  # the device plugin looks when it starts"}
		if edittest.Told(ch) != want || !slices.Equal(ch.Commands, commands) || len(ch.Drained) != 1 || ch.Drained[0] != plugin || (ch.Until != "") != (ch.Untestable == "") {
			t.Errorf("%s until %q, %q; want %s", edittest.Told(ch), ch.Until, ch.Commands, want)
		}
		if ch.Node == nil {
			continue
		}
		o := &corev1.Node{}
		ch.Node(o)
		if got := o.Status.Allocatable[one]; got.Value() != 1 || len(o.Status.Allocatable) != 1 {
			t.Errorf("offers %v", o.Status.Allocatable)
		}
	}
}
