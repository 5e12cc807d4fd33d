package scaling

import (
	"path"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/cluster"
)

// Autoscalers run as Deployments, where no cloud runs them out of sight.

// ClusterAutoscalers are the Deployments of the cluster autoscaler, by their names: the chart calls them
// RELEASE-aws-cluster-autoscaler and the like. Empty where a cloud runs it, or Deployments were not read.
func ClusterAutoscalers(st *cluster.State) []*appsv1.Deployment {
	return deployments(st, func(d *appsv1.Deployment) bool { return strings.HasSuffix(d.Name, ClusterAutoscaler) })
}

// Karpenters are those of Karpenter, by the image of its controller.
func Karpenters(st *cluster.State) []*appsv1.Deployment {
	return deployments(st, func(d *appsv1.Deployment) bool { return KarpenterOf(&d.Spec.Template.Spec) != "" })
}

func deployments(st *cluster.State, are func(*appsv1.Deployment) bool) []*appsv1.Deployment {
	return slices.DeleteFunc(slices.Clone(st.Deployments), func(d *appsv1.Deployment) bool { return !are(d) })
}

// KarpenterOf is the image by which a pod runs a provider's controller of Karpenter: REGISTRY/…/karpenter/controller.
// Empty where it runs none.
func KarpenterOf(spec *corev1.PodSpec) string {
	for _, k := range spec.Containers {
		image, _, _ := strings.Cut(k.Image, "@")
		repository, _, _ := strings.Cut(path.Base(image), ":")
		if repository == "controller" && strings.HasPrefix(path.Base(path.Dir(image)), "karpenter") {
			return image
		}
	}
	return ""
}
