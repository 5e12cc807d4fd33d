package admission

import (
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// Given is what a LimitRange has written into containers of a pod that state none of a resource, and so is in no
// template: into those that a webhook adds (Istio's proxy) as well.
type Given struct {
	Range      *corev1.LimitRange
	Resource   corev1.ResourceName
	Containers []string
	by, amount string // the default of the range, and how much it is
}

// noteOfRange is where the API server's LimitRanger notes on a pod what it has written into it, and how
// (plugin/pkg/admission/limitranger, mergeContainerResources).
const noteOfRange = "kubernetes.io/limit-ranger"

var writtenByRange = regexp.MustCompile(`^(.+) (?:request|limit) for (?:init )?container (\S+)$`)

// GivenBy is the LimitRange whose defaults give containers of a pod a resource; nil where none of its namespace does.
func GivenBy(ranges []*corev1.LimitRange, pod *corev1.Pod, name corev1.ResourceName) *Given {
	g := &Given{Resource: name}
	for part := range strings.SplitSeq(strings.TrimPrefix(pod.Annotations[noteOfRange], "LimitRanger plugin set: "), "; ") {
		m := writtenByRange.FindStringSubmatch(part)
		if m != nil && slices.Contains(strings.Split(m[1], ", "), string(name)) && !slices.Contains(g.Containers, m[2]) {
			g.Containers = append(g.Containers, m[2])
		}
	}
	for _, r := range ranges {
		if len(g.Containers) > 0 && r.Namespace == pod.Namespace && g.readFrom(r) {
			return g
		}
	}
	return nil
}

// readFrom says whether a range gives containers the resource.
func (g *Given) readFrom(r *corev1.LimitRange) bool {
	for _, i := range r.Spec.Limits {
		for _, k := range []struct {
			by    string
			gives corev1.ResourceList
		}{{"defaultRequest", i.DefaultRequest}, {"default", i.Default}} {
			if q, has := k.gives[g.Resource]; has && i.Type == corev1.LimitTypeContainer {
				g.Range, g.by, g.amount = r, k.by, q.String()
				return true
			}
		}
	}
	return false
}

// Tell is the evidence of it.
func (g *Given) Tell(pod *corev1.Pod) []diagnosis.Evidence {
	name := string(g.Resource)
	return []diagnosis.Evidence{
		diagnosis.Fact(view.PodRef(pod), "LimitRanger has set "+name+" for "+strings.Join(g.Containers, ", ")+", which state none", diagnosis.That("metadata.annotations", "", diagnosis.Contains, name), diagnosis.That("metadata.annotations", "", diagnosis.Contains, g.Containers[0])),
		diagnosis.Fact(view.ObjectRef("LimitRange", g.Range.Namespace, g.Range.Name), "gives "+g.amount+" of "+name+" to containers that state none", diagnosis.That("spec.limits[*]."+g.by, name, diagnosis.Is, g.amount)),
	}
}
