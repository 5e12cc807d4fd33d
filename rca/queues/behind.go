package queues

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
	"github.com/unpend/unpend/watcher/incident"
)

// Behind is what Kueue has admitted, and owns what it holds in a case; nil where it holds nothing that way.
func Behind(c *Case) *metav1.OwnerReference {
	if c.Held == nil {
		return nil
	}
	return c.Held.Behind
}

// behindSays tells of what is suspended though its owner is admitted. Kueue is to leave that alone: what
// an operator makes for the owner counts as the owner's. Set up to look after what names no queue
// (manageJobsWithoutQueueName) some versions suspend it all the same, and nobody lets it begin
// (kueue issues 1568 and 1844).
func behindSays(c *Case) *view.Finding {
	r, w := c.Held, c.Queued()
	if w == nil {
		return nil
	}
	if since, young := c.LetIn(w); young {
		return view.Found(diagnosis.Proven, c.letInSays(since, young), conditionFact(w, "Admitted"))
	}
	of, ref := strings.ToLower(incident.OwnerKind(r.Behind))+"/"+r.Behind.Name, view.ObjectRef(r.Owner.Kind, r.Owner.Namespace, r.Owner.Name)
	own := strings.ToLower(r.Owner.Kind) + "/" + r.Owner.Name
	evidence := []diagnosis.Evidence{suspended(c)}
	if o, known := c.Cluster.State.Owner(r.Owner.Kind, r.Owner.Namespace, r.Owner.Name); known {
		if by := metav1.GetControllerOf(o); by != nil && by.Name == r.Behind.Name {
			evidence = append(evidence, diagnosis.Fact(ref, "owned by "+of, diagnosis.That("metadata.ownerReferences[*].name", "", diagnosis.Is, by.Name)))
		}
		if o.GetLabels()[incident.QueueLabel] == "" {
			evidence = append(evidence, unlabelled(c))
		}
	}
	says := fmt.Sprintf("Kueue has admitted %s, and %s, which is made for that, is still suspended: Kueue takes it for work of its own", of, own)
	return view.Found(diagnosis.Likely, says, append(evidence, conditionFact(w, "Admitted"))...)
}
