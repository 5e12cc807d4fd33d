package incident

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// ofKueue reads a Workload: it stands for an object of any kind, has what each of its pod sets asks
// for, and the object is suspended until it is admitted. Pods have a gate instead, and Kubernetes'
// own kinds are read themselves.
func ofKueue(o *unstructured.Unstructured, h *Held) {
	h.owner, h.queue = metav1.GetControllerOf(o), text(o, "spec", "queueName")
	h.over, h.let = conditionMet(o, "Finished"), conditionMet(o, "Admitted") && !conditionMet(o, "Evicted")
	if h.owner == nil || OwnKind(OwnerKind(h.owner)) || h.owner.Kind == "Pod" || h.over || conditionMet(o, "Admitted") {
		return
	}
	h.holds, h.sets = true, podSetsOf(o, "count", "spec", "podSets")
	for i := range h.sets {
		if name := h.sets[i].Name; name != "" {
			h.sets[i].Of, h.sets[i].At, h.sets[i].Stated = Ref{KueueWorkload.Kind, h.Namespace, h.Name}, "spec.podSets[name="+name+"]", "count"
		}
	}
}

// What Volcano's objects are known by (staging/src/volcano.sh/apis/pkg/apis in volcano-sh/volcano).
const (
	volcanoScheduler = "volcano"
	volcanoGroup     = "scheduling.k8s.io/group-name"
	volcanoQueue     = "default" // of who names none
)

// ofVolcanoGroup reads a PodGroup: until it is Inqueue a Job's controller makes no pods
// (job_controller_actions.go, syncJob), nor does that of Kubeflow's training operator.
func ofVolcanoGroup(o *unstructured.Unstructured, h *Held) {
	h.owner, h.queue, h.group = metav1.GetControllerOf(o), cmp.Or(text(o, "spec", "queue"), volcanoQueue), o.GetName()
	if h.owner == nil || OwnKind(OwnerKind(h.owner)) || h.owner.Kind == "Pod" || !slices.Contains([]string{"", "Pending", "Inqueue"}, text(o, "status", "phase")) {
		return
	}
	h.holds, h.let, h.sets = true, text(o, "status", "phase") == "Inqueue", []podSet{evenly(o)}
}

// evenly is what each member of a group asks for as far as the group alone tells: its share of what
// the least number of them asks together. Where that has no equal shares it is not known.
func evenly(o *unstructured.Unstructured) podSet {
	least, _, err := unstructured.NestedInt64(o.Object, "spec", "minMember")
	if err != nil || least < 1 {
		least = 1
	}
	set := podSet{Name: "member", Count: int(least)}
	set.Template.Spec.SchedulerName = volcanoScheduler
	list, _, err := unstructured.NestedMap(o.Object, "spec", "minResources")
	if err != nil {
		return set
	}
	requests := corev1.ResourceList{}
	for name, v := range list {
		if name == "pods" || strings.HasPrefix(name, "count/") || strings.HasPrefix(name, "requests.") || strings.HasPrefix(name, "limits.") {
			continue // as quotas count, and nothing that one asks for
		}
		q, err := resource.ParseQuantity(fmt.Sprint(v))
		if err != nil || q.MilliValue()%least != 0 {
			return set
		}
		requests[corev1.ResourceName(name)] = *resource.NewMilliQuantity(q.MilliValue()/least, q.Format)
	}
	set.Template.Spec.Containers = []corev1.Container{{Name: "member", Resources: corev1.ResourceRequirements{Requests: requests}}}
	return set
}

// ofVolcanoJob reads what a Job's pods would be: a task is a pod set. Its controller makes its
// PodGroup before any of them (job_controller_actions.go, initiateJob).
func ofVolcanoJob(o *unstructured.Unstructured, h *Held) {
	yes := true
	h.heads, h.queue = true, cmp.Or(text(o, "spec", "queue"), volcanoQueue)
	h.owner = &metav1.OwnerReference{APIVersion: o.GetAPIVersion(), Kind: o.GetKind(), Name: h.Name, UID: h.UID, Controller: &yes}
	if phase := text(o, "status", "state", "phase"); phase != "" && phase != "Pending" {
		h.over = true
		return
	}
	scheduler := cmp.Or(text(o, "spec", "schedulerName"), volcanoScheduler)
	h.sets = podSetsOf(o, "replicas", "spec", "tasks")
	for i := range h.sets {
		h.sets[i].At, h.sets[i].Stated = "spec.tasks[name="+h.sets[i].Name+"]", "replicas"
		if spec := &h.sets[i].Template.Spec; spec.SchedulerName == "" {
			spec.SchedulerName = scheduler
		}
		if class := text(o, "spec", "priorityClassName"); class != "" && h.sets[i].Template.Spec.PriorityClassName == "" {
			h.sets[i].Template.Spec.PriorityClassName = class
		}
	}
}

// asMember has a pod say of which group it will be, and be of the scheduler that has groups.
func (h *Held) asMember(p *corev1.Pod) {
	if p.Spec.SchedulerName == "" {
		p.Spec.SchedulerName = volcanoScheduler
	}
	annotations := map[string]string{volcanoGroup: h.group}
	maps.Copy(annotations, p.Annotations)
	p.Annotations = annotations
}
