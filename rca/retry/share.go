package retry

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/view"
)

// OneShare asks for one share where more of it are asked: a container gets no more of a
// GPU by several, for time-slicing promises no part of it.
func OneShare(c *edit.Workload) []edit.Change {
	var several, named []view.Ask
	for _, a := range c.Asks {
		if a.Count < 2 {
			continue
		}
		several = append(several, a)
		// Both of the plugin's texts name the resource in quotes, the older with the count.
		if name := string(a.Resource); strings.Contains(c.Refusal.Message, `"`+name+`"`) || strings.Contains(c.Refusal.Message, "'"+name+":") {
			named = append(named, a)
		}
	}
	if len(named) == 0 {
		named = several
	}
	if len(named) != 1 {
		return nil // a person has to see which
	}
	a := named[0]
	title := fmt.Sprintf("ask 1 instead of %d %s", a.Count, a.Resource)
	return []edit.Change{c.ChangeRequest(diagnosis.SharedRequestTooLarge, title, edit.AskAtMost(corev1.ResourceList{a.Resource: *resource.NewQuantity(1, resource.DecimalSI)}))}
}
