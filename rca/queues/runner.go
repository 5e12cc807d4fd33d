package queues

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/scaling"
	"github.com/unpend/unpend/rca/view"
	"github.com/unpend/unpend/watcher/incident"
)

// Runner is the Deployment that, by its name, answers to a schedulerName, and whose pods are not ready.
type Runner struct {
	Namespace, Name string
	// Pod is one of its pods, Why what of that pod's container keeps it from being ready.
	Pod *corev1.Pod
	Why string
	why diagnosis.Claim
}

// Ref is the Deployment for people.
func (r *Runner) Ref() string { return view.ObjectRef("Deployment", r.Namespace, r.Name) }

// Says what is wrong with it.
func (r *Runner) Says() string {
	return fmt.Sprintf("%s, which has that name, has no pod that is ready: %s", r.Ref(), r.Why)
}

// evidence tells of it.
func (r *Runner) evidence() diagnosis.Evidence {
	return diagnosis.Fact(view.PodRef(r.Pod), "is not ready: "+r.Why, view.ConditionIs(string(corev1.PodReady), "False"), r.why)
}

// Down is who would schedule under the pod's schedulerName and does not run; nil where somebody does, where nobody
// is called so, or where its pods were not read.
func Down(c *Case) *Runner {
	name := c.SchedulerName()
	if name == corev1.DefaultSchedulerName || c.Cluster.State.Unread["Pod"] != "" {
		return nil
	}
	var down *Runner
	for _, d := range c.Cluster.State.Deployments {
		if !answersTo(d, name) {
			continue
		}
		pods := c.Cluster.Running(incident.Ref{Kind: "Deployment", Namespace: d.Namespace, Name: d.Name})
		if slices.ContainsFunc(pods, isReady) {
			return nil
		}
		if r := notReady(d, pods); r != nil && down == nil {
			down = r
		}
	}
	return down
}

// Runs is a pod that is ready of who would schedule under the pod's schedulerName, by its name; nil where none is seen.
func Runs(c *Case) *corev1.Pod {
	name := c.SchedulerName()
	if name == corev1.DefaultSchedulerName {
		return nil
	}
	for _, d := range c.Cluster.State.Deployments {
		if !answersTo(d, name) {
			continue
		}
		for _, p := range c.Cluster.Running(incident.Ref{Kind: "Deployment", Namespace: d.Namespace, Name: d.Name}) {
			if isReady(p) {
				return p
			}
		}
	}
	return nil
}

// answersTo says whether a Deployment is, by its name, the scheduler of a name: as koord-scheduler, volcano-scheduler of
// volcano, user-scheduler of RELEASE-user-scheduler, and what is called scheduler in a namespace of that name.
func answersTo(d *appsv1.Deployment, name string) bool {
	switch {
	case !strings.Contains(d.Name, "scheduler"):
		return false
	case d.Name == name, strings.HasSuffix(name, "-"+d.Name), d.Namespace == name && d.Name == "scheduler":
		return true
	}
	rest, of := strings.CutPrefix(d.Name, name+"-")
	return of && (strings.HasPrefix(rest, "scheduler") || strings.Contains(name, "scheduler") && !strings.Contains(rest, "admission") && !strings.Contains(rest, "webhook"))
}

func isReady(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(k corev1.PodCondition) bool { return k.Type == corev1.PodReady && k.Status == corev1.ConditionTrue })
}

// notReady is the first of the pods that says of a container why it is not ready.
func notReady(d *appsv1.Deployment, pods []*corev1.Pod) *Runner {
	for _, p := range pods {
		for _, s := range p.Status.ContainerStatuses {
			at := "status.containerStatuses[name=" + s.Name + "]"
			switch {
			case s.Ready:
			case s.State.Waiting != nil && s.State.Waiting.Reason == "CrashLoopBackOff":
				return &Runner{d.Namespace, d.Name, p, "container " + s.Name + " ends again and again", diagnosis.That(at+".state.waiting.reason", "", diagnosis.Is, "CrashLoopBackOff")}
			case s.State.Running != nil:
				return &Runner{d.Namespace, d.Name, p, "container " + s.Name + " runs and is not ready", diagnosis.That(at+".ready", "", diagnosis.Is, "false")}
			case s.State.Waiting != nil && s.State.Waiting.Reason != "":
				return &Runner{d.Namespace, d.Name, p, "container " + s.Name + ": " + view.Quotable(s.State.Waiting.Reason, 63), diagnosis.That(at+".state.waiting.reason", "", diagnosis.Is, s.State.Waiting.Reason)}
			}
		}
	}
	return nil
}

// unheard says whether no scheduler has said a word of the pod, or its group.
func unheard(c *Case) bool {
	if len(c.Refusal.Conditions) > 0 {
		return false
	}
	for e := range c.spoken {
		if scaling.Speaker(e) == c.SchedulerName() {
			return false
		}
	}
	return true
}
