package causes

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/rcatest"
	"github.com/unpend/unpend/rca/view"
)

func l4(name string, gpus int) sim.Node { return sim.Node{Name: name, Model: "L4", GPUs: gpus} }

func priority(class string, value int32) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.PriorityClassName, p.Spec.Priority = class, &value }
}

// uses has Prometheus say what pods do, and nothing of others.
func (w *world) uses(of map[string]diagnosis.Use) {
	w.measure = func(context.Context, time.Time, []diagnosis.Holder) (map[diagnosis.PodName]diagnosis.Use, error) {
		out := map[diagnosis.PodName]diagnosis.Use{}
		for name, u := range of {
			out[diagnosis.PodName{Namespace: "ml", Name: name}] = u
		}
		return out, nil
	}
}

// ofFour is a node whose machine is of a type with four GPUs.
func ofFour(n *corev1.Node, _ *nodeprobe.NodeGeometry) {
	n.Labels[corev1.LabelInstanceTypeStable] = "g6.24xlarge"
}

var idle = diagnosis.Use{Idle: true, Watched: 30 * time.Minute, Max: 1.5, Since: rcatest.Noon.Add(-time.Hour)}

// Whole GPUs: held, spread, too many, sick.
func TestWholeGPUs(t *testing.T) {
	rows{
		"held by others": {func(w *world) {
			w.gpuNode(l4("n1", 2))
			w.pod("h", "n1", "nvidia.com/gpu", 1)
			w.pod("w", "", "nvidia.com/gpu", 2)
		}, `
GPUsInUse proven n1: fewer whole GPUs are free than it asks
  Node/n1: allocatable nvidia.com/gpu=2, requested 1
`},
		"more than the node has": {func(w *world) {
			w.gpuNode(l4("n1", 2))
			w.pod("w", "", "nvidia.com/gpu", 3)
		}, `
GPURequestTooLarge proven n1: has fewer GPUs than one pod asks for
  Node/n1: capacity nvidia.com/gpu=2, one pod asks for 3
`},
		"more than the node announces, and as many as its type of machine has": {func(w *world) {
			w.unreported(l4("n1", 3), ofFour)
			w.pod("w", "", "nvidia.com/gpu", 4)
		}, `
GPUUnhealthy likely n1: announces fewer GPUs than its machine has: not all were found when its device plugin began
  Node/n1: label node.kubernetes.io/instance-type=g6.24xlarge, a type of machines that have more GPUs
  Node/n1: capacity nvidia.com/gpu=3
`},
		"more than its type of machine has": {func(w *world) {
			w.unreported(l4("n1", 3), ofFour)
			w.pod("w", "", "nvidia.com/gpu", 5)
		}, `
GPURequestTooLarge proven n1: has fewer GPUs than one pod asks for
  Node/n1: capacity nvidia.com/gpu=3, one pod asks for 5
`},
		"a probe has looked, and some are cut by a layout": {func(w *world) {
			w.gpuNode(l4("n1", 3), ofFour)
			w.unreported(l4("n2", 3), ofFour, func(n *corev1.Node, _ *nodeprobe.NodeGeometry) { n.Labels["nvidia.com/mig.config"] = "custom" })
			w.unreported(l4("n3", 3), ofFour, func(n *corev1.Node, _ *nodeprobe.NodeGeometry) {
				n.Status.Capacity["nvidia.com/mig-1g.5gb"] = resource.MustParse("7")
			})
			w.pod("w", "", "nvidia.com/gpu", 4)
		}, `
GPURequestTooLarge proven n1,n2,n3: has fewer GPUs than one pod asks for
  Node/n1: capacity nvidia.com/gpu=3, one pod asks for 4
  Node/n2: capacity nvidia.com/gpu=3, one pod asks for 4
  Node/n3: capacity nvidia.com/gpu=3, one pod asks for 4
`},
		"enough in total on no node": {func(w *world) {
			for _, name := range []string{"n1", "n2"} {
				w.gpuNode(l4(name, 2))
				w.pod("h"+name, name, "nvidia.com/gpu", 1)
			}
			w.pod("w", "", "nvidia.com/gpu", 2)
		}, `
GPUsFragmentedAcrossNodes proven n1,n2: 2 GPUs are free in total, no node has 2
  Node/n1: allocatable nvidia.com/gpu=2, requested 1
  Node/n2: allocatable nvidia.com/gpu=2, requested 1
`},
		"a node that is kept for another reason adds nothing to the total": {func(w *world) {
			w.gpuNode(l4("n1", 2))
			w.gpuNode(sim.Node{Name: "n2", Model: "L4", GPUs: 2, Cordoned: true})
			w.pod("h1", "n1", "nvidia.com/gpu", 1)
			w.pod("h2", "n2", "nvidia.com/gpu", 1)
			w.pod("w", "", "nvidia.com/gpu", 2)
		}, `
GPUsInUse proven n1,n2: fewer whole GPUs are free than it asks
  Node/n1: allocatable nvidia.com/gpu=2, requested 1
  Node/n2: allocatable nvidia.com/gpu=2, requested 1
NodeCordoned proven n2: cordoned
  Node/n2: spec.unschedulable is true
`},
		"a node with none free has its own cause": {func(w *world) {
			for _, name := range []string{"n1", "n2", "n3"} {
				w.gpuNode(l4(name, 2))
			}
			w.pod("h1", "n1", "nvidia.com/gpu", 1)
			w.pod("h2", "n2", "nvidia.com/gpu", 1)
			w.pod("h3", "n3", "nvidia.com/gpu", 2)
			w.pod("w", "", "nvidia.com/gpu", 2)
		}, `
GPUsInUse proven n3: all whole GPUs are held
  Node/n3: allocatable nvidia.com/gpu=2, requested 2
GPUsFragmentedAcrossNodes proven n1,n2: 2 GPUs are free in total, no node has 2
  Node/n1: allocatable nvidia.com/gpu=2, requested 1
  Node/n2: allocatable nvidia.com/gpu=2, requested 1
`},
		"the sick one would do": {func(w *world) {
			w.gpuNode(l4("n1", 2), func(n *corev1.Node, geo *nodeprobe.NodeGeometry) {
				geo.Report.GPUs[1].Healthy = false
				n.Status.Allocatable["nvidia.com/gpu"] = *quantity(1)
			})
			w.pod("h", "n1", "nvidia.com/gpu", 1)
			w.pod("w", "", "nvidia.com/gpu", 1)
		}, `
GPUUnhealthy proven n1: some of its devices are unhealthy
  Node/n1: capacity nvidia.com/gpu=2, allocatable 1
  NodeGeometry/n1: GPU 1 (GPU-n1-1) is unhealthy
`},
		"without a report the sick one is counted": {func(w *world) {
			w.unreported(l4("n1", 2), func(n *corev1.Node, _ *nodeprobe.NodeGeometry) { n.Status.Allocatable["nvidia.com/gpu"] = *quantity(1) })
			w.pod("w", "", "nvidia.com/gpu", 2)
		}, `
GPUUnhealthy proven n1: some of its devices are unhealthy
  Node/n1: capacity nvidia.com/gpu=2, allocatable 1
`},
		"all are sick": {func(w *world) {
			w.gpuNode(l4("n1", 2), func(n *corev1.Node, geo *nodeprobe.NodeGeometry) {
				geo.Report.GPUs[0].Healthy, geo.Report.GPUs[1].Healthy = false, false
				n.Status.Allocatable["nvidia.com/gpu"] = *quantity(0)
			})
			w.pod("w", "", "nvidia.com/gpu", 1)
		}, `
GPUUnhealthy proven n1: all of its devices are unhealthy
  Node/n1: capacity nvidia.com/gpu=2, allocatable 0
  NodeGeometry/n1: GPU 0 (GPU-n1-0) is unhealthy
  NodeGeometry/n1: GPU 1 (GPU-n1-1) is unhealthy
`},
		"the only one is sick": {func(w *world) {
			w.gpuNode(l4("n1", 1), func(n *corev1.Node, geo *nodeprobe.NodeGeometry) {
				geo.Report.GPUs[0].Healthy = false
				n.Status.Allocatable["nvidia.com/gpu"] = *quantity(0)
			})
			w.pod("w", "", "nvidia.com/gpu", 1)
		}, `
GPUUnhealthy proven n1: its only device is unhealthy
  Node/n1: capacity nvidia.com/gpu=1, allocatable 0
  NodeGeometry/n1: GPU 0 (GPU-n1-0) is unhealthy
`},
		"its cloud says so too": {func(w *world) {
			w.unreported(l4("n1", 2), func(n *corev1.Node, _ *nodeprobe.NodeGeometry) {
				n.Status.Allocatable["nvidia.com/gpu"] = *quantity(1)
				n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: "XIDErrors", Status: "True", Reason: "Found", Message: "79"}, corev1.NodeCondition{Type: "GPUMissing", Status: "False", Reason: "No"})
			})
			w.pod("w", "", "nvidia.com/gpu", 2)
		}, `
GPUUnhealthy proven n1: some of its devices are unhealthy
  Node/n1: capacity nvidia.com/gpu=2, allocatable 1
  Node/n1: condition XIDErrors=True: Found 79
`},
		"the sick one would not do": {func(w *world) {
			w.unreported(l4("n1", 3), func(n *corev1.Node, _ *nodeprobe.NodeGeometry) { n.Status.Allocatable["nvidia.com/gpu"] = *quantity(2) })
			w.pod("h", "n1", "nvidia.com/gpu", 2)
			w.pod("w", "", "nvidia.com/gpu", 2)
		}, `
GPUsInUse proven n1: all whole GPUs are held
  Node/n1: allocatable nvidia.com/gpu=2, requested 2
`},
		"no GPU anywhere": {func(w *world) {
			w.Nodes = append(w.Nodes, plainNode("n1"))
			w.pod("w", "", "nvidia.com/gpu", 1)
		}, `
GPURequestTooLarge likely n1: nothing says that any node of the cluster has a GPU
  Node/n1: no label, capacity or report speaks of a GPU
`},
		"no GPU here": {func(w *world) {
			w.Nodes = append(w.Nodes, plainNode("n0"))
			w.gpuNode(l4("n1", 1))
			w.pod("h", "n1", "nvidia.com/gpu", 1)
			w.pod("w", "", "nvidia.com/gpu", 1)
		}, `
GPUsInUse proven n1: all whole GPUs are held
  Node/n1: allocatable nvidia.com/gpu=1, requested 1
Unknown proven n0: nothing says that the node has a GPU
  Node/n0: no label, capacity or report speaks of a GPU
`},
		"CPU beside a free GPU": {func(w *world) {
			w.gpuNode(sim.Node{Name: "n1", Model: "L4", CPU: "4"})
			w.pod("h", "n1", "", 0)
			w.pod("w", "", "nvidia.com/gpu", 1, func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Requests["cpu"] = *quantity(4) })
		}, `
HostResourcesShort proven n1: not enough cpu
  Node/n1: 3 of cpu free, 4 asked
`},
		"no more pods": {func(w *world) {
			n := w.gpuNode(l4("n1", 1))
			n.Status.Allocatable["pods"] = *quantity(1)
			w.pod("h", "n1", "", 0)
			w.pod("w", "", "nvidia.com/gpu", 1)
		}, `
HostResourcesShort proven n1: no more pods are allowed on it
  Node/n1: 1 pods run, no more are allowed
`},
		"something that no rule knows": {func(w *world) {
			w.gpuNode(l4("n1", 1))
			w.pod("w", "", "example.com/fpga", 1)
		}, `
Unknown proven n1: no node offers example.com/fpga, which it asks: nothing has ever announced it
  Pod/ml/w: asks example.com/fpga, which no node offers
  Node/n1: no allocatable example.com/fpga
`},
	}.run(t)
}

