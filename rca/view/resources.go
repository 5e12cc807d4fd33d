package view

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

func PodList(pods []*corev1.Pod) string {
	if len(pods) == 1 {
		return pods[0].Namespace + "/" + pods[0].Name
	}
	return fmt.Sprintf("%d pods (%s/%s, …)", len(pods), pods[0].Namespace, pods[0].Name)
}
