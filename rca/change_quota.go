package rca

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/watcher"
)

// quotaChanges are what helps against a quota that is used up: more of it, or who
// holds it leaving.
func (c *Bench) quotaChanges() []change {
	look := fmt.Sprintf("kubectl -n %s describe resourcequota", c.next().Namespace)
	refusing := c.refusing()
	if len(refusing) == 0 || slices.ContainsFunc(refusing, func(q quotaView) bool { return q.demand != "" }) {
		return []change{{kind: Manual, manual: true, risk: NoRisk, until: "its quota takes it", title: "look at the quotas of " + c.next().Namespace, commands: []string{look}}}
	}
	var out []change
	if ch, ok := c.raiseQuota(); ok {
		out = append(out, ch)
	}
	if ch, ok := c.waitForQuota(refusing); ok {
		out = append(out, ch)
	}
	return out
}

// raiseQuota allows as much as the pods that do not exist need, and no more.
func (c *Bench) raiseQuota() (change, bool) {
	ch := change{kind: RaiseQuota, minutes: 1, risk: MediumRisk, hard: map[string]corev1.ResourceList{}}
	missing := 0
	for _, r := range c.refusals {
		missing += r.Missing
	}
	var titles []string
	for _, q := range c.quotas(c.next(), nil, nil) {
		list, relies := corev1.ResourceList{}, map[string]string{}
		var texts []string
		for _, name := range q.shortFor(missing) {
			need := q.need(name, missing)
			if need.Cmp(q.Spec.Hard[name]) <= 0 {
				return change{}, false // it is raised, and its controller is about to say so
			}
			list[name], relies[string(name)] = need, text(q.Spec.Hard[name])
			texts = append(texts, fmt.Sprintf("%s %s → %s", name, text(q.Spec.Hard[name]), text(need)))
		}
		if len(list) == 0 {
			continue
		}
		ch.hard[q.Name] = list
		titles = append(titles, fmt.Sprintf("raise quota %s: %s", q.Name, strings.Join(texts, ", ")))
		patch := mustJSON(map[string]any{"spec": map[string]any{"hard": list}})
		ch.steps = append(ch.steps, "patch resourcequota/"+q.Name+" (ask who set it first)")
		ch.commands = append(ch.commands, fmt.Sprintf("kubectl -n %s patch resourcequota/%s --type=merge -p '%s'", q.Namespace, q.Name, patch))
		ch.actions = append(ch.actions, Action{Verb: VerbPatch, Target: Target{"ResourceQuota", q.Namespace, q.Name, string(q.UID)}, Patch: patch, Relies: relies})
	}
	ch.title = strings.Join(titles, "; ")
	for _, r := range c.refusals {
		c.wake(&ch, r.Owner)
	}
	return ch, len(titles) > 0
}

// annotationRetry is written on an owner to have its controller try again at once.
const annotationRetry = "unpend.dev/retry"

// wake touches an owner whose controller would else try again up to 1000 s later: the
// back-off of those of ReplicaSets, StatefulSets and DaemonSets (client-go
// DefaultTypedControllerRateLimiter). That of Jobs waits a minute at most, and does
// without.
func (c *Bench) wake(ch *change, o watcher.Ref) {
	owner, ok := c.world.state.Owner(o.Kind, o.Namespace, o.Name)
	if !ok || !slices.Contains([]string{"ReplicaSet", "StatefulSet", "DaemonSet"}, o.Kind) {
		return
	}
	name := strings.ToLower(o.Kind) + "/" + o.Name
	ch.steps = append(ch.steps, "touch "+name+", so that its controller tries again at once")
	ch.commands = append(ch.commands, fmt.Sprintf("kubectl -n %s annotate --overwrite %s %s='%s'", o.Namespace, name, annotationRetry, ch.title))
	ch.actions = append(ch.actions, Action{Verb: VerbPatch, Target: Target{o.Kind, o.Namespace, o.Name, string(owner.GetUID())},
		Patch: mustJSON(map[string]any{"metadata": map[string]any{"annotations": map[string]string{annotationRetry: ch.title}}})})
}

// waitForQuota leaves the holders alone until enough of them have left for one pod:
// those that end by themselves before those that do not.
func (c *Bench) waitForQuota(refusing []quotaView) (change, bool) {
	var leave []*corev1.Pod
	for _, q := range refusing {
		for _, name := range q.short() {
			top := q.top(name)
			slices.SortStableFunc(top, func(a, b holder) int { return cmp.Compare(rank(endsAlone(a.pod)), rank(endsAlone(b.pod))) })
			lack := q.need(name, 1)
			lack.Sub(q.hard[name])
			for _, h := range top {
				if lack.Sign() <= 0 {
					break
				}
				lack.Sub(h.uses[name])
				if !slices.Contains(leave, h.pod) {
					leave = append(leave, h.pod)
				}
			}
			if lack.Sign() > 0 {
				return change{}, false // what other holders leave free is not enough
			}
		}
	}
	ends := "ends"
	if !endsAlone(leave[len(leave)-1]) {
		ends = "leaves (nothing says that it does by itself)"
	}
	return change{kind: Wait, manual: true, risk: NoRisk, victims: leave, until: podList(leave) + " " + ends,
		title:    "wait until " + podList(leave) + " leaves quota free",
		commands: []string{fmt.Sprintf("kubectl -n %s get pod %s -w", leave[0].Namespace, leave[0].Name)}}, true
}

// endsAlone says whether the pod is made to come to an end.
func endsAlone(p *corev1.Pod) bool {
	return p.Spec.RestartPolicy == corev1.RestartPolicyNever || p.Spec.RestartPolicy == corev1.RestartPolicyOnFailure || p.Spec.ActiveDeadlineSeconds != nil
}
