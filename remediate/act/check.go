package act

import (
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
	"github.com/unpend/unpend/remediate/plan"
	"github.com/unpend/unpend/remediate/tally"
	"github.com/unpend/unpend/remediate/v1alpha1"
	"github.com/unpend/unpend/watcher/incident"
)

// Begin puts what the plan rests on into its journal: the targets as the state has them that
// it was proved on, the workload's pods that are as young as the plan, and who waits and who
// runs. Every target is held to that before it is written, and what comes of the fix after
// that.
func Begin(rem *v1alpha1.Remediation, st *cluster.State, fix diagnosis.Fix, now time.Time) {
	status := &rem.Status
	began := metav1.NewMicroTime(now)
	status.Began, status.Phase = &began, v1alpha1.Running
	for _, a := range rem.Spec.Actions {
		targets := []diagnosis.Target{a.Target}
		if a.Relayout != nil {
			targets = append(targets, a.Relayout.Victims...)
		}
		for _, t := range targets {
			if p := proved(st, t); p != nil {
				status.Proved = append(status.Proved, *p)
			}
		}
	}
	status.Before = tally.Before(rem, st, fix)
	for _, p := range st.Pods {
		if p.Namespace == rem.Spec.Workload.Namespace && !p.CreationTimestamp.Time.Before(began.Truncate(time.Second)) {
			status.Present = append(status.Present, p.UID)
		}
	}
}

func proved(st *cluster.State, t diagnosis.Target) *v1alpha1.Proved {
	if p := st.Pod(t.Namespace, t.Name); t.Kind == "Pod" && p != nil {
		return &v1alpha1.Proved{UID: t.UID, Generation: p.Generation, Node: p.Spec.NodeName}
	}
	if owner, ok := st.Owner(t.Kind, t.Namespace, t.Name); ok {
		return &v1alpha1.Proved{UID: t.UID, Generation: owner.GetGeneration()}
	}
	return nil
}

// Changed names the first thing that the plan writes to, or relies on, and that is not
// as it was; nil when all is.
func Changed(st *cluster.State, rem *v1alpha1.Remediation) error {
	for _, a := range rem.Spec.Actions {
		for _, t := range a.Targets() {
			if err := changedTarget(st, t, a.Relies); err != nil {
				return err
			}
		}
	}
	var waiting []string
	for _, p := range rem.Spec.Waiting {
		waiting = append(waiting, p.Name)
	}
	return Check(st, rem.Spec.Actions, waiting)
}

// Check is what the verbs of a fix find changed since it was proved, besides the objects
// that it writes to and the facts that it relies on; waiting are the pods that wait.
func Check(st *cluster.State, actions []diagnosis.Action, waiting []string) error {
	for _, v := range (&run{}).verbsOf(actions) {
		if err := v.check(st, waiting); err != nil {
			return err
		}
	}
	return nil
}

func madeFromAnother(st *cluster.State, p *corev1.Pod, d *appsv1.Deployment) bool {
	by := metav1.GetControllerOf(p)
	if by == nil {
		return false
	}
	o, _ := st.Owner(incident.OwnerKind(by), p.Namespace, by.Name)
	rs, ok := o.(*appsv1.ReplicaSet)
	if !ok {
		return false
	}
	template := rs.Spec.Template.DeepCopy()
	delete(template.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
	return !equality.Semantic.DeepEqual(*template, d.Spec.Template)
}

// changedPod says what of a pod is not as the plan relies on it.
func changedPod(p *corev1.Pod, relied map[string]string) error {
	if on := relied["node"]; on != "" && p.Spec.NodeName != on {
		return fmt.Errorf("%w: pod %s/%s is on %q, it was on %q", plan.ErrStale, p.Namespace, p.Name, p.Spec.NodeName, on)
	}
	if relied["idle"] == diagnosis.DoesNotRun && incident.Stalled(p, view.AsksGPU) == nil {
		return fmt.Errorf("%w: pod %s/%s did not run, and may do so now", plan.ErrStale, p.Namespace, p.Name)
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
			differs = changedPod(p, relied)
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
		return fmt.Errorf("%w: %s is gone", plan.ErrStale, nameOf(t))
	}
	return fmt.Errorf("%w: %s was replaced", plan.ErrStale, nameOf(t))
}
