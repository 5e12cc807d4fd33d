package causes

import (
	"fmt"
	"strings"

	"github.com/unpend/unpend/rca/diagnosis"
)

// runtimeClassMissing: the pod names NVIDIA's RuntimeClass, and there is none: the GPU
// Operator's toolkit, or who configured the runtime by hand, has not made it
// (plugin/pkg/admission/runtimeclass, "pod rejected: RuntimeClass … not found").
var runtimeClassMissing = PodRule{
	ID:      diagnosis.RuntimeNotConfigured,
	refusal: true,
	Tell: func(c *Case) *finding {
		r := c.Refuses()
		if r.Kind != NoRuntimeClass || r.Gone || !strings.Contains(r.Name, "nvidia") {
			return nil
		}
		c.entitle(diagnosis.RuntimeNotConfigured, fmt.Sprintf("no RuntimeClass %q", r.Name))
		return c.told(r.certainty, r.says+", so the API server refuses its pods", r.evidence)
	},
}