// Who holds GPUs and could be made to leave: idle, or worth less.
func TestHolders(t *testing.T) {
	classes := func(w *world) {
		w.PriorityClasses = append(w.PriorityClasses, &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "all"}, GlobalDefault: true, Value: 5},
			&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "high"}, Value: 5}, &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "low"}, Value: 1})
	}
	never := func(p *corev1.Pod) {
		policy := corev1.PreemptNever
		p.Spec.PreemptionPolicy = &policy
	}
	rows{
		"idle holders have enough": {func(w *world) {
			w.gpuNode(l4("n1", 2))
			w.pod("cpu", "n1", "", 0)
			w.pod("h1", "n1", "nvidia.com/gpu", 1)
			w.pod("h2", "n1", "nvidia.com/gpu", 1)
			w.uses(map[string]diagnosis.Use{"h1": idle, "cpu": idle})
			w.pod("w", "", "nvidia.com/gpu", 1)
		}, `
IdleGPUHolders likely n1: GPUs are held by pods that did no GPU work for 30 min
  Node/n1: allocatable nvidia.com/gpu=2, requested 2
  Pod/ml/h1: holds 1 of nvidia.com/gpu; no GPU work seen since 2026-11-20 11:00 UTC, at most 1.5 % in the last 30 min (Prometheus)
`},
		"idle holders have too little": {func(w *world) {
			w.gpuNode(l4("n1", 2))
			w.pod("h1", "n1", "nvidia.com/gpu", 1)
			w.pod("h2", "n1", "nvidia.com/gpu", 1)
			w.uses(map[string]diagnosis.Use{"h1": idle})
			w.pod("w", "", "nvidia.com/gpu", 2)
		}, `
GPUsInUse proven n1: all whole GPUs are held
  Node/n1: allocatable nvidia.com/gpu=2, requested 2
`},
		"nobody who was watched is idle": {func(w *world) {
			w.gpuNode(l4("n1", 1))
			w.pod("h1", "n1", "nvidia.com/gpu", 1)
			w.uses(map[string]diagnosis.Use{"h1": {Watched: time.Hour, Max: 80}})
			w.pod("w", "", "nvidia.com/gpu", 1)
		}, `
GPUsInUse proven n1: all whole GPUs are held
  Node/n1: allocatable nvidia.com/gpu=1, requested 1
`},
		"a class that is never preempted for, over lower ones": {func(w *world) {
			classes(w)
			w.gpuNode(l4("n1", 2))
			w.pod("h1", "n1", "nvidia.com/gpu", 1, priority("low", 1))
			w.pod("h2", "n1", "nvidia.com/gpu", 1, priority("high", 5))
			w.pod("w", "", "nvidia.com/gpu", 1, priority("high", 5), never)
		}, `
PreemptionBlocked proven n1: held by pods of a lower priority, which its policy never preempts
  Pod/ml/w: priority 5 by class "high", preemptionPolicy Never
  Pod/ml/h1: priority 1, holds 1 of nvidia.com/gpu
`},
		"it would not preempt its like": {func(w *world) {
			classes(w)
			w.gpuNode(l4("n1", 1))
			w.pod("h1", "n1", "nvidia.com/gpu", 1, priority("high", 5))
			w.pod("w", "", "nvidia.com/gpu", 1, priority("high", 5), never)
		}, `
GPUsInUse proven n1: all whole GPUs are held
  Node/n1: allocatable nvidia.com/gpu=1, requested 1
`},
		"a chosen class does not preempt its like": {func(w *world) {
			classes(w)
			w.gpuNode(l4("n1", 1))
			w.pod("h1", "n1", "nvidia.com/gpu", 1, priority("high", 5))
			w.pod("w", "", "nvidia.com/gpu", 1, priority("high", 5))
		}, `
PreemptionBlocked proven n1: held by pods of the same priority, which are not preempted for it
  Pod/ml/w: priority 5 by class "high"
  Pod/ml/h1: priority 5, holds 1 of nvidia.com/gpu
`},
		"the default class says nothing of worth": {func(w *world) {
			classes(w)
			w.gpuNode(l4("n1", 1))
			w.pod("h1", "n1", "nvidia.com/gpu", 1, priority("all", 5))
			w.pod("w", "", "nvidia.com/gpu", 1, priority("all", 5))
		}, `
GPUsInUse proven n1: all whole GPUs are held
  Node/n1: allocatable nvidia.com/gpu=1, requested 1
`},
		"what it would preempt is no reason": {func(w *world) {
			classes(w)
			w.gpuNode(l4("n1", 1))
			w.pod("h1", "n1", "nvidia.com/gpu", 1, priority("low", 1))
			w.pod("w", "", "nvidia.com/gpu", 1, priority("high", 5))
		}, `
GPUsInUse proven n1: all whole GPUs are held
  Node/n1: allocatable nvidia.com/gpu=1, requested 1
`},
		"its like hold too little": {func(w *world) {
			classes(w)
			w.gpuNode(l4("n1", 2))
			w.pod("h1", "n1", "nvidia.com/gpu", 1, priority("high", 5))
			w.pod("h2", "n1", "nvidia.com/gpu", 1, priority("higher", 9))
			w.pod("w", "", "nvidia.com/gpu", 2, priority("high", 5))
		}, `
GPUsInUse proven n1: all whole GPUs are held
  Node/n1: allocatable nvidia.com/gpu=2, requested 2
`},
		"more than the node has is no matter of priority": {func(w *world) {
			classes(w)
			w.gpuNode(l4("n1", 1))
			w.pod("h1", "n1", "nvidia.com/gpu", 1, priority("high", 5))
			w.pod("w", "", "nvidia.com/gpu", 2, priority("high", 5))
		}, `
GPURequestTooLarge proven n1: has fewer GPUs than one pod asks for
  Node/n1: capacity nvidia.com/gpu=1, one pod asks for 2
`},
		"preempted for it and not gone": {func(w *world) {
			classes(w)
			w.gpuNode(l4("n1", 1))
			leaving := func(reason string, gone bool) func(*corev1.Pod) {
				return func(p *corev1.Pod) {
					p.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: reason}}
					if gone {
						p.DeletionTimestamp = &metav1.Time{Time: rcatest.Noon.Add(30 * time.Second)}
					}
				}
			}
			w.pod("h1", "n1", "nvidia.com/gpu", 1, priority("low", 1), leaving(corev1.PodReasonPreemptionByScheduler, true))
			w.pod("h2", "n1", "", 0, priority("low", 1), leaving(corev1.PodReasonPreemptionByScheduler, false))
			w.pod("h3", "n1", "", 0, priority("low", 1), leaving("EvictionByEvictionAPI", true))
			w.pod("h4", "n1", "", 0, priority("high", 5), leaving(corev1.PodReasonPreemptionByScheduler, true))
			w.pod("w", "", "nvidia.com/gpu", 1, priority("high", 5)).Status.NominatedNodeName = "n1"
		}, `
GPUsInUse proven n1: all whole GPUs are held
  Node/n1: allocatable nvidia.com/gpu=1, requested 1
PreemptionBlocked proven : 1 pod preempted for it on n1 and not gone yet
  Pod/ml/w: status.nominatedNodeName n1
  Pod/ml/h1: preempted by the scheduler, to be gone by 12:00:30
`},
		"preempted for it, and its time is long over": {func(w *world) {
			classes(w)
			w.gpuNode(l4("n1", 1))
			w.pod("h1", "n1", "nvidia.com/gpu", 1, priority("low", 1), func(p *corev1.Pod) {
				p.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: corev1.PodReasonPreemptionByScheduler}}
				p.DeletionTimestamp = &metav1.Time{Time: rcatest.Noon.Add(-5 * time.Minute)}
			})
			w.pod("w", "", "nvidia.com/gpu", 1, priority("high", 5)).Status.NominatedNodeName = "n1"
		}, `
GPUsInUse proven n1: all whole GPUs are held; ml/h1 should have ended
  Node/n1: allocatable nvidia.com/gpu=1, requested 1
  Pod/ml/h1: should have ended at 2026-11-20 11:55:00 UTC, and is still on n1
PreemptionBlocked proven : 1 pod preempted for it on n1 and not gone, though the time of ml/h1 is over
  Pod/ml/w: status.nominatedNodeName n1
  Pod/ml/h1: preempted by the scheduler, to be gone by 11:55:00
`},
	}.run(t)
}

