package changes

import (
	"fmt"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/view"
)

func (c *Bench) waitForPreempted() []edit.Change {
	leaving := c.Preempted()
	return []edit.Change{{Kind: diagnosis.Wait, Victims: leaving, Manual: true, Risk: diagnosis.NoRisk, Minutes: 1, Until: view.PodList(leaving) + " is gone",
		Title:    "wait until " + view.PodList(leaving) + " is gone",
		Commands: []string{fmt.Sprintf("kubectl -n %s get pod %s -w", leaving[0].Namespace, leaving[0].Name)}}}
}
