package rca

import (
	"context"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Holder is a pod that holds GPUs, with what its GPU work is looked up by.
type Holder struct {
	PodName
	// Devices is how many GPUs or MIG instances it holds at least. Each has to be
	// measured before the pod may count as idle.
	Devices int
	// MIG: they are MIG instances, of which a GPU's own utilisation tells nothing.
	MIG bool
	// Running is since when all its containers with GPUs run without a restart; zero
	// when that is not told, or one does not run.
	Running time.Time
}

// Use is what a pod did with its GPUs. The zero value tells nothing.
type Use struct {
	// Idle: each of its GPUs was watched for the whole of Watched, and none worked.
	Idle    bool
	Watched time.Duration
	// Max is the most that any of its GPUs worked in that time, in percent.
	Max float64
	// Since is from when on no work was seen, for a pod that is idle.
	Since time.Time
	// Unknown says why nothing can be told; empty when it can.
	Unknown string
}

// Measure tells what pods did with their GPUs in the time before at. Whom it leaves
// out nothing is known of. It must come back within a few seconds; an error means
// that nothing could be measured, and the diagnosis goes on without.
type Measure func(ctx context.Context, at time.Time, holders []Holder) (map[PodName]Use, error)

// noMeasure is said where nobody could be asked.
const noMeasure = "no Prometheus is configured"

// measure looks up what the holders of GPUs do with them, once for all incidents; true
// when something is known now that was not.
func (w *world) measure(ctx context.Context, ask Measure) bool {
	if w.measured {
		return false
	}
	w.measured = true
	if ask == nil {
		w.unmeasured = noMeasure
		return false
	}
	uses, err := ask(ctx, w.state.Now, w.holders())
	if err != nil {
		w.unmeasured = err.Error()
		return false
	}
	w.uses = uses
	return true
}

// holders lists the pods that hold GPUs, by node.
func (w *world) holders() []Holder {
	var out []Holder
	for _, n := range w.sortedNodes() {
		for _, p := range n.pods {
			if h, ok := n.holder(p); ok {
				out = append(out, h)
			}
		}
	}
	return out
}

func (n *nodeView) holder(p *corev1.Pod) (Holder, bool) {
	h := Holder{PodName: PodName{p.Namespace, p.Name}, Running: runningSince(p),
		MIG: strings.Contains(n.Labels["nvidia.com/gpu.product"], "-MIG-")} // strategy single: instances are nvidia.com/gpu
	holds := false
	for name, q := range n.requests[p] {
		if !isGPU(name) || q.IsZero() {
			continue
		}
		holds = true
		h.MIG = h.MIG || strings.HasPrefix(string(name), migPrefix)
		if name != wholeGPU+SharedSuffix { // shares may all be of one GPU
			h.Devices += int(q.Value())
		}
	}
	h.Devices = max(h.Devices, 1)
	return h, holds
}

// runningSince is the last start of a pod or of one of its containers with GPUs.
func runningSince(p *corev1.Pod) time.Time {
	if p.Status.StartTime == nil {
		return time.Time{}
	}
	since := p.Status.StartTime.Time
	gpu := map[string]bool{}
	for _, k := range p.Spec.Containers {
		for _, list := range []corev1.ResourceList{k.Resources.Limits, k.Resources.Requests} {
			for name := range list {
				gpu[k.Name] = gpu[k.Name] || isGPU(name)
			}
		}
	}
	for _, s := range p.Status.ContainerStatuses {
		switch {
		case !gpu[s.Name]:
		case s.State.Running == nil:
			return time.Time{}
		case s.State.Running.StartedAt.After(since):
			since = s.State.Running.StartedAt.Time
		}
	}
	return since
}

// use is what is known of a pod's GPU work.
func (w *world) use(p *corev1.Pod) Use { return w.uses[PodName{p.Namespace, p.Name}] }

// idle says whether a pod, and all that leave with it, were seen to do no GPU work.
func (w *world) idle(p *corev1.Pod) bool {
	if len(w.uses) == 0 {
		return false
	}
	for _, p := range w.together(p) {
		if !w.use(p).Idle {
			return false
		}
	}
	return true
}
