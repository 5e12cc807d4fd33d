package world

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

var podResource = corev1.SchemeGroupVersion.WithResource("pods")

// defaultPod is the API server's defaulting as far as the scheduler needs it.
func defaultPod(p *corev1.Pod) {
	if p.Spec.SchedulerName == "" {
		p.Spec.SchedulerName = corev1.DefaultSchedulerName
	}
	if p.Spec.RestartPolicy == "" {
		p.Spec.RestartPolicy = corev1.RestartPolicyAlways
	}
	if p.Status.Phase == "" {
		p.Status.Phase = corev1.PodPending
	}
	for i := range p.Spec.Containers {
		r := &p.Spec.Containers[i].Resources
		for name, q := range r.Limits {
			if r.Requests == nil {
				r.Requests = corev1.ResourceList{}
			}
			if _, ok := r.Requests[name]; !ok {
				r.Requests[name] = q
			}
		}
	}
}

// bind is the pods/binding subresource.
func (s *store) bind(b *corev1.Binding) error {
	obj, err := s.tracker.Get(podResource, b.Namespace, b.Name)
	if err != nil {
		return err
	}
	p := obj.(*corev1.Pod).DeepCopy()
	if p.Spec.NodeName != "" {
		return apierrors.NewConflict(podResource.GroupResource(), b.Name, fmt.Errorf("pod %s is already assigned to node %q", b.Name, p.Spec.NodeName))
	}
	p.Spec.NodeName = b.Target.Name
	p.ResourceVersion = s.next()
	p.Status.Conditions = append(p.Status.Conditions[:0:0], corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(s.now())})
	return s.updated(podResource, p, b.Namespace)
}

// evict is the pods/eviction subresource: it deletes the pod if every budget
// allows that.
func (s *store) evict(ns string, obj runtime.Object) error {
	e, ok := obj.(*policyv1.Eviction)
	if !ok {
		return apierrors.NewBadRequest("an Eviction of policy/v1 was expected")
	}
	found, err := s.tracker.Get(podResource, ns, e.Name)
	if err != nil {
		return err
	}
	pod := found.(*corev1.Pod)
	opts := metav1.DeleteOptions{}
	if e.DeleteOptions != nil {
		opts = *e.DeleteOptions
	}
	if err := s.spend(pod, len(opts.DryRun) > 0); err != nil {
		return err
	}
	return s.delete(podResource, ns, e.Name, opts)
}
