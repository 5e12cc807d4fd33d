package causes

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
	"github.com/unpend/unpend/watcher/incident"
)

// draPrepareFailed: the scheduler has chosen node and devices, and the kubelet cannot
// have the driver prepare them. The pod stays Pending and its conditions say nothing:
// what tells is the kubelet's event (kuberuntime_manager.go SyncPod, 1.30 to 1.37).
// Of a workload that has also pods without a node, this keeps those from none.
var draPrepareFailed = PodRule{
	ID:    diagnosis.DRAPrepareFailed,
	bound: true,
	Tell: func(c *Case) *finding {
		if len(c.Unprepared) == 0 {
			return nil
		}
		first := c.Unprepared[0]
		f := &finding{certainty: diagnosis.Proven, says: "the kubelet of " + first.Spec.NodeName + " could not prepare its devices: " + view.Cut(unpreparedBy(unpreparedSays(first)), 160)}
		for _, p := range c.Unprepared {
			at := view.ObjectRef("Pod", p.Namespace, p.Name)
			f.evidence = append(f.evidence, diagnosis.Fact(at, "is bound to "+p.Spec.NodeName+" and "+string(corev1.PodPending)+": its sandbox was not made",
				diagnosis.That("spec.nodeName", "", diagnosis.Is, p.Spec.NodeName), diagnosis.That("status.phase", "", diagnosis.Is, string(corev1.PodPending))),
				diagnosis.Fact(at, fmt.Sprintf("%s: %s", incident.FailedPrepare, unpreparedSays(p)), diagnosis.Says(unpreparedSays(p))))
			for _, claim := range c.ClaimsOf(p) {
				f.evidence = append(f.evidence, diagnosis.Fact("ResourceClaim/"+claim, "is what the pod uses", diagnosis.That("status", "", diagnosis.Contains, p.Name)))
			}
		}
		return f
	},
}

// unpreparedBy is what the driver or the kubelet says, without the kubelet's wrapping
// (pkg/kubelet/cm/dra/manager.go, PrepareResources).
func unpreparedBy(says string) string {
	for _, prefix := range []string{"Failed to prepare dynamic resources: ", "prepare dynamic resources: "} {
		says = strings.TrimPrefix(says, prefix)
	}
	return says
}

// unpreparedSays is what the kubelet's event says of the pod.
func unpreparedSays(p *corev1.Pod) string {
	for _, k := range p.Status.Conditions {
		if k.Type == corev1.PodReadyToStartContainers && k.Reason == incident.FailedPrepare {
			return strings.Join(strings.Fields(k.Message), " ")
		}
	}
	return ""
}

// ClaimsOf names the claims that a pod uses, as namespace/name.
func (c *Case) ClaimsOf(p *corev1.Pod) []string {
	var out []string
	for i := range p.Spec.ResourceClaims {
		if name, _, err := resourceclaim.Name(p, &p.Spec.ResourceClaims[i]); err == nil && name != nil {
			out = append(out, p.Namespace+"/"+*name)
		}
	}
	if s := p.Status.ExtendedResourceClaimStatus; s != nil {
		out = append(out, p.Namespace+"/"+s.ResourceClaimName)
	}
	return out
}
