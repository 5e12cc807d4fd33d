package kubelet

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A pod names its claims by its own fields, and by what the scheduler made for it.
func TestClaimsOfAPod(t *testing.T) {
	mine := "mine"
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "w"}, Spec: corev1.PodSpec{ResourceClaims: []corev1.PodResourceClaim{{Name: "a", ResourceClaimName: &mine}, {Name: "b", ResourceClaimTemplateName: &mine}, {Name: "c", ResourceClaimTemplateName: &mine}}}}
	p.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: "c"}}
	p.Status.ExtendedResourceClaimStatus = &corev1.PodExtendedResourceClaimStatus{ResourceClaimName: "extended"}
	if got := fmt.Sprint(ClaimsOf(p)); got != "[ml/mine ml/extended]" {
		t.Error(got)
	}
}

// What the driver says comes without the kubelet's words before it, in any of its versions.
func TestTheDriversOwnWords(t *testing.T) {
	const words = "error preparing devices for claim 1: no such device"
	for _, kubelets := range []string{"", "Failed to prepare dynamic resources: ", "prepare dynamic resources: ", "Failed to prepare dynamic resources: prepare dynamic resources: NodePrepareResources failed for claim ml/w-gpu-x: ",
		"failed to prepare dynamic resources: NodePrepareResource failed for claim w: "} {
		if got := unpreparedBy(kubelets + words); got != words {
			t.Errorf("%q: %q", kubelets, got)
		}
	}
}
