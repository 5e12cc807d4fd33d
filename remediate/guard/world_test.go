package guard

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

// noon is now in every test that does not say otherwise.
var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

const shape = corev1.ResourceName("nvidia.com/mig-2g.10gb")

// gpuNodes are Ready nodes gpu-1 … gpu-n that offer the shape.
func gpuNodes(n int) []*corev1.Node {
	out := make([]*corev1.Node, n)
	for i := range out {
		name := fmt.Sprintf("gpu-%d", i+1)
		one := corev1.ResourceList{shape: resource.MustParse("1")}
		out[i] = &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), CreationTimestamp: metav1.NewTime(noon.AddDate(0, -1, 0))},
			Status: corev1.NodeStatus{Capacity: one, Allocatable: one,
				Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(noon.AddDate(0, -1, 0))}}},
		}
	}
	return out
}

func notReady(n *corev1.Node, since time.Time) {
	n.Status.Conditions[0].Status, n.Status.Conditions[0].LastTransitionTime = corev1.ConditionUnknown, metav1.NewTime(since)
}

func cordon(n *corev1.Node, since time.Time) {
	n.Spec.Unschedulable = true
	n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule, TimeAdded: new(metav1.NewTime(since))})
}

// marked is as an operation has it: cordoned, and said to be ours.
func marked(n *corev1.Node, by *v1alpha1.Remediation, parked string) {
	text, err := json.Marshal(diagnosis.Operation{Plan: by.Name, ID: by.UID, Step: "cordon", Parked: parked})
	if err != nil {
		panic(err) // of a test
	}
	n.Annotations = map[string]string{diagnosis.OperationAnnotation: string(text)}
	cordon(n, noon)
}

// hex is a plan's name that begins with i.
func hex(i int) string { return fmt.Sprintf("%08x", i) + strings.Repeat("0", 56) }

// planFor is a recorded plan, number i, to re-make GPU 0 of a node, made a minute ago.
func planFor(i int, node string) *v1alpha1.Remediation {
	return &v1alpha1.Remediation{
		ObjectMeta: metav1.ObjectMeta{Name: hex(i), UID: types.UID(fmt.Sprintf("plan-%d", i)), CreationTimestamp: metav1.NewTime(noon.Add(-time.Minute))},
		Spec: v1alpha1.RemediationSpec{
			Incident: fmt.Sprintf("gpu-%010x", i), Fix: 1, Kind: diagnosis.RepartitionGPU, Kinds: []diagnosis.FixKind{diagnosis.RepartitionGPU},
			Nodes: []string{node}, Requester: "ann", Expires: metav1.NewTime(noon.Add(14 * time.Minute)),
			Actions: []diagnosis.Action{{Verb: diagnosis.VerbRelayout, Target: diagnosis.Target{Kind: "Node", Name: node, UID: "uid-" + node},
				Relies:   map[string]string{"mig": "all-1g.5gb success mixed", "gpu0": "1g.5gb@0 1g.5gb@1"},
				Relayout: &diagnosis.Relayout{Config: "all-2g.10gb", GPUs: []int{0}, Layouts: map[int]map[string]int{0: {"2g.10gb": 3}}}}},
		},
	}
}

// in gives a plan a phase, and an end where the phase is one.
func in(r *v1alpha1.Remediation, phase v1alpha1.Phase, at time.Time) *v1alpha1.Remediation {
	r.Status.Phase, r.Status.Began = phase, new(metav1.NewMicroTime(at))
	r.Status.Journal = []v1alpha1.Entry{{Step: "0/cordon", Began: metav1.NewMicroTime(at)}}
	if phase.Ended() {
		r.Status.Ended = new(metav1.NewMicroTime(at))
	}
	return r
}

// evicting gives a plan n pods to evict.
func evicting(r *v1alpha1.Remediation, n int) {
	for i := range n {
		r.Spec.Actions = append(r.Spec.Actions, diagnosis.Action{Verb: diagnosis.VerbEvict,
			Target: diagnosis.Target{Kind: "Pod", Namespace: "ml", Name: fmt.Sprintf("web-%d", i), UID: fmt.Sprintf("uid-%s-%d", r.UID, i)}})
	}
}

// setting is what one judgement is made of.
type setting struct {
	limits Limits
	view   View
	plan   *v1alpha1.Remediation
}

func (s *setting) judge() Verdict { return s.limits.Judge(s.view, s.plan) }

func (s *setting) add(plans ...*v1alpha1.Remediation) {
	for _, r := range plans {
		s.view.Plans = append(s.view.Plans, *r)
	}
}

// quiet is a pool of 20 healthy nodes in which nothing is against the plan.
func quiet() *setting {
	plan := planFor(1, "gpu-1")
	s := &setting{Defaults(), View{Now: noon, Nodes: gpuNodes(20)}, plan}
	s.add(plan)
	return s
}

func TestNothingAgainst(t *testing.T) {
	if got, want := quiet().judge(), (Verdict{Decision: Allow, Phase: v1alpha1.Running}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
