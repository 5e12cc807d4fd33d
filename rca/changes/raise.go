package changes

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"

	"github.com/unpend/unpend/rca/causes"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/view"
	"github.com/unpend/unpend/rca/whatif"
)

const (
	// maxRaised bounds the waiting pods of one workload that preemption is tried for.
	maxRaised = 16
	// MaxClasses bounds the classes tried: one of the pod's own value, that preempts
	// where the pod's does not, and the next above. Pods that this one may not take, no
	// higher one may take.
	MaxClasses = 2
)

// Raisable says whether another priority could be what the pod lacks: what it asks is
// held on some node, and nothing of its own keeps it from all.
func (c *Bench) Raisable() bool {
	if c.Unborn || c.Gang != nil || c.Elsewhere(c.Pod) != "" || slices.ContainsFunc(c.Own, func(r causes.PodRule) bool { return !r.Aside }) {
		return false
	}
	if !slices.Contains([]string{"Deployment", "StatefulSet", "Job", "Pod"}, c.Incident.Workload.Kind) {
		return false // a ReplicaSet's own pods stay as they are
	}
	for _, n := range c.Judged {
		if slices.Contains([]diagnosis.CauseID{diagnosis.PreemptionBlocked, diagnosis.GPUsInUse, diagnosis.MIGInstancesInUse}, n.Shortage()) {
			return true
		}
	}
	return false
}

// ShortOn is the cause of what a node lacks; empty when it lacks nothing.
func (c *Bench) ShortOn(n *view.Node) diagnosis.CauseID {
	for _, v := range c.Judged {
		if v.Name == n.Name {
			return v.Shortage()
		}
	}
	return ""
}

// Classes are the PriorityClasses above the pod's priority that a workload may be
// given, lowest first: those that preempt, and not the system's own.
func (c *Bench) Classes() []*schedulingv1.PriorityClass {
	own := corev1helpers.PodPriority(c.Pod)
	var out []*schedulingv1.PriorityClass
	for _, k := range c.Cluster.State.PriorityClasses {
		never := k.PreemptionPolicy != nil && *k.PreemptionPolicy == corev1.PreemptNever
		above := k.Value > own || k.Value == own && c.NeverPreempts()
		if above && !never && k.Value < view.SystemCritical && !strings.HasPrefix(k.Name, "system-") && k.Name != c.Pod.Spec.PriorityClassName && quotaAllows(c.Cluster, c.Pod, k) {
			out = append(out, k)
		}
	}
	slices.SortFunc(out, func(a, b *schedulingv1.PriorityClass) int {
		return cmp.Or(cmp.Compare(a.Value, b.Value), strings.Compare(a.Name, b.Name))
	})
	return out
}

// inClass is a pod as admission would make it of that class (plugin/pkg/admission/priority).
func inClass(p *corev1.Pod, class *schedulingv1.PriorityClass) {
	value := class.Value
	p.Spec.PriorityClassName, p.Spec.Priority, p.Spec.PreemptionPolicy = class.Name, &value, class.PreemptionPolicy
}

// quotaAllows says whether no quota that counts pods of the class, and did not count
// that pod so far, would refuse it.
func quotaAllows(w *view.Cluster, p *corev1.Pod, class *schedulingv1.PriorityClass) bool {
	raised := p.DeepCopy()
	inClass(raised, class)
	for _, q := range w.State.Quotas {
		if q.Namespace != raised.Namespace {
			continue
		}
		before, _, was := whatif.QuotaUse(q, whatif.WithDefaults(p), w.State.Now)
		use, demand, is := whatif.QuotaUse(q, whatif.WithDefaults(raised), w.State.Now)
		if was != nil || is != nil || demand != "" {
			return false
		}
		for name, asked := range use {
			if _, counted := before[name]; counted {
				continue
			}
			used := q.Status.Used[name].DeepCopy()
			used.Add(asked)
			if used.Cmp(q.Status.Hard[name]) > 0 {
				return false
			}
		}
	}
	return true
}

