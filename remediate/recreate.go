package remediate

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/unpend/unpend/rca/diagnosis"
)

// madeBy marks an object that was made anew, with the uid of the Remediation.
const madeBy = "unpend.dev/made-by"

// recreate makes a Job or a bare pod anew with the patch merged in: their specs
// cannot change. Nothing is deleted before the API server has said, in a dry run,
// that it would take the new one, and before both are kept in the cluster: whoever
// takes over after a crash finds them there. The journal has the copy's sum, for in the
// namespace others may write to it, and it is made with the approver's rights.
func (r *runner) recreate(ctx context.Context, a diagnosis.Action, e *entry) (string, error) {
	o, err := r.object(ctx, a.Target)
	if err != nil && !apierrors.IsNotFound(err) {
		return "", err
	}
	if err == nil && string(o.GetUID()) == a.Target.UID {
		return r.removeOld(ctx, a, e)
	}
	kept, err2 := r.keptOf(ctx, a.Target, e.Note)
	switch {
	case err2 != nil:
		return "", err2
	case err == nil && o.GetAnnotations()[madeBy] == string(r.rem.UID):
		return r.dropKept(ctx, kept)
	case kept == nil && err != nil && e.Note != "":
		return "", fmt.Errorf("%s is gone, and its copy, job %s/%s, is not as it was kept: nothing is made from it", nameOf(a.Target), a.Target.Namespace, r.keptName())
	case kept == nil:
		_, err := r.fresh(ctx, a.Target) // says what has become of it
		return "", err
	case err == nil:
		return "", fmt.Errorf("somebody has made another %s/%s meanwhile", strings.ToLower(a.Target.Kind), a.Target.Name)
	}
	if err := r.createFrom(ctx, a.Target, kept.Annotations[keptNew]); err != nil && !apierrors.IsAlreadyExists(err) {
		return "", fmt.Errorf("create the new one: %w", err)
	}
	return "the new one is being made", nil
}

// removeOld keeps a copy and deletes the old one.
func (r *runner) removeOld(ctx context.Context, a diagnosis.Action, e *entry) (string, error) {
	o, err := r.fresh(ctx, a.Target)
	if err != nil {
		if kept, _ := r.keptOf(ctx, a.Target, e.Note); kept == nil || !apierrors.IsNotFound(err) {
			return "", err
		}
		return "the old one is gone", nil
	}
	if o.GetDeletionTimestamp() != nil {
		return "the old one is still there", nil
	}
	old, next, err := remade(o, a.Patch, string(r.rem.UID))
	if err != nil {
		return "", err
	}
	if err := r.wouldTake(ctx, next); err != nil {
		return "", err
	}
	if err := r.keep(ctx, a.Target, old, next, e); err != nil {
		return "", fmt.Errorf("nothing was deleted, for no copy can be kept: %w", err)
	}
	opts := r.deleteOptions(o)
	if a.Target.Kind == "Job" {
		err = r.As.BatchV1().Jobs(a.Target.Namespace).Delete(ctx, a.Target.Name, opts)
	} else {
		err = r.As.CoreV1().Pods(a.Target.Namespace).Delete(ctx, a.Target.Name, opts)
	}
	switch {
	case apierrors.IsConflict(err):
		return "others write to it", nil
	case err != nil && !apierrors.IsNotFound(err):
		return "", stale(err, a.Target)
	case r.DryRun:
		return "", nil
	}
	return "the old one is still there", nil
}

