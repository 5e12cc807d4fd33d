package incident

import (
	"maps"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Held is what is read of an object of a queue, or of what makes pods of several templates: whom it
// keeps from making pods, which pods those would be, and which could not be made. Nothing else of it
// tells whether somebody waits, so a watcher keeps no more.
type Held struct {
	metav1.ObjectMeta
	kind  string                 // of the object, as a Ref names it
	owner *metav1.OwnerReference // who may not begin; nil: the object only has the pods of itself
	queue string
	group string // of a PodGroup: its name, by which its pods will be known
	holds bool
	// let: it has let its owner begin, whose pods are to be made.
	let bool
	// over: of the object itself, or of whom it holds, no pods are to come any more.
	over bool
	// heads: it makes pods itself, and none before an object of its queue stands for it.
	heads bool
	// makes: it makes pods itself, without a queue. aside: not now, for it is suspended. unordered: it does
	// not make one set after the other.
	makes, aside, unordered bool
	// frees: it makes Jobs, none of which waits for another: each begins as soon as it is made, or with the object.
	frees bool
	// answers: its operator makes its pods itself and writes a status at its first look. untouched: it has none.
	answers, untouched bool
	// lacks is what it says itself of a pod that it could not make; nil: nothing.
	lacks *setback
	sets  []podSet
}

// podSet are pods of one template.
type podSet struct {
	Name     string                 `json:"name"`
	Count    int                    `json:"count"`
	Template corev1.PodTemplateSpec `json:"template"`
	// Marks are the labels by which they are told from the others that the object makes, Role is what the
	// object calls them where it says which it could not make, At where that has them, or the object Of that
	// stands for it, Within where below that their template is, Stated the field there that says how many, and
	// Beside what else runs in each.
	Marks  map[string]string  `json:"-"`
	Role   string             `json:"-"`
	Within string             `json:"-"`
	Of     Ref                `json:"-"`
	At     string             `json:"-"`
	Stated string             `json:"-"`
	Beside []corev1.Container `json:"-"`
	// Sole: what stands at At is one pod, and no field says how many.
	Sole bool `json:"-"`
	// Kept: one that has ended is not made again. Each is how many a Job of the set has, where Jobs are made
	// and not pods; 0 where pods are.
	Kept bool `json:"-"`
	Each int  `json:"-"`
}

// set is where they stand in the object that makes them, or in what stands for that; nil where that has them of one template.
func (s podSet) set(of Ref) *Set {
	if s.At == "" {
		return nil
	}
	if s.Of != (Ref{}) {
		of = s.Of
	}
	out := &Set{Of: of, At: s.At, Within: s.Within, Template: s.Template}
	switch {
	case s.Stated != "":
		out.Wants = s.At + "." + s.Stated
	case s.Sole:
		out.Wants = "count(" + s.At + ")"
	}
	for _, key := range []string{rayGroup, rayNodeType, kserveComponent, sparkRole} {
		if value := s.Marks[key]; value != "" && out.Has == "" {
			out.Has = "count(pods[" + key + "=" + value + "])"
		}
	}
	return out
}

// The kinds by which queues keep pods from being made, and not from being scheduled alone, and those
// that make pods of several templates: another has a line here, one in readHeld, and one in Operated.
var (
	KueueWorkload = schema.GroupKind{Group: "kueue.x-k8s.io", Kind: "Workload"}
	VolcanoGroup  = schema.GroupKind{Group: "scheduling.volcano.sh", Kind: "PodGroup"}
	VolcanoJob    = schema.GroupKind{Group: "batch.volcano.sh", Kind: "Job"}
	RayCluster    = schema.GroupKind{Group: "ray.io", Kind: "RayCluster"}
	JobSet        = schema.GroupKind{Group: "jobset.x-k8s.io", Kind: "JobSet"}
	PyTorchJob    = schema.GroupKind{Group: kubeflowGroup, Kind: "PyTorchJob"}
	TFJob         = schema.GroupKind{Group: kubeflowGroup, Kind: "TFJob"}
	XGBoostJob    = schema.GroupKind{Group: kubeflowGroup, Kind: "XGBoostJob"}
	PaddleJob     = schema.GroupKind{Group: kubeflowGroup, Kind: "PaddleJob"}
	JAXJob        = schema.GroupKind{Group: kubeflowGroup, Kind: "JAXJob"}

	InferenceService = schema.GroupKind{Group: "serving.kserve.io", Kind: "InferenceService"}
	SparkApplication = schema.GroupKind{Group: "sparkoperator.k8s.io", Kind: "SparkApplication"}
)

var readHeld = map[schema.GroupKind]func(*unstructured.Unstructured, *Held){KueueWorkload: ofKueue, VolcanoGroup: ofVolcanoGroup, VolcanoJob: ofVolcanoJob, RayCluster: ofRayCluster, JobSet: ofJobSet,
	PyTorchJob: ofKubeflow, TFJob: ofKubeflow, XGBoostJob: ofKubeflow, PaddleJob: ofKubeflow, JAXJob: ofKubeflow, InferenceService: ofInferenceService, SparkApplication: ofSparkApplication}

// Operated are the kinds of operators that make pods of several templates: diagnoses read the whole of
// them, and everybody who walks from a pod to its topmost owner reads them with Kinds.
var Operated = []schema.GroupKind{VolcanoJob, RayCluster, JobSet, PyTorchJob, TFJob, XGBoostJob, PaddleJob, JAXJob, InferenceService, SparkApplication}

// HeldOf reads an object of a queue; false for one of any other kind.
func HeldOf(gk schema.GroupKind, o *unstructured.Unstructured) (*Held, bool) {
	read := readHeld[gk]
	if read == nil {
		return nil, false
	}
	h := &Held{kind: KindOf(gk), ObjectMeta: metav1.ObjectMeta{Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID(), ResourceVersion: o.GetResourceVersion(),
		OwnerReferences: o.GetOwnerReferences(), CreationTimestamp: o.GetCreationTimestamp(), DeletionTimestamp: o.GetDeletionTimestamp()}}
	if queue := o.GetLabels()[QueueLabel]; queue != "" {
		h.Labels = map[string]string{QueueLabel: queue}
	}
	read(o, h)
	status, _, err := unstructured.NestedMap(o.Object, "status")
	h.untouched = err == nil && len(status) == 0
	return h, true
}

// Trimmed is as much of it as tells who waits, and what for.
func (h *Held) Trimmed(spec func(corev1.PodSpec) corev1.PodSpec) *Held {
	for i := range h.sets {
		set := &h.sets[i]
		set.Template = corev1.PodTemplateSpec{Spec: spec(set.Template.Spec)}
		set.Beside = spec(corev1.PodSpec{Containers: set.Beside}).Containers
	}
	if h.lacks != nil {
		h.lacks.says = "" // names another pod at each try
	}
	return h
}

// Same says whether two versions of an object tell the same.
func (h *Held) Same(other *Held) bool {
	a, b := *h, *other
	a.ResourceVersion, b.ResourceVersion = "", ""
	return reflect.DeepEqual(a, b)
}

// Child is a pod of whom it holds, of which nothing is known but its owner.
func (h *Held) Child() *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace, Name: h.Name}}
	if h.owner != nil {
		p.OwnerReferences = []metav1.OwnerReference{*h.owner}
	}
	return p
}

