package admission

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/watcher/incident"
)

// What Kueue holds and is of a kind that is not read lacks the pods of each of its pod sets;
// what it has let begin, or has pods, lacks none by it, and a Job says so itself.
func TestQueuedOfOtherKinds(t *testing.T) {
	set := func(name string, count int64) any {
		return map[string]any{"name": name, "count": count, "template": map[string]any{"metadata": map[string]any{"labels": map[string]any{"role": name}},
			"spec": map[string]any{"containers": []any{map[string]any{"name": "main", "resources": map[string]any{"limits": map[string]any{"nvidia.com/gpu": "8"}}}}}}}
	}
	const both = "PyTorchJob.kubeflow.org/ml/train 1 of train-master-? nvidia.com/gpu=8 in team\nPyTorchJob.kubeflow.org/ml/train 2 of train-worker-? nvidia.com/gpu=8 in team"
	for name, tc := range map[string]struct {
		edit func(*unstructured.Unstructured, *cluster.State)
		want string
	}{
		"not admitted": {func(*unstructured.Unstructured, *cluster.State) {}, both},
		"admitted": {func(w *unstructured.Unstructured, _ *cluster.State) {
			w.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Admitted", "status": "True"}}}
		}, ""},
		"finished": {func(w *unstructured.Unstructured, _ *cluster.State) {
			w.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Finished", "status": "True"}}}
		}, ""},
		"one of its pods is there": {func(w *unstructured.Unstructured, st *cluster.State) {
			st.Pods = []*corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "p", OwnerReferences: w.GetOwnerReferences()}}}
		}, ""},
		"one of its pods has ended": {func(w *unstructured.Unstructured, st *cluster.State) {
			st.Pods = []*corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "p", OwnerReferences: w.GetOwnerReferences()}, Status: corev1.PodStatus{Phase: corev1.PodFailed}}}
		}, both},
		"of a Job": {func(w *unstructured.Unstructured, _ *cluster.State) {
			yes := true
			w.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "train", Controller: &yes}})
		}, ""},
		"of another of that name": {func(w *unstructured.Unstructured, _ *cluster.State) {
			yes := true
			w.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "example.org/v1", Kind: "Job", Name: "train", Controller: &yes}})
		}, strings.ReplaceAll(both, "PyTorchJob.kubeflow.org", "Job.example.org")},
		"of nobody": {func(w *unstructured.Unstructured, _ *cluster.State) { w.SetOwnerReferences(nil) }, ""},
		"about to go": {func(w *unstructured.Unstructured, _ *cluster.State) {
			w.SetDeletionTimestamp(&metav1.Time{Time: time.Now()})
		}, ""},
		"in no queue": {func(w *unstructured.Unstructured, _ *cluster.State) {
			w.Object["spec"].(map[string]any)["queueName"] = ""
		}, strings.ReplaceAll(both, "in team", "in ")},
		"its sets make no sense": {func(w *unstructured.Unstructured, _ *cluster.State) {
			w.Object["spec"].(map[string]any)["podSets"] = "x"
		}, ""},
		"one of them makes no sense": {func(w *unstructured.Unstructured, _ *cluster.State) {
			w.Object["spec"].(map[string]any)["podSets"] = []any{"x", map[string]any{"count": "many"}, set("none", 0), set("master", 1), set("worker", 2)}
		}, both},
	} {
		t.Run(name, func(t *testing.T) {
			yes := true
			w := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "pytorchjob-train", "namespace": "ml"}, "spec": map[string]any{"queueName": "team", "podSets": []any{set("master", 1), set("worker", 2)}}}}
			w.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "kubeflow.org/v1", Kind: "PyTorchJob", Name: "train", UID: "u", Controller: &yes}})
			st := &cluster.State{QueuedWorkloads: []*unstructured.Unstructured{w}}
			tc.edit(w, st)
			var got []string
			for _, r := range Refusals(st) {
				got = append(got, fmt.Sprintf("%s/%s/%s %d of %s nvidia.com/gpu=%s in %s", r.Owner.Kind, r.Owner.Namespace, r.Owner.Name, r.Missing, r.Pod.Name, incident.Requests(r.Pod)["nvidia.com/gpu"], r.Queue))
				if top := incident.Topmost(r.Pod, st.Owner); top != r.Owner {
					t.Errorf("its pod is of %v, not %v", top, r.Owner)
				}
			}
			if strings.Join(got, "\n") != tc.want {
				t.Errorf("%s\nwant\n%s", strings.Join(got, "\n"), tc.want)
			}
		})
	}
}
