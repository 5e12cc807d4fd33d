package queues

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/rcatest"
	"github.com/unpend/unpend/rca/view"
	"github.com/unpend/unpend/watcher/incident"
)

const gpu = "nvidia.com/gpu"

// open is the case of pod a/w, which asks for a GPU, in a cluster that fill makes.
func open(t *testing.T, fill func(*rcatest.World)) *Case {
	t.Helper()
	w := rcatest.NewWorld()
	w.Asking(rcatest.List(gpu, "1"))
	fill(w)
	v, done, err := view.Open(t.Context(), w.State, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(done)
	return &Case{Cluster: v, Pod: w.Wait, Refusal: w.Wait.Status, Incident: incident.Incident{Workload: incident.Ref{Kind: "Pod", Namespace: "a", Name: "w"}, Since: rcatest.Noon}}
}

// object is one of a kind that this program reads without its types.
func object(namespace, name string, fields map[string]any) *unstructured.Unstructured {
	meta := map[string]any{"name": name}
	if namespace != "" {
		meta["namespace"] = namespace
	}
	fields["metadata"] = meta
	return &unstructured.Unstructured{Object: fields}
}

func condition(kind, status, reason, message string) any {
	return map[string]any{"type": kind, "status": status, "reason": reason, "message": message}
}

func gated(w *rcatest.World) {
	w.Wait.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: Gate}}
}

// queued adds the Workload that Kueue made for the pod.
func queued(w *rcatest.World, spec map[string]any, status map[string]any) *unstructured.Unstructured {
	o := object("a", "mine", map[string]any{"spec": spec, "status": status})
	o.SetOwnerReferences([]metav1.OwnerReference{{Kind: "Pod", Name: "w", UID: "w"}})
	w.QueuedWorkloads = append(w.QueuedWorkloads, o)
	return o
}

// refused has the pod's own scheduler say why it waits.
func refused(w *rcatest.World, scheduler, reason, message string) {
	w.Wait.Spec.SchedulerName = scheduler
	w.Wait.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: reason, Message: message}}
}

// told is a finding, and each of its evidence on a line.
func told(f *view.Finding) string {
	if f == nil {
		return ""
	}
	return strings.Join(append([]string{fmt.Sprintf("%s: %s", f.Certainty, f.Says)}, facts(f.Evidence)...), "\n")
}

// facts are those of evidence, each with whose it is.
func facts(all []diagnosis.Evidence) []string {
	var out []string
	for _, e := range all {
		out = append(out, e.Ref+": "+e.Fact)
	}
	return out
}