func (h *Held) ref() Ref { return Ref{h.kind, h.Namespace, h.Name} }

// held lists who lacks all pods because a queue has not let it begin: of what is read itself its
// own status says that (a Job is suspended), and who has begun is left out.
func (m Makers) held(begun func() map[Ref]bool, events func() map[Ref]map[string]told) []Refusal {
	var out []Refusal
	own := map[Ref]*Held{}
	for _, h := range m.Held {
		own[h.ref()] = h
	}
	for _, h := range m.Held {
		if !h.holds || h.owner == nil || h.DeletionTimestamp != nil {
			continue
		}
		ref := ownerRef(h.owner, h.Namespace)
		made := own[ref]
		if made != nil && (made.over || made.DeletionTimestamp != nil || made.UID != "" && h.owner.UID != "" && made.UID != h.owner.UID) {
			continue
		}
		if begun()[ref] {
			continue
		}
		begun()[ref] = true // held by one queue, it is not told of by another
		out = append(out, h.refusals(made, ref, m, events)...)
	}
	return append(out, m.ungrouped(begun, events)...)
}

// ungrouped lists who lacks all pods though nothing of its queue that is known of stands for it: what
// would have made that does not run, or could not.
func (m Makers) ungrouped(begun func() map[Ref]bool, events func() map[Ref]map[string]told) []Refusal {
	if !m.AllPods {
		return nil
	}
	var out []Refusal
	var stood map[Ref]bool
	for _, h := range m.Held {
		if !h.heads || h.over || h.DeletionTimestamp != nil {
			continue
		}
		if stood == nil {
			stood = m.stoodFor()
		}
		if ref := h.ref(); !begun()[ref] && !stood[ref] {
			for _, r := range h.refusals(h, ref, m, events) {
				r.Ungrouped = true
				out = append(out, r)
			}
		}
	}
	return out
}

