package changes

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/view"
)

// release makes room by evicting the cheapest set of idle pods alone, once their
// owners were asked. That a person asks is a step of the fix; what is applied after
// the approval is the evictions.
func (c *Bench) release(n *view.Node, lack view.Deficits) []edit.Change {
	victims, ok := c.CheapestOf(n, lack, c.Cluster.Idle)
	if !ok || len(victims) == 0 {
		return nil
	}
	whose := "its owner"
	if len(victims) > 1 {
		whose = "their owners"
	}
	return []edit.Change{{
		Kind: diagnosis.ReleaseIdleHolder, Cause: diagnosis.IdleGPUHolders, Victims: victims, Minutes: 1, Risk: diagnosis.LowRisk,
		Title:  fmt.Sprintf("ask %s, then evict %s from %s", whose, idle(c.Cluster, victims), n.Name),
		Detail: func(ch *edit.Change) { c.detailRelease(ch) },
	}}
}

// idle names pods by what makes them so.
func idle(w *view.Cluster, pods []*corev1.Pod) string {
	names := view.PodList(pods)
	if slices.ContainsFunc(pods, func(p *corev1.Pod) bool { return w.Use(p).Stalled == nil }) {
		return "idle " + names
	}
	if len(pods) > 1 {
		return names + ", which do not run,"
	}
	return names + ", which does not run,"
}

func (c *Bench) detailRelease(ch *edit.Change) {
	for _, v := range ch.Victims {
		u := c.Cluster.Use(v)
		works := "no GPU work seen since " + diagnosis.Clock(u.Since)
		if u.Stalled != nil {
			works = "it does not run: " + u.Stalled.Text()
		}
		ch.Steps = append(ch.Steps, fmt.Sprintf("ask the owner of %s/%s%s yourself (no message is sent): %s", v.Namespace, v.Name, ownerText(v), works))
	}
	for _, v := range ch.Victims {
		u := c.Cluster.Use(v)
		ch.Steps = append(ch.Steps, "evict "+v.Namespace+"/"+v.Name)
		ch.Commands = append(ch.Commands, edit.EvictCommand(v))
		// Without the time since when: it moves on, and would make every plan stale.
		relied := u.Watched.String()
		if u.Stalled != nil {
			relied = diagnosis.DoesNotRun
		}
		ch.Actions = append(ch.Actions, diagnosis.Action{Verb: diagnosis.VerbEvict, Target: view.PodTarget(v), Relies: map[string]string{"node": v.Spec.NodeName, "idle": relied}})
	}
}

// ownerText names the controller of a pod: who looks for a person to ask begins there.
func ownerText(p *corev1.Pod) string {
	owner := metav1.GetControllerOf(p)
	if owner == nil {
		return ""
	}
	return " (" + strings.ToLower(owner.Kind) + "/" + owner.Name + ")"
}
