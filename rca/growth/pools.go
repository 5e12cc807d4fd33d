package growth

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/scaling"
	"github.com/unpend/unpend/rca/view"
)

// bySilentPools tells of pools for such a pod that are not Ready: Karpenter leaves them out
// without a word, and with none Ready it says nothing at all. failed is what it did say.
func (c *Case) bySilentPools(g *Growth, o *scaling.Outlook, failed *corev1.Event) {
	var shut []scaling.Pool
	open := false
	for _, p := range o.Pools {
		usable, known := p.Usable()
		switch fit := p.Suits(c.Pod); {
		case !known || fit == scaling.No:
		case usable:
			open = open || failed != nil || fit == scaling.Yes
		default:
			shut = append(shut, p)
		}
	}
	if failed != nil { // it looked at those that are Ready: one that would do and is not must be for GPUs
		shut = slices.DeleteFunc(shut, func(p scaling.Pool) bool { return p.Suits(c.Pod) != scaling.Yes })
		open = slices.ContainsFunc(o.Pools, func(p scaling.Pool) bool {
			usable, _ := p.Usable()
			return usable && p.Suits(c.Pod) == scaling.Yes
		})
	}
	if len(shut) == 0 || open {
		return
	}
	g.Pools, g.Bar, g.Suits = shut, scaling.NotReady, slices.ContainsFunc(shut, func(p scaling.Pool) bool { return p.Suits(c.Pod) == scaling.Yes })
	names, evidence := make([]string, len(shut)), make([]diagnosis.Evidence, len(shut))
	for i, p := range shut {
		names[i] = p.Name
		fact := "Ready=" + p.Ready.Status + " " + view.Cut(p.Ready.Words(), 200)
		if p.Why.Status != "" {
			fact += "; " + view.Cut(p.Why.Words(), 200)
		}
		evidence[i] = diagnosis.Fact("NodePool/"+p.Name, fact, append(view.SaysOf(p.Ready), view.ConditionIs("Ready", p.Ready.Status))...)
	}
	why := evidence[0].Fact
	for _, p := range shut {
		if k := p.Class; k.Ready.Status != "" && !k.Ready.Met() {
			words := view.Cut(k.Words(), 240)
			claims := append(view.SaysOf(k.Ready), view.ConditionIs("Ready", k.Ready.Status))
			for _, behind := range k.Why {
				claims = append(claims, view.SaysOf(behind)...)
			}
			evidence = append(evidence, diagnosis.Fact(k.Ref(), "Ready="+k.Ready.Status+" "+view.Cut(k.Ready.Words(), 200)+"; "+words, claims...))
			if p.Name == shut[0].Name {
				why = "its " + k.Kind + " " + k.Name + " says " + words
			}
		}
	}
	g.tell(diagnosis.AutoscalerCannotHelp, diagnosis.Likely, fmt.Sprintf("Karpenter leaves out what is not Ready, without a word: NodePool %s (%s)", strings.Join(names, ", "), why), evidence...)
}

// byLimits tells of pools that have no room left, where no Event says so any more.
func (c *Case) byLimits(g *Growth, o *scaling.Outlook) {
	var full []scaling.Pool
	for _, p := range o.Pools {
		switch fit := p.Suits(c.Pod); {
		case fit == scaling.No || fit == scaling.Maybe && len(p.Exhausted(c.Wants)) == 0:
		case fit == scaling.Yes && len(p.Exhausted(c.Wants)) == 0:
			return // it could grow
		case fit == scaling.Yes:
			full = append(full, p)
		}
	}
	if len(full) > 0 {
		c.tellLimit(g, full, diagnosis.Likely)
	}
}

