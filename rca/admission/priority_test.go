package admission

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/unpend/unpend/rca/cluster"
)

// What a template states of priority is held to what its class gives, or the one that is for all; of several classes that give it
// the nearest is named, and none of the API server's own.
func TestPrioritiesThatTemplatesState(t *testing.T) {
	never, preempts := ptr.To(corev1.PreemptNever), ptr.To(corev1.PreemptLowerPriority)
	class := func(name string, value int32, policy *corev1.PreemptionPolicy) *schedulingv1.PriorityClass {
		return &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value, PreemptionPolicy: policy}
	}
	all := []*schedulingv1.PriorityClass{class("system-node-critical", 2000001000, preempts), class("far", 9000, never), class("polite", 1000, never), class("bold", 500, nil)}
	common := append([]*schedulingv1.PriorityClass{{ObjectMeta: metav1.ObjectMeta{Name: "common"}, Value: 800, GlobalDefault: true, PreemptionPolicy: never}}, all...)
	const refusal = `pods "w-1" is forbidden: the string value of PreemptionPolicy (Never) must not be provided in pod spec; priority admission controller computed PreemptLowerPriority from the given PriorityClass name`
	const alone, policy = ", which a PriorityClass alone may give, and ", "proven: priority stated preemptionPolicy: its template states preemptionPolicy: its template states preemptionPolicy "
	for name, tc := range map[string]struct {
		of           string
		policy       *corev1.PreemptionPolicy
		priority     *int32
		classes      []*schedulingv1.PriorityClass
		unread, said string
		want, near   string
	}{
		"without a class":          {"", never, nil, all, "", refusal, policy + "Never" + alone + "without a PriorityClass it is PreemptLowerPriority", "polite"},
		"by its class":             {"bold", never, nil, all, "", refusal, policy + "Never" + alone + "by PriorityClass bold it is PreemptLowerPriority", "polite"},
		"by that of all":           {"", preempts, nil, common, "", refusal, policy + "PreemptLowerPriority" + alone + "by PriorityClass common it is Never", "bold"},
		"no class has it":          {"", never, nil, all[:1], "", refusal, policy + "Never" + alone + "without a PriorityClass it is PreemptLowerPriority", ""},
		"a number":                 {"bold", nil, new(int32(1000)), all, "", refusal, "proven: priority stated priority: its template states priority: its template states priority 1000" + alone + "by PriorityClass bold it is 500", "polite"},
		"as its class gives it":    {"polite", never, new(int32(1000)), all, "", refusal, "", ""},
		"it was refused otherwise": {"", never, nil, all, "", "exceeded quota", "", ""},
		"classes were not read":    {"", never, nil, nil, "forbidden", refusal, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			pod := asking("p")
			pod.Spec.PriorityClassName, pod.Spec.PreemptionPolicy, pod.Spec.Priority = tc.of, tc.policy, tc.priority
			rs := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "w"}}
			rs.Spec.Template.Spec = pod.Spec
			c := refused(&cluster.State{PriorityClasses: tc.classes, ReplicaSets: []*appsv1.ReplicaSet{rs}, Unread: map[string]string{NoPriorityClass: tc.unread}}, pod, tc.said)
			r, _ := c.statedPriority()
			if got := toldRefusal(r); got != tc.want || r.Near != tc.near {
				t.Errorf("%q near %q, want %q near %q", got, r.Near, tc.want, tc.near)
			}
		})
	}
}
