package changes

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	nodev1 "k8s.io/api/node/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/terms"
	"github.com/unpend/unpend/rca/view"
)

// given is for a selector that the pod has and what it was made from does not: its RuntimeClass or a webhook has given
// it to the pod, or the template was changed since. To change the template takes nothing from the
// pod; made again, it is given what fits then. nil where none of them is given.
func (c *Bench) given(missed []terms.MissedLabel) []edit.Change {
	spec, of := c.Cluster.MadeFrom(c.Pod)
	if spec == nil {
		spec, of = c.Cluster.Template(c.Incident.Workload), c.Incident.Workload
	}
	var given []terms.MissedLabel
	for _, m := range missed {
		switch {
		case m.ByName:
			return nil // it is another node that the pod is for
		case !m.InSelector:
		case spec == nil && c.Labels.ByClass(m) != "", spec != nil && (!hasKey(spec.NodeSelector, m.Key) || spec.NodeSelector[m.Key] != m.Values[0]):
			given = append(given, m)
		}
	}
	if len(given) == 0 {
		return nil
	}
	texts := make([]string, len(given))
	for i, m := range given {
		texts[i] = m.Text()
	}
	if of.Kind == "DaemonSet" {
		return selectedToo(c, given, texts, of.Namespace, of.Name)
	}
	if class := c.Labels.ByClass(given[0]); class != "" {
		return classElsewhere(c, class, strings.Join(texts, ", "))
	}
	maker := strings.ToLower(of.Kind) + "/" + of.Name
	return []edit.Change{c.Once("see who gives its pods the selector "+strings.Join(texts, ", ")+", which "+maker+" does not have, and have the pod made again", func(title string) edit.Change {
		return edit.LookAt(diagnosis.NodeSelectorMismatch, title, "what the next pod is given is not known before it is made",
			fmt.Sprintf("kubectl -n %s get %s -o jsonpath='{.spec.template.spec.nodeSelector}'", of.Namespace, maker),
			"kubectl get mutatingwebhookconfigurations  # and the annotation scheduler.alpha.kubernetes.io/node-selector of its namespace",
			fmt.Sprintf("kubectl -n %s delete pod %s  # it waits; %s makes it again", c.Pod.Namespace, c.Pod.Name, maker))
	})}
}

func hasKey(m map[string]string, key string) bool {
	_, ok := m[key]
	return ok
}

// selectedToo is for a DaemonSet whose pods are given a selector that its template has not: its controller goes by the
// template alone, and makes pods for nodes that they cannot be on (kubernetes/kubernetes#111590).
func selectedToo(c *Bench, given []terms.MissedLabel, texts []string, namespace, name string) []edit.Change {
	patch := map[string]any{}
	for _, m := range given {
		patch[m.Key] = m.Values[0]
	}
	title := fmt.Sprintf("have daemonset/%s itself select %s, as its pods are given it", name, strings.Join(texts, ", "))
	if class := c.Labels.ByClass(given[0]); class != "" {
		title += " by RuntimeClass " + class
	}
	return []edit.Change{c.Once(title+": those for other nodes are not made then", func(title string) edit.Change {
		return edit.Change{Kind: diagnosis.FixSelector, Cause: diagnosis.NodeSelectorMismatch, Manual: true, Risk: diagnosis.LowRisk, Minutes: 1, Title: title,
			Untestable: "the pods that wait are not to run, but to go away",
			Commands:   []string{fmt.Sprintf("kubectl -n %s patch daemonset %s --type=strategic -p '%s'", namespace, name, diagnosis.MustJSON(map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"nodeSelector": patch}}}}))}}
	})}
}

// classElsewhere is for a selector that the pod's RuntimeClass gives it: a template that is changed is given it again.
func classElsewhere(c *Bench, class, selector string) []edit.Change {
	others := "another"
	if fit := classesThatFit(c, class); len(fit) > 0 {
		others = strings.Join(fit, " or ")
	}
	return []edit.Change{c.Once(fmt.Sprintf("make nodes ready for RuntimeClass %s, which selects %s, or name %s in %s", class, selector, others, c.WorkloadName()), func(title string) edit.Change {
		return edit.LookAt(diagnosis.NodeSelectorMismatch, title, "what the workload needs of its runtime is in no object",
			fmt.Sprintf("kubectl get runtimeclass %s -o jsonpath='{.scheduling}'  # the API server gives that to every pod that names it", class),
			"kubectl get runtimeclasses -o custom-columns=NAME:.metadata.name,SELECTS:.scheduling.nodeSelector",
			c.EditByHand("runtimeClassName: one whose nodes are there; what it runs as is another then"))
	})}
}

// classesThatFit are the other RuntimeClasses that choose nodes, and of which some node is.
func classesThatFit(c *Bench, but string) []string {
	var out []string
	for _, r := range c.Cluster.State.RuntimeClasses {
		if r.Name != but && chooses(r) && slices.ContainsFunc(c.Cluster.SortedNodes(), func(n *view.Node) bool { return len(unmetBy(r, n)) == 0 }) {
			out = append(out, r.Name)
		}
	}
	slices.Sort(out)
	return out[:min(len(out), mostClasses)]
}

// mostClasses bounds how many are named.
const mostClasses = 3

func chooses(r *nodev1.RuntimeClass) bool {
	return r.Scheduling != nil && len(r.Scheduling.NodeSelector) > 0
}

// unmetBy are the labels that a RuntimeClass selects and a node does not have.
func unmetBy(r *nodev1.RuntimeClass, n *view.Node) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(r.Scheduling.NodeSelector)), func(key string) bool {
		value, has := n.Labels[key]
		return has && value == r.Scheduling.NodeSelector[key]
	})
}
