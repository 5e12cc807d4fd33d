package remediate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"

	"github.com/unpend/unpend/remediate/guard"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

// ErrHalted says that somebody has said stop.
var ErrHalted = errors.New("halted")

// look again at a plan that a guard-rail holds back, when nothing says when.
const holdBack = 5 * time.Second

// begin decides whether a plan that nobody has begun may begin now.
func (x *Executor) begin(ctx context.Context, rem *v1alpha1.Remediation) (time.Duration, error) {
	approvals, err := x.store.Approvals(ctx, rem.Name)
	if err != nil {
		return 0, err
	}
	if cleared, err := x.clear(ctx, rem, approvals); err != nil || cleared {
		return 0, err // their deletion is news
	}
	if no := rejection(rem, approvals); no != "" {
		return 0, x.finish(ctx, rem, v1alpha1.Rejected, no)
	}
	rails, err := x.rails(ctx)
	if _, ok := errors.AsType[*unclear](err); ok {
		return x.unclear(ctx, rem, err)
	}
	if err != nil {
		return 0, err
	}
	persons, why := rails.limits.Persons(rem)
	ok, by, lacks := guard.Approved(rem, approvals, persons)
	if !ok {
		if !x.Now().Before(rem.Spec.Expires.Time) {
			return 0, x.finish(ctx, rem, v1alpha1.Expired, "nobody with the right to has approved it in time")
		}
		if persons > 1 {
			lacks += " (two persons: " + why + ")"
		}
		again := rem.Spec.Expires.Sub(x.Now())
		if len(approvals) > 0 { // they may be enough once a person has changed the limits
			again = min(again, holdBack)
		}
		return again, x.note(ctx, rem, v1alpha1.Pending, lacks)
	}
	rem.Status.ApprovedBy = by
	view, err := x.view(ctx, rails, rem)
	if err != nil {
		return 0, err
	}
	switch verdict := rails.limits.Judge(view, rem); verdict.Decision {
	case guard.Refuse:
		return 0, x.finish(ctx, rem, verdict.Phase, verdict.Reason)
	case guard.Wait:
		again := holdBack
		if left := verdict.Until.Sub(x.Now()); left > 0 {
			again = min(again, left)
		}
		return again, x.note(ctx, rem, verdict.Phase, verdict.Reason)
	}
	if lacks, err := x.lacks(ctx, rem, approvals); err != nil || lacks != "" {
		if err == nil {
			err = x.finish(ctx, rem, v1alpha1.Refused, lacks)
		}
		return 0, err
	}
	return x.start(ctx, rem)
}

// clear deletes decisions on an earlier plan of the name: whoever records it anew may not,
// and nobody could decide on it with them in the way.
func (x *Executor) clear(ctx context.Context, rem *v1alpha1.Remediation, approvals []v1alpha1.Approval) (bool, error) {
	left := slices.DeleteFunc(slices.Clone(approvals), func(a v1alpha1.Approval) bool { return a.Spec.Remediation == string(rem.UID) })
	if len(left) == 0 {
		return false, nil
	}
	// They may be about a plan that has been made anew since we read it.
	if now, err := x.store.Get(ctx, rem.Name); err != nil || now.UID != rem.UID {
		return true, err
	}
	for _, a := range left {
		err := x.Dynamic.Resource(v1alpha1.Approvals).Delete(ctx, a.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &a.UID}})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return false, fmt.Errorf("delete approval %s of an earlier plan: %w", a.Name, err)
		}
	}
	return true, nil
}

// rejection says who said no; empty when nobody did.
func rejection(rem *v1alpha1.Remediation, approvals []v1alpha1.Approval) string {
	for _, a := range approvals {
		if a.Spec.Decision == v1alpha1.Reject && a.Spec.Remediation == string(rem.UID) {
			return strings.TrimSuffix(a.Spec.Approver+" said no: "+a.Spec.Reason, ": ")
		}
	}
	return ""
}

// note writes where a plan stands that waits, if that is news.
func (x *Executor) note(ctx context.Context, rem *v1alpha1.Remediation, phase v1alpha1.Phase, message string) error {
	if rem.Status.Phase == phase && rem.Status.Message == message {
		return nil
	}
	rem.Status.Phase, rem.Status.Message = phase, message
	return x.store.Save(ctx, rem)
}

// unclear is what is wrong with limits that say nothing that can be gone by.
type unclear struct{ error }

func (u *unclear) Unwrap() error { return u.error }

