package edit

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// Rolling is how a workload replaces its pods once its template is another.
type Rolling struct {
	// How says it to people: "deletes and makes job/train again".
	How string
	// Running are its pods that have a node, in the order in which they are replaced.
	Running []*corev1.Pod
	// Pending are its pods that wait for one, in that order.
	Pending []*corev1.Pod
	// Behind are its pods that wait for one and keep the template that they have.
	Behind []*corev1.Pod
	// Broken is how many of its pods have a node, keep their template, and are not ready.
	Broken int
	// Wanted is how many pods it wants.
	Wanted int
	// AtOnce: all its pods stop before the first new one is made. Else at most Surge pods
	// are above what is wanted, and Unavailable below.
	AtOnce             bool
	Surge, Unavailable int
	// InTurn: pods are replaced each under its own name, who waits first, the next ones only
	// while fewer than Unavailable do not run; 0 is 1.
	InTurn bool
	// InOrder, of those: none is replaced before all run, and none is made before the one in
	// front of it runs.
	InOrder bool
	// ByOrdinal, of those: one after the other from the highest ordinal on, whether it waits
	// or runs.
	ByOrdinal bool
}

// roll fills in how the workload replaces its pods for a change of its template.
//
// Sources: pkg/controller/deployment/rolling.go and recreate.go,
// pkg/controller/statefulset/stateful_set_control.go (updateStatefulSet),
// pkg/controller/daemon/update.go, Kubernetes 1.37.
func (c *Workload) roll(ch *Change, owner metav1.Object) {
	name := c.WorkloadName()
	r := &Rolling{How: "rolls " + name, Running: c.RunningPods(), Pending: c.PendingPods()}
	r.Wanted = len(r.Running) + c.Incident.Waiting
	switch o := owner.(type) {
	case *appsv1.Deployment:
		r.Wanted = int(ptr.Deref(o.Spec.Replicas, 1))
		r.AtOnce = o.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType
		r.Surge, r.Unavailable = surges(o, r.Wanted)
		if o.Spec.Paused {
			ch.Manual = true
			ch.Commands = append(ch.Commands, fmt.Sprintf("kubectl -n %s rollout resume %s  # it is paused: what else was changed meanwhile is rolled, too", o.Namespace, name))
		}
	case *appsv1.StatefulSet:
		c.rollSet(ch, r, o)
	case *appsv1.DaemonSet:
		r.InTurn = true
		if o.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType {
			ch.Manual, r.Running, r.Wanted = true, nil, c.Incident.Waiting
			c.deleteWaiting(ch, "with OnDelete the DaemonSet leaves that to people")
		}
	case *appsv1.ReplicaSet:
		// Its pods stay as they are; who waits is made again once somebody deletes it.
		ch.Manual, r.InTurn, r.Running, r.Wanted = true, true, nil, c.Incident.Waiting
		c.deleteWaiting(ch, "a ReplicaSet replaces none of its pods")
	case *batchv1.Job:
		r.AtOnce, r.How = true, "deletes and makes "+name+" again"
		r.Wanted = stillWanted(o, r.Wanted)
	}
	ch.Rolling = r
	if len(r.Running) > 0 {
		ch.Risk = ch.Risk.With(diagnosis.MediumRisk)
		if r.AtOnce {
			ch.Risk = diagnosis.HighRisk
		}
	}
}

// deleteWaiting adds how a person has the pods that wait made again, from the new template.
func (c *Workload) deleteWaiting(ch *Change, why string) {
	if c.Unborn {
		return
	}
	names := []string{c.Pod.Name}
	for _, p := range c.PendingPods() {
		if p.Name != c.Pod.Name {
			names = append(names, p.Name)
		}
	}
	if len(ch.Commands) > 0 {
		why = "after the patch: " + why
	}
	ch.Commands = append(ch.Commands, fmt.Sprintf("kubectl -n %s delete pod %s  # %s", c.Pod.Namespace, strings.Join(names, " "), why))
}

// RunningPods are the workload's pods that have a node, the newest first.
func (c *Workload) RunningPods() []*corev1.Pod {
	if c.siblings == nil {
		c.siblings = &siblings{running: c.Cluster.Running(c.Incident.Workload)}
		for _, p := range c.Cluster.State.Pods {
			if p.Namespace == c.Incident.Workload.Namespace && p.Spec.NodeName == "" && !view.Ended(p) && p.DeletionTimestamp == nil && c.Cluster.WorkloadOf(p) == c.Incident.Workload {
				c.siblings.pending = append(c.siblings.pending, p)
			}
		}
	}
	return slices.Clone(c.siblings.running)
}

// PendingPods are the workload's pods that wait for a node, by name.
func (c *Workload) PendingPods() []*corev1.Pod {
	c.RunningPods()
	return slices.Clone(c.siblings.pending)
}

// siblings are the pods of the incident's workload, once asked for.
type siblings struct{ running, pending []*corev1.Pod }

// surges are a Deployment's bounds in pods, with the API server's defaults
// (pkg/apis/apps/v1/defaults.go) and the rule that both are not 0
// (pkg/controller/deployment/util, ResolveFenceposts).
func surges(d *appsv1.Deployment, wanted int) (surge, unavailable int) {
	quarter := intstr.FromString("25%")
	above, below := &quarter, &quarter
	if r := d.Spec.Strategy.RollingUpdate; r != nil {
		above, below = cmp.Or(r.MaxSurge, above), cmp.Or(r.MaxUnavailable, below)
	}
	surge, _ = intstr.GetScaledValueFromIntOrPercent(above, wanted, true) //nolint:errcheck // the API server takes no others
	unavailable, _ = intstr.GetScaledValueFromIntOrPercent(below, wanted, false)
	if surge == 0 && unavailable == 0 {
		unavailable = 1
	}
	return surge, unavailable
}

// stillWanted is how many pods a Job that is made again has at once: its parallelism, but
// no more than are left to complete. What is complete is lost: it begins again.
func stillWanted(j *batchv1.Job, otherwise int) int {
	if j.Spec.Parallelism == nil {
		return max(1, otherwise)
	}
	n := int(*j.Spec.Parallelism)
	if j.Spec.Completions != nil {
		n = min(n, int(*j.Spec.Completions))
	}
	return n
}
