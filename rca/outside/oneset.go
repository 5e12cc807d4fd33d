package outside

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/queues"
)

// oneSet is for the Workload of several pod sets whose class of ProvisioningRequests takes one (GKE's queued provisioning): made
// again as it is, it is refused again. Kueue leaves sets out that ask for nothing managed, and since 0.12 merges those that ask the
// same (kueue pull 5290). nil where the request says something else.
func oneSet(c *edit.Workload, w *unstructured.Unstructured, request, says string) *edit.Change {
	if !strings.Contains(says, "only one PodSet is supported") {
		return nil
	}
	sets, _, err := unstructured.NestedSlice(w.Object, "spec", "podSets")
	if err != nil || len(sets) < 2 {
		return nil
	}
	config := configOf(c, w)
	name := "its ProvisioningRequestConfig"
	if config != "CONFIG" {
		name = "ProvisioningRequestConfig " + config
	}
	ch := queueChange(diagnosis.Manual, diagnosis.MediumRisk, "a ProvisioningRequest of its Workload is Provisioned",
		fmt.Sprintf("have Kueue ask for machines by one pod set of the %d that it has, in %s: the class of ProvisioningRequest %s takes no more", len(sets), name, request),
		"kubectl edit provisioningrequestconfigs.kueue.x-k8s.io "+config+"  # spec.podSetMergePolicy: IdenticalWorkloadSchedulingRequirements makes one of pod sets that ask the same (Kueue 0.12 and later); spec.managedResources leaves those out that ask for none of its resources")
	if devices := len(c.Asks); devices > 0 {
		ch.Commands[0] += ", as [" + string(c.Asks[0].Resource) + "]"
	}
	ch.Commands = append(ch.Commands, c.EditByHand("or the same requests, selectors and tolerations in each of its pod sets, so that they are merged"),
		fmt.Sprintf("kubectl -n %s delete workloads.kueue.x-k8s.io %s  # after that: Kueue makes it again, and asks again; its place in the queue is that of a new one", w.GetNamespace(), w.GetName()))
	return &ch
}

// configOf is the ProvisioningRequestConfig that the Workload's check names; a word to put one for where the check was not read.
func configOf(c *edit.Workload, w *unstructured.Unstructured) string {
	for _, k := range queues.Unchecked(w) {
		for _, o := range c.Cluster.State.Queues.Checks {
			if o.GetName() != k.Name || queues.CheckedBy(c.Queue, k.Name) != queues.Provisioning {
				continue
			}
			if name, _, err := unstructured.NestedString(o.Object, "spec", "parameters", "name"); err == nil && name != "" {
				return name
			}
		}
	}
	return "CONFIG"
}
