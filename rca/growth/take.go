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

// ofPool is what keeps machines of one pool from having room for the pod, a rule each: what it says, of the
// pool and of what Karpenter said of it; empty where that is not so.
type ofPool struct{ *Case }

// byWhatPoolsTake is for the one pool that may be for the pod, whose machines have no room for it whatever
// their size: something else than that is what is wrong.
func (c *Case) byWhatPoolsTake(g *Growth, o *scaling.Outlook, lacks []scaling.Reason, said diagnosis.Evidence) bool {
	p, r := c.onlyPool(o, lacks)
	if p == nil {
		return false
	}
	blind, of := g.Lacks, ofPool{c}
	g.Lacks = ""
	for _, why := range []func(*Growth, *scaling.Pool, scaling.Reason) (string, []diagnosis.Evidence){
		of.anothersGPUs, of.parts, of.crowded, of.takenByDaemons, of.smallDisk, of.shared, of.uncounted,
	} {
		if says, facts := why(g, p, r); says != "" {
			g.Pools = []scaling.Pool{*p}
			g.tell(diagnosis.AutoscalerCannotHelp, diagnosis.Likely, says, append(facts, said)...)
			return true
		}
	}
	g.Lacks = blind
	return false
}

// onlyPool is the one pool of those reasons that may be for the pod, or that would be if its GPUs were not
// of another maker; nil where there is not one, or one was not read.
func (c *Case) onlyPool(o *scaling.Outlook, of []scaling.Reason) (*scaling.Pool, scaling.Reason) {
	var fit, others []scaling.Reason
	for _, r := range of {
		p := o.Pool(r.Pool)
		if p == nil {
			return nil, r
		}
		if key, _ := p.OtherGPUs(); c.poolFit(p) != scaling.No {
			fit = append(fit, r)
		} else if key != "" && c.asksNVIDIA() {
			others = append(others, r)
		}
	}
	if len(fit) == 0 {
		fit = others
	}
	if len(fit) != 1 {
		return nil, scaling.Reason{}
	}
	return o.Pool(fit[0].Pool), fit[0]
}

// poolFit says whether a pool could be for the pod: what asks for no GPU needs no pool for them.
func (c *Case) poolFit(p *scaling.Pool) scaling.Fit {
	switch {
	case p == nil:
		return scaling.Maybe
	case len(c.Asks) > 0:
		return p.Suits(c.Pod)
	case p.Takes(c.Pod):
		return scaling.Yes
	}
	return scaling.No
}

func (c ofPool) anothersGPUs(_ *Growth, p *scaling.Pool, _ scaling.Reason) (string, []diagnosis.Evidence) {
	key, values := p.OtherGPUs()
	if key == "" || !c.asksNVIDIA() {
		return "", nil
	}
	return fmt.Sprintf("NodePool %s takes machines with GPUs of another maker alone (%s In %s): none of them offers %s", p.Name, key, strings.Join(values, ", "), c.Asks[0].Resource),
		[]diagnosis.Evidence{diagnosis.Fact("NodePool/"+p.Name, "requires "+key+" In "+strings.Join(values, ", "), diagnosis.That("spec.template.spec.requirements", "", diagnosis.Contains, key))}
}

// parts tells of a pool all of whose machines have a part of a GPU: EC2 counts none of these, and Karpenter goes by that
// (aws/karpenter-provider-aws issue 8368). How large they are is not the matter.
func (c ofPool) parts(g *Growth, p *scaling.Pool, _ scaling.Reason) (string, []diagnosis.Evidence) {
	key, types := p.PartGPUs()
	if key == "" || !c.asksNVIDIA() || c.Asks[0].Resource != view.WholeGPU || p.Class.Kind != "EC2NodeClass" {
		return "", nil
	}
	g.Lacks = string(view.WholeGPU)
	claims := make([]diagnosis.Claim, len(types))
	for i, t := range types {
		claims[i] = diagnosis.That("spec.template.spec.requirements", "", diagnosis.Contains, t)
	}
	return fmt.Sprintf("NodePool %s takes machines with a part of a GPU alone (%s), which EC2 does not count, and by that Karpenter goes: for it none of them offers %s", p.Name, strings.Join(types, ", "), view.WholeGPU),
		[]diagnosis.Evidence{diagnosis.Fact("NodePool/"+p.Name, "its machines are "+strings.Join(types, ", "), claims...),
			diagnosis.Fact(view.PodRef(c.Pod), "asks for "+asksText(c.Asks), c.requested()...)}
}

// crowded: the pool's node class lets too few pods onto its machines.
func (c ofPool) crowded(g *Growth, p *scaling.Pool, r scaling.Reason) (string, []diagnosis.Evidence) {
	crowd := pods(r.Overhead()) + 1
	if p.Class.MaxPods == 0 || crowd <= p.Class.MaxPods {
		return "", nil
	}
	g.Crowd = crowd
	return fmt.Sprintf("%s %s lets %s onto a machine of NodePool %s, and %d are to be there: this one, and those of DaemonSets", p.Class.Kind, p.Class.Name, view.CountOf(int(p.Class.MaxPods), "pod"), p.Name, crowd),
		[]diagnosis.Evidence{diagnosis.Fact(p.Class.Ref(), fmt.Sprintf("spec.kubelet.maxPods is %d", p.Class.MaxPods), diagnosis.That("spec.kubelet.maxPods", "", diagnosis.Is, strconv.FormatInt(p.Class.MaxPods, 10)))}
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
