package admission

import (
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// Given is what a LimitRange has written into containers of a pod that state none of a resource, and so is in no
// template: into those that a webhook adds (Istio's proxy) as well.
type Given struct {
	Range      *corev1.LimitRange
	Resource   corev1.ResourceName
	Containers []string
	limit      bool   // it is about limits, and not about requests
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
	return g.from(ranges, pod)
}

// given is the LimitRange whose defaults give the next pod what a quota counts by that name and has not left: without
// them the quota would take it. nil where none does.
func (c *Refused) given(by Quota, counted corev1.ResourceName) *Given {
	template := c.Cluster.Template(c.All[0].Owner)
	if template == nil {
		return nil
	}
	name, limit := strings.CutPrefix(string(counted), "limits.")
	g := &Given{Resource: corev1.ResourceName(strings.TrimPrefix(name, "requests.")), limit: limit}
	for _, k := range slices.Concat(template.Containers, template.InitContainers) {
		_, limited := k.Resources.Limits[g.Resource]
		if _, asked := k.Resources.Requests[g.Resource]; !limited && (limit || !asked) {
			g.Containers = append(g.Containers, k.Name)
		}
	}
	if g = g.from(c.Cluster.State.LimitRanges, c.Next()); g == nil {
		return nil
	}
	for _, q := range Quotas(c.Cluster.State, g.Without(c.Next()), nil, nil) {
		if q.Name == by.Name && slices.Contains(q.Exceeded(), counted) {
			return nil
		}
	}
	return g
}

// from finds the range among those of the pod's namespace.
func (g *Given) from(ranges []*corev1.LimitRange, pod *corev1.Pod) *Given {
	for _, r := range ranges {
		if len(g.Containers) > 0 && r.Namespace == pod.Namespace && g.readFrom(r, pod) {
			return g
		}
	}
	return nil
}

// readFrom says whether a range gives containers as much of the resource as those of the pod have.
func (g *Given) readFrom(r *corev1.LimitRange, pod *corev1.Pod) bool {
	for _, i := range r.Spec.Limits {
		for _, k := range []struct {
			by    string
			gives corev1.ResourceList
		}{{"defaultRequest", i.DefaultRequest}, {"default", i.Default}} {
			if q, has := k.gives[g.Resource]; has && i.Type == corev1.LimitTypeContainer && (!g.limit || k.by == "default") && g.had(pod, q) {
				g.Range, g.by, g.amount = r, k.by, q.String()
				return true
			}
		}
	}
	return false
}

// Sections are the parts of the range's limits of containers in which the resource stands, all of which it is to be taken out
// of: by max the API server fills default, and by default or min defaultRequest (pkg/apis/core/v1/defaults.go,
// SetDefaults_LimitRangeItem in Kubernetes 1.37), and a min or a ratio has a container refused that states none.
func (g *Given) Sections() []string {
	var out []string
	for _, k := range []struct {
		name string
		of   func(corev1.LimitRangeItem) corev1.ResourceList
	}{
		{"default", func(i corev1.LimitRangeItem) corev1.ResourceList { return i.Default }},
		{"defaultRequest", func(i corev1.LimitRangeItem) corev1.ResourceList { return i.DefaultRequest }},
		{"max", func(i corev1.LimitRangeItem) corev1.ResourceList { return i.Max }},
		{"min", func(i corev1.LimitRangeItem) corev1.ResourceList { return i.Min }},
		{"maxLimitRequestRatio", func(i corev1.LimitRangeItem) corev1.ResourceList { return i.MaxLimitRequestRatio }},
	} {
		if slices.ContainsFunc(g.Range.Spec.Limits, func(i corev1.LimitRangeItem) bool {
			_, has := k.of(i)[g.Resource]
			return has && i.Type == corev1.LimitTypeContainer
		}) {
			out = append(out, k.name)
		}
	}
	return out
}

// had says whether the containers of the pod have so much: the range may be another by now.
func (g *Given) had(pod *corev1.Pod, q resource.Quantity) bool {
	return !slices.ContainsFunc(slices.Concat(pod.Spec.Containers, pod.Spec.InitContainers), func(k corev1.Container) bool {
		is, has := k.Resources.Requests[g.Resource]
		if g.limit || !has {
			is, has = k.Resources.Limits[g.Resource]
		}
		return slices.Contains(g.Containers, k.Name) && (!has || is.Cmp(q) != 0)
	})
}

// Without is the pod without what the range gave it.
func (g *Given) Without(pod *corev1.Pod) *corev1.Pod {
	pod = pod.DeepCopy()
	for _, list := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range list {
			if slices.Contains(g.Containers, list[i].Name) {
				delete(list[i].Resources.Requests, g.Resource)
				delete(list[i].Resources.Limits, g.Resource)
			}
		}
	}
	return pod
}