// Preempts asks the scheduler's own preemption, for each waiting pod of the workload
// in turn, which pods it would take; none when one of the waiting would not be helped.
func (c *Bench) Preempts(ctx context.Context, class *schedulingv1.PriorityClass) (all whatif.Preemption, err error) {
	wait := c.WaitingPods()
	if len(wait) != c.Incident.Waiting || len(wait) > maxRaised {
		return all, nil
	}
	err = whatif.Try(c.Cluster.Snapshot, func(s *whatif.Snapshot) error {
		for _, n := range c.Cluster.Unsound() {
			s.SetNode(n.Sound(nil))
		}
		for _, p := range wait {
			p = p.DeepCopy()
			inClass(p, class)
			if at, err := s.Place(ctx, p); err != nil || at != "" {
				if err != nil {
					return err
				}
				continue // who left for the one before made room for it too
			}
			taken, err := s.Preempt(ctx, p, c.Cluster.State.PDBs)
			if err != nil {
				return err
			}
			mine, may := c.mayGo(append(slices.Clone(taken.Victims), taken.Or...))
			if taken.Node == "" || taken.Violations > 0 || !may {
				all.Victims = nil
				return nil
			}
			all.Victims, all.Or = append(all.Victims, mine[:len(taken.Victims)]...), append(all.Or, mine[len(taken.Victims):]...)
			for _, v := range taken.Victims {
				s.DeletePod(v.Namespace, v.Name)
			}
			if _, err := s.Place(ctx, p); err != nil {
				return err
			}
			all.Node = cmp.Or(all.Node, taken.Node)
		}
		return nil
	})
	slices.SortFunc(all.Or, func(a, b *corev1.Pod) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	all.Or = slices.Compact(slices.DeleteFunc(all.Or, func(p *corev1.Pod) bool { return slices.Contains(all.Victims, p) }))
	return all, err
}

// mayGo finds pods in the cluster, and says whether the scheduler may take every one of them
// for this one.
func (c *Bench) mayGo(pods []*corev1.Pod) (mine []*corev1.Pod, may bool) {
	for _, v := range pods {
		p := c.Cluster.State.Pod(v.Namespace, v.Name)
		if p == nil || !c.MayLeave(p) || len(c.Cluster.Together(p)) > 1 {
			return nil, false
		}
		mine = append(mine, p)
	}
	return mine, true
}

// fewNamed is how many pods a title names that may be taken in place of others.
const fewNamed = 3

// orOthers says which pods the scheduler may take as well: nobody can tell which of them it
// will be.
func orOthers(p whatif.Preemption) string {
	if len(p.Or) == 0 {
		return ""
	}
	var names []string
	for _, o := range p.Or[:min(len(p.Or), fewNamed)] {
		names = append(names, o.Namespace+"/"+o.Name)
	}
	if more := len(p.Or) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return " (or, the same to it, " + strings.Join(names, " or ") + ")"
}

// ByItself is that the scheduler preempts without anybody's doing: it may break a
// budget where nothing else helps, and nobody here does that for it.
func (c *Bench) ByItself(p whatif.Preemption) edit.Change {
	who := view.PodList(p.Victims) + orOthers(p)
	ch := edit.Change{Kind: diagnosis.Wait, Cause: c.ShortOn(c.Node(p.Node)), Victims: p.Victims, Or: p.Or, Manual: true, Risk: diagnosis.NoRisk, Until: "the scheduler has preempted " + who,
		Title: fmt.Sprintf("the scheduler preempts %s on %s by itself", who, p.Node), Commands: []string{fmt.Sprintf("kubectl -n %s get pod %s -w", c.Pod.Namespace, c.Pod.Name)}}
	if p.Violations > 0 {
		ch.Title += ", which breaks a disruption budget"
	}
	return ch
}

// Raise sets the class in the workload's template. Nobody is evicted by it: the
// scheduler takes the pods that are named as what it costs. Where it may take others, which
// nobody can promise, a person does it.
func (c *Bench) Raise(cause diagnosis.CauseID, class *schedulingv1.PriorityClass, p whatif.Preemption) edit.Change {
	ch := edit.Change{Kind: diagnosis.RaisePriority, Cause: cause, Victims: p.Victims, Or: p.Or, Minutes: 1, Risk: diagnosis.MediumRisk,
		Title: fmt.Sprintf("give %s priority %d by class %s: the scheduler preempts %s%s", c.WorkloadName(), class.Value, class.Name, view.PodList(p.Victims), orOthers(p)),
		Pod:   func(p *corev1.Pod) { inClass(p, class) }}
	c.EditTemplate(&ch, map[string]any{"priorityClassName": class.Name, "priority": nil, "preemptionPolicy": nil}, false)
	ch.Manual = ch.Manual || len(p.Or) > 0
	if len(c.Cluster.State.LostBy(p.Or).Pods) > 0 {
		ch.Risk = diagnosis.HighRisk // it may be one that nobody makes again
	}
	if runs := len(c.RunningPods()); runs > 0 {
		ch.Untestable = fmt.Sprintf("the rollout recreates %s, each then with the right to preempt", view.CountOf(runs, "running pod"))
	}
	return ch
}
