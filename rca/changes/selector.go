package changes

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/mend"
	"github.com/unpend/unpend/rca/terms"
	"github.com/unpend/unpend/rca/view"
)

func (c *Bench) fixSelector(n *view.Node) []edit.Change {
	if c.IsOwn(diagnosis.WorkloadDeadlock) && slices.ContainsFunc(c.RunningPods(), func(p *corev1.Pod) bool {
		return maps.Equal(p.Spec.NodeSelector, c.Pod.Spec.NodeSelector) && reflect.DeepEqual(view.RequiredAffinity(p), view.RequiredAffinity(c.Pod))
	}) {
		return nil // those of it that run have the same, and it is for them that it waits
	}
	m := c.Labels.On(n)
	fix, known := c.selections[m]
	if !known {
		if fix = placedByKueue(c, m.Labels); fix == nil {
			fix = c.ofFlavor(m.Labels)
		}
		if ofMutePool(c, m.Labels) {
			fix = []edit.Change{} // what is wrong is the pool
		}
		if fix == nil {
			fix = c.given(m.Labels)
		}
		if fix == nil {
			fix = c.selecting(n, m.Labels)
		}
		c.selections[m] = fix
	}
	return mend.Relabel(n, m.Labels, fix)
}

// ofMutePool says whether the pod selects, by all that the node lacks, machines of a NodePool that makes none as it is.
func ofMutePool(c *Bench, missed []terms.MissedLabel) bool {
	return len(missed) > 0 && !slices.ContainsFunc(missed, func(m terms.MissedLabel) bool {
		return m.ByName || len(m.Values) != 1 || !c.Growth().Makes(m.Key, m.Values[0])
	})
}

// ofFlavor is for labels that Kueue has put into the workload, of a flavor that stands for no
// node: the flavor is set right, or the nodes. nil where one is the workload's own.
func (c *Bench) ofFlavor(missed []terms.MissedLabel) []edit.Change {
	name, labels := "", make([]string, len(missed))
	for i, m := range missed {
		flavor := c.Labels.Unmatched(m)
		if flavor == "" {
			return nil
		}
		name, labels[i] = flavor, m.Text()
	}
	if name == "" {
		return nil
	}
	text := strings.Join(labels, ",")
	return []edit.Change{edit.LookAt(diagnosis.NodeSelectorMismatch, "have ResourceFlavor "+name+" name a label that nodes have, or label its nodes "+text, "which nodes the flavor is meant for is in no object",
		"kubectl edit resourceflavors.kueue.x-k8s.io "+name+"  # spec.nodeLabels", "kubectl label nodes NODE "+text+"  # or the nodes that it is meant for",
		fmt.Sprintf("kubectl -n %s get workloads.kueue.x-k8s.io  # delete that of %s: Kueue takes the label out, and admits it again", c.Pod.Namespace, c.WorkloadName()))}
}

