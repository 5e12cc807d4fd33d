package remediate

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

// becameStale ends a plan that is no longer the plan: it says what has changed, and
// records the plan that takes its place, if there is one.
func (x *Executor) becameStale(ctx context.Context, now Found, rem *v1alpha1.Remediation) error {
	w := rem.Spec.Workload
	says := fmt.Errorf("%w: what %s %s/%s needs is another fix now", ErrStale, w.Kind, w.Namespace, w.Name)
	if what := changed(now.State, rem); what != nil {
		says = what
	} else if now.Fix.Plan != "" {
		says = fmt.Errorf("%w: %s", ErrStale, now.Fix.Proof.Why)
	}
	if now.Diagnosis.Incident == "" {
		says = fmt.Errorf("%w; no pod of %s %s/%s waits as it did", says, w.Kind, w.Namespace, w.Name)
	}
	if next, ok := successor(now.Diagnosis, rem); ok {
		if what := changedConfig(rem.Spec.Actions, next.Actions); what != nil && changed(now.State, rem) == nil {
			says = what
		}
		if _, err := x.store.Record(ctx, Propose(Found{now.State, now.Diagnosis, next}, x.Self, x.Now())); err != nil {
			return fmt.Errorf("record the plan that takes the place of %s: %w", rem.Name, err)
		}
		says = fmt.Errorf("%w; its new plan %s waits for approval: fix %d, %q", says, next.Plan, next.ID, next.Title)
	}
	return x.finish(ctx, rem, v1alpha1.Stale, says.Error())
}

// successor is the fix of the same kinds, or else one of the same kind that takes more or
// less besides, as it is now.
func successor(d diagnosis.Diagnosis, old *v1alpha1.Remediation) (diagnosis.Fix, bool) {
	for _, same := range []func(diagnosis.Fix) bool{
		func(f diagnosis.Fix) bool { return slices.Equal(f.Kinds, old.Spec.Kinds) },
		func(f diagnosis.Fix) bool { return f.Kind == old.Spec.Kind },
	} {
		for _, f := range d.Fixes {
			if same(f) && f.Plan != old.Name && permitted(f) == nil {
				return f, true
			}
		}
	}
	return diagnosis.Fix{}, false
}

// changed names the first thing that the plan writes to, or relies on, and that is not
// as it was; nil when all is.
func changed(st *cluster.State, rem *v1alpha1.Remediation) error {
	for _, a := range rem.Spec.Actions {
		targets := []diagnosis.Target{a.Target}
		if a.Relayout != nil {
			targets = append(slices.Clone(a.Relayout.Victims), a.Target) // pods first: people know them
			if a.Relayout.ConfigMap != nil {
				targets = append(targets, *a.Relayout.ConfigMap)
			}
		}
		for _, t := range targets {
			if err := changedTarget(st, t, a.Relies); err != nil {
				return err
			}
		}
	}
	var waiting []string
	for _, p := range rem.Spec.Waiting {
		waiting = append(waiting, p.Name)
	}
	return outdated(st, rem.Spec.Actions, waiting)
}

// outdated says that a Deployment whose template is patched has got another template
// than that of its pods that wait, on which the patch was proved; nil when it has not.
func outdated(st *cluster.State, actions []diagnosis.Action, waiting []string) error {
	for _, a := range actions {
		if a.Verb != diagnosis.VerbPatch || a.Target.Kind != "Deployment" {
			continue
		}
		o, _ := st.Owner(a.Target.Kind, a.Target.Namespace, a.Target.Name)
		d, ok := o.(*appsv1.Deployment)
		for _, name := range waiting {
			if p := st.Pod(a.Target.Namespace, name); ok && p != nil && madeFromAnother(st, p, d) {
				return fmt.Errorf("%w: the template of %s was changed since its pod %s was made", ErrStale, nameOf(a.Target), name)
			}
		}
	}
	return nil
}

func madeFromAnother(st *cluster.State, p *corev1.Pod, d *appsv1.Deployment) bool {
	by := metav1.GetControllerOf(p)
	if by == nil {
		return false
	}
	o, _ := st.Owner(by.Kind, p.Namespace, by.Name)
	rs, ok := o.(*appsv1.ReplicaSet)
	if !ok {
		return false
	}
	template := rs.Spec.Template.DeepCopy()
	delete(template.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
	return !equality.Semantic.DeepEqual(*template, d.Spec.Template)
}

// changedConfig says that a MIG config makes another layout now: its name is all that the
// plan has of it.
func changedConfig(old, now []diagnosis.Action) error {
	for _, a := range old {
		for _, b := range now {
			if a.Relayout != nil && b.Relayout != nil && a.Target == b.Target && a.Relayout.Config == b.Relayout.Config && !reflect.DeepEqual(a.Relayout.Layouts, b.Relayout.Layouts) {
				return fmt.Errorf("%w: MIG config %s makes another layout of node %s now", ErrStale, a.Relayout.Config, a.Target.Name)
			}
		}
	}
	return nil
}

func changedTarget(st *cluster.State, t diagnosis.Target, relied map[string]string) error {
	var uid string
	var differs error
	switch t.Kind {
	case "Node":
		if i := slices.IndexFunc(st.Nodes, func(n *corev1.Node) bool { return n.Name == t.Name }); i >= 0 {
			uid, differs = string(st.Nodes[i].UID), drift(t.Name, relied, view.NodeFacts(st, t.Name))
		}
	case "Pod":
		if p := st.Pod(t.Namespace, t.Name); p != nil {
			uid = string(p.UID)
			if on := relied["node"]; on != "" && p.Spec.NodeName != on {
				differs = fmt.Errorf("%w: pod %s/%s is on %q, it was on %q", ErrStale, t.Namespace, t.Name, p.Spec.NodeName, on)
			}
		}
	case "ResourceQuota":
		if i := slices.IndexFunc(st.Quotas, func(q *corev1.ResourceQuota) bool { return q.Namespace == t.Namespace && q.Name == t.Name }); i >= 0 {
			uid, differs = string(st.Quotas[i].UID), sameLimits(st.Quotas[i], relied)
		}
	case "ConfigMap":
		if i := slices.IndexFunc(st.ConfigMaps, func(c *corev1.ConfigMap) bool { return c.Namespace == t.Namespace && c.Name == t.Name }); i >= 0 {
			uid = string(st.ConfigMaps[i].UID)
		}
	default:
		if o, ok := st.Owner(t.Kind, t.Namespace, t.Name); ok {
			uid = string(o.GetUID())
		}
	}
	switch uid {
	case t.UID:
		return differs
	case "":
		return fmt.Errorf("%w: %s is gone", ErrStale, nameOf(t))
	}
	return fmt.Errorf("%w: %s was replaced", ErrStale, nameOf(t))
}
