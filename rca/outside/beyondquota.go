package outside

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/queues"
)

// beyondQuota is for the Workload that waits for no quota: Kueue has admitted it, or it is not
// active. nil for every other.
func beyondQuota(c *edit.Workload, w *unstructured.Unstructured, look string) []edit.Change {
	if since, young := c.Queue.LetIn(w); !since.IsZero() {
		if young {
			return []edit.Change{queueChange(diagnosis.Wait, diagnosis.NoRisk, "Kueue lets it begin", "wait until Kueue lets it begin", look)}
		}
		return []edit.Change{queueChange(diagnosis.Manual, diagnosis.NoRisk, "Kueue lets it begin", "see why Kueue does not let begin what it has admitted", look,
			managersLog(c, "1h", c.Incident.Workload.Name)+"  # what it may not patch is there alone",
			fmt.Sprintf("kubectl -n %s get events --field-selector involvedObject.name=%s", c.Pod.Namespace, c.Incident.Workload.Name))}
	}
	if queues.GaveUp(w) {
		ns, _ := queues.Manager(c.Cluster)
		return []edit.Change{queueChange(diagnosis.Manual, diagnosis.LowRisk, "its Workload is active", "set its Workload active again once there is room for it: Kueue has given up and does not try again by itself", look,
			fmt.Sprintf(`kubectl -n %s patch workloads.kueue.x-k8s.io %s --type merge -p '{"spec":{"active":true}}'`, w.GetNamespace(), w.GetName()),
			"kubectl -n "+ns+" get configmap kueue-manager-config -o yaml  # waitForPodsReady: timeout, requeuingStrategy.backoffLimitCount")}
	}
	if queues.Inactive(w) {
		return []edit.Change{queueChange(diagnosis.Manual, diagnosis.NoRisk, "its Workload is active", "see who made its Workload inactive", look)}
	}
	return nil
}

// LookInCluster is for what Kueue has given to another cluster: that one's queue and scheduler say
// the rest.
func LookInCluster(c *edit.Workload) []edit.Change {
	k := c.Queue.Dispatched()
	if k == nil {
		return nil
	}
	title := "see which cluster takes it: what it waits for is said there"
	if k.Cluster() != "" {
		title = "look for it in cluster " + k.Cluster() + ": what it does, or waits for, is said there"
	}
	w := c.Queue.Queued()
	return []edit.Change{edit.LookAt(diagnosis.QueueNotAdmitted, title, "another cluster decides, which is not read here",
		fmt.Sprintf("kubectl -n %s describe workloads.kueue.x-k8s.io %s", w.GetNamespace(), w.GetName()),
		"kubectl get multikueueclusters.kueue.x-k8s.io",
		fmt.Sprintf("kubectl --context CLUSTER -n %s get workloads.kueue.x-k8s.io,pods", c.Pod.Namespace))}
}
