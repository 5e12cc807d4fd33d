package whatif

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
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
}

// Preempt asks the scheduler's own preemption (DefaultPreemption, as it tries it on
// every node) which pods it would take for one that fits nowhere. The scheduler itself
// looks at a random part of more than 100 nodes, and may choose another of equal
// nodes. A pod that fits somewhere, or whose policy is Never, preempts nobody.
func (s *Snapshot) Preempt(ctx context.Context, pod *corev1.Pod, budgets []*policyv1.PodDisruptionBudget) (Preemption, error) {
	pod = counted(waiting(pod))
	by := s.plugins.preemption
	if ok, _ := by.PodEligibleToPreemptOthers(ctx, pod, nil); !ok {
		return Preemption{}, nil
	}
	state := framework.NewCycleState()
	result, status, _ := s.plugins.framework.RunPreFilterPlugins(ctx, state, pod)
	if !status.IsSuccess() {
		return Preemption{}, ctx.Err()
	}
	var nodes []fwk.NodeInfo
	for _, info := range s.lister.all() {
		if !result.AllNodes() && !result.NodeNames.Has(info.Node().Name) {
			continue
		}
		switch s.plugins.framework.RunFilterPlugins(ctx, state, pod, info).Code() {
		case fwk.Success:
			return Preemption{}, nil
		case fwk.Unschedulable:
			nodes = append(nodes, info)
		}
	}
	if len(nodes) == 0 {
		return Preemption{}, ctx.Err()
	}
	candidates, _, err := by.Evaluator.DryRunPreemption(ctx, state, pod, nodes, budgets, 0, int32(len(nodes)))
	if err != nil {
		return Preemption{}, fmt.Errorf("try preemption for pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	var best Preemption
	for _, c := range candidates {
		p := Preemption{Node: c.Name(), Victims: c.Victims().Pods, Violations: int(c.Victims().NumPDBViolations)}
		if best.Node == "" || p.compare(best) < 0 {
			best = p
		}
	}
	return best, nil
}

// compare orders as the scheduler does (preemption.go, pickOneNodeForPreemption):
// fewest violations, lowest of the highest priorities, lowest sum, fewest victims,
// latest start of the most important; then by name, where it takes any.
func (p Preemption) compare(q Preemption) int {
	ph, ps, pt := p.weight()
	qh, qs, qt := q.weight()
	return cmp.Or(cmp.Compare(p.Violations, q.Violations), cmp.Compare(ph, qh), cmp.Compare(ps, qs), cmp.Compare(len(p.Victims), len(q.Victims)), qt.Compare(pt), strings.Compare(p.Node, q.Node))
}

func (p Preemption) weight() (highest, sum int64, started time.Time) {
	for i, v := range p.Victims {
		prio := int64(corev1helpers.PodPriority(v))
		at := time.Time{}
		if v.Status.StartTime != nil {
			at = v.Status.StartTime.Time
		}
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
