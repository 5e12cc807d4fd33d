package decisions

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"

	"github.com/unpend/unpend/cmd/internal/program/console"
	"github.com/unpend/unpend/cmd/internal/terminal"
	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
	"github.com/unpend/unpend/watcher/incident"
)

// podFacts tell who pods are, for people who decide whether they may be stopped.
type podFacts struct{ world *view.Cluster }

// NewPodFacts reads a state; what pods do with their GPUs is asked of measure, where there
// is one.
func NewPodFacts(ctx context.Context, st *cluster.State, measure diagnosis.Measure) podFacts {
	w := view.New(st)
	w.Measure(ctx, measure)
	return podFacts{w}
}

// of is what is known of a pod that is stopped in some way.
func (f podFacts) of(name diagnosis.PodName, how string) terminal.Pod {
	p := f.world.State.Pod(name.Namespace, name.Name)
	if p == nil {
		return terminal.Pod{PodName: name, How: how, Unseen: true}
	}
	out := terminal.Pod{PodName: name, How: how, Node: p.Spec.NodeName, Holds: holds(p), Priority: corev1helpers.PodPriority(p), Started: p.CreationTimestamp.Time}
	if p.Status.StartTime != nil {
		out.Started = p.Status.StartTime.Time
	}
	if top := incident.Topmost(p, f.world.State.Owner); top.Kind != "Pod" {
		out.Owner = top.Kind + "/" + top.Name
	}
	f.work(&out, p)
	return out
}

// work says what the pod does with its GPUs, where somebody has looked.
func (f podFacts) work(p *terminal.Pod, pod *corev1.Pod) {
	use := f.world.Use(pod)
	switch {
	case use == diagnosis.Use{}:
	case use.Unknown != "":
		p.Work = "not known: " + use.Unknown
	case use.Stalled != nil:
		p.Idle, p.Work = new(true), "none: "+use.Stalled.Text()
	case use.Idle:
		p.Idle, p.Work = new(true), "none for "+view.Age(f.world.State.Now.Sub(use.Since))
	default:
		p.Idle, p.Work = new(false), fmt.Sprintf("up to %.0f %% within %s", use.Max, console.Lasting(use.Watched.Round(time.Minute)))
	}
}

// holds are the GPUs that a pod asks for.
func holds(p *corev1.Pod) string {
	var out []string
	for _, a := range view.AsksOf(p) {
		out = append(out, fmt.Sprintf("%d × %s", a.Count, a.Resource))
	}
	return strings.Join(out, ", ")
}

// Stops are all pods that a fix stops: those that it evicts first.
func (f podFacts) Stops(fix diagnosis.Fix) []terminal.Pod {
	out := make([]terminal.Pod, 0, len(fix.Cost.Evictions)+len(fix.Cost.Restarts))
	for _, p := range fix.Cost.Evictions {
		out = append(out, f.of(p, "evicted"))
	}
	for _, p := range fix.Cost.Restarts {
		out = append(out, f.of(p, "restarted"))
	}
	return out
}

// Holders are the pods that hold GPUs of some nodes, by node and name.
func (f podFacts) Holders(nodes []string) []terminal.Pod {
	out := []terminal.Pod{}
	for _, n := range f.world.SortedNodes() {
		if !slices.Contains(nodes, n.Name) {
			continue
		}
		for _, p := range n.Pods {
			if _, holds := n.Holder(p); holds {
				out = append(out, f.of(diagnosis.PodName{Namespace: p.Namespace, Name: p.Name}, ""))
			}
		}
	}
	return out
}
