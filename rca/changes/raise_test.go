package changes

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/whatif"
)

func class(name string, value int32) *schedulingv1.PriorityClass {
	return &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value}
}

// Classes that a workload may be given are above its own, preempt, are not the system's,
// and come lowest first.
func TestClassesAbove(t *testing.T) {
	never, own := corev1.PreemptNever, int32(10)
	idle := class("patient", 30)
	idle.PreemptionPolicy = &never
	all := []*schedulingv1.PriorityClass{class("low", 9), class("same", 10), class("high", 30), class("b", 11), class("a", 11), idle, class("system-b", 40), class("system", 2000000000), class("mine", 10)}
	for name, tc := range map[string]struct {
		policy *corev1.PreemptionPolicy
		want   []string
	}{
		"above alone":                  {nil, []string{"a", "b", "high"}},
		"its own value, that preempts": {&never, []string{"same", "a", "b", "high"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.Wait.Spec.Priority, w.Wait.Spec.PriorityClassName, w.Wait.Spec.PreemptionPolicy = &own, "mine", tc.policy
			w.PriorityClasses = all
			var got []string
			for _, k := range w.bench(t, "Deployment").Classes() {
				got = append(got, k.Name)
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("%v, want %v", got, tc.want)
			}
		})
	}
}

// A class is not offered that a quota refuses to the pod: one that counts it in that class
// and has not the room. What counts the pod already stays as it is.
func TestQuotaOfAClass(t *testing.T) {
	of := func(namespace, used string, scoped bool) *corev1.ResourceQuota {
		q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "q"}, Spec: corev1.ResourceQuotaSpec{Hard: list("pods", "2")},
			Status: corev1.ResourceQuotaStatus{Hard: list("pods", "2"), Used: list("pods", used)}}
		if scoped {
			q.Spec.ScopeSelector = &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{{ScopeName: corev1.ResourceQuotaScopePriorityClass, Operator: corev1.ScopeSelectorOpIn, Values: []string{"high"}}}}
		}
		return q
	}
	for name, tc := range map[string]struct {
		quota *corev1.ResourceQuota
		want  bool
	}{
		"the last it has":           {of("a", "1", true), true},
		"it has none left":          {of("a", "2", true), false},
		"of another namespace":      {of("b", "2", true), true},
		"it counts the pod already": {of("a", "2", false), true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.Quotas = []*corev1.ResourceQuota{tc.quota}
			b := w.bench(t, "Deployment")
			if got := quotaAllows(b.Cluster, b.Pod, class("high", 5)); got != tc.want {
				t.Errorf("%v", got)
			}
		})
	}
}

// A class is set in the template. A StatefulSet that works in order waits for the pod that
// waits, so that one is deleted by hand; and pods that run are recreated with it.
func TestRaiseByTemplate(t *testing.T) {
	set := func(policy appsv1.PodManagementPolicyType) *appsv1.StatefulSet {
		return &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "w", UID: "s"}, Spec: appsv1.StatefulSetSpec{PodManagementPolicy: policy}}
	}
	const byHand = "kubectl -n a delete pod w"
	for name, tc := range map[string]struct {
		kind    string
		fill    func(*world)
		manual  bool
		running int
	}{
		"deployment":                {"Deployment", func(w *world) { w.Deployed() }, false, 0},
		"all at once":               {"StatefulSet", func(w *world) { w.StatefulSets = []*appsv1.StatefulSet{set(appsv1.ParallelPodManagement)} }, false, 0},
		"in order":                  {"StatefulSet", func(w *world) { w.StatefulSets = []*appsv1.StatefulSet{set(appsv1.OrderedReadyPodManagement)} }, true, 0},
		"in order, said by nothing": {"StatefulSet", func(w *world) { w.StatefulSets = []*appsv1.StatefulSet{set("")} }, true, 0},
		"beside pods that run": {"StatefulSet", func(w *world) {
			w.StatefulSets = []*appsv1.StatefulSet{set(appsv1.ParallelPodManagement)}
			yes := true
			for i, phase := range []corev1.PodPhase{corev1.PodRunning, corev1.PodSucceeded, corev1.PodPending, corev1.PodRunning} {
				p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: fmt.Sprintf("w-%d", i), OwnerReferences: []metav1.OwnerReference{{Kind: "StatefulSet", Name: "w", Controller: &yes}}}, Status: corev1.PodStatus{Phase: phase}}
				if phase != corev1.PodPending {
					p.Spec.NodeName = "n"
				}
				if i == 3 {
					p.OwnerReferences[0].Name = "other"
				}
				w.Pods = append(w.Pods, p)
			}
		}, false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			tc.fill(w)
			ch := w.bench(t, tc.kind).Raise(diagnosis.PreemptionBlocked, class("high", 5), whatif.Preemption{Victims: []*corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Namespace: "b", Name: "taken"}}}})
			if ch.Manual != tc.manual || strings.Contains(strings.Join(ch.Commands, "\n"), byHand) != tc.manual {
				t.Errorf("manual %v: %q", ch.Manual, ch.Commands)
			}
			if len(ch.Actions) != 1 || !strings.Contains(string(ch.Actions[0].Patch), `"priorityClassName":"high"`) {
				t.Errorf("%+v", ch.Actions)
			}
			want := ""
			if tc.running > 0 {
				want = "the rollout recreates 1 running pod, each then with the right to preempt"
			}
			if ch.Untestable != want {
				t.Errorf("%q", ch.Untestable)
			}
		})
	}
}

// Where the scheduler may take any of several pods, what is offered names them, is a person's to
// do, and counts the worst of them.
func TestRaiseThatTakesAny(t *testing.T) {
	pod := func(name string, owned bool) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "b", Name: name}}
		if owned {
			yes := true
			p.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "r", Controller: &yes}}
		}
		return p
	}
	taken := pod("taken", true)
	for name, tc := range map[string]struct {
		or     []*corev1.Pod
		manual bool
		risk   diagnosis.Risk
		title  string
	}{
		"one for certain":      {nil, false, diagnosis.MediumRisk, "b/taken"},
		"or one that is alike": {[]*corev1.Pod{pod("x", true)}, true, diagnosis.MediumRisk, "b/taken (or, the same to it, b/x)"},
		"or one with no owner": {[]*corev1.Pod{pod("x", true), pod("y", false)}, true, diagnosis.HighRisk, "b/taken (or, the same to it, b/x or b/y)"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.Deployed()
			ch := w.bench(t, "Deployment").Raise(diagnosis.PreemptionBlocked, class("high", 5), whatif.Preemption{Victims: []*corev1.Pod{taken}, Or: tc.or})
			_, who, _ := strings.Cut(ch.Title, "preempts ")
			if ch.Manual != tc.manual || ch.Risk != tc.risk || who != tc.title || !slices.Equal(ch.Or, tc.or) {
				t.Errorf("manual %v, %s risk, %q, or %v", ch.Manual, ch.Risk, who, ch.Or)
			}
		})
	}
}
