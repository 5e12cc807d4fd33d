package causes

import (
	"slices"
	"strings"

	"github.com/unpend/unpend/rca/admission"
	"github.com/unpend/unpend/rca/diagnosis"
)

// zeroGPURequest: the pod asks for none of a device, which the API server takes: it
// will run without. It keeps the pod from nothing, and is seldom what was meant.
var zeroGPURequest = PodRule{ID: diagnosis.InvalidGPURequest, Aside: true, Tell: func(c *Case) *finding {
	var names []string
	for _, k := range c.Pod.Spec.Containers {
		for name, q := range k.Resources.Limits {
			if admission.IsExtended(name) && q.IsZero() && !slices.Contains(names, string(name)) {
				names = append(names, string(name))
			}
		}
	}
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	return &finding{Certainty: diagnosis.Proven, Says: "zero was asked of " + strings.Join(names, ", ") + ": the pod would run without", Evidence: []diagnosis.Evidence{diagnosis.Fact(c.podRef(), "limits: 0 of "+strings.Join(names, ", "), c.zeros(names)...)}}
}}