// byPoolErrors sorts what Karpenter says of each NodePool. Limits are looked at before it
// asks whether the pool suits the pod: a full pool for others is no way out.
func (c *Case) byPoolErrors(g *Growth, o *scaling.Outlook, failed *corev1.Event) {
	said := scaling.NotScheduled(failed.Message)
	g.Said = view.Quotable(failed.Message, 600)
	evidence := diagnosis.Fact(view.PodRef(c.Pod), "karpenter says FailedScheduling: "+view.Quotable(failed.Message, 600), diagnosis.Says(failed.Message))
	if (whose{c}).byEmptied(g, o, failed, evidence) {
		return
	}
	said = whose{c}.forIt(o, said)
	meets(c, g, o, said)
	suits := func(r scaling.Reason) scaling.Fit { return c.poolFit(o.Pool(r.Pool)) }
	limit := slices.DeleteFunc(ofBar(said, scaling.Limit), func(r scaling.Reason) bool { return suits(r) == scaling.No })
	lacks, blind := ofBar(said, scaling.Lacks), c.blindTo()
	if sure := slices.ContainsFunc(limit, func(r scaling.Reason) bool { return suits(r) == scaling.Yes }); len(limit) > 0 && (sure || blind == "" || len(lacks) == 0) {
		g.Suits = len(said) == len(limit) // or where a pool is sure to suit: tellLimit
		c.tellLimit(g, poolsNamed(o, poolNames(limit)), diagnosis.Likely, evidence)
		if len(g.Pools) == 0 {
			g.told[diagnosis.AutoscalerLimit].Says = limitWords(limit)
		}
		return
	}
	near := ofBar(said, scaling.Topology)
	near = slices.DeleteFunc(near, func(r scaling.Reason) bool { return suits(r) == scaling.No })
	switch offering := ofBar(said, scaling.Offering); {
	case len(ofBar(said, scaling.Volume)) > 0:
		g.Bar, g.OfTemplate = scaling.Volume, diagnosis.VolumeConflict
		g.Template = view.Found(diagnosis.Likely, "its volumes and its own selector leave no zone in which Karpenter could make a node for it", evidence)
		g.tell(diagnosis.AutoscalerCannotHelp, diagnosis.Likely, "Karpenter brings no node: of the zones that the pod's volumes and its own selector want, none is left", evidence)
	case len(near) > 0 && (len(offering)+len(lacks) == 0 || slices.ContainsFunc(near, func(r scaling.Reason) bool { return suits(r) == scaling.Yes })):
		c.byTopology(g, o, near, evidence)
	case len(offering) > 0:
		g.Bar, g.Pools = scaling.Offering, poolsNamed(o, poolNames(offering))
		g.tell(diagnosis.AutoscalerCannotHelp, diagnosis.Likely, "no machine of those that would do is to be had in the zone and at the price (capacity type) that pool and pod allow, or the cloud refused them in the last minutes", evidence)
	case len(lacks) > 0:
		g.Bar, g.Lacks = scaling.Lacks, blind
		if blind == "" && c.byHugePages(g, o, lacks, evidence) || c.byWhatPoolsTake(g, o, lacks, evidence) {
			return
		}
		evidence.Claims = append(evidence.Claims, c.requested()...)
		if blind == "" {
			g.Pools = c.poolsFor(lacks)
		}
		what := "no instance type of its pools"
		if len(g.Pools) == 1 {
			what = "no instance type of NodePool " + g.Pools[0].Name
		}
		g.tell(diagnosis.AutoscalerCannotHelp, diagnosis.Likely, c.lacksSays("Karpenter", what, blind, lacks...), evidence)
	case len(ofBar(said, scaling.Devices)) > 0:
		c.byDevices(g, o, ofBar(said, scaling.Devices), evidence)
	case len((whose{c}).behindTaint(o, said)) > 0:
		c.tellTemplate(g, diagnosis.UntoleratedTaint, "NodePool", (whose{c}).behindTaint(o, said), evidence)
	case len(ofBar(said, scaling.Selector)) > 0:
		c.tellTemplate(g, diagnosis.NodeSelectorMismatch, "NodePool", ofBar(said, scaling.Selector), evidence)
	case len(ofBar(said, scaling.Types)) > 0:
		c.byTypes(g, o, ofBar(said, scaling.Types), evidence)
	case len(ofBar(said, scaling.Taint)) > 0:
		c.tellTemplate(g, diagnosis.UntoleratedTaint, "NodePool", ofBar(said, scaling.Taint), evidence)
	default:
		g.Bar = scaling.Other
		g.tell(diagnosis.AutoscalerCannotHelp, diagnosis.Likely, "Karpenter looked and brings no node: "+view.Quotable(said[0].Text, 160), evidence)
	}
}

