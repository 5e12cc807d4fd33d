package incident

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Next is the pod a maker would make now: its template with what the API server
// fills in, so that its requests are those of the pod once it exists. Its name is
// one that no pod can have.
func (m Makers) Next(k maker) *corev1.Pod {
	p := k.Child()
	p.Name, p.Labels, p.Annotations = k.GetName()+"-?", maps.Clone(k.template.Labels), maps.Clone(k.template.Annotations)
	p.Spec = *k.template.Spec.DeepCopy()
	if k.kind == "DaemonSet" {
		p.Spec.Tolerations = append(p.Spec.Tolerations, daemonTolerations()...)
	}
	p.Status.Phase = corev1.PodPending
	WithLimitDefaults(p, m.limits(p.Namespace))
	return p
}

// limits are the LimitRanges of a namespace.
func (m Makers) limits(namespace string) (out []*corev1.LimitRange) {
	for _, r := range m.LimitRanges {
		if r.Namespace == namespace {
			out = append(out, r)
		}
	}
	return out
}

// Child is a pod of the maker. Nothing is known of it but its owner.
func (m maker) Child() *corev1.Pod {
	yes := true
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: m.GetNamespace(),
		OwnerReferences: []metav1.OwnerReference{{APIVersion: m.group, Kind: m.kind, Name: m.GetName(), UID: m.GetUID(), Controller: &yes}}}}
}

// WithLimitDefaults fills in, in place, what the API server would: requests from
// limits (pkg/apis/core/v1/defaults.go, SetDefaults_Pod), then the defaults of the
// LimitRanges, which must be of the pod's namespace (limitranger/admission.go,
// mergePodResourceRequirements).
func WithLimitDefaults(p *corev1.Pod, ranges []*corev1.LimitRange) {
	ranges = slices.SortedFunc(slices.Values(ranges), func(a, b *corev1.LimitRange) int {
		return compareRefs(Ref{Name: a.Name}, Ref{Name: b.Name})
	})
	for _, list := range [][]corev1.Container{p.Spec.Containers, p.Spec.InitContainers} {
		for i := range list {
			r := &list[i].Resources
			fill(&r.Requests, r.Limits)
			for _, lr := range ranges {
				for _, item := range lr.Spec.Limits {
					if item.Type == corev1.LimitTypeContainer {
						limits, requests := itemDefaults(item)
						fill(&r.Limits, limits)
						fill(&r.Requests, requests)
					}
				}
			}
		}
	}
}

// itemDefaults are the defaults of one item as the API server completes them when
// the LimitRange is written (SetDefaults_LimitRangeItem): in a dump written by hand
// they are not.
func itemDefaults(item corev1.LimitRangeItem) (limits, requests corev1.ResourceList) {
	limits, requests = maps.Clone(item.Default), maps.Clone(item.DefaultRequest)
	fill(&limits, item.Max)
	fill(&requests, limits)
	fill(&requests, item.Min)
	return limits, requests
}

// fill sets what is not set.
func fill(list *corev1.ResourceList, from corev1.ResourceList) {
	for name, q := range from {
		if _, ok := (*list)[name]; !ok {
			if *list == nil {
				*list = corev1.ResourceList{}
			}
			(*list)[name] = q
		}
	}
}

// daemonTolerations are those that every pod of a DaemonSet is given
// (daemon/util/daemonset_util.go, AddOrUpdateDaemonPodTolerations).
func daemonTolerations() []corev1.Toleration {
	var out []corev1.Toleration
	for _, key := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		out = append(out, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute})
	}
	for _, key := range []string{corev1.TaintNodeDiskPressure, corev1.TaintNodeMemoryPressure, corev1.TaintNodePIDPressure, corev1.TaintNodeUnschedulable} {
		out = append(out, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule})
	}
	return out
}
