package kubelet

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/stack/parts"
	"github.com/unpend/unpend/rca/view"
)

// driverAway: who mounts such volumes has no plugin on the node. GPU nodes are tainted more often than
// others, and charts of drivers tolerate less than they have to.
func (s stopped) driverAway(driver string) *Stop {
	node := s.pod.Spec.NodeName
	stop := s.stop(diagnosis.VolumeConflict, diagnosis.Manual, fmt.Sprintf("it has its node, and the plugin of CSI driver %s, which mounts its volume, is not registered on %s", driver, node))
	stop.Words, stop.Title, stop.Minutes = "no volume driver on its node", fmt.Sprintf("have the node plugin of %s run on %s", driver, node), 5
	stop.Unproven = "what the driver's plugin tells the kubelet is in no object"
	at := slices.IndexFunc(s.w.State.CSINodes, func(n *storagev1.CSINode) bool { return n.Name == node })
	if at >= 0 && !slices.ContainsFunc(s.w.State.CSINodes[at].Spec.Drivers, func(d storagev1.CSINodeDriver) bool { return d.Name == driver }) {
		stop.Evidence = append(stop.Evidence, diagnosis.Fact("CSINode/"+node, "has no driver "+driver, diagnosis.That("spec.drivers", "", diagnosis.ContainsNot, driver)))
	}
	look := []string{"kubectl get csinode " + node + " -o yaml  # spec.drivers: those that are registered", "kubectl get pods -A -o wide --field-selector spec.nodeName=" + node}
	d := s.pluginOf(driver)
	if d == nil {
		stop.Commands = append([]string{"kubectl get daemonsets -A  # that of " + driver + ": its selector and tolerations, against " + node}, look...)
		return stop
	}
	stop.Title = fmt.Sprintf("see why %s/%s, the node plugin of %s, is not registered on %s", d.Namespace, d.Name, driver, node)
	n := s.w.Nodes[node]
	if n == nil {
		stop.Commands = look
		return stop
	}
	if p := d.On(n); p != nil {
		stop.Drained = []*corev1.Pod{p}
		stop.Commands = append([]string{fmt.Sprintf("kubectl -n %s logs %s --all-containers --tail=50", p.Namespace, p.Name), fmt.Sprintf("kubectl -n %s delete pod %s  # its DaemonSet makes it again, and it registers", p.Namespace, p.Name)}, look...)
		return stop
	}
	s.keptOff(stop, d, n, driver)
	stop.Commands = append(stop.Commands, look...)
	return stop
}

// keptOff names what the node lacks for the plugin's DaemonSet, which has no pod there.
func (s stopped) keptOff(stop *Stop, d *parts.Set, n *view.Node, driver string) {
	m := d.Misses(n)
	if m.None() {
		stop.Commands = append(stop.Commands, fmt.Sprintf("kubectl -n %s describe daemonset %s  # it takes %s: is its pod refused?", d.Namespace, d.Name, n.Name))
		return
	}
	way, text := d.Let(n, m, "", nil), d.Text(n, m)
	stop.Says = strings.Replace(stop.Says, "; it said: ", fmt.Sprintf(": DaemonSet %s/%s has no pod there: %s; it said: ", d.Namespace, d.Name, text), 1)
	stop.Title, stop.Risk = way.Title()+": it is the node plugin of "+driver, diagnosis.LowRisk
	stop.Evidence = append(stop.Evidence, diagnosis.Fact(d.Ref(), text, d.Claims(n, m)...))
	stop.Commands = append(stop.Commands, way.Commands...)
	if way.Edits {
		stop.Commands = append(stop.Commands, "# in the driver's chart as well, or its next release takes that back")
		stop.Drained = d.Rolled(s.w)
	}
}

// pluginOf is the DaemonSet that registers a driver with kubelets: its registrar is told the path of the
// driver's socket (kubernetes-csi/node-driver-registrar). Nil where none is, or they were not read.
func (s stopped) pluginOf(driver string) *parts.Set {
	for _, d := range s.w.State.DaemonSets {
		for _, c := range d.Spec.Template.Spec.Containers {
			if slices.ContainsFunc(slices.Concat(c.Command, c.Args), func(arg string) bool { return strings.Contains(arg, "/plugins/"+driver+"/") }) {
				return parts.Asked(d)
			}
		}
	}
	return nil
}
