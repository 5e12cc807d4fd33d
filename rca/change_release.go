package rca

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// release makes room by evicting the cheapest set of idle pods alone, once their
// owners were asked. That a person asks is a step of the fix; what is applied after
// the approval is the evictions.
func (c *Bench) release(n *nodeView, lack deficits) []change {
	if len(c.world.uses) == 0 {
		return nil
	}
	victims, ok := c.cheapestOf(n, lack, c.world.idle)
	if !ok || len(victims) == 0 {
		return nil
	}
	whose := "its owner"
	if len(victims) > 1 {
		whose = "their owners"
	}
	return []change{{
		kind: ReleaseIdleHolder, cause: IdleGPUHolders, victims: victims, minutes: 1, risk: LowRisk,
		title:  fmt.Sprintf("ask %s, then evict idle %s from %s", whose, podList(victims), n.Name),
		detail: func(ch *change) { c.detailRelease(ch) },
	}}
}

func (c *Bench) detailRelease(ch *change) {
	for _, v := range ch.victims {
		u := c.world.use(v)
		ch.steps = append(ch.steps, fmt.Sprintf("ask the owner of %s/%s%s yourself (no message is sent): no GPU work seen since %s", v.Namespace, v.Name, ownerText(v), u.Since.UTC().Format("2006-01-02 15:04 MST")))
	}
	for _, v := range ch.victims {
		u := c.world.use(v)
		ch.steps = append(ch.steps, "evict "+v.Namespace+"/"+v.Name)
		ch.commands = append(ch.commands, evictCommand(v))
		// Without the time since when: it moves on, and would make every plan stale.
		ch.actions = append(ch.actions, Action{Verb: VerbEvict, Target: podTarget(v), Relies: map[string]string{"node": v.Spec.NodeName, "idle": u.Watched.String()}})
	}
}

// ownerText names the controller of a pod, for whoever is looking for a person.
func ownerText(p *corev1.Pod) string {
	owner := metav1.GetControllerOf(p)
	if owner == nil {
		return ""
	}
	return " (" + strings.ToLower(owner.Kind) + "/" + owner.Name + ")"
}