// selecting has the workload ask for what the node has of the labels that it misses: of
// a selector another value, of required affinity a wider term.
func (c *Bench) selecting(n *view.Node, missed []terms.MissedLabel) []edit.Change {
	if len(missed) == 0 || slices.ContainsFunc(missed, func(m terms.MissedLabel) bool { return m.ByName }) && c.Incident.Workload.Kind == "DaemonSet" {
		return nil // its controller makes a pod for each node, by name
	}
	risk, texts := diagnosis.LowRisk, make([]string, 0, len(missed))
	inAffinity := slices.ContainsFunc(missed, func(m terms.MissedLabel) bool { return !m.InSelector })
	for _, m := range missed {
		texts = append(texts, labelInstead(m, n.Node))
	}
	title := "select " + strings.Join(texts, ", ")
	if inAffinity || slices.ContainsFunc(missed, func(m terms.MissedLabel) bool { return pins(c, m) }) {
		risk = diagnosis.MediumRisk // it was meant, and not misspelled alone
	}
	if inAffinity {
		if terms := len(view.RequiredAffinity(c.Pod).NodeSelectorTerms); terms > 1 && widened(c.Pod.Spec.Affinity, n.Node, missed).NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
			title += fmt.Sprintf(", and none of the %d alternatives", terms)
		} else if terms > 1 {
			title += fmt.Sprintf(" (alternative %d of %d)", missed[len(missed)-1].Term+1, terms)
		}
	}
	other := otherMachine(n.Node, missed)
	return []edit.Change{c.Once(title, func(title string) edit.Change {
		ch := edit.Change{Kind: diagnosis.FixSelector, Cause: diagnosis.NodeSelectorMismatch, Minutes: 1, Risk: risk, Title: title + " in " + c.WorkloadName()}
		if other != "" {
			ch.Title += ", if its images are made for " + other
			ch.Manual, ch.Untestable = true, "for which machines an image is made is in no object: one of another kind does not begin"
			for i := range c.Pod.Spec.Containers {
				ch.Commands = append(ch.Commands, fmt.Sprintf("docker manifest inspect %s  # has it %s? else bring one that has, or a node of the kind that was asked", c.Pod.Spec.Containers[i].Image, other))
			}
		}
		if why := c.Growth().Meant(terms.SelectorKeys(missed)...); why != "" {
			ch.Manual, ch.Untestable = true, why
		}
		if ch.Settles = slices.ContainsFunc(missed, c.settles); ch.Settles && len(c.Asks) > 0 {
			ch.Less = c.Asks[0].Count // of the model that is asked
		}
		selector, patch := otherSelector(c.Pod.Spec.NodeSelector, n.Node, missed)
		spec := map[string]any{}
		if len(patch) > 0 {
			spec["nodeSelector"] = patch
		}
		var affinity *corev1.Affinity
		if inAffinity {
			affinity = widened(c.Pod.Spec.Affinity, n.Node, missed)
			spec["affinity"] = map[string]any{"nodeAffinity": map[string]any{"requiredDuringSchedulingIgnoredDuringExecution": affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution}}
		}
		ch.Pod = func(p *corev1.Pod) {
			p.Spec.NodeSelector = selector
			if inAffinity {
				p.Spec.Affinity = affinity
			}
		}
		if t := c.Cluster.Template(c.Incident.Workload); inAffinity && t != nil && !reflect.DeepEqual(view.RequiredAffinity(&corev1.Pod{Spec: *t}), view.RequiredAffinity(c.Pod)) {
			ch.Manual = true // somebody gives its pods terms that the template does not have
			ch.Commands = []string{fmt.Sprintf("kubectl -n %s edit %s  # the node affinity of its pods is not of its template: see who sets it", c.Incident.Workload.Namespace, c.WorkloadName())}
			return ch
		}
		c.EditTemplate(&ch, spec, false)
		return ch
	})}
}

// machines are the labels by which nodes say for which programs their processor and their system are.
var machines = []string{corev1.LabelArchStable, "beta.kubernetes.io/arch", corev1.LabelOSStable, "beta.kubernetes.io/os"}

// otherMachine is what a node is by a label of machines, where the pod asks for others: its images are made for those, as
// far as anybody has said. Empty where it asks for none, or the node is one.
func otherMachine(n *corev1.Node, missed []terms.MissedLabel) string {
	for _, m := range missed {
		if value, ok := m.Of(n); ok && slices.Contains(machines, m.Key) && m.Instead(n) == "" {
			return value
		}
	}
	return ""
}

// models are the labels by which nodes say what their GPUs are: GPU feature discovery's, AMD's, clouds'
// and autoscalers'.
var models = []string{"nvidia.com/gpu.product", "nvidia.com/gpu.family", "nvidia.com/gpu.memory", "amd.com/gpu.product-name", "amd.com/gpu.family", "amd.com/gpu.vram",
	"cloud.google.com/gke-accelerator", "k8s.amazonaws.com/accelerator", "karpenter.k8s.aws/instance-gpu-name", "eks.amazonaws.com/instance-gpu-name"}

