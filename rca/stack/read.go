package stack

import (
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// Stack is what a cluster has of NVIDIA's stack, read once for all its nodes.
type Stack struct {
	w       *view.Cluster
	sets    map[role][]*set
	byName  map[string]*set          // namespace/name
	unbound map[string][]*corev1.Pod // by node: of DaemonSets, and not scheduled yet
	// refused and unstarted are the newest words about a DaemonSet whose pods are refused, and
	// about a pod none of whose containers could be started: the container runtime does not
	// make its sandbox, or a volume is not there. By namespace/name.
	refused, unstarted map[string]*corev1.Event
	upgrades           map[string]*corev1.Event // by node, the newest word of the driver's upgrade
	runtimes           map[string]bool
	operator           *corev1.Pod       // the GPU Operator itself; nil: it is not there
	policy             string            // name of the ClusterPolicy; empty: there is none
	plain              bool              // it has the GPU Operator install no device plugin
	strategy           string            // by which it has instances of GPUs named
	workload           string            // what it gives the GPUs of nodes to that do not say it; empty: to containers
	offered            map[string]string // by node: a slice that lists devices of NVIDIA's DRA driver
	found              map[*view.Node]*Finding
	unlookedAny        *bool // what Unlooked says, once it was asked
}

// set is a DaemonSet of the stack, ready to be asked about nodes.
type set struct {
	*appsv1.DaemonSet
	role     role
	affinity nodeaffinity.RequiredNodeAffinity
}

// Of reads a cluster's stack, at the first question for it.
func Of(w *view.Cluster) *Stack { return view.Kept(w, read) }

func read(w *view.Cluster) *Stack {
	st := w.State
	s := &Stack{w: w, sets: map[role][]*set{}, byName: map[string]*set{}, unbound: map[string][]*corev1.Pod{}, refused: map[string]*corev1.Event{}, unstarted: map[string]*corev1.Event{},
		upgrades: map[string]*corev1.Event{}, runtimes: map[string]bool{}, offered: map[string]string{}, found: map[*view.Node]*Finding{}}
	for _, ds := range st.DaemonSets {
		r := roleOfSet(ds)
		if r == "" {
			continue
		}
		one := &set{DaemonSet: ds, role: r, affinity: nodeaffinity.GetRequiredNodeAffinity(&corev1.Pod{Spec: ds.Spec.Template.Spec})}
		s.sets[r], s.byName[ds.Namespace+"/"+ds.Name] = append(s.sets[r], one), one
	}
	for _, p := range st.Pods {
		if isOperator(p) && !view.Ended(p) && (s.operator == nil || ready(p)) {
			s.operator = p
		}
		if p.Spec.NodeName == "" && !view.Ended(p) {
			if name := boundFor(p); name != "" {
				s.unbound[name] = append(s.unbound[name], p)
			}
		}
	}
	for _, e := range st.Events {
		s.hear(e)
	}
	for _, r := range st.RuntimeClasses {
		s.runtimes[r.Name] = true
	}
	for _, p := range st.ClusterPolicies {
		if s.policy == "" {
			s.policy, s.plain, s.workload = p.GetName(), disabled(p, "devicePlugin"), defaultWorkload(p)
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
func (s *Stack) Has(namespace, name string) bool { return s.byName[namespace+"/"+name] != nil }

// failedMount is the kubelet's word for a volume that it cannot give a pod.
const failedMount = "FailedMount"

// draDriver is the driver of NVIDIA's DRA driver that offers GPUs.
const draDriver = "gpu.nvidia.com"

// hear keeps the newest word of each speaker about each object.
func (s *Stack) hear(e *corev1.Event) {
	by, about, key := map[string]*corev1.Event(nil), e.InvolvedObject, e.InvolvedObject.Namespace+"/"+e.InvolvedObject.Name
	switch {
	case e.Reason == "FailedCreate" && about.Kind == "DaemonSet":
		by = s.refused
	case (e.Reason == "FailedCreatePodSandBox" || e.Reason == failedMount) && about.Kind == "Pod":
		by = s.unstarted
	case e.Reason == "GPUDriverUpgrade" && about.Kind == "Node":
		by, key = s.upgrades, about.Name
	default:
		return
	}
	if old := by[key]; old == nil || seen(e).After(seen(old)) {
		by[key] = e
	}
}

func seen(e *corev1.Event) time.Time {
	switch {
	case e.Series != nil:
		return e.Series.LastObservedTime.Time
	case !e.LastTimestamp.IsZero():
		return e.LastTimestamp.Time
	}
	return e.EventTime.Time
}

// boundFor is the node that a DaemonSet's pod is made for, before it is scheduled there
// (pkg/controller/daemon/util: a match of metadata.name); empty for any other pod.
func boundFor(p *corev1.Pod) string {
	by := metav1.GetControllerOfNoCopy(p)
	required := view.RequiredAffinity(p)
	if by == nil || by.Kind != "DaemonSet" || required == nil {
		return ""
	}
	for _, t := range required.NodeSelectorTerms {
		for _, f := range t.MatchFields {
			if f.Key == metav1.ObjectNameField && len(f.Values) == 1 {
				return f.Values[0]
			}
		}
	}
	return ""
}

// podOf is the pod of a role on the node; nil where there is none. It belongs to a DaemonSet:
// anybody may name a pod so.
func (s *Stack) podOf(n *view.Node, r role) *corev1.Pod {
	for _, list := range [][]*corev1.Pod{n.Pods, s.unbound[n.Name]} {
		for _, p := range list {
			by := metav1.GetControllerOfNoCopy(p)
			if by == nil || by.Kind != "DaemonSet" {
				continue
			}
			if of := s.byName[p.Namespace+"/"+by.Name]; of != nil && of.role == r || of == nil && roleOf(by.Name, p.Labels, &p.Spec) == r {
				return p
			}
		}
	}
	return nil
}

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

// ofOperator says whether the GPU Operator makes a DaemonSet's pods, and chooses their nodes
// by labels that it writes.
func (d *set) ofOperator() bool {
	for key := range d.Spec.Template.Spec.NodeSelector {
		if strings.HasPrefix(key, deploys) {
			return true
		}
	}
	return false
}

// deploys begins the labels by which the GPU Operator chooses the nodes of its operands.
const deploys = "nvidia.com/gpu.deploy."
