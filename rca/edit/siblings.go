package edit

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// Tolerate has the workload tolerate more. Where its pods of the same part that run do so already, what it is made from says it,
// and something between that and the waiting pod has left it out (Spark's webhook that was down): then the pod alone is to be
// changed, and an edit of the workload would only have it begin again.
func (c *Workload) Tolerate(ch *Change, add []corev1.Toleration) {
	spec := map[string]any{"tolerations": append(c.tolerated(), add...)}
	sibling := c.tolerant(add)
	if sibling == nil {
		c.EditTemplate(ch, spec, true) // a template holds none of those that admission adds to its pods
		return
	}
	ch.template, ch.live, ch.Risk = spec, true, diagnosis.LowRisk
	which := "pod " + c.Pod.Name
	if n := len(c.WaitingPods()); n > 1 {
		which = fmt.Sprintf("the %d pods that wait", n)
	}
	ch.Title = fmt.Sprintf("let %s alone %s, as its running siblings do (%s)", which, tolerateText(add), sibling.Name)
	for _, p := range c.WaitingPods() {
		patch := livePatch(p, map[string]any{"tolerations": add})
		ch.Commands = append(ch.Commands, fmt.Sprintf("kubectl -n %s patch pod/%s --type=strategic -p '%s'", p.Namespace, p.Name, diagnosis.MustJSON(map[string]any{"spec": patch})))
		ch.Steps = append(ch.Steps, "patch pod/"+p.Name)
		ch.Actions = append(ch.Actions, diagnosis.Action{Verb: diagnosis.VerbPatch, Target: view.PodTarget(p), Patch: diagnosis.MustJSON(map[string]any{"spec": patch})})
	}
	ch.Commands = append(ch.Commands, fmt.Sprintf("kubectl -n %s delete pod %s  # or this, once what completes its pods runs (an operator's webhook): another is made, with what its siblings have", c.Pod.Namespace, c.Pod.Name))
}

func tolerateText(add []corev1.Toleration) string {
	texts := make([]string, len(add))
	for i, t := range add {
		taint := corev1.Taint{Key: t.Key, Value: t.Value, Effect: t.Effect}
		texts[i] = taint.ToString()
	}
	return "tolerate " + strings.Join(texts, ", ")
}

// tolerant is a running pod of the workload that is made from the same part of it as the waiting one and tolerates all that;
// nil where there is none, where one of them does not, or where the part is not known by what each is labelled with.
func (c *Workload) tolerant(add []corev1.Toleration) *corev1.Pod {
	k, known := places[c.Incident.Workload.Kind]
	if !known || k.of(c.Pod) == "" || c.Incident.Waiting > len(c.WaitingPods()) || len(c.WaitingPods()) == 0 {
		return nil
	}
	var found *corev1.Pod
	for _, p := range c.RunningPods() {
		if k.of(p) != k.of(c.Pod) || !sameContainers(p.Spec.Containers, c.Pod.Spec.Containers) {
			continue
		}
		for _, t := range add {
			if !corev1helpers.TolerationsTolerateTaint(logr.Discard(), p.Spec.Tolerations, &corev1.Taint{Key: t.Key, Value: t.Value, Effect: t.Effect}, true) {
				return nil
			}
		}
		found = p
	}
	return found
}

// sameContainers says whether two pods run the same and ask the same.
func sameContainers(a, b []corev1.Container) bool {
	return slices.EqualFunc(a, b, func(a, b corev1.Container) bool {
		return a.Name == b.Name && a.Image == b.Image && equality.Semantic.DeepEqual(a.Resources, b.Resources)
	})
}

// tolerated are the tolerations that the workload's spec has: of a pod whose template is not read, without those that admission
// has added to it (DefaultTolerationSeconds), for no team has written those.
func (c *Workload) tolerated() []corev1.Toleration {
	spec := c.PodSpec()
	list := slices.Clone(spec.Tolerations)
	if spec != &c.Pod.Spec || c.Incident.Workload.Kind == "Pod" {
		return list
	}
	return slices.DeleteFunc(list, func(t corev1.Toleration) bool {
		return (t.Key == corev1.TaintNodeNotReady || t.Key == corev1.TaintNodeUnreachable) && t.Operator == corev1.TolerationOpExists && t.Effect == corev1.TaintEffectNoExecute && t.TolerationSeconds != nil && *t.TolerationSeconds == 300
	})
}
