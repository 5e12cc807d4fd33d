package claims

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/kubelet"
)

// driverOn is the pod on a node by which a DRA driver prepares devices there, by the name that their DaemonSets have; nil
// for none, and where there are several: which of them is asked, the claim's allocation tells.
func driverOn(c *edit.Workload, node string) *corev1.Pod {
	n := c.Cluster.Nodes[node]
	if n == nil {
		return nil
	}
	var found *corev1.Pod
	for _, p := range n.Pods {
		by := metav1.GetControllerOfNoCopy(p)
		if by == nil || by.Kind != "DaemonSet" || !strings.Contains(strings.ReplaceAll(by.Name, "-", ""), "kubeletplugin") {
			continue
		}
		if found != nil {
			return nil
		}
		found = p
	}
	return found
}

// unmade is the MIG device that the driver was to make for a claim of the pod, and says that it cannot (NVIDIA's driver with
// DynamicMIG: the device is allocated before it is there). Empty where it says something else.
func unmade(c *edit.Workload, p *corev1.Pod) (claim, device string) {
	if !strings.Contains(kubelet.UnpreparedSays(p), "error creating MIG device") {
		return "", ""
	}
	for _, of := range c.Cluster.State.ResourceClaims {
		if of.Status.Allocation == nil || !slices.Contains(kubelet.ClaimsOf(p), of.Namespace+"/"+of.Name) {
			continue
		}
		for _, r := range of.Status.Allocation.Devices.Results {
			if strings.Contains(r.Device, "-mig-") {
				return of.Name, r.Device
			}
		}
	}
	return "", ""
}
