package changes

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/stack/parts"
	"github.com/unpend/unpend/rca/view"
)

// byProfile is for the pod that asks a profile by its name, of a node whose GPUs have several and whose device plugin goes
// by strategy single: that ends on them, and would offer none by such a name. Strategy mixed offers each by its own. It is
// set where the plugin's own is: in the policy of the GPU Operator, or in what its DaemonSet comes from.
func byProfile(c *Bench, n *view.Node, a view.Ask) edit.Change {
	ch := edit.Change{Kind: diagnosis.FixMIGConfig, Cause: diagnosis.MIGStrategyMismatch, Manual: true, Minutes: 5, Risk: diagnosis.MediumRisk,
		Title:      fmt.Sprintf("set MIG strategy mixed for the device plugin of %s: it offers %s by its name, where single ends on several profiles", n.Name, a.Resource),
		Untestable: "which instances the GPUs of " + n.Name + " have nothing reports"}
	if n.Geometry != nil {
		ch.Untestable = "what the device plugin offers by the other strategy, only it tells"
	}
	ch.Commands = append(setStrategy(c, n), "kubectl get node "+n.Name+" -o jsonpath='{.status.allocatable}'  # then; pods on other nodes that ask nvidia.com/gpu for an instance have to ask nvidia.com/mig-… from then on")
	return ch
}

// setStrategy are the commands that set it, for all nodes that the plugin serves.
func setStrategy(c *Bench, n *view.Node) []string {
	for _, p := range c.Cluster.State.ClusterPolicies {
		return []string{fmt.Sprintf(`kubectl patch clusterpolicies.nvidia.com %s --type=merge -p '{"spec":{"mig":{"strategy":"mixed"}}}'`, p.GetName())}
	}
	pod := n.PluginPod()
	if pod == nil {
		return []string{"kubectl get daemonsets -A | grep -i device-plugin  # then its variable MIG_STRATEGY, or argument --mig-strategy: mixed"}
	}
	name := ""
	if by := metav1.GetControllerOfNoCopy(pod); by != nil {
		name = by.Name
	}
	if made := parts.Of(c.Cluster).SetOf(pod); made != nil && made.Named() {
		return []string{made.Reuse("nvdp/nvidia-device-plugin --repo https://nvidia.github.io/k8s-device-plugin") + "--set migStrategy=mixed  # GPU feature discovery of the same release takes it, too"}
	}
	says := func(k corev1.Container) bool {
		return slices.ContainsFunc(append(slices.Clone(k.Args), k.Command...), func(arg string) bool { return strings.HasPrefix(arg, "--mig-strategy") })
	}
	if slices.ContainsFunc(pod.Spec.Containers, says) {
		return []string{fmt.Sprintf("kubectl -n %s edit daemonset %s  # --mig-strategy=mixed", pod.Namespace, name)}
	}
	return []string{fmt.Sprintf("kubectl -n %s set env daemonset/%s MIG_STRATEGY=mixed", pod.Namespace, name)}
}
