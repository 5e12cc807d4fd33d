package act

import (
	"errors"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
	"github.com/unpend/unpend/remediate/journal"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

// once answers the next request of a kind with an error, after it was carried out, where do
// says how.
func once(d Deps, verb, resource string, answer error, do func()) {
	asked := false
	d.Client.(*fake.Clientset).PrependReactor(verb, resource, func(k8stesting.Action) (bool, runtime.Object, error) {
		if asked {
			return false, nil, nil
		}
		if asked = true; do != nil {
			do()
		}
		return true, nil, answer
	})
}

// A write whose answer was lost may have been made: the next try finds it done, and does not
// take it for another's doing.
func TestAnswersAreLost(t *testing.T) {
	lost := apierrors.NewInternalError(errors.New("etcdserver: request timed out"))
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "web", UID: "web"}, Spec: corev1.PodSpec{NodeName: "gpu-1"}}
	api := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "api", UID: "api", Generation: 1}}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "gpu-1", UID: "node"}, Spec: corev1.NodeSpec{Unschedulable: true}}
	evicts := diagnosis.Action{Verb: diagnosis.VerbEvict, Target: diagnosis.Target{Kind: "Pod", Namespace: "ml", Name: "web", UID: "web"}}
	for _, tc := range []struct {
		name    string
		action  diagnosis.Action
		again   bool
		lose    func(t *testing.T, d Deps)
		evicted int
	}{
		{"an eviction", evicts, false, func(t *testing.T, d Deps) {
			once(d, "create", "pods", lost, func() { removed(t, d) })
		}, 1},
		{"an eviction, and then the answer to a read", evicts, true, func(t *testing.T, d Deps) {
			removed(t, d) // by the process before
			once(d, "get", "pods", lost, nil)
		}, 1},
		{"another evicts where we were told to wait", evicts, false, func(t *testing.T, d Deps) {
			once(d, "create", "pods", apierrors.NewTooManyRequests("slow down", 1), func() { removed(t, d) })
		}, 0},
		{"a patch", diagnosis.Action{Verb: diagnosis.VerbPatch, Target: diagnosis.Target{Kind: "Deployment", Namespace: "ml", Name: "api", UID: "api"}, Patch: []byte(`{"spec":{"replicas":2}}`)}, false, func(t *testing.T, d Deps) {
			once(d, "patch", "deployments", lost, func() {
				done := api.DeepCopy()
				done.Generation, done.Spec.Replicas = 2, new(int32(2))
				replaced(t, d, done, "ml")
			})
		}, 0},
		{"an uncordon", diagnosis.Action{Verb: diagnosis.VerbUncordon, Target: diagnosis.Target{Kind: "Node", Name: "gpu-1", UID: "node"}, Relies: view.NodeFacts(&cluster.State{Now: noon, Live: true, Nodes: []*corev1.Node{node}}, "gpu-1")}, false, func(t *testing.T, d Deps) {
			once(d, "patch", "nodes", lost, func() {
				done := node.DeepCopy()
				done.Spec.Unschedulable = false
				replaced(t, d, done, "")
			})
		}, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := memory(pod.DeepCopy(), api.DeepCopy(), node.DeepCopy())
			tc.lose(t, d)
			rem := this(tc.action)
			rem.Status.Proved = []v1alpha1.Proved{{UID: "web", Node: "gpu-1"}, {UID: "api", Generation: 1}}
			step := New(d, rem).Steps()[0]
			e := line()
			if e.Again = tc.again; !errorIsTransient(step.Try(t.Context(), e)) {
				t.Error("the first try tells of no lost answer")
			}
			e = line()
			e.Again = tc.again
			if missing, err := step.Try(t.Context(), e); missing != "" || err != nil {
				t.Errorf("missing %q, %v", missing, err)
			}
			if got := rem.Status.Evicted; got != tc.evicted {
				t.Errorf("%d evicted, want %d", got, tc.evicted)
			}
		})
	}
}

func errorIsTransient(missing string, err error) bool { return missing == "" && journal.Transient(err) }

func removed(t *testing.T, d Deps) {
	t.Helper()
	if err := d.Client.(*fake.Clientset).Tracker().Delete(corev1.SchemeGroupVersion.WithResource("pods"), "ml", "web"); err != nil {
		t.Error(err)
	}
}

func replaced(t *testing.T, d Deps, o runtime.Object, ns string) {
	t.Helper()
	resource := corev1.SchemeGroupVersion.WithResource("nodes")
	if ns != "" {
		resource = appsv1.SchemeGroupVersion.WithResource("deployments")
	}
	if err := d.Client.(*fake.Clientset).Tracker().Update(resource, o, ns); err != nil {
		t.Error(err)
	}
}