// gpuPools are the pools of those reasons whose machines have GPUs, whatever keeps the pod from them.
func (c *Case) gpuPools(of []scaling.Reason) []scaling.Pool {
	return slices.DeleteFunc(poolsNamed(c.Cluster.Outlook(), poolNames(of)), func(p scaling.Pool) bool { return !p.OfGPUs() })
}

// labelFor is the label that keeps the pod from all of the pools, as Karpenter names it, or from
// all that it speaks of where it knows none for GPUs; empty where there is not one such label.
func labelFor(of []scaling.Reason, pools []scaling.Pool) (string, []scaling.Pool) {
	key := ""
	for _, r := range of {
		if len(pools) > 0 && !slices.ContainsFunc(pools, func(p scaling.Pool) bool { return p.Name == r.Pool }) {
			continue
		}
		if k := r.LabelKey(); k == "" || key != "" && k != key {
			return "", nil
		}
		key = r.LabelKey()
	}
	return key, pools
}

// poolsFor are the pools of those reasons that are sure to make machines with GPUs such as the pod
// asks for.
func (c *Case) poolsFor(of []scaling.Reason) []scaling.Pool {
	if !c.asksNVIDIA() {
		return nil
	}
	return slices.DeleteFunc(poolsNamed(c.Cluster.Outlook(), poolNames(of)), func(p scaling.Pool) bool { return p.Suits(c.Pod) != scaling.Yes })
}

func ofBar(all []scaling.Reason, b scaling.Bar) []scaling.Reason {
	var out []scaling.Reason
	for _, r := range all {
		if r.Bar == b {
			out = append(out, r)
		}
	}
	return out
}

// byDevices tells of a pod whose claims for devices Karpenter meets on no machine that is not there yet.
func (c *Case) byDevices(g *Growth, o *scaling.Outlook, said []scaling.Reason, evidence diagnosis.Evidence) {
	g.Bar = scaling.Devices
	g.Pools = slices.DeleteFunc(poolsNamed(o, poolNames(said)), func(p scaling.Pool) bool { return !p.OfGPUs() })
	says := "Karpenter brings no node for a pod that claims devices by DRA in this way"
	if said[0].AllocatesDevices() {
		says = "Karpenter finds no instance type with the devices that the pod claims by DRA: of a machine that is not there yet it knows those that its provider names, and none that a driver would publish"
	}
	g.tell(diagnosis.AutoscalerCannotHelp, diagnosis.Likely, says, evidence)
}

func poolNames(all []scaling.Reason) []string {
	var out []string
	for _, r := range all {
		if r.Pool != "" {
			out = append(out, r.Pool)
		}
	}
	return out
}

func limitWords(all []scaling.Reason) string {
	if names := poolNames(all); len(names) > 0 {
		return "NodePool " + strings.Join(names, ", ") + " has reached its limits (what is used of them was not read)"
	}
	return "the node pool has reached its limits: " + view.Quotable(all[0].Text, 120)
}

// blindTo is the first resource that the pod asks for and that no template of an autoscaler
// has by itself: instances of MIG and shares; empty for none.
func (c *Case) blindTo() string {
	for _, a := range c.Asks {
		if a.Resource != view.WholeGPU {
			return string(a.Resource)
		}
	}
	return ""
}

// lacksSays says what an autoscaler does not know, or cannot have.
func (c *Case) lacksSays(who, what, blind string, of ...scaling.Reason) string {
	if blind != "" {
		return fmt.Sprintf("%s knows no machine that offers %s: MIG instances and shares are made on the node, and no instance type or template speaks of them", who, blind)
	}
	for _, a := range c.Asks {
		return fmt.Sprintf("%s has room for what the pod asks for at once (%d %s with %s)", what, a.Count, a.Resource, c.hostAsked(of))
	}
	for _, name := range slices.Sorted(maps.Keys(c.Wants)) {
		if strings.Contains(string(name), "/") { // of another maker's device than a GPU
			return fmt.Sprintf("%s has %s together with what else the pod asks for, as %s counts", what, name, who)
		}
	}
	return what + " has room for what the pod asks for at once"
}

