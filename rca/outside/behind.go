package outside

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/queues"
	"github.com/unpend/unpend/watcher/incident"
)

// leaveAlone is for what Kueue holds though it has admitted its owner: a queue's label would have it
// counted a second time.
func leaveAlone(c *edit.Workload, owner *metav1.OwnerReference) edit.Change {
	o, of := c.Queue.Held.Owner, incident.OwnerKind(owner)
	name := strings.ToLower(o.Kind) + "/" + o.Name
	ns, manager := queues.Manager(c.Cluster)
	return queueChange(diagnosis.Manual, diagnosis.LowRisk, name+" is not suspended any more",
		fmt.Sprintf("let %s begin, and have Kueue leave alone what %s/%s makes: newer versions do", name, strings.ToLower(of), owner.Name),
		fmt.Sprintf(`kubectl -n %s patch %s --type merge -p '{"spec":{"suspend":false}}'  # an older Kueue may suspend it again; a label that names a queue would have it counted twice`, o.Namespace, name),
		fmt.Sprintf("kubectl -n %s get deployment %s -o jsonpath='{.spec.template.spec.containers[*].image}'  # its version", ns, manager),
		fmt.Sprintf("kubectl -n %s get configmap kueue-manager-config -o yaml  # manageJobsWithoutQueueName, and whether integrations.frameworks names the kind %s: what is not named there is nobody's owner to it", ns, of))
}
