package changes

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/terms"
	"github.com/unpend/unpend/rca/view"
)

func (c *Bench) addToleration(n *view.Node) []edit.Change {
	if misplaced(c) {
		return nil // it was not meant for tainted nodes: who has put it there has not looked at taints
	}
	var add []corev1.Toleration
	var names []string
	for _, t := range terms.Untolerated(c.Pod, n.Node) {
		if terms.OwnTaint(t) {
			continue
		}
		if terms.Departing(t) || startup(c.Cluster, n, t) {
			return nil
		}
		op := corev1.TolerationOpEqual
		if t.Value == "" {
			op = corev1.TolerationOpExists
		}
		add = append(add, corev1.Toleration{Key: t.Key, Operator: op, Value: t.Value, Effect: t.Effect})
		names = append(names, t.ToString())
	}
	return []edit.Change{c.Once("tolerate "+strings.Join(names, ", "), func(title string) edit.Change {
		list := append(slices.Clone(c.Pod.Spec.Tolerations), add...)
		ch := edit.Change{
			Kind: diagnosis.AddToleration, Cause: diagnosis.UntoleratedTaint, Minutes: 1, Risk: diagnosis.LowRisk,
			Title: title + " in " + c.WorkloadName(),
			Pod:   func(p *corev1.Pod) { p.Spec.Tolerations = list },
		}
		if slices.ContainsFunc(add, func(t corev1.Toleration) bool { return t.Key != string(view.WholeGPU) }) {
			ch.Risk = diagnosis.MediumRisk // somebody has set it to keep others out
		}
		ch.Untestable = c.forOthers(add)
		ch.Manual = ch.Untestable != ""
		c.Tolerate(&ch, add)
		return ch
	})}
}

// forOthers says why nobody here knows whether the pod may be where it would tolerate those taints: they
// set nodes apart for what it is not, and it could be elsewhere by its selector and by whom it has to be near.
// Empty where it may.
func (c *Bench) forOthers(add []corev1.Toleration) string {
	for _, t := range add {
		tainted := func(n *view.Node) bool {
			return slices.ContainsFunc(n.Spec.Taints, func(has corev1.Taint) bool { return has.Key == t.Key && has.Value == t.Value })
		}
		elsewhere, withGPUs := false, true
		for _, n := range c.Cluster.SortedNodes() {
			if !tainted(n) {
				ok, err := nodeaffinity.GetRequiredNodeAffinity(c.Pod).Match(n.Node)
				elsewhere = elsewhere || ok && err == nil && beside(c, n) && !slices.ContainsFunc(terms.Untolerated(c.Pod, n.Node), func(has corev1.Taint) bool { return has.Key != t.Key && terms.SetApart(has) })
			} else if !n.HasGPUs() {
				withGPUs = false
			}
		}
		switch {
		case !elsewhere:
		case t.Key == terms.CriticalAddons && corev1helpers.PodPriority(c.Pod) < view.SystemCritical:
			return "nodes with taint " + t.Key + " are for the cluster's own add-ons: whether this may be there only their owner knows"
		case terms.SetApart(corev1.Taint{Key: t.Key}) && corev1helpers.PodPriority(c.Pod) < view.SystemCritical:
			return "nodes with taint " + t.Key + " are for the control plane: whether this may be there only their owner knows"
		case withGPUs && !view.HoldsGPU(c.Wants) && len(c.Pod.Spec.ResourceClaims) == 0:
			return "nodes with taint " + t.Key + " have GPUs, and it asks for none: whether it may be there only their owner knows"
		}
	}
	return ""
}

// beside says whether a node has all those that the pod has to be near.
func beside(c *Bench, n *view.Node) bool {
	unmet, _, _ := c.Company.UnmetTerms(n)
	return len(unmet) == 0
}

// startup says whether Karpenter has put the taint on the node until it can be used: who
// tolerates it begins before what it waits for (spec.startupTaints of NodeClaim and NodePool).
func startup(w *view.Cluster, n *view.Node, t corev1.Taint) bool {
	out := w.Outlook()
	claim := out.ClaimOf(n.Name)
	if claim == nil {
		return false
	}
	taints := claim.Startup
	if pool := out.Pool(claim.Pool); pool != nil {
		taints = slices.Concat(taints, pool.Startup)
	}
	return slices.ContainsFunc(taints, func(s corev1.Taint) bool { return s.Key == t.Key && s.Effect == t.Effect })
}
