package kubelet

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"

	"github.com/unpend/unpend/rca/diagnosis"
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
	if p := s.podOf(d); p != nil {
		stop.Drained = []*corev1.Pod{p}
		stop.Commands = append([]string{fmt.Sprintf("kubectl -n %s logs %s --all-containers --tail=50", p.Namespace, p.Name), fmt.Sprintf("kubectl -n %s delete pod %s  # its DaemonSet makes it again, and it registers", p.Namespace, p.Name)}, look...)
		return stop
	}
	s.keptOff(stop, d, driver)
	stop.Commands = append(stop.Commands, look...)
	return stop
}

// keptOff names the taint for which the plugin's DaemonSet has no pod on the node.
func (s stopped) keptOff(stop *Stop, d *appsv1.DaemonSet, driver string) {
	n, at := s.w.Nodes[s.pod.Spec.NodeName], view.ObjectRef("DaemonSet", d.Namespace, d.Name)
	if n == nil {
		return
	}
	taint, untolerated := corev1helpers.FindMatchingUntoleratedTaint(klog.Background(), n.Spec.Taints, d.Spec.Template.Spec.Tolerations, func(t *corev1.Taint) bool {
		return t.Effect != corev1.TaintEffectPreferNoSchedule && !strings.HasPrefix(t.Key, "node.kubernetes.io/") // a DaemonSet's pods tolerate those
	}, true)
	if !untolerated {
		stop.Commands = append(stop.Commands, fmt.Sprintf("kubectl -n %s get daemonset %s -o yaml  # its nodeSelector and affinity, against the labels of %s", d.Namespace, d.Name, n.Name))
		return
	}
	stop.Says = strings.Replace(stop.Says, "; it said: ", fmt.Sprintf(": DaemonSet %s/%s does not tolerate its taint %s; it said: ", d.Namespace, d.Name, taint.ToString()), 1)
	stop.Title, stop.Risk = fmt.Sprintf("have DaemonSet %s/%s, the node plugin of %s, tolerate %s of %s", d.Namespace, d.Name, driver, taint.ToString(), n.Name), diagnosis.LowRisk
	stop.Evidence = append(stop.Evidence, diagnosis.Fact(n.Ref(), "taint "+taint.ToString(), diagnosis.That("spec.taints", "", diagnosis.Contains, taint.Key)),
		diagnosis.Fact(at, "does not tolerate "+taint.Key, diagnosis.That("spec.template.spec.tolerations", "", diagnosis.ContainsNot, taint.Key)))
	add := fmt.Sprintf(`{"key":%q,"operator":"Exists","effect":%q}`, taint.Key, taint.Effect)
	patch := fmt.Sprintf(`[{"op":"add","path":"/spec/template/spec/tolerations/-","value":%s}]`, add)
	if len(d.Spec.Template.Spec.Tolerations) == 0 {
		patch = fmt.Sprintf(`[{"op":"add","path":"/spec/template/spec/tolerations","value":[%s]}]`, add)
	}
	stop.Commands = append(stop.Commands, fmt.Sprintf("kubectl -n %s patch daemonset %s --type=json -p '%s'  # in the driver's chart as well, or the next release takes it back", d.Namespace, d.Name, patch))
}

// pluginOf is the DaemonSet that registers a driver with kubelets: its registrar is told the path of the
// driver's socket (kubernetes-csi/node-driver-registrar). Nil where none is, or they were not read.
func (s stopped) pluginOf(driver string) *appsv1.DaemonSet {
	for _, d := range s.w.State.DaemonSets {
		for _, c := range d.Spec.Template.Spec.Containers {
			if slices.ContainsFunc(slices.Concat(c.Command, c.Args), func(arg string) bool { return strings.Contains(arg, "/plugins/"+driver+"/") }) {
				return d
			}
		}
	}
	return nil
}

// podOf is the pod of a DaemonSet on the node; nil for none.
func (s stopped) podOf(d *appsv1.DaemonSet) *corev1.Pod {
	n := s.w.Nodes[s.pod.Spec.NodeName]
	if n == nil {
		return nil
	}
	for _, p := range n.Pods {
		if slices.ContainsFunc(p.OwnerReferences, func(o metav1.OwnerReference) bool { return o.Kind == "DaemonSet" && o.Name == d.Name }) && p.Namespace == d.Namespace {
			return p
		}
	}
	return nil
}
