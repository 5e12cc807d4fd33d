package act

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/journal"
	"github.com/unpend/unpend/remediate/pace"
	"github.com/unpend/unpend/remediate/plan"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

// madeBy marks an object that was made again, with the uid of the Remediation.
const madeBy = "unpend.dev/made-by"

// recreate makes a Job or a bare pod again with the patch merged in: their specs cannot
// change. Nothing is deleted before the API server has said, in a dry run, that it would
// take the new one, and before both are kept in the cluster: an executor that takes over
// after a crash finds them there.
type recreate struct{ action }

func newRecreate(a action) verb { return recreate{a} }

func (v recreate) steps() []journal.Step {
	return v.oneStep(fmt.Sprintf("make %s/%s again", strings.ToLower(v.Target.Kind), v.Target.Name), v.Deadlines.Leave+pace.Contention, v.remake)
}

func (v recreate) wayBack() []journal.Step {
	return []journal.Step{{ID: v.backID(diagnosis.VerbRecreate), Text: "make the old " + strings.ToLower(v.Target.Kind) + " again", Within: v.Deadlines.Leave + pace.Contention, Try: v.remakeOld}}
}

// left is that it was made again or, where it is made from the old one again, which of its
// pods stopped.
func (v recreate) left() string {
	if done := v.action.left(); done != "" {
		return done
	}
	var out []string
	for _, s := range v.Stops {
		if slices.ContainsFunc(v.rem.Status.Restarted, func(p v1alpha1.Pod) bool { return string(p.UID) == s.UID }) {
			out = append(out, fmt.Sprintf("pod %s/%s was stopped", s.Namespace, s.Name))
		}
	}
	return strings.Join(out, ", ")
}

func (v recreate) rights() []right {
	copies := diagnosis.Target{Kind: "Job", Namespace: v.Target.Namespace} // one is kept
	return []right{rightOn("delete", v.Target), rightOn("create", v.Target), rightOn("create", copies), rightOn("delete", copies)}
}

// check says that other pods would stop with it than were shown, that a budget forbids it, or
// that its spec is not as its owner has written it.
func (v recreate) check(st *cluster.State, _ []string) error {
	if o := targetOf(st, v.Target); o != nil {
		if err := asAdmitted(o, st.QueuedWorkloads); err != nil {
			return err
		}
	}
	return asShown(st, v.Action)
}

// remake goes as far as it can: from the old one, by way of the copy, to the new one.
func (v recreate) remake(ctx context.Context, e *journal.Entry) (string, error) {
	o, err := v.object(ctx, v.Target)
	if err != nil && !apierrors.IsNotFound(err) {
		return "", err
	}
	if err == nil && string(o.GetUID()) == v.Target.UID {
		return v.removeOld(ctx, e)
	}
	kept, err2 := v.keptOf(ctx, e.Note)
	switch {
	case err2 != nil:
		return "", err2
	}
	if kept != nil { // which is kept before anything is deleted
		v.restarted()
	}
	switch {
	case err == nil && o.GetAnnotations()[madeBy] == string(v.rem.UID):
		return v.dropKept(ctx, kept)
	case kept == nil && err != nil && e.Note != "":
		return "", fmt.Errorf("%s is gone, and its copy, job %s/%s, is not as it was kept: nothing is made from it", nameOf(v.Target), v.Target.Namespace, v.keptName())
	case kept == nil:
		_, err := v.fresh(ctx, v.Target) // says what has become of it
		return "", err
	case err == nil:
		return "", fmt.Errorf("somebody has made another %s/%s meanwhile", strings.ToLower(v.Target.Kind), v.Target.Name)
	}
	if err := v.createFrom(ctx, kept.Annotations[keptNew]); err != nil && !apierrors.IsAlreadyExists(err) {
		return "", fmt.Errorf("create the new one: %w", err)
	}
	return "the new one is being made", nil
}

