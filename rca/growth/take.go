package growth

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/scaling"
	"github.com/unpend/unpend/rca/view"
)

// byWhatPoolsTake is for the pool whose machines have no room for the pod whatever their size:
// their GPUs are of another maker, or its node class lets too few pods onto them. Nothing is
// told where another pool that may be for GPUs lacks room too.
func (c *Case) byWhatPoolsTake(g *Growth, o *scaling.Outlook, lacks []scaling.Reason, said diagnosis.Evidence) bool {
	var of *scaling.Pool
	var says string
	var fact diagnosis.Evidence
	for _, r := range lacks {
		p := o.Pool(r.Pool)
		if p == nil {
			return false
		}
		key, values := p.OtherGPUs()
		crowd := pods(r.Overhead()) + 1
		switch others, crowded := key != "" && c.asksNVIDIA(), p.Class.MaxPods > 0 && crowd > p.Class.MaxPods; {
		case !others && p.Suits(c.Pod) == scaling.No:
			continue
		case of != nil || !others && !crowded:
			return false
		case others:
			says = fmt.Sprintf("NodePool %s takes machines with GPUs of another maker alone (%s In %s): none of them offers %s", p.Name, key, strings.Join(values, ", "), c.Asks[0].Resource)
			fact = diagnosis.Fact("NodePool/"+p.Name, "requires "+key+" In "+strings.Join(values, ", "), diagnosis.That("spec.template.spec.requirements", "", diagnosis.Contains, key))
		default:
			g.Crowd = crowd
			says = fmt.Sprintf("%s %s lets %s onto a machine of NodePool %s, and %d are to be there: this one, and those of DaemonSets", p.Class.Kind, p.Class.Name, view.CountOf(int(p.Class.MaxPods), "pod"), p.Name, crowd)
			fact = diagnosis.Fact(p.Class.Ref(), fmt.Sprintf("spec.kubelet.maxPods is %d", p.Class.MaxPods), diagnosis.That("spec.kubelet.maxPods", "", diagnosis.Is, strconv.FormatInt(p.Class.MaxPods, 10)))
		}
		of = p
	}
	if of == nil {
		return false
	}
	g.Pools, g.Lacks = []scaling.Pool{*of}, ""
	g.tell(diagnosis.AutoscalerCannotHelp, diagnosis.Likely, says, fact, said)
	return true
}

// asksNVIDIA says whether the pod asks for what machines of NVIDIA's alone offer.
func (c *Case) asksNVIDIA() bool {
	return len(c.Asks) > 0 && !slices.ContainsFunc(c.Asks, func(a view.Ask) bool { return !strings.HasPrefix(string(a.Resource), "nvidia.com/") })
}

func pods(all corev1.ResourceList) int64 {
	q := all[corev1.ResourcePods]
	return q.Value()
}

// overheadText is what DaemonSets take of each new node, GPUs first; empty where that is not said.
func overheadText(all corev1.ResourceList) string {
	var out []string
	for name, q := range all {
		if strings.Contains(string(name), "/") && !q.IsZero() {
			out = append(out, q.String()+" "+string(name))
		}
	}
	slices.Sort(out)
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourcePods} {
		q, said := all[name]
		switch {
		case !said || q.IsZero():
		case name == corev1.ResourcePods:
			out = append(out, view.CountOf(int(q.Value()), "pod"))
		case name == corev1.ResourceMemory:
			const mi = 1 << 20
			out = append(out, resource.NewQuantity((q.Value()+mi-1)/mi*mi, resource.BinarySI).String()+" memory")
		default:
			out = append(out, q.String()+" "+string(name))
		}
	}
	if len(out) == 0 {
		return ""
	}
	return ": " + strings.Join(out, ", ")
}