// settles says whether a label asks for a model of GPU that some node has: another is not what was
// asked, and not a name put right.
func (c *Bench) settles(m terms.MissedLabel) bool {
	return slices.Contains(models, m.Key) && slices.ContainsFunc(c.Cluster.SortedNodes(), func(n *view.Node) bool { return m.Met(n.Node) })
}

// pins says whether a label asks for one machine that is there: somebody has written that for a reason, which may lie on it.
func pins(c *Bench, m terms.MissedLabel) bool {
	return (m.ByName || m.Key == corev1.LabelHostname) && slices.ContainsFunc(c.Cluster.SortedNodes(), func(n *view.Node) bool { return m.Met(n.Node) })
}

// labelInstead says what would be asked for.
func labelInstead(m terms.MissedLabel, n *corev1.Node) string {
	value, ok := m.Of(n)
	switch {
	case m.Instead(n) != "":
		return m.Instead(n) + " instead of " + m.Text()
	case ok && (m.InSelector || m.ByName && m.Operator == corev1.NodeSelectorOpIn):
		return m.Key + "=" + value
	case ok && m.Operator == corev1.NodeSelectorOpIn:
		return m.Key + "=" + value + " too"
	case len(loosened(m, n)) > 0:
		m.Values = loosened(m, n)
		return m.Text()
	}
	return "no " + m.Key
}

// loosened are the values of the requirement that the node meets; none: it meets none.
func loosened(m terms.MissedLabel, n *corev1.Node) []string {
	value, ok := m.Of(n)
	number, err := strconv.ParseInt(value, 10, 64)
	switch {
	case !ok:
		return nil
	case m.ByName && m.Operator == corev1.NodeSelectorOpIn:
		return []string{value} // the API takes one name alone
	case m.Operator == corev1.NodeSelectorOpIn:
		return append(slices.Clone(m.Values), value)
	case m.Operator == corev1.NodeSelectorOpNotIn:
		return slices.DeleteFunc(slices.Clone(m.Values), func(v string) bool { return v == value })
	case m.Operator == corev1.NodeSelectorOpGt && err == nil:
		return []string{strconv.FormatInt(number-1, 10)}
	case m.Operator == corev1.NodeSelectorOpLt && err == nil:
		return []string{strconv.FormatInt(number+1, 10)}
	}
	return nil
}

// otherSelector is the selector that the node meets, and the patch that makes it.
func otherSelector(from map[string]string, n *corev1.Node, missed []terms.MissedLabel) (selector map[string]string, patch map[string]any) {
	selector, patch = maps.Clone(from), map[string]any{}
	for _, m := range missed {
		if !m.InSelector {
			continue
		}
		if value, ok := n.Labels[m.Key]; ok {
			selector[m.Key], patch[m.Key] = value, value
			continue
		}
		delete(selector, m.Key)
		patch[m.Key] = nil
		if m.Instead(n) != "" {
			selector[m.Other], patch[m.Other] = m.Values[0], m.Values[0]
		}
	}
	return selector, patch
}

// widened is the affinity with the nearest term as the node meets it; without any where
// nothing of that term is left.
func widened(from *corev1.Affinity, n *corev1.Node, missed []terms.MissedLabel) *corev1.Affinity {
	a := from.DeepCopy()
	required := a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	var term *corev1.NodeSelectorTerm
	for _, m := range slices.Backward(missed) { // what is left out moves those behind it
		if m.InSelector {
			continue
		}
		term = &required.NodeSelectorTerms[m.Term]
		list := &term.MatchExpressions
		if m.ByName {
			list = &term.MatchFields
		}
		if values := loosened(m, n); len(values) > 0 {
			(*list)[m.At].Values = values
		} else {
			*list = slices.Delete(*list, m.At, m.At+1)
		}
	}
	if len(term.MatchExpressions)+len(term.MatchFields) == 0 {
		a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = nil
	}
	return a
}
