package stack

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/stack/parts"
	"github.com/unpend/unpend/rca/view"
)

// Stack is what a cluster has of NVIDIA's stack, read once for all its nodes.
type Stack struct {
	w           *view.Cluster
	kit         *parts.Kit
	upgrades    map[string]*corev1.Event // by node, the newest word of the driver's upgrade
	runtimes    map[string]bool
	operator    *corev1.Pod       // the GPU Operator itself; nil: it is not there
	policy      string            // name of the ClusterPolicy; empty: there is none
	plain       bool              // it has the GPU Operator install no device plugin
	strategy    string            // by which it has instances of GPUs named
	workload    string            // what it gives the GPUs of nodes to that do not say it; empty: to containers
	offered     map[string]string // by node: a slice that lists devices of NVIDIA's DRA driver
	found       map[*view.Node]*Finding
	unlookedAny *bool // what Unlooked says, once it was asked
}

// Of reads a cluster's stack, at the first question for it.
func Of(w *view.Cluster) *Stack { return view.Kept(w, read) }

func read(w *view.Cluster) *Stack {
	st := w.State
	s := &Stack{w: w, kit: parts.Of(w), upgrades: map[string]*corev1.Event{}, runtimes: map[string]bool{}, offered: map[string]string{}, found: map[*view.Node]*Finding{}}
	for _, p := range st.Pods {
		if parts.IsOperator(p) && !view.Ended(p) && (s.operator == nil || parts.Ready(p)) {
			s.operator = p
		}
	}
	for _, e := range st.Events {
		if e.Reason == "GPUDriverUpgrade" && e.InvolvedObject.Kind == "Node" {
			parts.Newest(s.upgrades, e.InvolvedObject.Name, e)
		}
	}
	for _, r := range st.RuntimeClasses {
		s.runtimes[r.Name] = true
	}
	for _, p := range st.ClusterPolicies {
		if s.policy == "" {
			s.policy, s.plain, s.workload = p.GetName(), parts.Disabled(p, "devicePlugin"), parts.DefaultWorkload(p)
			s.strategy, _, _ = unstructured.NestedString(p.Object, "spec", "mig", "strategy") //nolint:errcheck // what is no text is no strategy
		}
	}
	for _, slice := range st.ResourceSlices {
		if slice.Spec.Driver == draDriver && slice.Spec.NodeName != nil && len(slice.Spec.Devices) > 0 {
			s.offered[*slice.Spec.NodeName] = slice.Name
		}
	}
	return s
}

// Has says whether a DaemonSet is a part of the stack, of whatever maker.
func (s *Stack) Has(namespace, name string) bool { return s.kit.Named(namespace, name) != nil }

// draDriver is the driver of NVIDIA's DRA driver that offers GPUs.
const draDriver = "gpu.nvidia.com"

// unread says why a kind was not read; empty when it was.
func (s *Stack) unread(kind string) string { return s.w.State.Unread[kind] }

// aged is the certainty of what a clock tells: that of a dump which does not say when it was
// taken is only as new as what it holds.
func (s *Stack) aged() diagnosis.Certainty {
	if s.w.State.Clocked() {
		return diagnosis.Proven
	}
	return diagnosis.Likely
}

// since is how long ago something was.
func (s *Stack) since(t time.Time) time.Duration { return s.w.State.Now.Sub(t) }
