package rca

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// oneShare asks for one share where more of it are asked: a container gets no more of a
// GPU by several, for time-slicing promises no part of it.
func (c *Bench) oneShare() []change {
	var several, named []ask
	for _, a := range c.asks {
		if a.count < 2 {
			continue
		}
		several = append(several, a)
		// Both of the plugin's texts name the resource in quotes, the older with the count.
		if name := string(a.resource); strings.Contains(c.refusal.Message, `"`+name+`"`) || strings.Contains(c.refusal.Message, "'"+name+":") {
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
	title := fmt.Sprintf("ask 1 instead of %d %s", a.count, a.resource)
	return []change{c.changeRequest(SharedRequestTooLarge, title, askAtMost(corev1.ResourceList{a.resource: *resource.NewQuantity(1, resource.DecimalSI)}))}
}
