package growth

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/scaling"
	"github.com/unpend/unpend/rca/view"
)

// noTypeLeft is what Karpenter says of a pod where no NodePool that it looks at has an instance type,
// whatever the pod asks (pkg/controllers/provisioning/scheduling/scheduler.go: no template is left).
const noTypeLeft = "filtered out all available instance types"

// byTypes tells of pools without an instance type for the pod: for this one, or for any.
func (c *Case) byTypes(g *Growth, o *scaling.Outlook, of []scaling.Reason, evidence diagnosis.Evidence) {
	g.Bar = scaling.Types
	if !strings.Contains(of[0].Text, noTypeLeft) {
		g.tell(diagnosis.AutoscalerCannotHelp, diagnosis.Likely, "Karpenter knows no instance type that meets what pod and NodePool require: "+view.Quotable(of[0].Text, 120), evidence)
		return
	}
	pools, facts := whose{c}.emptied(o, nil)
	g.Pools, facts = pools, append([]diagnosis.Evidence{evidence}, facts...)
	says := "no NodePool that Karpenter looks at has an instance type left, whatever a pod asks"
	if names := poolTitles(g.Pools); names != "" {
		says += " (" + names + ")"
	}
	g.None = true
	g.tell(diagnosis.AutoscalerCannotHelp, diagnosis.Likely, says+": what they require leaves none, or the cloud has none of them now", facts...)
}

// byHugePages tells of memory in huge pages: the kernel of a machine sets it aside, and none of Karpenter's providers counts
// any for an instance type (kubernetes-sigs/karpenter issue 751), however large.
func (c *Case) byHugePages(g *Growth, o *scaling.Outlook, lacks []scaling.Reason, evidence diagnosis.Evidence) bool {
	at := slices.IndexFunc(view.SortedNames(c.Wants), view.HugePages)
	if at < 0 {
		return false
	}
	name := view.SortedNames(c.Wants)[at]
	g.Lacks, g.Pools = string(name), meantFrom(c.Pod, poolsNamed(o, poolNames(lacks)))
	g.tell(diagnosis.AutoscalerCannotHelp, diagnosis.Likely, fmt.Sprintf("Karpenter knows no machine with %s: the kernel of a machine sets them aside, and no instance type speaks of them", name), evidence, c.askedOf(g.Lacks))
	return true
}

// meantFrom are those of the pools whose machines let the pod on; where some keep others away by a taint that it tolerates, those alone.
func meantFrom(pod *corev1.Pod, pools []scaling.Pool) []scaling.Pool {
	pools = slices.DeleteFunc(pools, func(p scaling.Pool) bool { return !p.Takes(pod) })
	tainted := func(p scaling.Pool) bool {
		return slices.ContainsFunc(p.Taints, func(t corev1.Taint) bool { return t.Effect != corev1.TaintEffectPreferNoSchedule })
	}
	if slices.ContainsFunc(pools, tainted) {
		pools = slices.DeleteFunc(pools, func(p scaling.Pool) bool { return !tainted(p) })
	}
	return pools
}

func poolTitles(all []scaling.Pool) string {
	names := make([]string, len(all))
	for i := range all {
		names[i] = all[i].Name
	}
	return strings.Join(names, ", ")
}