// remakeOld is the way back: where the old one is gone and no new one is there, the
// old one is made again.
func (r *runner) remakeOld(ctx context.Context, i int, a diagnosis.Action) (string, error) {
	sum := ""
	for _, e := range r.rem.Status.Journal {
		if e.Step == actionStep(i, a) {
			sum = e.Note
		}
	}
	kept, err := r.keptOf(ctx, a.Target, sum)
	if err != nil || kept == nil {
		return "", err
	}
	o, err := r.object(ctx, a.Target)
	switch {
	case apierrors.IsNotFound(err):
		if err := r.createFrom(ctx, a.Target, kept.Annotations[keptOld]); err != nil && !apierrors.IsAlreadyExists(err) {
			return "", fmt.Errorf("make the old one again: %w (its manifest is in the annotations of job %s/%s)", err, kept.Namespace, kept.Name)
		}
		return "the old one is being made again", nil
	case err != nil:
		return "", err
	case o.GetDeletionTimestamp() != nil:
		return "the old one is still there", nil
	}
	return r.dropKept(ctx, kept)
}

// wouldTake asks the API server in a dry run.
func (r *runner) wouldTake(ctx context.Context, next metav1.Object) error {
	name := next.GetName()
	next.SetName("")
	next.SetGenerateName(name + "-")
	defer func() {
		next.SetName(name)
		next.SetGenerateName("")
	}()
	err := r.create(ctx, next, []string{metav1.DryRunAll})
	if err == nil || apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota") {
		return nil // a quota still counts the old one
	}
	return fmt.Errorf("nothing was deleted, for the new one would not be taken: %w", err)
}

func (r *runner) create(ctx context.Context, o metav1.Object, dry []string) error {
	var err error
	opts := metav1.CreateOptions{FieldManager: fieldManager, DryRun: dry}
	switch o := o.(type) {
	case *corev1.Pod:
		_, err = r.As.CoreV1().Pods(o.Namespace).Create(ctx, o, opts)
	case *batchv1.Job:
		_, err = r.As.BatchV1().Jobs(o.Namespace).Create(ctx, o, opts)
	}
	return err
}

func (r *runner) createFrom(ctx context.Context, t diagnosis.Target, manifest string) error {
	var o metav1.Object = &corev1.Pod{}
	if t.Kind == "Job" {
		o = &batchv1.Job{}
	}
	if err := json.Unmarshal([]byte(manifest), o); err != nil {
		return fmt.Errorf("read the copy: %w", err)
	}
	return r.create(ctx, o, nil)
}

func (r *runner) deleteOptions(o metav1.Object) metav1.DeleteOptions {
	uid, version, background := o.GetUID(), o.GetResourceVersion(), metav1.DeletePropagationBackground
	return metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}, PropagationPolicy: &background, DryRun: r.dryRun()}
}

// remade is the object as it can be made again, and with the patch merged in.
func remade(o metav1.Object, patch []byte, by string) (old, next metav1.Object, err error) {
	switch o := o.(type) {
	case *corev1.Pod:
		was, is := o.DeepCopy(), &corev1.Pod{}
		err = merged(o, patch, is)
		for _, p := range []*corev1.Pod{was, is} {
			p.ObjectMeta, p.Status = carried(p.ObjectMeta), corev1.PodStatus{}
		}
		old, next = was, is
	case *batchv1.Job:
		was, is := o.DeepCopy(), &batchv1.Job{}
		err = merged(o, patch, is)
		for _, j := range []*batchv1.Job{was, is} {
			carryJob(j)
		}
		old, next = was, is
	default:
		return nil, nil, fmt.Errorf("%w: %s/%s cannot be made anew here", ErrRefused, o.GetNamespace(), o.GetName())
	}
	notes := maps.Clone(next.GetAnnotations())
	if notes == nil {
		notes = map[string]string{}
	}
	notes[madeBy] = by
	next.SetAnnotations(notes)
	return old, next, err
}

func carryJob(j *batchv1.Job) {
	j.ObjectMeta, j.Status = carried(j.ObjectMeta), batchv1.JobStatus{}
	if j.Spec.ManualSelector != nil && *j.Spec.ManualSelector {
		return
	}
	j.Spec.Selector = nil // the API server makes a new one from the new uid
	for _, labels := range []map[string]string{j.Labels, j.Spec.Template.Labels} {
		maps.DeleteFunc(labels, func(k, _ string) bool {
			return strings.HasSuffix(k, "controller-uid") || strings.HasSuffix(k, "job-name")
		})
	}
}

