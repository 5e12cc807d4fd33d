package executor

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/notice"
	"github.com/unpend/unpend/remediate/plan"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

// A plan that has ended is forgotten in time, but not one of which nobody was told, nor
// one that keeps a node closed: once a person has released that, it is.
func TestEndedIsForgotten(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	const mark = `{"op":"x","id":"this","priorMigConfig":"all-1g.5gb","step":"parked","parked":"it will not go back"}`
	for _, tc := range []struct {
		name   string
		phase  v1alpha1.Phase
		ago    time.Duration
		mark   string
		bus    bool
		told   metav1.ConditionStatus
		again  time.Duration
		forgot bool
	}{
		{"of late", v1alpha1.Failed, 23 * time.Hour, "", false, "", time.Hour, false},
		{"long ago", v1alpha1.Failed, 25 * time.Hour, "", false, "", 0, true},
		{"parked, and still so", v1alpha1.Parked, 25 * time.Hour, mark, false, "", time.Hour, false},
		{"parked, and released", v1alpha1.Parked, 25 * time.Hour, "", false, "", 0, true},
		{"parked by another carrying out", v1alpha1.Parked, 25 * time.Hour, strings.Replace(mark, "this", "that", 1), false, "", 0, true},
		{"told", v1alpha1.Failed, 25 * time.Hour, "", true, metav1.ConditionTrue, 0, true},
		{"not told", v1alpha1.Failed, 25 * time.Hour, "", true, metav1.ConditionFalse, time.Minute, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			at := metav1.NewMicroTime(now.Add(-tc.ago))
			rem := &v1alpha1.Remediation{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Remediation"}, ObjectMeta: metav1.ObjectMeta{Name: "x", UID: "this"},
				Status: v1alpha1.RemediationStatus{Phase: tc.phase, Ended: &at}}
			if tc.told != "" {
				meta.SetStatusCondition(&rem.Status.Conditions, metav1.Condition{Type: v1alpha1.Told, Status: tc.told, Reason: reasonPublished})
			}
			u := object(t, rem)
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "gpu-1"}, Spec: corev1.NodeSpec{Unschedulable: true}}
			if tc.mark != "" {
				node.Annotations = map[string]string{diagnosis.OperationAnnotation: tc.mark}
			}
			custom := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{v1alpha1.Remediations: "RemediationList", v1alpha1.Approvals: "ApprovalList"}, u)
			o := Options{Deps: Deps{Client: fake.NewClientset(node), Dynamic: custom, Now: func() time.Time { return now }}}
			if tc.bus {
				o.Publish = func(context.Context, notice.Notice) error { return nil }
			}
			again, err := New(o).Look(t.Context(), "x")
			if err != nil || again != tc.again {
				t.Errorf("again after %s, %v; want %s", again, err, tc.again)
			}
			_, err = plan.Store{Dynamic: custom}.Get(t.Context(), "x")
			if forgot := apierrors.IsNotFound(err); forgot != tc.forgot || !forgot && err != nil {
				t.Errorf("forgotten: %v (%v), want %v", forgot, err, tc.forgot)
			}
		})
	}
}
