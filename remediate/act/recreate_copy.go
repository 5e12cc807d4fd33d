package act

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/remediate/journal"
	"github.com/unpend/unpend/remediate/plan"
)

// The annotations of the copy.
const (
	keptOld = "unpend.dev/old"
	keptNew = "unpend.dev/new"
)

// keep has a copy of both in the namespace of the object, where those who may read it
// may read it anyway: in the annotations of a suspended Job, which makes no pod. One that
// is there already has to be what was kept before a crash: nothing is made from another's.
// The journal has the copy's sum, for in the namespace others may write to it, and what is
// made from it is made with the approver's rights.
func (v recreate) keep(ctx context.Context, old, next metav1.Object, e *journal.Entry) error {
	job, err := v.copied(old, next)
	if err != nil {
		return err
	}
	err = v.create(ctx, job, v.dryRun())
	if apierrors.IsAlreadyExists(err) {
		kept, err := v.Client.BatchV1().Jobs(v.Target.Namespace).Get(ctx, v.keptName(), metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("read the copy: %w", err)
		}
		if sum := sumOf(kept); sum != sumOf(job) && sum != e.Note {
			return fmt.Errorf("job %s/%s is there already, and is not one", v.Target.Namespace, v.keptName())
		}
		job = kept
	} else if err != nil {
		return err
	}
	return e.Keep(ctx, sumOf(job)) // before anything is deleted
}

// copied is the copy: it is suspended and wants no pod, so that it is nobody's incident, and
// none is made of it where Kueue resumes every Job.
func (v recreate) copied(old, next metav1.Object) (*batchv1.Job, error) {
	notes := map[string]string{}
	for key, o := range map[string]metav1.Object{keptOld: old, keptNew: next} {
		text, err := json.Marshal(o)
		if err != nil {
			return nil, fmt.Errorf("write the copy: %w", err)
		}
		notes[key] = string(text)
	}
	yes, none := true, int32(0)
	return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: v.Target.Namespace, Name: v.keptName(), Annotations: notes, Labels: map[string]string{"app.kubernetes.io/managed-by": plan.FieldManager}},
		Spec: batchv1.JobSpec{Suspend: &yes, Parallelism: &none, Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever,
			Containers: []corev1.Container{{Name: "none", Image: "registry.k8s.io/pause:3.10"}}}}}}, nil
}

// sumOf is the sum of what a copy holds.
func sumOf(kept *batchv1.Job) string {
	sum := sha256.New()
	for _, key := range []string{keptOld, keptNew} {
		fmt.Fprintf(sum, "%d %s", len(kept.Annotations[key]), kept.Annotations[key])
	}
	return hex.EncodeToString(sum.Sum(nil))
}

func (v recreate) keptName() string { return "unpend-" + v.rem.Name[:10] }

// keptOf is the copy; nil when there is none that has the sum.
func (v recreate) keptOf(ctx context.Context, sum string) (*batchv1.Job, error) {
	job, err := v.Client.BatchV1().Jobs(v.Target.Namespace).Get(ctx, v.keptName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && sumOf(job) != sum {
		return nil, nil
	}
	return job, err
}

func (v recreate) dropKept(ctx context.Context, kept *batchv1.Job) (string, error) {
	if kept == nil {
		return "", nil
	}
	err := v.As.BatchV1().Jobs(kept.Namespace).Delete(ctx, kept.Name, v.deleteOptions(kept))
	if apierrors.IsConflict(err) {
		return "others write to the copy", nil
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return "", fmt.Errorf("delete the copy, job %s/%s: %w", kept.Namespace, kept.Name, err)
	}
	return "", nil
}