// Ask has those of containers that the range gives something ask for another amount themselves.
func (g *Given) Ask(containers []corev1.Container, each resource.Quantity) {
	for i := range containers {
		if r := &containers[i].Resources; slices.Contains(g.Containers, containers[i].Name) {
			if r.Requests == nil {
				r.Requests = corev1.ResourceList{}
			}
			r.Requests[g.Resource] = each
		}
	}
}

// Share is what of so much is left for each container that the range gives some, beside what the pod asks otherwise: in whole
// hundredths of a CPU, or mebibytes. False where nothing is left, or the pod asks too much otherwise.
func (g *Given) Share(pod *corev1.Pod, there resource.Quantity) (resource.Quantity, bool) {
	rest, n := view.PodRequests(g.Without(pod))[g.Resource], int64(len(g.Containers))
	there.Sub(rest)
	if g.Resource == corev1.ResourceCPU {
		share := there.MilliValue() / n / 10 * 10
		return *resource.NewMilliQuantity(share, resource.DecimalSI), share > 0
	}
	share := there.Value() / n >> 20 << 20
	return *resource.NewQuantity(share, resource.BinarySI), share > 0
}

// Decides says whether the pod would ask no more than there is without what the range gave it.
func (g *Given) Decides(pod *corev1.Pod, there resource.Quantity) bool {
	rest := view.PodRequests(g.Without(pod))[g.Resource]
	return rest.Cmp(there) <= 0
}

// Says is where a request comes from that nobody wrote.
func (g *Given) Says() string {
	return "LimitRange " + g.Range.Name + " gives some to containers that state none (" + strings.Join(g.Containers, ", ") + ")"
}

// Tell is the evidence of it, by what the API server noted on the pod.
func (g *Given) Tell(pod *corev1.Pod) []diagnosis.Evidence {
	name := string(g.Resource)
	return []diagnosis.Evidence{
		diagnosis.Fact(view.PodRef(pod), "LimitRanger has set "+name+" for "+strings.Join(g.Containers, ", ")+", which state none", diagnosis.That("metadata.annotations", "", diagnosis.Contains, name), diagnosis.That("metadata.annotations", "", diagnosis.Contains, g.Containers[0])),
		g.gives(),
	}
}

// tell is the same of pods that do not exist, by their template.
func (g *Given) tell(template *corev1.PodSpec, ref string) []diagnosis.Evidence {
	var claims []diagnosis.Claim
	for i, k := range slices.Concat(template.Containers, template.InitContainers) {
		at := "containers"
		if i >= len(template.Containers) {
			at = "initContainers"
		}
		if slices.Contains(g.Containers, k.Name) {
			claims = append(claims, diagnosis.That("spec.template.spec."+at+"[name="+k.Name+"].resources.limits", string(g.Resource), diagnosis.Absent, ""))
		}
	}
	return []diagnosis.Evidence{diagnosis.Fact(ref, "states no "+string(g.Resource)+" for "+strings.Join(g.Containers, ", "), claims...), g.gives()}
}

func (g *Given) gives() diagnosis.Evidence {
	return diagnosis.Fact(g.ref(), "gives "+g.amount+" of "+string(g.Resource)+" to containers that state none", g.claim())
}

func (g *Given) ref() string {
	return view.ObjectRef("LimitRange", g.Range.Namespace, g.Range.Name)
}

// claim is how much the range gives.
func (g *Given) claim() diagnosis.Claim {
	return diagnosis.That("spec.limits[*]."+g.by, string(g.Resource), diagnosis.Is, g.amount).Of(g.ref())
}
