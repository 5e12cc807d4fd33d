package cluster

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/watcher/incident"
)

// MaxReportAge is how old a report may be before its holders are unknown: the
// probe writes at least every two minutes.
const MaxReportAge = 5 * time.Minute

// maxSkew is how far two machines' clocks may be apart before a report from the
// future is doubted.
const maxSkew = time.Minute

// index finds objects by name; it is made at the first question.
type index struct {
	pods   map[podKey]*corev1.Pod
	owners map[string]metav1.Object
	onNode map[string][]*corev1.Pod
	ofJob  map[types.UID][]*corev1.Pod
}

type podKey struct{ namespace, name string }

func (s *State) indexed() *index {
	s.once.Do(func() {
		s.index = &index{map[podKey]*corev1.Pod{}, map[string]metav1.Object{}, map[string][]*corev1.Pod{}, map[types.UID][]*corev1.Pod{}}
		for _, p := range s.Pods {
			s.index.pods[podKey{p.Namespace, p.Name}] = p
			if p.Spec.NodeName != "" {
				s.index.onNode[p.Spec.NodeName] = append(s.index.onNode[p.Spec.NodeName], p)
			}
			if by := metav1.GetControllerOfNoCopy(p); by != nil && by.Kind == "Job" {
				s.index.ofJob[by.UID] = append(s.index.ofJob[by.UID], p)
			}
		}
		s.indexOwners()
	})
	return s.index
}

func (s *State) indexOwners() {
	for kind, o := range s.Workloads {
		s.index.owners[kind+"/"+o.GetNamespace()+"/"+o.GetName()] = o
	}
	for kind, o := range s.Operated {
		s.index.owners[kind+"/"+o.GetNamespace()+"/"+o.GetName()] = o
	}
	for _, o := range s.Owners {
		s.index.owners[ownerKind(o)+"/"+o.Namespace+"/"+o.Name] = o
	}
}

// Workloads goes through what makes pods, with its kind.
func (s *State) Workloads(yield func(kind string, o metav1.Object) bool) {
	_ = each("ReplicaSet", s.ReplicaSets, yield) && each("Deployment", s.Deployments, yield) && each("StatefulSet", s.StatefulSets, yield) &&
		each("DaemonSet", s.DaemonSets, yield) && each("Job", s.Jobs, yield) && each("CronJob", s.CronJobs, yield)
}

// Operated goes through what makes pods of several templates by an operator of its own, with its kind.
func (s *State) Operated(yield func(kind string, o metav1.Object) bool) {
	for kind, all := range s.operated() {
		if !each(incident.KindOf(kind), all, yield) {
			return
		}
	}
}

func (s *State) operated() map[schema.GroupKind][]*unstructured.Unstructured {
	k := s.Kubeflow
	return map[schema.GroupKind][]*unstructured.Unstructured{incident.VolcanoJob: s.VolcanoJobs, incident.RayCluster: s.RayClusters, incident.JobSet: s.JobSets,
		incident.PyTorchJob: k.PyTorch, incident.TFJob: k.TF, incident.XGBoostJob: k.XGBoost, incident.PaddleJob: k.Paddle, incident.JAXJob: k.JAX,
		incident.InferenceService: s.InferenceServices, incident.SparkApplication: s.SparkApplications}
}

// Held goes through the objects of queues that keep pods from being made, and those that make pods of
// several templates, by kind.
func (s *State) Held(yield func(kind schema.GroupKind, o *unstructured.Unstructured) bool) {
	of := s.operated()
	of[incident.KueueWorkload], of[incident.VolcanoGroup] = s.QueuedWorkloads, s.PodGroups.Volcano
	for _, kind := range append([]schema.GroupKind{incident.KueueWorkload, incident.VolcanoGroup}, incident.Operated...) {
		for _, o := range of[kind] {
			if !yield(kind, o) {
				return
			}
		}
	}
}

func each[T metav1.Object](kind string, all []T, yield func(string, metav1.Object) bool) bool {
	for _, o := range all {
		if !yield(kind, o) {
			return false
		}
	}
	return true
}

// Pod finds a pod; nil when there is none.
func (s *State) Pod(namespace, name string) *corev1.Pod {
	return s.indexed().pods[podKey{namespace, name}]
}

// PodsOn lists the pods bound to a node.
func (s *State) PodsOn(node string) []*corev1.Pod { return s.indexed().onNode[node] }

// Owner finds what makes pods, or owns what does (an incident.Lookup): a pod, too, for some make
// others through what they own (the leader of a group its workers' StatefulSet, a Spark driver its
// executors).
func (s *State) Owner(kind, namespace, name string) (metav1.Object, bool) {
	if kind == "Pod" {
		if p := s.Pod(namespace, name); p != nil {
			return p, true
		}
		return nil, false
	}
	of := s.indexed().owners
	if o, ok := of[kind+"/"+namespace+"/"+name]; ok || incident.OwnKind(kind) {
		return o, ok
	}
	o, ok := of[kind+"//"+name]
	return o, ok
}

// HoldersKnown says whether the report of a node can be believed about who holds
// what: not when it is older than five minutes, or than the last bind or delete
// of a GPU pod there. The layout stands either way.
func (s *State) HoldersKnown(node string) (known bool, why string) {
	geo := s.Geometries[node]
	if geo == nil {
		return false, "no NodeGeometry"
	}
	at := geo.Report.ObservedAt.Time
	if age := s.Now.Sub(at); age > MaxReportAge {
		return false, fmt.Sprintf("its report is %d min old, so holders are unknown", int(age.Minutes()))
	}
	if ahead := at.Sub(s.Now); ahead > maxSkew {
		return false, fmt.Sprintf("its report is from %d s in the future, so the clocks differ and holders are unknown", int(ahead.Seconds()))
	}
	reported := holdersOf(geo)
	for _, p := range s.PodsOn(node) {
		if !usesGPU(p) || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
			continue
		}
		// API times are whole seconds: within one, the report itself must tell.
		if boundAt(p).Truncate(time.Second).After(at) || !slices.Contains(reported, podKey{p.Namespace, p.Name}) {
			return false, fmt.Sprintf("pod %s/%s was bound after its report, so holders are unknown", p.Namespace, p.Name)
		}
	}
	for _, key := range reported {
		// What was deleted has left no time behind: that it is not here tells.
		if p := s.indexed().pods[key]; p == nil || p.Spec.NodeName != node {
			return false, fmt.Sprintf("pod %s/%s, a holder in its report, is not on it any more, so holders are unknown", key.namespace, key.name)
		}
	}
	return true, ""
}

// holdersOf lists the pods a report names.
func holdersOf(geo *nodeprobe.NodeGeometry) []podKey {
	var out []podKey
	note := func(h *nodeprobe.Holder) {
		if key := (podKey{h.Namespace, h.Pod}); !h.Unknown && !slices.Contains(out, key) {
			out = append(out, key)
		}
	}
	for i := range geo.Report.GPUs {
		g := &geo.Report.GPUs[i]
		for k := range g.Holders {
			note(&g.Holders[k])
		}
		for k := range g.Instances {
			if h := g.Instances[k].Holder; h != nil {
				note(h)
			}
		}
	}
	return out
}

func usesGPU(p *corev1.Pod) bool {
	for _, c := range p.Spec.Containers {
		for name := range c.Resources.Limits {
			if len(name) > 11 && name[:11] == "nvidia.com/" {
				return true
			}
		}
	}
	return false
}

func boundAt(p *corev1.Pod) time.Time {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionTrue {
			return c.LastTransitionTime.Time
		}
	}
	return time.Time{}
}
