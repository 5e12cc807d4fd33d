package executor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/unpend/unpend/remediate/guard"
	"github.com/unpend/unpend/remediate/plan"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

// unclear is what is wrong with limits that say nothing that can be gone by.
type unclear struct{ error }

func (u *unclear) Unwrap() error { return u.error }

// rails are the guard-rails that are kept in a namespace.
type rails struct {
	Deps
	namespace string
}

func (x *Executor) rails() rails { return rails{x.Deps, x.Namespace} }

// railsOf reads them for somebody who may not lead.
func railsOf(d Deps, namespace string) rails { return rails{d.withDefaults(), namespace} }

// settings are the guard-rails as people have set them.
type settings struct {
	limits guard.Limits
	paused bool
	// there: the ConfigMap of the limits and the kill switch is. gone: it was, and somebody
	// has deleted it, which is no word that all may go on.
	there, gone bool
	breaker     guard.BreakerState
}

// read reads the guard-rails. What cannot be read is no permission; of limits that say
// nothing clear, the kill switch and the breaker still hold.
func (g rails) read(ctx context.Context) (settings, error) {
	r := settings{limits: guard.Defaults()}
	var wrong error
	maps := g.Client.CoreV1().ConfigMaps(g.namespace)
	cm, err := maps.Get(ctx, guard.ConfigMap, metav1.GetOptions{})
	switch {
	case err == nil:
		r.paused, r.there = guard.Paused(cm.Data), true
		if r.limits, err = guard.Parse([]byte(cm.Data[guard.LimitsKey])); err != nil {
			wrong = &unclear{fmt.Errorf("configmap %s/%s: %w", g.namespace, guard.ConfigMap, err)}
		}
	case !apierrors.IsNotFound(err):
		return r, fmt.Errorf("read configmap %s/%s: %w", g.namespace, guard.ConfigMap, err)
	default:
		if r.gone, err = g.were(ctx); err != nil {
			return r, err
		}
		r.paused = r.gone
	}
	cm, err = maps.Get(ctx, guard.BreakerConfigMap, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return r, wrong
	}
	if err != nil {
		return r, fmt.Errorf("read configmap %s/%s: %w", g.namespace, guard.BreakerConfigMap, err)
	}
	if r.breaker, err = guard.ReadBreaker(cm.Data); err != nil {
		g.Logger.WarnContext(ctx, "the breaker counts as open", "error", err)
	}
	return r, wrong
}

// halted reads the kill switch.
func (g rails) halted(ctx context.Context) error {
	cm, err := g.Client.CoreV1().ConfigMaps(g.namespace).Get(ctx, guard.ConfigMap, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		gone, err := g.were(ctx)
		if err == nil && gone {
			err = fmt.Errorf("%w: configmap %s/%s was deleted, and the kill switch with it", plan.ErrHalted, g.namespace, guard.ConfigMap)
		}
		return err
	}
	if err != nil {
		return fmt.Errorf("read the kill switch: %w", err)
	}
	if guard.Paused(cm.Data) {
		return fmt.Errorf("%w: configmap %s/%s says %s", plan.ErrHalted, g.namespace, guard.ConfigMap, guard.PausedKey)
	}
	return nil
}

// guardsSeen, on the leader's lease, remembers that the ConfigMap of the guard-rails has
// been there: who deletes it does not switch the kill switch off.
const guardsSeen = "unpend.dev/guards-seen"

// were says whether the ConfigMap of the guard-rails has been there.
func (g rails) were(ctx context.Context) (bool, error) {
	l, err := g.Client.CoordinationV1().Leases(g.namespace).Get(ctx, LeaderLease, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("tell whether configmap %s/%s was deleted: %w", g.namespace, guard.ConfigMap, err)
	}
	return l.Annotations[guardsSeen] != "", nil
}

// remember has the lease say that the ConfigMap is there. A leader that renews it just now
// wins: it is tried again.
func (g rails) remember(ctx context.Context) error {
	leases := g.Client.CoordinationV1().Leases(g.namespace)
	l, err := leases.Get(ctx, LeaderLease, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && l.Annotations[guardsSeen] != "" {
		return nil
	}
	if err == nil {
		metav1.SetMetaDataAnnotation(&l.ObjectMeta, guardsSeen, "true")
		_, err = leases.Update(ctx, l, metav1.UpdateOptions{FieldManager: plan.FieldManager})
	}
	if err != nil && !apierrors.IsConflict(err) {
		return fmt.Errorf("remember that configmap %s/%s is there: %w", g.namespace, guard.ConfigMap, err)
	}
	return nil
}

// view is the world that the guard-rails judge a plan in.
func (g rails) view(ctx context.Context, r settings, rem *v1alpha1.Remediation) (guard.View, error) {
	v := guard.View{Now: g.Now(), Paused: r.paused, GuardsGone: r.gone, Breaker: r.breaker, Namespace: g.namespace, Wanted: map[string][]corev1.ResourceName{}}
	nodes, err := g.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return v, fmt.Errorf("list nodes: %w", err)
	}
	for i := range nodes.Items {
		v.Nodes = append(v.Nodes, &nodes.Items[i])
	}
	if v.Plans, err = (plan.Store{Dynamic: g.Dynamic}).List(ctx); err != nil {
		return v, fmt.Errorf("list plans: %w", err)
	}
	pods, err := g.Client.CoreV1().Pods("").List(ctx, metav1.ListOptions{FieldSelector: fields.AndSelectors(
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

// setBreaker records the state of the breaker.
func (g rails) setBreaker(ctx context.Context, s guard.BreakerState) error {
	maps := g.Client.CoreV1().ConfigMaps(g.namespace)
	cm, err := maps.Get(ctx, guard.BreakerConfigMap, metav1.GetOptions{})
	if apierrors.IsNotFound(err) { // RBAC sees a name in an apply, not in a POST
		_, err = maps.Apply(ctx, corev1apply.ConfigMap(guard.BreakerConfigMap, g.namespace).WithData(s.Data()), metav1.ApplyOptions{FieldManager: plan.FieldManager})
		return err
	}
	if err != nil {
		return err
	}
	cm.Data = s.Data()
	_, err = maps.Update(ctx, cm, metav1.UpdateOptions{FieldManager: plan.FieldManager})
	return err
}
