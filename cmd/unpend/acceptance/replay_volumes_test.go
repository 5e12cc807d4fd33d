package acceptance

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/testdata/controlplane"
)

// volumes makes the scenario's volumes and claims, each bound to the other by the real
// controller.
func (r *replay) volumes(t *testing.T) {
	t.Helper()
	core, ctx := r.c.Client().CoreV1(), context.WithoutCancel(t.Context())
	for _, from := range r.st.PVs {
		pv := strip(from.DeepCopy())
		pv.Status = corev1.PersistentVolumeStatus{}
		if pv.Spec.ClaimRef != nil {
			pv.Spec.ClaimRef.UID = "" // another cluster's
		}
		_, err := core.PersistentVolumes().Create(t.Context(), pv, metav1.CreateOptions{})
		must(t, err)
		t.Cleanup(func() { must(t, core.PersistentVolumes().Delete(ctx, pv.Name, metav1.DeleteOptions{})) })
	}
	for _, from := range r.st.PVCs {
		claim := strip(from.DeepCopy())
		claim.Status, claim.Annotations = corev1.PersistentVolumeClaimStatus{}, nil
		claims := core.PersistentVolumeClaims(claim.Namespace)
		_, err := claims.Create(t.Context(), claim, metav1.CreateOptions{})
		must(t, err)
		t.Cleanup(func() { must(t, claims.Delete(ctx, claim.Name, metav1.DeleteOptions{})) })
		controlplane.Eventually(t, 30*time.Second, "claim "+claim.Name+" is "+string(from.Status.Phase), func() (bool, string) {
			got, err := claims.Get(t.Context(), claim.Name, metav1.GetOptions{})
			return err == nil && got.Status.Phase == from.Status.Phase, fmt.Sprint(err)
		})
	}
}
