package causes

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/unpend/unpend/rca/view"
	"github.com/unpend/unpend/watcher/incident"
)

// asWhole is a pod that asks KAI for a share of a GPU, as if it asked for all of one, where no node offers any: why none does
// keeps the one from running as it does the other, and a share is asked by annotations alone. Any other pod is itself: which
// GPUs have room for a share KAI's own books tell.
func asWhole(w *view.Cluster, p *corev1.Pod) *corev1.Pod {
	if !incident.SharesGPU(p) || !strings.HasPrefix(p.Spec.SchedulerName, "kai") && !strings.HasPrefix(p.Spec.SchedulerName, "runai") || len(p.Spec.Containers) == 0 || len(view.AsksOf(p)) > 0 ||
		slices.ContainsFunc(w.SortedNodes(), (*view.Node).AdvertisesAny) {
		return p
	}
	p = p.DeepCopy()
	r := &p.Spec.Containers[0].Resources
	one := resource.MustParse("1")
	for _, list := range []*corev1.ResourceList{&r.Requests, &r.Limits} {
		if *list == nil {
			*list = corev1.ResourceList{}
		}
		(*list)[view.WholeGPU] = one
	}
	return p
}