// requested is what lacksSays counts.
func (c *Case) requested() []diagnosis.Claim {
	var out []diagnosis.Claim
	for _, name := range []corev1.ResourceName{view.WholeGPU, corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage} {
		if q, asked := c.Wants[name]; asked {
			out = append(out, c.Cluster.OfPod(c.Pod, diagnosis.That(diagnosis.Requests, string(name), diagnosis.Is, q.String()))...)
		}
	}
	return out
}

// hostAsked is what the pod asks for beside GPUs.
func (c *Case) hostAsked(of []scaling.Reason) string {
	var out []string
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage} {
		if q, asked := c.Wants[name]; asked {
			out = append(out, q.String()+" "+string(name))
		}
	}
	daemons := "what DaemonSets take"
	if len(of) > 0 {
		daemons += overheadText(of[0].Overhead())
	}
	if len(out) == 0 {
		return daemons
	}
	last := len(out) - 1
	if last > 0 {
		out = []string{strings.Join(out[:last], ", ") + " and " + out[last]}
	}
	return out[0] + ", and " + daemons
}

// tellLimit names pools, limits and what is used. A limit is held against the whole machine,
// not against the pod.
func (c *Case) tellLimit(g *Growth, pools []scaling.Pool, certainty diagnosis.Certainty, evidence ...diagnosis.Evidence) {
	g.Pools, g.Bar, g.Suits = pools, scaling.Limit, g.Suits || slices.ContainsFunc(pools, func(p scaling.Pool) bool { return p.Suits(c.Pod) == scaling.Yes })
	var parts []string
	proven := len(pools) > 0
	for _, p := range pools {
		short := p.Exhausted(c.Wants)
		proven = proven && len(short) > 0
		fact := limitsText(&p, nil)
		parts = append(parts, "NodePool "+p.Name+" is at its limit: "+limitsText(&p, short))
		if len(short) == 0 {
			parts[len(parts)-1] = "NodePool " + p.Name + " has no limit left for a whole machine: " + fact + " (a limit is held against the instance type, not the pod)"
		}
		leaving, held := c.leavingOf(g, c.Cluster.Outlook(), &p)
		parts[len(parts)-1] += leaving
		evidence = append(append(evidence, held...), diagnosis.Fact("NodePool/"+p.Name, "spec.limits against status.resources: "+fact, view.LimitsOf(&p)...))
	}
	if proven && len(evidence) > len(pools) {
		certainty = diagnosis.Proven // Karpenter says so, and its objects do
	}
	g.tell(diagnosis.AutoscalerLimit, certainty, strings.Join(parts, "; "), evidence...)
}

// limitsText lists limits with their use; only: those names alone.
func limitsText(p *scaling.Pool, only []corev1.ResourceName) string {
	var out []string
	for name, limit := range p.Limits {
		if len(only) > 0 && !slices.Contains(only, name) {
			continue
		}
		used := p.Used[name]
		out = append(out, fmt.Sprintf("%s %s of %s used", name, used.String(), limit.String()))
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

// tellTemplate says of what the pools make what is else said of nodes: the pod's selector
// or tolerations are not for it, and no growth mends that.
func (c *Case) tellTemplate(g *Growth, id diagnosis.CauseID, kind string, of []scaling.Reason, evidence diagnosis.Evidence) {
	g.OfTemplate, g.Bar = id, of[0].Bar
	g.Label, g.Pools = labelFor(of, c.gpuPools(of))
	if slices.ContainsFunc(c.Cluster.Outlook().Pools, func(p scaling.Pool) bool { return !scaling.Tolerates(c.Pod, p.Taints) && p.Speaks(g.Label) }) {
		g.Label = "" // taints are looked at before labels: of that pool Karpenter has not said whether it has the label
	}
	says := "its selector or affinity fits nothing that a " + kind + " makes: " + view.Quotable(of[0].Text, 160)
	if id == diagnosis.UntoleratedTaint {
		g.Tolerate = of[0].Tolerated()
		if p := c.Cluster.Outlook().Pool(of[0].Pool); p != nil {
			g.Tolerate = c.toleration(p)
		}
		says = "it does not tolerate the taint of what a " + kind + " makes: " + view.Quotable(of[0].Text, 160)
	}
	g.Template = view.Found(diagnosis.Likely, says, evidence)
}
