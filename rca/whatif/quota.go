package whatif

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/kubernetes/pkg/quota/v1/evaluator/core"
)

// QuotaUse is what a pod counts against a ResourceQuota at a moment, by the API
// server's own evaluator: only resources that the quota limits (status.hard), and
// nothing when its scopes leave the pod out or the pod has ended. Demand says what
// the quota wants to be written in every container and is not; such a pod is
// refused whatever is left.
func QuotaUse(q *corev1.ResourceQuota, pod *corev1.Pod, now time.Time) (use corev1.ResourceList, demand string, err error) {
	if gone(pod, now) {
		return nil, "", nil
	}
	if pod.DeletionTimestamp != nil {
		pod = pod.DeepCopy()
		pod.DeletionTimestamp = nil // until its time is over it counts
	}
	evaluator := core.NewPodEvaluator(nil, nil) // it lists nothing and asks for no time
	matches, err := evaluator.Matches(q, pod)
	if err != nil {
		return nil, "", fmt.Errorf("match quota %s/%s: %w", q.Namespace, q.Name, err)
	}
	if !matches {
		return nil, "", nil
	}
	if err := evaluator.Constraints(evaluator.MatchingResources(slices.Collect(maps.Keys(q.Status.Hard))), pod); err != nil {
		demand = err.Error()
	}
	use, err = evaluator.Usage(pod)
	if err != nil {
		return nil, "", fmt.Errorf("count a pod against quota %s/%s: %w", q.Namespace, q.Name, err)
	}
	maps.DeleteFunc(use, func(name corev1.ResourceName, n resource.Quantity) bool {
		_, limited := q.Status.Hard[name]
		return !limited || n.IsZero()
	})
	return use, demand, nil
}

// gone says that a deleted pod has had its time: a node that is lost never confirms
// it (evaluator/core/pods.go, QuotaV1Pod).
func gone(pod *corev1.Pod, now time.Time) bool {
	d, grace := pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds
	return d != nil && grace != nil && now.After(d.Add(time.Duration(*grace)*time.Second))
}
