package gangs

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/unpend/unpend/rca/view"
	"github.com/unpend/unpend/rca/whatif"
	"github.com/unpend/unpend/watcher/incident"
)

// scarce is what members hold and wait for, and how much of it one asks; of CPU in thousandths.
type scarce struct {
	name  corev1.ResourceName
	count int64
	host  bool
}

// scarce is the device that is asked; of a pod that asks for none, the memory or CPU that a node has
// too little of.
func (c *Workload) scarce() *scarce {
	if len(c.Asks) > 0 {
		return &scarce{name: c.Asks[0].Resource, count: c.Asks[0].Count}
	}
	for _, name := range []corev1.ResourceName{corev1.ResourceMemory, corev1.ResourceCPU} {
		s := &scarce{name: name, host: true}
		s.count = s.of(c.Wants)
		if s.count > 0 && slices.ContainsFunc(c.Verdict.Nodes, func(v whatif.NodeVerdict) bool {
			return !forbidden(v) && slices.ContainsFunc(v.Blockers, func(b whatif.Blocker) bool { return b.Reason == "Insufficient "+string(name) })
		}) {
			return s
		}
	}
	return nil
}

// forbidden says whether more than what is free keeps the pod from a node: it has no use for what others
// leave there.
func forbidden(v whatif.NodeVerdict) bool {
	return slices.ContainsFunc(v.Blockers, func(b whatif.Blocker) bool { return b.Plugin != "NodeResourcesFit" })
}

func (s *scarce) of(list corev1.ResourceList) int64 {
	q := list[s.name]
	if s.name == corev1.ResourceCPU {
		return q.MilliValue()
	}
	return q.Value()
}

// amount is so much of it, as people write it.
func (s *scarce) amount(n int64) string {
	switch s.name {
	case corev1.ResourceCPU:
		return resource.NewMilliQuantity(n, resource.DecimalSI).String()
	case corev1.ResourceMemory:
		return resource.NewQuantity(n, resource.BinarySI).String()
	}
	return fmt.Sprint(n)
}

// stays says whether a pod of somebody else keeps what it holds however long one waits: a server
// ends with its node, and a member of a workload that waits for the rest of it as this one does.
func (s *scarce) stays(p *corev1.Pod, stuck map[*corev1.Pod]incident.Ref) bool {
	if _, is := stuck[p]; is {
		return true
	}
	return s.host && !view.EndsAlone(p)
}

// begun are the labels by which members that work are told from those that only lead them, of kinds
// that begin with some of their members.
var begun = map[string]string{"spark-role": "executor", "ray.io/node-type": "worker", "dask.org/component": "worker"}

// works says whether members of an elastic workload run that do its work: it goes on with fewer. Who has a
// node and is Pending still has not begun: as long as an init container waits for the head.
func works(members []*corev1.Pod) bool {
	return slices.ContainsFunc(members, func(p *corev1.Pod) bool {
		for key, value := range begun {
			if p.Labels[key] == value && p.Status.Phase != corev1.PodPending {
				return true
			}
		}
		return false
	})
}

// unbegun says whether none of the members has begun that have a node: they hold what they ask for, and
// wait for one that has none.
func unbegun(members []*corev1.Pod) bool {
	return len(members) > 0 && !slices.ContainsFunc(members, func(p *corev1.Pod) bool { return p.Status.Phase != corev1.PodPending })
}

// stuckToo are pods of other workloads that hold a part of what their members need and wait for the
// rest of the same, each with its workload: none of those ends before all of its members run.
func (c *Workload) stuckToo(s *scarce, mine incident.Ref) map[*corev1.Pod]incident.Ref {
	wait := map[incident.Ref]bool{}
	for _, p := range c.Cluster.State.Pods {
		if _, _, waits := incident.Waiting(p); !waits || s.of(view.PodRequests(p)) == 0 {
			continue
		}
		of := c.Cluster.MemberOf(p)
		if _, meet := view.MembersMeet(of.Kind); meet && of != mine && view.GroupOf(p) == "" {
			wait[of] = true
		}
	}
	out := map[*corev1.Pod]incident.Ref{}
	for of := range wait {
		members := c.Cluster.Running(of)
		if works(members) {
			continue
		}
		for _, p := range members {
			out[p] = of
		}
	}
	return out
}

// mostOthers bounds how many other workloads are named.
const mostOthers = 3

// together says of several workloads that each waits for the rest of what it holds a part of.
func (s *scarce) together(mine incident.Ref, others map[incident.Ref]bool) string {
	names := slices.SortedFunc(maps.Keys(others), func(a, b incident.Ref) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Kind, b.Kind))
	})
	which := make([]string, 0, mostOthers)
	for _, of := range names[:min(len(names), mostOthers)] {
		which = append(which, of.Name)
	}
	and := strings.Join(which, ", ")
	if len(names) > mostOthers {
		and += " and others"
	}
	return fmt.Sprintf("%s and %s each hold a part of the %s that their members need and wait for the rest, and none of them ends before its members run", mine.Name, and, s.name)
}
