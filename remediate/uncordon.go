package remediate

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/unpend/unpend/rca"
)

func (r *runner) uncordon(ctx context.Context, a rca.Action) error {
	return r.step("uncordon "+a.Target.Name, func() error {
		n, err := r.Client.CoreV1().Nodes().Get(ctx, a.Target.Name, metav1.GetOptions{})
		if err != nil {
			return stale(err, a.Target)
		}
		if note := n.Annotations[annotation]; note != "" {
			return fmt.Errorf("%w: node %s is cordoned by an operation: %s", ErrRefused, n.Name, note)
		}
		patch, err := json.Marshal(map[string]any{
			"metadata": map[string]any{"uid": a.Target.UID, "resourceVersion": n.ResourceVersion},
			"spec":     map[string]any{"unschedulable": nil},
		})
		if err != nil {
			return fmt.Errorf("build the patch: %w", err)
		}
		_, err = r.Client.CoreV1().Nodes().Patch(ctx, n.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: fieldManager, DryRun: r.dryRun()})
		return stale(err, a.Target)
	})
}

// resourceOf is the device plugin's name for a profile.
func resourceOf(profile string) corev1.ResourceName {
	return corev1.ResourceName("nvidia.com/mig-" + strings.ReplaceAll(profile, "+", "."))
}
