package outside

import (
	"strings"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
)

// OpenGates asks who closed the pod off; nobody else may open it.
func OpenGates(c *edit.Workload) []edit.Change {
	gates := strings.Join(c.Gates(), ", ")
	return []edit.Change{{Kind: diagnosis.Manual, Manual: true, Risk: diagnosis.NoRisk, Until: "the gates " + gates + " are removed", Title: "ask who owns the gates " + gates + " to remove them",
		Commands: []string{"kubectl -n " + c.Pod.Namespace + " get pod " + c.Pod.Name + " -o jsonpath='{.spec.schedulingGates}'"}}}
}