// unclear keeps a plan from being begun while nobody can tell within which limits, and
// says so where its approver looks.
func (x *Executor) unclear(ctx context.Context, rem *v1alpha1.Remediation, err error) (time.Duration, error) {
	left := rem.Spec.Expires.Sub(x.Now())
	if left <= 0 {
		return 0, x.finish(ctx, rem, v1alpha1.Expired, err.Error())
	}
	return min(left, holdBack), x.note(ctx, rem, cmp.Or(rem.Status.Phase, v1alpha1.Pending), err.Error())
}

// rails are the guard-rails as people have set them.
type rails struct {
	limits  guard.Limits
	paused  bool
	breaker guard.BreakerState
}

// rails reads the guard-rails. What cannot be read is no permission; of limits that say
// nothing clear, the kill switch and the breaker still hold.
func (x *Executor) rails(ctx context.Context) (rails, error) {
	r := rails{limits: guard.Defaults()}
	var wrong error
	maps := x.Client.CoreV1().ConfigMaps(x.Namespace)
	cm, err := maps.Get(ctx, guard.ConfigMap, metav1.GetOptions{})
	switch {
	case err == nil:
		r.paused = guard.Paused(cm.Data)
		if r.limits, err = guard.Parse([]byte(cm.Data[guard.LimitsKey])); err != nil {
			wrong = &unclear{fmt.Errorf("configmap %s/%s: %w", x.Namespace, guard.ConfigMap, err)}
		}
	case !apierrors.IsNotFound(err):
		return r, fmt.Errorf("read configmap %s/%s: %w", x.Namespace, guard.ConfigMap, err)
	}
	cm, err = maps.Get(ctx, guard.BreakerConfigMap, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return r, wrong
	}
	if err != nil {
		return r, fmt.Errorf("read configmap %s/%s: %w", x.Namespace, guard.BreakerConfigMap, err)
	}
	if r.breaker, err = guard.ReadBreaker(cm.Data); err != nil {
		x.Logger.WarnContext(ctx, "the breaker counts as open", "error", err)
	}
	return r, wrong
}

// halted reads the kill switch.
func (x *Executor) halted(ctx context.Context) error {
	cm, err := x.Client.CoreV1().ConfigMaps(x.Namespace).Get(ctx, guard.ConfigMap, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the kill switch: %w", err)
	}
	if guard.Paused(cm.Data) {
		return fmt.Errorf("%w: configmap %s/%s says %s", ErrHalted, x.Namespace, guard.ConfigMap, guard.PausedKey)
	}
	return nil
}

// view is the world that the guard-rails judge in.
func (x *Executor) view(ctx context.Context, r rails, rem *v1alpha1.Remediation) (guard.View, error) {
	v := guard.View{Now: x.Now(), Paused: r.paused, Breaker: r.breaker, Namespace: x.Namespace, Wanted: map[string][]corev1.ResourceName{}}
	nodes, err := x.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return v, fmt.Errorf("list nodes: %w", err)
	}
	for i := range nodes.Items {
		v.Nodes = append(v.Nodes, &nodes.Items[i])
	}
	if v.Plans, err = x.store.List(ctx); err != nil {
		return v, fmt.Errorf("list plans: %w", err)
	}
	pods, err := x.Client.CoreV1().Pods("").List(ctx, metav1.ListOptions{FieldSelector: fields.AndSelectors(
		fields.OneTermEqualSelector("status.phase", string(corev1.PodPending)), fields.OneTermEqualSelector("spec.nodeName", "")).String()})
	if err != nil {
		return v, fmt.Errorf("list the pods that wait: %w", err)
	}
	for i := range pods.Items {
		p := &pods.Items[i]
		incident := p.Namespace + "/" + p.Name
		if slices.ContainsFunc(rem.Spec.Waiting, func(w v1alpha1.Pod) bool { return w.UID == p.UID }) {
			incident = rem.Spec.Incident
		}
		v.Wanted[incident] = append(v.Wanted[incident], gpuResources(p)...)
	}
	return v, nil
}

func gpuResources(p *corev1.Pod) []corev1.ResourceName {
	var out []corev1.ResourceName
	for _, c := range p.Spec.Containers {
		for name := range c.Resources.Limits {
			if strings.HasPrefix(string(name), "nvidia.com/") && !slices.Contains(out, name) {
				out = append(out, name)
			}
		}
	}
	slices.Sort(out)
	return out
}

// actor is the person a plan is carried out as: the first who approved it.
func actor(rem types.UID, approvals []v1alpha1.Approval) *v1alpha1.Approval {
	for i := range approvals {
		if a := &approvals[i]; a.Spec.Decision == v1alpha1.Approve && a.Spec.Remediation == string(rem) && !strings.HasSuffix(a.Name, v1alpha1.No) {
			return a
		}
	}
	return nil
}