// What is not known of the GPU work of holders is said, and by how many.
func TestUnmeasuredHolders(t *testing.T) {
	for name, c := range map[string]struct {
		holders int64 // of one GPU each, on a node of two
		uses    map[string]diagnosis.Use
		err     error
		want    string
	}{
		"nobody holds any":        {0, nil, nil, ""},
		"nobody was asked":        {2, nil, nil, "GPU work: " + view.NoMeasure + "; idle holders are not told apart"},
		"nobody could say":        {2, nil, errors.New("gone"), "GPU work: gone; idle holders are not told apart"},
		"all is known":            {2, map[string]diagnosis.Use{"h0": idle, "h1": {Max: 9}}, nil, ""},
		"one is not known":        {2, map[string]diagnosis.Use{"h0": idle, "h1": {Unknown: "no series"}}, nil, "GPU work of ml/h1: no series; not taken for idle"},
		"two are not known":       {2, map[string]diagnosis.Use{"h0": {Unknown: "no series"}, "h1": {Unknown: "none"}}, nil, "GPU work of 2 pods (ml/h0: no series, …); not taken for idle"},
		"idle, whatever was said": {2, map[string]diagnosis.Use{"h0": {Idle: true, Unknown: "x"}, "h1": idle}, nil, ""},
	} {
		w := newWorld()
		w.gpuNode(l4("n1", 2))
		for i := range c.holders {
			w.pod("h"+string(rune('0'+i)), "n1", "nvidia.com/gpu", 1)
		}
		if c.uses != nil {
			w.uses(c.uses)
		}
		if c.err != nil {
			w.measure = func(context.Context, time.Time, []diagnosis.Holder) (map[diagnosis.PodName]diagnosis.Use, error) {
				return nil, c.err
			}
		}
		asks := int64(2)
		if c.holders == 0 {
			asks = 3
		}
		w.pod("w", "", "nvidia.com/gpu", asks)
		got := w.open(t).Unmeasured()
		if len(got) > 1 || len(got) == 0 && c.want != "" || len(got) == 1 && got[0] != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
