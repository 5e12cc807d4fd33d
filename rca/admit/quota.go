package admit

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/admission"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/view"
	"github.com/unpend/unpend/watcher/incident"
)

// AgainstQuotas are what helps against a quota that is used up: more of it, or who
// holds it leaving.
func AgainstQuotas(c *edit.Workload) []edit.Change {
	refusing := slices.DeleteFunc(c.Refused.Refusing(), func(q admission.Quota) bool { return len(q.Exceeded()) == 0 })
	if len(refusing) == 0 {
		return []edit.Change{{Kind: diagnosis.Manual, Manual: true, Risk: diagnosis.NoRisk, Until: "its quota takes it", Title: "look at the quotas of " + c.Refused.Next().Namespace,
			Commands: []string{fmt.Sprintf("kubectl -n %s describe resourcequota", c.Refused.Next().Namespace)}}}
	}
	var out []edit.Change
	if ch, ok := raiseQuota(c); ok {
		out = append(out, ch)
	}
	if ch, ok := waitForQuota(c, refusing); ok {
		out = append(out, ch)
	}
	return out
}

// raiseQuota allows as much as the pods that do not exist need, and no more.
func raiseQuota(c *edit.Workload) (edit.Change, bool) {
	ch := edit.Change{Kind: diagnosis.RaiseQuota, Minutes: 1, Risk: diagnosis.MediumRisk, Hard: map[string]corev1.ResourceList{}}
	missing := 0
	for _, r := range c.Refused.All {
		missing += r.Missing
	}
	var titles []string
	for _, q := range admission.Quotas(c.Cluster.State, c.Refused.Next(), nil, nil) {
		list, relies := corev1.ResourceList{}, map[string]string{}
		var texts []string
		for _, name := range q.ExceededBy(missing) {
			need := q.Need(name, missing)
			if need.Cmp(q.Spec.Hard[name]) <= 0 {
				return edit.Change{}, false // it is raised, and its controller is about to say so
			}
			list[name], relies[string(name)] = need, view.QuantityText(q.Spec.Hard[name])
			texts = append(texts, fmt.Sprintf("%s %s → %s", name, view.QuantityText(q.Spec.Hard[name]), view.QuantityText(need)))
		}
		if len(list) == 0 {
			continue
		}
		ch.Hard[q.Name] = list
		titles = append(titles, fmt.Sprintf("raise quota %s: %s", q.Name, strings.Join(texts, ", ")))
		patch := diagnosis.MustJSON(map[string]any{"spec": map[string]any{"hard": list}})
		ch.Steps = append(ch.Steps, "patch resourcequota/"+q.Name+" (ask who set it first)")
		ch.Commands = append(ch.Commands, fmt.Sprintf("kubectl -n %s patch resourcequota/%s --type=merge -p '%s'", q.Namespace, q.Name, patch))
		ch.Actions = append(ch.Actions, diagnosis.Action{Verb: diagnosis.VerbPatch, Target: diagnosis.Target{Kind: "ResourceQuota", Namespace: q.Namespace, Name: q.Name, UID: string(q.UID)}, Patch: patch, Relies: relies})
	}
	ch.Title = strings.Join(titles, "; ")
	for _, r := range c.Refused.All {
		wake(c, &ch, r.Owner)
	}
	return ch, len(titles) > 0
}

// annotationRetry is written on an owner to have its controller try again at once.
const annotationRetry = "unpend.dev/retry"

