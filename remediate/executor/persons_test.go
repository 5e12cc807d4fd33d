package executor

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/unpend/unpend/remediate/guard"
	"github.com/unpend/unpend/remediate/plan"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

// A plan that was begun and failed is what the guard-rails count: for as long as its
// nodes rest it is not recorded again in its own place.
func TestRested(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	begun := []v1alpha1.Entry{{Step: "0/cordon"}}
	for name, c := range map[string]struct {
		phase   v1alpha1.Phase
		journal []v1alpha1.Entry
		ago     time.Duration
		guards  string
		rests   bool
	}{
		"failed of late":     {v1alpha1.Failed, begun, 59 * time.Minute, "", true},
		"stopped of late":    {v1alpha1.Stopped, begun, time.Minute, "", true},
		"failed an hour ago": {v1alpha1.Failed, begun, time.Hour, "", false},
		"as people have set": {v1alpha1.Failed, begun, time.Minute, "coolDown: 0s", false},
		"never begun":        {v1alpha1.Stale, nil, time.Minute, "", false},
		"under way":          {v1alpha1.Running, begun, time.Minute, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			at := metav1.NewMicroTime(now.Add(-c.ago))
			rem := &v1alpha1.Remediation{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Remediation"}, ObjectMeta: metav1.ObjectMeta{Name: "x"},
				Status: v1alpha1.RemediationStatus{Phase: c.phase, Journal: c.journal, Ended: &at, Message: "MIG manager says failed"}}
			u := object(t, rem)
			guards := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "unpend", Name: guard.ConfigMap}, Data: map[string]string{guard.LimitsKey: c.guards}}
			d := Deps{Client: fake.NewClientset(guards), Dynamic: dynamicfake.NewSimpleDynamicClient(runtime.NewScheme(), u), Now: func() time.Time { return now }}
			err := Rested(t.Context(), d, "unpend", "x")
			if c.rests != errors.Is(err, plan.ErrRefused) || !c.rests && err != nil || c.rests && !strings.Contains(err.Error(), at.Add(time.Hour).Format(time.RFC3339)) {
				t.Errorf("%v, want it to rest: %v", err, c.rests)
			}
			if err := Rested(t.Context(), d, "unpend", "another"); err != nil {
				t.Errorf("a plan nobody has recorded: %v", err)
			}
		})
	}
}
