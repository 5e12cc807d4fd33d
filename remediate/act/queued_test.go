package act

import (
	"errors"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/plan"
	"github.com/unpend/unpend/watcher/incident"
)

// What Kueue has admitted is not made again from a spec that it has changed: neither where
// the plan is proved nor just before the write.
func TestAdmittedIsNotMadeAgain(t *testing.T) {
	queued := metav1.ObjectMeta{Namespace: "ml", Name: "training", UID: "train", Labels: map[string]string{"kueue.x-k8s.io/queue-name": "team"}}
	plain := metav1.ObjectMeta{Namespace: "ml", Name: "training", UID: "train"}
	workload := func(owner string, admission any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "w", "namespace": "ml", "ownerReferences": []any{map[string]any{"kind": "Job", "name": "training", "uid": owner}}},
			"spec": map[string]any{"queueName": "all"}, "status": map[string]any{"admission": admission}}}
	}
	admitted := map[string]any{"clusterQueue": "gpus"}
	suspended := &batchv1.Job{ObjectMeta: queued, Spec: batchv1.JobSpec{Suspend: new(true)}}
	gated := &corev1.Pod{ObjectMeta: queued, Spec: corev1.PodSpec{SchedulingGates: []corev1.PodSchedulingGate{{Name: "kueue.x-k8s.io/admission"}}}}
	for _, tc := range []struct {
		name      string
		o         metav1.Object
		workloads []*unstructured.Unstructured
		says      string
	}{
		{"of no queue", &batchv1.Job{ObjectMeta: plain}, nil, ""},
		{"it waits in its queue", suspended, nil, ""},
		{"it goes on", &batchv1.Job{ObjectMeta: queued}, nil, "job ml/training by queue team"},
		{"admitted without a label", &batchv1.Job{ObjectMeta: plain}, []*unstructured.Unstructured{workload("train", admitted)}, "job ml/training by queue all"},
		{"not admitted yet", &batchv1.Job{ObjectMeta: plain}, []*unstructured.Unstructured{{Object: map[string]any{"metadata": map[string]any{"name": "w"}}}}, ""},
		{"another is", &batchv1.Job{ObjectMeta: plain}, []*unstructured.Unstructured{workload("other", admitted)}, ""},
		{"nobody can tell", &batchv1.Job{ObjectMeta: plain}, []*unstructured.Unstructured{workload("train", "?")}, "job ml/training by queue all"},
		{"a pod that goes on", &corev1.Pod{ObjectMeta: queued}, nil, "pod ml/training by queue team"},
		{"a pod that is held", gated, nil, ""},
	} {
		err := asAdmitted(tc.o, tc.workloads)
		if (err != nil) != (tc.says != "") || err != nil && (!errors.Is(err, plan.ErrRefused) || !strings.Contains(err.Error(), "Kueue has admitted "+tc.says+", and put its flavor's selectors and tolerations into it: edit it by hand: ")) {
			t.Errorf("%s: %v, want %q", tc.name, err, tc.says)
		}
	}
	a := diagnosis.Action{Verb: diagnosis.VerbRecreate, Target: diagnosis.Target{Kind: "Job", Namespace: "ml", Name: "training", UID: "train"}, Patch: []byte(`{}`)}
	job := &batchv1.Job{ObjectMeta: queued}
	if err := Check(&cluster.State{Jobs: []*batchv1.Job{job}}, []diagnosis.Action{a}, nil); !errors.Is(err, plan.ErrRefused) {
		t.Error(err)
	}
	d := memory(job)
	if _, err := New(d, this(a)).Steps()[0].Try(t.Context(), line()); !errors.Is(err, plan.ErrRefused) || !strings.Contains(err.Error(), "edit it by hand") {
		t.Error(err)
	}
	if _, err := d.Client.BatchV1().Jobs("ml").Get(t.Context(), "training", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}

// The copy that is kept of what is made again wants no pod, also when somebody resumes it, and is no
// incident.
func TestCopyWantsNoPod(t *testing.T) {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "training", UID: "train"}}
	d := memory(job)
	v := New(d, this(diagnosis.Action{Verb: diagnosis.VerbRecreate, Target: diagnosis.Target{Kind: "Job", Namespace: "ml", Name: "training", UID: "train"}, Patch: []byte(`{}`)})).verbs[0].(recreate)
	kept, err := v.copied(job, job)
	if err != nil || !*kept.Spec.Suspend || *kept.Spec.Parallelism != 0 {
		t.Fatalf("%+v, %v", kept, err)
	}
	for _, suspended := range []bool{true, false} {
		kept.Spec.Suspend = &suspended
		if m, ok := incident.MakerOf(kept); !ok || m.Wants != 0 {
			t.Errorf("suspended %v, it wants %d pods", suspended, m.Wants)
		}
	}
}
