package view

import (
	"context"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/watcher/incident"
)

// NoMeasure is said where nobody could be asked.
const NoMeasure = "no Prometheus is configured"

// Measure looks up what the holders of GPUs do with them, once for all incidents; true
// when something is known now that was not.
func (w *Cluster) Measure(ctx context.Context, ask diagnosis.Measure) bool {
	if w.measured {
		return false
	}
	w.measured = true
	if ask == nil {
		w.Unmeasured = NoMeasure
		return false
	}
	uses, err := ask(ctx, w.State.Now, w.holders())
	if err != nil {
		w.Unmeasured = err.Error()
		return false
	}
	w.Uses = uses
	return true
}

// holders lists the pods that hold GPUs, by node.
func (w *Cluster) holders() []diagnosis.Holder {
	var out []diagnosis.Holder
	for _, n := range w.SortedNodes() {
		for _, p := range n.Pods {
			if h, ok := n.Holder(p); ok {
				out = append(out, h)
			}
		}
	}
	return out
}

// Holder is what the pod holds of the node's GPUs, to ask what it does with them; false
// when it holds none.
func (n *Node) Holder(p *corev1.Pod) (diagnosis.Holder, bool) {
	h := diagnosis.Holder{PodName: diagnosis.PodName{Namespace: p.Namespace, Name: p.Name}, Running: incident.RunningSince(p, AsksGPU),
		MIG: strings.Contains(n.Labels["nvidia.com/gpu.product"], "-MIG-")} // strategy single: instances are nvidia.com/gpu
	holds := false
	for name, q := range n.Requests[p] {
		if !IsGPU(name) || q.IsZero() {
			continue
		}
		holds = true
		h.MIG = h.MIG || strings.HasPrefix(string(name), MIGPrefix)
		if name != WholeGPU+SharedSuffix { // shares may all be of one GPU
			h.Devices += int(q.Value())
		}
	}
	h.Devices = max(h.Devices, 1)
	return h, holds
}

// AsksGPU says whether a container asks for a GPU.
func AsksGPU(k corev1.Container) bool {
	return HoldsGPU(k.Resources.Limits) || HoldsGPU(k.Resources.Requests)
}

// Use is what is known of a pod's GPU work: what was measured, else that none of its
// containers that ask for a GPU could begin.
func (w *Cluster) Use(p *corev1.Pod) diagnosis.Use {
	u := w.Uses[diagnosis.PodName{Namespace: p.Namespace, Name: p.Name}]
	if u.Watched > 0 && u.Unknown == "" {
		return u
	}
	if s := incident.Stalled(p, AsksGPU); s != nil && w.State.Now.Sub(s.Since) >= stalls {
		return diagnosis.Use{Idle: true, Since: s.Since, Watched: w.State.Now.Sub(s.Since), Stalled: s}
	}
	return u
}

// stalls is how long a pod may fail to begin and still be about to: the kubelet waits up to 5 min
// before it pulls an image again (pkg/kubelet/kubelet.go, MaxImageBackOff).
const stalls = 10 * time.Minute

// Idle says whether a pod, and all that leave with it, were seen to do no GPU work.
func (w *Cluster) Idle(p *corev1.Pod) bool {
	if !w.Use(p).Idle {
		return false
	}
	for _, p := range w.Together(p) {
		if !w.Use(p).Idle {
			return false
		}
	}
	return true
}
