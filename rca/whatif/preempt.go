package whatif

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
)

// Preemption is the pods that the scheduler would take from a node for another pod.
type Preemption struct {
	Node    string // empty where nobody's leaving helps
	Victims []*corev1.Pod
	// Violations are the victims that a budget guards: the scheduler keeps budgets
	// as long as it can, and breaks them else.
	Violations int
	// Or are other pods that the scheduler may take in place of some of these: those of one
	// priority that began in the same second are the same to it, and so are nodes that cost
	// it the same.
	Or []*corev1.Pod
}

// Preempt asks the scheduler's own preemption (DefaultPreemption, as it tries it on
// every node) which pods it would take for one that fits nowhere. The scheduler itself
// looks at a random part of more than 100 nodes. A pod that fits somewhere, or whose
// policy is Never, preempts nobody.
func (s *Snapshot) Preempt(ctx context.Context, pod *corev1.Pod, budgets []*policyv1.PodDisruptionBudget) (Preemption, error) {
	pod = counted(waiting(pod))
	all, err := s.preemptions(ctx, pod, budgets, "")
	if err != nil || len(all) == 0 {
		return Preemption{}, err
	}
	slices.SortFunc(all, func(p, q Preemption) int {
		return cmp.Or(p.compare(q), strings.Compare(p.Node, q.Node))
	})
	best := all[0]
	for _, p := range all {
		if p.compare(best) != 0 {
			break
		}
		if p.Node != best.Node {
			best.Or = append(best.Or, p.Victims...)
		}
		swapped, err := s.swapped(ctx, pod, budgets, p)
		if err != nil {
			return Preemption{}, err
		}
		best.Or = append(best.Or, swapped...)
	}
	return best, nil
}

// preemptions are what the scheduler would take on each node where that helps; of one alone
// where only names it.
func (s *Snapshot) preemptions(ctx context.Context, pod *corev1.Pod, budgets []*policyv1.PodDisruptionBudget, only string) ([]Preemption, error) {
	by := s.plugins.preemption
	if ok, _ := by.PodEligibleToPreemptOthers(ctx, pod, nil); !ok {
		return nil, nil
	}
	state := framework.NewCycleState()
	result, status, _ := s.plugins.framework.RunPreFilterPlugins(ctx, state, pod)
	if !status.IsSuccess() {
		return nil, ctx.Err()
	}
	var nodes []fwk.NodeInfo
	for _, info := range s.lister.all() {
		if name := info.Node().Name; !result.AllNodes() && !result.NodeNames.Has(name) || only != "" && name != only {
			continue
		}
		switch s.plugins.framework.RunFilterPlugins(ctx, state, pod, info).Code() {
		case fwk.Success:
			return nil, nil
		case fwk.Unschedulable:
			nodes = append(nodes, info)
		}
	}
	if len(nodes) == 0 {
		return nil, ctx.Err()
	}
	candidates, _, err := by.Evaluator.DryRunPreemption(ctx, state, pod, nodes, budgets, 0, int32(len(nodes)))
	if err != nil {
		return nil, fmt.Errorf("try preemption for pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	out := make([]Preemption, 0, len(candidates))
	for _, c := range candidates {
		out = append(out, Preemption{Node: c.Name(), Victims: c.Victims().Pods, Violations: int(c.Victims().NumPDBViolations)})
	}
	return out, nil
}

// maxSwapped bounds the pods of one node that are tried in a victim's place.
const maxSwapped = 32

// swapped are the pods that the scheduler may take from the node in place of a victim. It
// puts back those of most importance first and sorts equals in no order, so each of these
// comes last once.
func (s *Snapshot) swapped(ctx context.Context, pod *corev1.Pod, budgets []*policyv1.PodDisruptionBudget, p Preemption) (out []*corev1.Pod, _ error) {
	equals := s.equals(p)
	for _, q := range equals[:min(len(equals), maxSwapped)] {
		err := Try(s, func(s *Snapshot) error {
			last, at := q.DeepCopy(), metav1.NewTime(began(q).Add(time.Nanosecond))
			last.Status.StartTime = &at
			s.SetPod(last)
			now, err := s.preemptions(ctx, pod, budgets, p.Node)
			if len(now) > 0 && slices.ContainsFunc(now[0].Victims, named(q)) {
				out = append(out, q)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// equals are the node's pods that are not taken and are the same to the scheduler as one that is.
func (s *Snapshot) equals(p Preemption) (out []*corev1.Pod) {
	for _, info := range s.nodes[p.Node].GetPods() {
		q := info.GetPod()
		same := func(v *corev1.Pod) bool {
			return corev1helpers.PodPriority(v) == corev1helpers.PodPriority(q) && began(v).Equal(began(q))
		}
		if slices.ContainsFunc(p.Victims, same) && !slices.ContainsFunc(p.Victims, named(q)) {
			out = append(out, q)
		}
	}
	return out
}

func named(q *corev1.Pod) func(*corev1.Pod) bool {
	return func(p *corev1.Pod) bool { return p.Namespace == q.Namespace && p.Name == q.Name }
}

// compare orders as the scheduler does (preemption.go, pickOneNodeForPreemption):
// fewest violations, lowest of the highest priorities, lowest sum, fewest victims,
// latest start of the most important. Of equals it takes any.
func (p Preemption) compare(q Preemption) int {
	ph, ps, pt := p.weight()
	qh, qs, qt := q.weight()
	return cmp.Or(cmp.Compare(p.Violations, q.Violations), cmp.Compare(ph, qh), cmp.Compare(ps, qs), cmp.Compare(len(p.Victims), len(q.Victims)), qt.Compare(pt))
}

// unstarted is when a pod began that has not begun yet: after all others.
var unstarted = time.Unix(1<<40, 0)

func began(p *corev1.Pod) time.Time {
	if p.Status.StartTime == nil {
		return unstarted
	}
	return p.Status.StartTime.Time
}

func (p Preemption) weight() (highest, sum int64, started time.Time) {
	for i, v := range p.Victims {
		prio := int64(corev1helpers.PodPriority(v))
		at := began(v)
		if i == 0 || prio > highest || prio == highest && at.Before(started) {
			highest, started = prio, at
		}
		sum += prio + 1<<31 // the number counts too where priorities are negative
	}
	return highest, sum, started
}

func preemptionOf(made map[string]fwk.Plugin) (*defaultpreemption.DefaultPreemption, error) {
	pl, ok := made[defaultpreemption.Name].(*defaultpreemption.DefaultPreemption)
	if !ok {
		return nil, errors.New("the default profile has no preemption")
	}
	return pl, nil
}

// still is a snapshot that nobody changes: gangs preempt as a whole by changing
// theirs, single pods do not.
type still struct{ fwk.SharedLister }

var errStill = errors.New("this snapshot is changed by forks alone")

func (still) StartMutations() error                            { return errStill }
func (still) EndMutations() error                              { return errStill }
func (still) AddPod(fwk.PodInfo, string) error                 { return errStill }
func (still) RemovePod(klog.Logger, *corev1.Pod, string) error { return errStill }

// unnominated knows of no pod that was promised a node.
type unnominated struct{}

func (unnominated) AddNominatedPod(klog.Logger, fwk.PodInfo, *fwk.NominatingInfo) {}
func (unnominated) DeleteNominatedPodIfExists(*corev1.Pod)                        {}
func (unnominated) UpdateNominatedPod(klog.Logger, *corev1.Pod, fwk.PodInfo)      {}
func (unnominated) NominatedPodsForNode(string) []fwk.PodInfo                     { return nil }
