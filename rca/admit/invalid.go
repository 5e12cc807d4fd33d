package admit

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/admission"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/view"
)

// CorrectRequests has containers request what the API server takes.
func CorrectRequests(c *edit.Workload) []edit.Change {
	sets := map[string]map[corev1.ResourceName]edit.Amounts{}
	var texts []string
	for _, bad := range admission.InvalidRequests(c.Refused.Next()) {
		if bad.Init {
			return []edit.Change{{Kind: diagnosis.Manual, Manual: true, Risk: diagnosis.NoRisk, Until: "its template is corrected", Title: "correct the init container " + bad.Container,
				Commands: []string{c.EditByHand("requests and limits of a GPU are equal, and no less than 1")}}}
		}
		if sets[bad.Container] == nil {
			sets[bad.Container] = map[corev1.ResourceName]edit.Amounts{}
		}
		sets[bad.Container][bad.Resource] = edit.Amounts{Request: bad.Whole(), Limit: bad.Whole()}
		texts = append(texts, fmt.Sprintf("%s %s as request and limit", view.QuantityText(bad.Whole()), bad.Resource))
	}
	if len(sets) == 0 {
		return []edit.Change{{Kind: diagnosis.Manual, Manual: true, Risk: diagnosis.NoRisk, Until: "its requests are valid", Title: "look at what changes the requests of its pods",
			Commands: []string{fmt.Sprintf("kubectl -n %s describe %s", c.Refused.Next().Namespace, c.WorkloadName())}}}
	}
	return []edit.Change{c.SetRequests("write "+strings.Join(texts, ", "), sets)}
}