// stoodFor are the owners of all that queues have, whatever has become of it.
func (m Makers) stoodFor() map[Ref]bool {
	out := map[Ref]bool{}
	for _, h := range m.Held {
		if h.owner != nil && !h.heads {
			out[ownerRef(h.owner, h.Namespace)] = true
		}
	}
	return out
}

// beginnersOf are all owners of pods that have not ended.
func beginnersOf(pods []*corev1.Pod, lookup Lookup) map[Ref]bool {
	out := map[Ref]bool{}
	for _, p := range pods {
		if p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
			continue
		}
		for _, ref := range Owners(p, lookup) {
			out[ref] = true
		}
	}
	return out
}

// refusals is one for each pod set, with the pod that would be made first. Of a group, which has their
// sum alone, the sets are those of what makes the pods, where that is read.
func (h *Held) refusals(made *Held, owner Ref, m Makers, events func() map[Ref]map[string]told) []Refusal {
	sets, version, says, queue, held := h.sets, h.ResourceVersion, "", h.queue, true
	if made != nil {
		if h.group != "" {
			sets = made.sets
		}
		if Newer(made.ResourceVersion, version) {
			version = made.ResourceVersion
		}
		if e, ok := eventOf(made, events()[owner]); ok && h.let { // and then the API server refused its pods
			says, queue, held = e.says, "", false
		}
	}
	var out []Refusal
	for _, set := range sets {
		out = append(out, Refusal{Owner: owner, Pod: h.next(set, m), Wants: set.Count, Missing: set.Count, Set: set.set(owner), Since: h.CreationTimestamp.Time, Version: version, Says: says, Held: held, Queue: queue, Group: h.group})
	}
	return out
}

// next is the pod of a set that would be made now.
func (h *Held) next(set podSet, m Makers) *corev1.Pod {
	labels := map[string]string{}
	maps.Copy(labels, set.Template.Labels)
	maps.Copy(labels, set.Marks)
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace, Name: h.owner.Name + "-" + set.Name + "-?", Labels: labels, Annotations: set.Template.Annotations,
		OwnerReferences: []metav1.OwnerReference{*h.owner}}, Spec: *set.Template.Spec.DeepCopy(), Status: corev1.PodStatus{Phase: corev1.PodPending}}
	p.Spec.Containers = append(p.Spec.Containers, set.Beside...)
	if h.group != "" {
		h.asMember(p)
	}
	WithLimitDefaults(p, m.limits(h.Namespace))
	return p
}

// podSetsOf reads a list of pod sets, whose number is under a key of its own; what makes no
// sense is left out.
func podSetsOf(o *unstructured.Unstructured, number string, path ...string) []podSet {
	list, _, err := unstructured.NestedSlice(o.Object, path...)
	if err != nil {
		return nil
	}
	var out []podSet
	for _, item := range list {
		m, ok := item.(map[string]any)
		if !ok {
			continue
		}
		if n, has := m[number]; has {
			m["count"] = n // NestedSlice gave a copy
		}
		var set podSet
		if runtime.DefaultUnstructuredConverter.FromUnstructured(m, &set) == nil && set.Count > 0 {
			out = append(out, set)
		}
	}
	return out
}

// conditionMet says whether an object has a condition that is True.
func conditionMet(o *unstructured.Unstructured, kind string) bool {
	list, _, err := unstructured.NestedSlice(o.Object, "status", "conditions")
	return err == nil && slices.ContainsFunc(list, func(item any) bool {
		k, ok := item.(map[string]any)
		return ok && k["type"] == kind && k["status"] == string(metav1.ConditionTrue)
	})
}

func text(o *unstructured.Unstructured, path ...string) string {
	s, _, err := unstructured.NestedString(o.Object, path...)
	if err != nil {
		return ""
	}
	return s
}
