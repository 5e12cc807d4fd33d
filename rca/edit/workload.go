package edit

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/causes"
	"github.com/unpend/unpend/rca/diagnosis"
)

// Workload is where changes of what one case's pods are made from are worked out; what is
// the same on every node is made once.
type Workload struct {
	*causes.Case
	// made are the changes worked out so far, by title.
	made map[string]Change
	// siblings are the workload's pods, once asked for.
	siblings *siblings
}

// New takes a case that was judged.
func New(c *causes.Case) *Workload { return &Workload{Case: c, made: map[string]Change{}} }

// CameForGood is causes.CameForGood, for who knows no causes.
func (c *Workload) CameForGood() bool { return causes.CameForGood(c.Case) }

// HeldByOwn is causes.HeldByOwn, likewise.
func (c *Workload) HeldByOwn(id diagnosis.CauseID) bool { return causes.HeldByOwn(c.Case, id) }

// As is the same workload for another case of its pods.
func (c *Workload) As(other *causes.Case) *Workload {
	out := New(other)
	out.siblings = c.siblings
	return out
}

// PodSpec is what the workload's pods are made from, by its own template or that of what it has made for
// that; the waiting pod's own where no template is known.
func (c *Workload) PodSpec() *corev1.PodSpec {
	if spec := c.Cluster.Template(c.Incident.Workload); spec != nil {
		return spec
	}
	if spec, _ := c.Cluster.MadeFrom(c.Pod); spec != nil {
		return spec
	}
	return &c.Pod.Spec
}

// Once makes a change that is the same on every node, and keeps it.
func (c *Workload) Once(title string, make func(title string) Change) Change {
	ch, known := c.made[title]
	if !known {
		ch = make(title)
		c.made[title] = ch
	}
	return ch
}

// LookAt is what a person has to do, where a copy of the cluster cannot show what
// comes of it.
func LookAt(cause diagnosis.CauseID, title, unproven string, commands ...string) Change {
	return Change{Kind: diagnosis.Manual, Cause: cause, Manual: true, Risk: diagnosis.NoRisk, Title: title, Untestable: unproven, Commands: commands}
}

// Feed is the command that gives kubectl an object to work on, in one line: a terminal shows a command as one.
func Feed(kubectl, object string) string { return fmt.Sprintf("echo '%s' | %s -f -", object, kubectl) }

// WaitingPods are those pods of the incident that are there.
func (c *Workload) WaitingPods() []*corev1.Pod {
	var out []*corev1.Pod
	for _, ref := range c.Incident.Pods {
		if p := c.Cluster.State.Pod(c.Incident.Workload.Namespace, ref.Name); p != nil {
			out = append(out, p)
		}
	}
	return out
}

// WorkloadName is the workload as kubectl takes it: deployment/x.
func (c *Workload) WorkloadName() string {
	w := c.Incident.Workload
	return strings.ToLower(w.Kind) + "/" + w.Name
}

// AnnotatePods is the command by which a person has the pods of the workload made with annotations.
func (c *Workload) AnnotatePods(annotations map[string]string) string {
	w := c.Incident.Workload
	if slices.Contains([]string{"Deployment", "StatefulSet", "ReplicaSet", "DaemonSet"}, w.Kind) {
		return fmt.Sprintf("kubectl -n %s patch %s --type=merge -p '%s'", w.Namespace, c.WorkloadName(), diagnosis.MustJSON(map[string]any{"spec": map[string]any{"template": map[string]any{"metadata": map[string]any{"annotations": annotations}}}}))
	}
	return c.EditObject("annotations of its pods: " + string(diagnosis.MustJSON(annotations)))
}