// wake touches an owner whose controller would else try again up to 1000 s later: the
// back-off of those of ReplicaSets, StatefulSets and DaemonSets (client-go
// DefaultTypedControllerRateLimiter). That of Jobs waits a minute at most, and does
// without.
func wake(c *edit.Workload, ch *edit.Change, o incident.Ref) {
	owner, ok := c.Cluster.State.Owner(o.Kind, o.Namespace, o.Name)
	if !ok || !slices.Contains([]string{"ReplicaSet", "StatefulSet", "DaemonSet"}, o.Kind) {
		return
	}
	name := strings.ToLower(o.Kind) + "/" + o.Name
	ch.Steps = append(ch.Steps, "touch "+name+", so that its controller tries again at once")
	ch.Commands = append(ch.Commands, fmt.Sprintf("kubectl -n %s annotate --overwrite %s %s='%s'", o.Namespace, name, annotationRetry, ch.Title))
	ch.Actions = append(ch.Actions, diagnosis.Action{Verb: diagnosis.VerbPatch, Target: diagnosis.Target{Kind: o.Kind, Namespace: o.Namespace, Name: o.Name, UID: string(owner.GetUID())},
		Patch: diagnosis.MustJSON(map[string]any{"metadata": map[string]any{"annotations": map[string]string{annotationRetry: ch.Title}}})})
}

// waitForQuota leaves the holders alone until enough of them have left for one pod:
// those that end by themselves before those that do not.
func waitForQuota(_ *edit.Workload, refusing []admission.Quota) (edit.Change, bool) {
	var leave []*corev1.Pod
	for _, q := range refusing {
		for _, name := range q.Exceeded() {
			top := q.Top(name)
			slices.SortStableFunc(top, func(a, b admission.QuotaHolder) int {
				if ends := cmp.Compare(len(unbound([]*corev1.Pod{a.Pod})), len(unbound([]*corev1.Pod{b.Pod}))); ends != 0 {
					return ends
				}
				return cmp.Compare(view.Rank(view.EndsAlone(a.Pod)), view.Rank(view.EndsAlone(b.Pod)))
			})
			lack := q.Need(name, 1)
			lack.Sub(q.Hard[name])
			for _, h := range top {
				if lack.Sign() <= 0 {
					break
				}
				lack.Sub(h.Uses[name])
				if !slices.Contains(leave, h.Pod) {
					leave = append(leave, h.Pod)
				}
			}
			if lack.Sign() > 0 {
				return edit.Change{}, false // what other holders leave free is not enough
			}
		}
	}
	if idle := unbound(leave); len(idle) > 0 {
		return stopIdle(leave, idle), true
	}
	if endless := view.Endless(leave); len(endless) > 0 {
		return edit.UntilStopped(diagnosis.QuotaExceeded, leave, endless, ""), true
	}
	return edit.Change{Kind: diagnosis.Wait, Manual: true, Risk: diagnosis.NoRisk, Victims: leave, Until: view.PodList(leave) + " ends",
		Title:    "wait until " + view.PodList(leave) + " leaves quota free",
		Commands: []string{fmt.Sprintf("kubectl -n %s get pod %s -w", leave[0].Namespace, leave[0].Name)}}, true
}

// unbound are those of the holders that have no node: a quota counts a pod from when it exists, and one that
// waits itself comes to no end by that.
func unbound(pods []*corev1.Pod) []*corev1.Pod {
	return slices.DeleteFunc(slices.Clone(pods), func(p *corev1.Pod) bool { return p.Spec.NodeName != "" || p.DeletionTimestamp != nil })
}

// stopIdle is for a quota that is held by pods that wait themselves: nobody loses work where they are stopped.
func stopIdle(leave, idle []*corev1.Pod) edit.Change {
	does := "it holds quota and waits itself"
	if len(idle) > 1 {
		does = "they hold quota and wait themselves"
	}
	ch := edit.Change{Kind: diagnosis.Wait, Manual: true, Risk: diagnosis.NoRisk, Victims: leave, Until: view.Gone(leave),
		Title: fmt.Sprintf("have %s begin, or have somebody stop what made it: %s", view.PodList(idle), does)}
	for _, p := range idle {
		ch.Commands = append(ch.Commands, fmt.Sprintf("kubectl unpend why pod/%s -n %s  # why it waits, and what made it", p.Name, p.Namespace))
	}
	return ch
}