// removeOld keeps a copy and deletes the old one.
func (v recreate) removeOld(ctx context.Context, e *journal.Entry) (string, error) {
	o, err := v.fresh(ctx, v.Target)
	if err != nil {
		if kept, _ := v.keptOf(ctx, e.Note); kept == nil || !apierrors.IsNotFound(err) {
			return "", err
		}
		return "the old one is gone", nil
	}
	if o.GetDeletionTimestamp() != nil {
		if kept, err := v.keptOf(ctx, e.Note); err == nil && kept != nil {
			v.restarted()
		}
		return "the old one is still there", nil
	}
	if err := asAdmitted(o, nil); err != nil {
		return "", err
	}
	if err := v.stopsAsShown(ctx, o); err != nil {
		return "", err
	}
	old, next, err := remade(o, v.Patch, string(v.rem.UID))
	if err != nil {
		return "", err
	}
	if err := v.wouldTake(ctx, next); err != nil {
		return "", err
	}
	if err := v.keep(ctx, old, next, e); err != nil {
		return "", fmt.Errorf("nothing was deleted, for no copy can be kept: %w", err)
	}
	opts := v.deleteOptions(o)
	if v.Target.Kind == "Job" {
		err = v.As.BatchV1().Jobs(v.Target.Namespace).Delete(ctx, v.Target.Name, opts)
	} else {
		err = v.As.CoreV1().Pods(v.Target.Namespace).Delete(ctx, v.Target.Name, opts)
	}
	switch {
	case apierrors.IsConflict(err):
		return "others write to it", nil
	case err != nil && !apierrors.IsNotFound(err):
		return "", stale(err, v.Target)
	case v.DryRun:
		return "", nil
	}
	v.restarted()
	return "the old one is still there", nil
}

// remakeOld is the way back: where the old one is gone and no new one is there, the
// old one is made again.
func (v recreate) remakeOld(ctx context.Context, _ *journal.Entry) (string, error) {
	sum := ""
	if e := v.entry(v.only()); e != nil {
		sum = e.Note
	}
	kept, err := v.keptOf(ctx, sum)
	if err != nil || kept == nil {
		return "", err
	}
	o, err := v.object(ctx, v.Target)
	switch {
	case apierrors.IsNotFound(err):
		if err := v.createFrom(ctx, kept.Annotations[keptOld]); err != nil && !apierrors.IsAlreadyExists(err) {
			return "", fmt.Errorf("make the old one again: %w (its manifest is in the annotations of job %s/%s)", err, kept.Namespace, kept.Name)
		}
		return "the old one is being made again", nil
	case err != nil:
		return "", err
	case o.GetDeletionTimestamp() != nil:
		return "the old one is still there", nil
	}
	return v.dropKept(ctx, kept)
}

// wouldTake asks the API server in a dry run.
func (v recreate) wouldTake(ctx context.Context, next metav1.Object) error {
	name := next.GetName()
	next.SetName("")
	next.SetGenerateName(name + "-")
	defer func() {
		next.SetName(name)
		next.SetGenerateName("")
	}()
	err := v.create(ctx, next, []string{metav1.DryRunAll})
	if err == nil || apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota") {
		return nil // a quota still counts the old one
	}
	return fmt.Errorf("nothing was deleted, for the new one would not be taken: %w", err)
}

func (v recreate) create(ctx context.Context, o metav1.Object, dry []string) error {
	var err error
	opts := metav1.CreateOptions{FieldManager: plan.FieldManager, DryRun: dry}
	switch o := o.(type) {
	case *corev1.Pod:
		_, err = v.As.CoreV1().Pods(o.Namespace).Create(ctx, o, opts)
	case *batchv1.Job:
		_, err = v.As.BatchV1().Jobs(o.Namespace).Create(ctx, o, opts)
	}
	return err
}

func (v recreate) createFrom(ctx context.Context, manifest string) error {
	var o metav1.Object = &corev1.Pod{}
	if v.Target.Kind == "Job" {
		o = &batchv1.Job{}
	}
	if err := json.Unmarshal([]byte(manifest), o); err != nil {
		return fmt.Errorf("read the copy: %w", err)
	}
	return v.create(ctx, o, nil)
}

func (v recreate) deleteOptions(o metav1.Object) metav1.DeleteOptions {
	uid, version, background := o.GetUID(), o.GetResourceVersion(), metav1.DeletePropagationBackground
	return metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}, PropagationPolicy: &background, DryRun: v.dryRun()}
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
		if o.Status.Phase == corev1.PodFailed {
			was.Spec.NodeName = "" // a scheduler chose it, and nobody does when the old one is made again with it
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
		return nil, nil, fmt.Errorf("%w: %s/%s cannot be made again here", plan.ErrRefused, o.GetNamespace(), o.GetName())
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

// carried is the metadata a new object may take over.
func carried(m metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name, Labels: m.Labels, Annotations: m.Annotations, OwnerReferences: m.OwnerReferences, Finalizers: m.Finalizers}
}
