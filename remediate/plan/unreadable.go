package plan

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/unpend/unpend/remediate/v1alpha1"
)

// Unreadable is an object that the API server takes and this program cannot read.
type Unreadable struct {
	object *unstructured.Unstructured
	Why    error
}

func (u *Unreadable) Error() string {
	return fmt.Sprintf("read %s %s: %v", strings.ToLower(u.object.GetKind()), u.object.GetName(), u.Why)
}

// Unwrap gives the reason.
func (u *Unreadable) Unwrap() error { return u.Why }

// Head is what can be told of it.
func (u *Unreadable) Head() *v1alpha1.Remediation {
	rem := &v1alpha1.Remediation{ObjectMeta: metav1.ObjectMeta{Name: u.object.GetName(), UID: u.object.GetUID(), CreationTimestamp: u.object.GetCreationTimestamp()}}
	rem.Spec.Schema, rem.Status.Schema = schemaOf(u.object, "spec"), schemaOf(u.object, "status")
	phase, _, err := unstructured.NestedString(u.object.Object, "status", "phase")
	if err == nil {
		rem.Status.Phase = v1alpha1.Phase(phase)
	}
	return rem
}

// End writes how a plan ends that cannot be read, in the fields that are known.
func (s Store) End(ctx context.Context, u *Unreadable, phase v1alpha1.Phase, message string, at time.Time) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": u.object.GetResourceVersion()},
		"status": map[string]any{"phase": phase, "message": message, "ended": metav1.NewMicroTime(at)}})
	if err == nil {
		_, err = s.Dynamic.Resource(v1alpha1.Remediations).Patch(ctx, u.object.GetName(), types.MergePatchType, patch, metav1.PatchOptions{FieldManager: FieldManager}, "status")
	}
	if err != nil {
		return fmt.Errorf("write that plan %s cannot be read: %w", u.object.GetName(), err)
	}
	return nil
}
