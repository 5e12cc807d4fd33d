package edit

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// EvictFrom evicts pods from the node that they are on.
func EvictFrom(n *view.Node, cause diagnosis.CauseID, victims []*corev1.Pod) Change {
	ch := Evict(cause, victims)
	ch.Title = "evict " + view.PodList(victims) + " from " + where(n, victims)
	return ch
}

// where is the node that pods are to leave, with the others that the rest of their gang leaves.
func where(n *view.Node, pods []*corev1.Pod) string {
	if slices.ContainsFunc(pods, func(p *corev1.Pod) bool { return p.Spec.NodeName != "" && p.Spec.NodeName != n.Name }) {
		return n.Name + " and other nodes"
	}
	return n.Name
}

// Evict evicts pods, wherever they are.
func Evict(cause diagnosis.CauseID, victims []*corev1.Pod) Change {
	ch := Change{Kind: diagnosis.EvictPods, Cause: cause, Victims: victims, Minutes: 1, Risk: diagnosis.LowRisk}
	ch.Detail = func(ch *Change) {
		for _, v := range victims {
			ch.Steps = append(ch.Steps, "evict "+v.Namespace+"/"+v.Name)
			ch.Commands = append(ch.Commands, EvictCommand(v))
			ch.Actions = append(ch.Actions, diagnosis.Action{Verb: diagnosis.VerbEvict, Target: view.PodTarget(v), Relies: map[string]string{"node": v.Spec.NodeName}})
		}
	}
	return ch
}

// EvictCommand evicts a pod by hand, within its disruption budgets.
func EvictCommand(v *corev1.Pod) string {
	return fmt.Sprintf(`kubectl create --raw /api/v1/namespaces/%s/pods/%s/eviction -f - <<<'{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"%s","namespace":"%s"}}'`, v.Namespace, v.Name, v.Name, v.Namespace)
}

// WaitFor is the fix that leaves the holders alone until they end by themselves, or somebody stops
// them.
func (c *Workload) WaitFor(n *view.Node, cause diagnosis.CauseID, holders []*corev1.Pod) Change {
	if endless := view.Endless(holders); len(endless) > 0 {
		return UntilStopped(cause, holders, endless, " on "+where(n, endless))
	}
	end, leave := " end", " leave "
	if len(holders) == 1 {
		end, leave = " ends", " leaves "
	}
	until, minutes := view.PodList(holders)+" on "+where(n, holders)+end, c.deadline(holders)
	if minutes > 0 {
		until += fmt.Sprintf(", by its deadline in %d min", minutes)
	}
	return Change{Kind: diagnosis.Wait, Cause: cause, Victims: holders, Manual: true, Risk: diagnosis.NoRisk, Minutes: minutes,
		Until: until,
		Title: "wait until " + view.PodList(holders) + leave + where(n, holders),
		Detail: func(ch *Change) {
			for _, p := range holders {
				ch.Commands = append(ch.Commands, fmt.Sprintf("kubectl -n %s get pod %s -w", p.Namespace, p.Name))
			}
		}}
}

// UntilStopped waits for holders of whom some have no end of their own: it says so, and until what.
func UntilStopped(cause diagnosis.CauseID, holders, endless []*corev1.Pod, where string) Change {
	are, does, them := "are", "they do not end by themselves", "them"
	if len(endless) == 1 {
		are, does, them = "is", "it does not end by itself", "it"
	}
	if slices.ContainsFunc(endless, func(p *corev1.Pod) bool { return makesAgain(p) != "" }) {
		does += ", and what makes " + them + " again is to be scaled down"
	}
	return Change{Kind: diagnosis.Wait, Cause: cause, Victims: holders, Manual: true, Risk: diagnosis.NoRisk,
		Title:  fmt.Sprintf("have somebody stop %s%s: %s", view.PodList(endless), where, does),
		Until:  fmt.Sprintf("%s%s %s stopped, which nothing says will be", view.PodList(endless), where, are),
		Detail: func(ch *Change) { ch.Commands = append(ch.Commands, whoHolds(holders)...) }}
}

// whoHolds are the commands that show the holders and who made them.
func whoHolds(holders []*corev1.Pod) []string {
	out := make([]string, len(holders))
	for i, p := range holders {
		out[i] = fmt.Sprintf("kubectl -n %s get pod %s -o wide --show-labels  # whose it is", p.Namespace, p.Name)
		if by := makesAgain(p); by != "" {
			out[i] += ": " + by + " makes another, until it, or what owns it, is scaled down"
		}
	}
	return out
}

// makesAgain is what makes another pod in place of one that is stopped, however it ended; empty for none.
func makesAgain(p *corev1.Pod) string {
	by := metav1.GetControllerOfNoCopy(p)
	if by == nil || by.Kind != "ReplicaSet" && by.Kind != "StatefulSet" {
		return ""
	}
	return by.Kind + "/" + by.Name
}

// deadline is in how many minutes the last of the pods has to have ended, by its own
// deadline or its Job's; 0 where one of them has none.
func (c *Workload) deadline(holders []*corev1.Pod) int {
	last := time.Duration(0)
	for _, p := range holders {
		left, known := time.Duration(0), false
		ends := func(since *metav1.Time, seconds *int64) {
			if since == nil || seconds == nil {
				return
			}
			if d := since.Add(time.Duration(*seconds) * time.Second).Sub(c.Cluster.State.Now); !known || d < left {
				left, known = d, true
			}
		}
		ends(p.Status.StartTime, p.Spec.ActiveDeadlineSeconds)
		if by := metav1.GetControllerOfNoCopy(p); by != nil && by.Kind == "Job" {
			for _, j := range c.Cluster.State.Jobs {
				if j.Namespace == p.Namespace && j.Name == by.Name {
					ends(j.Status.StartTime, j.Spec.ActiveDeadlineSeconds)
				}
			}
		}
		if !known {
			return 0
		}
		last = max(last, left)
	}
	return max(1, int(math.Ceil(last.Minutes())))
}

// Evicting are the words of a title behind what evicts pods too; empty for none.
func Evicting(victims []*corev1.Pod) string {
	switch len(victims) {
	case 0:
		return ""
	case 1:
		return ", evicting 1 pod"
	}
	return ", evicting " + strconv.Itoa(len(victims)) + " pods"
}
