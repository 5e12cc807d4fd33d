package admission

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// PriorityStated is about pods whose template states what only their PriorityClass may give: the API server takes it where it is
// what that gives, and else refuses them (plugin/pkg/admission/priority, "must not be provided in pod spec").
const PriorityStated = "priority stated"

// statedPriority holds what the template states to what its PriorityClass gives. Near is a class that gives it.
func (c *Refused) statedPriority() (APIRefusal, bool) {
	o := c.All[0].Owner
	spec := c.Cluster.Template(o)
	if spec == nil || c.Cluster.State.Unread[NoPriorityClass] != "" || !strings.Contains(c.Says(), " must not be provided in pod spec") {
		return APIRefusal{}, false
	}
	classes := c.Cluster.State.PriorityClasses
	policy, priority := corev1.PreemptLowerPriority, int32(0)
	by := "without a PriorityClass"
	if class := classOf(&corev1.Pod{Spec: *spec}, classes); class != nil {
		policy, priority, by = policyOf(class), class.Value, "by PriorityClass "+class.Name
	}
	r := APIRefusal{Kind: PriorityStated, certainty: diagnosis.Proven}
	var states, given string
	gives := func(*schedulingv1.PriorityClass) bool { return false }
	switch {
	case spec.PreemptionPolicy != nil && *spec.PreemptionPolicy != policy:
		r.Name, states, given = "preemptionPolicy", string(*spec.PreemptionPolicy), string(policy)
		gives = func(k *schedulingv1.PriorityClass) bool { return policyOf(k) == *spec.PreemptionPolicy }
	case spec.Priority != nil && *spec.Priority != priority:
		r.Name, states, given = "priority", strconv.Itoa(int(*spec.Priority)), strconv.Itoa(int(priority))
		gives = func(k *schedulingv1.PriorityClass) bool { return k.Value == *spec.Priority }
	default:
		return APIRefusal{}, false
	}
	r.words = "its template states " + r.Name
	r.says = fmt.Sprintf("its template states %s %s, which a PriorityClass alone may give, and %s it is %s", r.Name, states, by, given)
	r.evidence = []diagnosis.Evidence{diagnosis.Fact(view.ObjectRef(o.Kind, o.Namespace, o.Name), "its pods state "+r.Name+" "+states, diagnosis.That("spec", "", diagnosis.Contains, states))}
	// of those that give it, the one whose value is nearest to what the pods have now
	apart := func(k *schedulingv1.PriorityClass) int32 { return max(k.Value-priority, priority-k.Value) }
	fit := slices.DeleteFunc(slices.Clone(classes), func(k *schedulingv1.PriorityClass) bool { return strings.HasPrefix(k.Name, "system-") || !gives(k) })
	if len(fit) > 0 {
		k := slices.MinFunc(fit, func(a, b *schedulingv1.PriorityClass) int {
			return cmp.Or(cmp.Compare(apart(a), apart(b)), strings.Compare(a.Name, b.Name))
		})
		r.Near = k.Name
		r.evidence = append(r.evidence, diagnosis.Fact("PriorityClass/"+k.Name, fmt.Sprintf("gives %s %s, and priority %d", r.Name, states, k.Value), diagnosis.That("value", "", diagnosis.Is, strconv.Itoa(int(k.Value)))))
	}
	return r, true
}

// policyOf is the policy of a class: one that says nothing preempts.
func policyOf(k *schedulingv1.PriorityClass) corev1.PreemptionPolicy {
	if k.PreemptionPolicy == nil {
		return corev1.PreemptLowerPriority
	}
	return *k.PreemptionPolicy
}
