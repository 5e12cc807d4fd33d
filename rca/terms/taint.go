package terms

import (
	"slices"
	"strings"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// Taints names the taints of the node that the pod does not tolerate: since 1.35 the scheduler's
// text does not. Those that Kubernetes itself sets for a cordon or a node that is not ready are
// NotReady's, or the cordon's.
func Taints(c view.Subject, n *view.Node) *view.Finding {
	var texts []string
	var evidence []diagnosis.Evidence
	for _, t := range Untolerated(c.Pod, n.Node) {
		if OwnTaint(t) {
			continue
		}
		texts = append(texts, t.ToString())
		evidence = append(evidence, diagnosis.Fact(n.Ref(), "taint "+t.ToString()+" is not tolerated", untolerated(c, n, t)...))
	}
	if len(texts) == 0 {
		return nil
	}
	return view.Found(diagnosis.Proven, "taint "+strings.Join(texts, ", ")+" is not tolerated", evidence...)
}

// Passing says of a taint that it goes once the node is ready.
func Passing(t corev1.Taint) bool { return OwnTaint(t) && t.Key != corev1.TaintNodeUnschedulable }

// untolerated claims that a node has a taint, and the pod nothing against it.
func untolerated(c view.Subject, n *view.Node, t corev1.Taint) []diagnosis.Claim {
	return append(c.Claims(diagnosis.That("spec.tolerations", "", diagnosis.ToleratesNot, t.ToString())), n.Tainted(t))
}

// Untolerated lists the taints of a node that keep the pod from being scheduled
// there.
func Untolerated(pod *corev1.Pod, n *corev1.Node) []corev1.Taint {
	var out []corev1.Taint
	for _, t := range n.Spec.Taints {
		if t.Effect == corev1.TaintEffectPreferNoSchedule {
			continue
		}
		if !corev1helpers.TolerationsTolerateTaint(logr.Discard(), pod.Spec.Tolerations, &t, true) {
			out = append(out, t)
		}
	}
	return out
}

// OwnTaint says whether Kubernetes sets the taint by itself from the node's
// state (well_known_taints.go): tolerating it is no remedy.
func OwnTaint(t corev1.Taint) bool {
	return strings.HasPrefix(t.Key, "node.kubernetes.io/") || slices.Contains(startupTaints, t.Key)
}

// startupTaints are taken off, by those who set them, once the node can be used: the cloud
// provider has spoken, Karpenter has registered it, its network and volumes work.
var startupTaints = []string{
	"node.cloudprovider.kubernetes.io/uninitialized",
	"node.cloudprovider.kubernetes.io/shutdown",
	"karpenter.sh/unregistered",
	"node.cilium.io/agent-not-ready",
	"ebs.csi.aws.com/agent-not-ready",
}

// Departing says whether an autoscaler is about to delete the node: who tolerates that goes
// with it.
func Departing(t corev1.Taint) bool {
	return t.Key == "ToBeDeletedByClusterAutoscaler" || t.Key == "karpenter.sh/disrupted"
}

// CriticalAddons is the taint of nodes that are for the cluster's own add-ons: AKS keeps application pods
// off system pools by it, Karpenter's and EKS Auto Mode's pools of that name do.
const CriticalAddons = "CriticalAddonsOnly"

// controlPlanes are the taints by which the nodes of the control plane are kept for it: kubeadm's, now and before 1.24, and
// those of RKE.
var controlPlanes = []string{"node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master", "node-role.kubernetes.io/controlplane", "node-role.kubernetes.io/etcd"}

// SetApart says whether a taint keeps a node for the cluster itself: that workloads are kept from it is meant.
func SetApart(t corev1.Taint) bool {
	return t.Key == CriticalAddons || slices.Contains(controlPlanes, t.Key)
}
