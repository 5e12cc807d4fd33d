package capacity

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"

	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/view"
	"github.com/unpend/unpend/rca/whatif"
)

// Guest is the pod on whose behalf is asked. The zero value is one that tolerates every
// taint, goes anywhere, and takes no CPU and no memory.
type Guest struct {
	Like     *corev1.Pod         // a pod such as would come
	Tolerate []corev1.Toleration // beside its own
}

// host judges nodes for a guest, but for GPUs.
type host struct {
	pod     *corev1.Pod         // nil for the guest that goes anywhere
	needs   corev1.ResourceList // of it, but for GPUs
	accepts map[string]bool     // the nodes that its taints, selectors and rules allow
	like    string
	taints  []string // that a yes depends on, where nobody said what is tolerated
}

// look asks the scheduler's own code where a guest may go.
func (g Guest) look(ctx context.Context, st *cluster.State) (*host, error) {
	h := &host{}
	if g.Like == nil && g.Tolerate == nil {
		h.noteTaints(st)
		return h, nil
	}
	h.pod = &corev1.Pod{}
	h.pod.Namespace, h.pod.Name = "default", "asked"
	if g.Like != nil {
		h.pod, h.like = g.Like.DeepCopy(), g.Like.Namespace+"/"+g.Like.Name
		h.needs = corev1.ResourceList{}
		for name, q := range view.PodRequests(g.Like) {
			if !view.IsGPU(name) {
				h.needs[name] = q
			}
		}
	}
	h.pod.Spec.NodeName, h.pod.Status = "", corev1.PodStatus{}
	h.pod.Spec.Tolerations = append(h.pod.Spec.Tolerations, g.Tolerate...)
	frame := h.pod.DeepCopy() // what it takes is counted here
	frame.Spec.Overhead, frame.Spec.Resources = nil, nil
	for _, list := range [][]corev1.Container{frame.Spec.Containers, frame.Spec.InitContainers} {
		for i := range list {
			list[i].Resources = corev1.ResourceRequirements{}
		}
	}
	snap, err := whatif.New(ctx, view.Objects(st))
	if err != nil {
		return nil, fmt.Errorf("copy the cluster: %w", err)
	}
	defer snap.Close()
	nodes, err := snap.Fits(ctx, frame)
	if err != nil {
		return nil, fmt.Errorf("ask where a pod like %s may go: %w", h.like, err)
	}
	h.accepts = map[string]bool{}
	for _, n := range nodes {
		h.accepts[n] = true
	}
	return h, nil
}

// noteTaints are those of nodes with GPUs that are counted all the same.
func (h *host) noteTaints(st *cluster.State) {
	for _, n := range st.Nodes {
		for _, t := range n.Spec.Taints {
			text := t.ToString()
			if t.Effect != corev1.TaintEffectPreferNoSchedule && hasGPUs(n) && !strings.HasPrefix(t.Key, "node.kubernetes.io/") && !slices.Contains(h.taints, text) {
				h.taints = append(h.taints, text)
			}
		}
	}
	slices.Sort(h.taints)
}

func hasGPUs(n *corev1.Node) bool { return view.HoldsGPU(n.Status.Allocatable) }

// refuses says why the guest does not go to a node; empty where it does.
func (h *host) refuses(v *view.Node) string {
	if h.pod == nil || h.accepts[v.Name] {
		return ""
	}
	for _, t := range v.Spec.Taints {
		if _, untolerated := corev1helpers.FindMatchingUntoleratedTaint(klog.Background(), []corev1.Taint{t}, h.pod.Spec.Tolerations, func(t *corev1.Taint) bool {
			return t.Effect != corev1.TaintEffectPreferNoSchedule
		}, true); untolerated {
			return "with taint " + t.ToString() + ", which it does not tolerate"
		}
	}
	return "that its selectors or rules leave out"
}

// unlimited is room for as many as anybody asks for.
const unlimited = 1 << 30

// room is how many guests a node's CPU, memory and room for pods take, once some of its
// pods have left and some guests are there.
func (h *host) room(v *view.Node, leave []*corev1.Pod, guests int) int {
	if h.needs == nil {
		return unlimited
	}
	n := min(unlimited, v.Allocatable(corev1.ResourcePods)-int64(len(v.Pods)-countOn(v, leave)))
	if v.Allocatable(corev1.ResourcePods) == 0 {
		n = unlimited // nobody says how many
	}
	for name, q := range h.needs {
		if q.Sign() <= 0 {
			continue
		}
		free := v.Free(name)
		for _, p := range leave {
			if p.Spec.NodeName == v.Name {
				free.Add(v.Requests[p][name])
			}
		}
		n = min(n, times(free, q))
	}
	return int(max(0, n-int64(guests)))
}

func countOn(v *view.Node, pods []*corev1.Pod) int {
	n := 0
	for _, p := range pods {
		if p.Spec.NodeName == v.Name {
			n++
		}
	}
	return n
}

// times is how often a quantity goes into another.
func times(free, q resource.Quantity) int64 {
	if free.Sign() <= 0 {
		return 0
	}
	return free.MilliValue() / q.MilliValue()
}

// askedFor says for which pod the answer is.
func (h *host) askedFor() string {
	switch {
	case h.like != "":
		return "a pod like " + h.like
	case h.pod != nil:
		return "a pod with these tolerations, wherever CPU and memory are"
	case len(h.taints) > 0:
		return "a pod that tolerates " + strings.Join(h.taints, ", ") + ", wherever CPU and memory are"
	}
	return ""
}

// unlooked names what the answer leaves out; empty where nothing is.
func (h *host) unlooked() string {
	switch {
	case h.needs != nil:
		return ""
	case h.pod != nil:
		return "CPU and memory are not looked at: ask with --like POD"
	}
	return "taints, node selectors, CPU and memory are not looked at: ask with --like POD"
}

func (h *host) asker() string {
	if h.like != "" {
		return h.like
	}
	return "a pod without a priority class"
}