// merged applies a strategic merge patch to an object.
func merged[T any](old *T, patch []byte, into *T) error {
	before, err := json.Marshal(old)
	if err != nil {
		return fmt.Errorf("read the object: %w", err)
	}
	after, err := strategicpatch.StrategicMergePatch(before, patch, *into)
	if err != nil {
		return fmt.Errorf("apply the patch: %w", err)
	}
	return json.Unmarshal(after, into)
}

// carried is the metadata a new object may take over.
func carried(m metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name, Labels: m.Labels, Annotations: m.Annotations, OwnerReferences: m.OwnerReferences, Finalizers: m.Finalizers}
}

// The annotations of the copy.
const (
	keptOld = "unpend.dev/old"
	keptNew = "unpend.dev/new"
)

// keep has a copy of both in the namespace of the object, where those who may read it
// may read it anyway: in the annotations of a suspended Job, which makes no pod. One that
// is there already has to be what was kept before a crash: nothing is made from another's.
func (r *runner) keep(ctx context.Context, t diagnosis.Target, old, next metav1.Object, e *entry) error {
	notes := map[string]string{}
	for key, o := range map[string]metav1.Object{keptOld: old, keptNew: next} {
		text, err := json.Marshal(o)
		if err != nil {
			return fmt.Errorf("write the copy: %w", err)
		}
		notes[key] = string(text)
	}
	yes := true
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: t.Namespace, Name: r.keptName(), Annotations: notes, Labels: map[string]string{"app.kubernetes.io/managed-by": fieldManager}},
		Spec: batchv1.JobSpec{Suspend: &yes, Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever,
			Containers: []corev1.Container{{Name: "none", Image: "registry.k8s.io/pause:3.10"}}}}}}
	err := r.create(ctx, job, r.dryRun())
	if apierrors.IsAlreadyExists(err) {
		kept, err := r.Client.BatchV1().Jobs(t.Namespace).Get(ctx, r.keptName(), metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("read the copy: %w", err)
		}
		if sum := sumOf(kept); sum != sumOf(job) && sum != e.Note {
			return fmt.Errorf("job %s/%s is there already, and is not one", t.Namespace, r.keptName())
		}
		job = kept
	} else if err != nil {
		return err
	}
	return r.journalSum(ctx, e, sumOf(job))
}

// sumOf is the sum of what a copy holds.
func sumOf(kept *batchv1.Job) string {
	sum := sha256.New()
	for _, key := range []string{keptOld, keptNew} {
		fmt.Fprintf(sum, "%d %s", len(kept.Annotations[key]), kept.Annotations[key])
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// journalSum has the sum in the journal before anything is deleted.
func (r *runner) journalSum(ctx context.Context, e *entry, sum string) error {
	before := e.Note
	if e.Note = sum; before == sum || r.Save == nil || r.DryRun {
		return nil
	}
	if err := r.Save(ctx, r.rem); err != nil {
		e.Note = before
		return err
	}
	return nil
}

func (r *runner) keptName() string { return "unpend-" + r.rem.Name[:10] }

// keptOf is the copy; nil when there is none that has the sum.
func (r *runner) keptOf(ctx context.Context, t diagnosis.Target, sum string) (*batchv1.Job, error) {
	job, err := r.Client.BatchV1().Jobs(t.Namespace).Get(ctx, r.keptName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && sumOf(job) != sum {
		return nil, nil
	}
	return job, err
}

func (r *runner) dropKept(ctx context.Context, kept *batchv1.Job) (string, error) {
	if kept == nil {
		return "", nil
	}
	err := r.As.BatchV1().Jobs(kept.Namespace).Delete(ctx, kept.Name, r.deleteOptions(kept))
	if apierrors.IsConflict(err) {
		return "others write to the copy", nil
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return "", fmt.Errorf("delete the copy, job %s/%s: %w", kept.Namespace, kept.Name, err)
	}
	return "", nil
}
