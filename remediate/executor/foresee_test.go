package executor

import (
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/guard"
	"github.com/unpend/unpend/remediate/v1alpha1"
	"github.com/unpend/unpend/watcher/incident"
)

// Where an executor leads, or did, all guard-rails are foreseen; where none does, what stops
// every plan, for only that is kept there; and where unpend is not, none. What may not be read
// is an error, which is not "nothing is against it".
func TestRailsForesee(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	node := func(name string) *corev1.Node {
		one := corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{Capacity: one, Allocatable: one,
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}}
	}
	st := &cluster.State{Now: now, Nodes: []*corev1.Node{node("gpu-1"), node("gpu-2")}}
	changed := &v1alpha1.Remediation{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Remediation"}, ObjectMeta: metav1.ObjectMeta{Name: "x", UID: "x"},
		Spec:   v1alpha1.RemediationSpec{Nodes: []string{"gpu-1"}},
		Status: v1alpha1.RemediationStatus{Phase: v1alpha1.Succeeded, Ended: new(metav1.NewMicroTime(now.Add(-time.Minute)))}}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "unpend", Name: LeaderLease}, Spec: coordinationv1.LeaseSpec{HolderIdentity: new("a")}}
	paused := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "unpend", Name: guard.ConfigMap}, Data: map[string]string{guard.PausedKey: "true"}}
	unclear := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "unpend", Name: guard.ConfigMap}, Data: map[string]string{guard.LimitsKey: "coolDown: banana"}}
	for name, tc := range map[string]struct {
		objects []runtime.Object
		forbid  string
		// held of a plan for gpu-1, of one for gpu-2; parts of them.
		first, second string
		refused       bool // the first
		err           string
	}{
		"led":                   {[]runtime.Object{lease}, "", "node gpu-1 was changed at 2026-11-20T11:59:00Z by plan", "", true, ""},
		"led and paused":        {[]runtime.Object{lease, paused}, "", "unpend is paused by a person", "unpend is paused by a person", false, ""},
		"led by nobody":         {nil, "", "", "", false, ""},
		"led by nobody, paused": {[]runtime.Object{paused}, "", "unpend is paused by a person", "unpend is paused by a person", false, ""},
		"limits of no sense":    {[]runtime.Object{lease, unclear}, "", "configmap unpend/unpend-guards: read limits.yaml: coolDown is banana", "configmap unpend/unpend-guards: ", false, ""},
		"unread limits":         {[]runtime.Object{lease}, "configmaps", "", "", false, "read configmap unpend/unpend-guards"},
		"unread leases":         {[]runtime.Object{lease}, "leases", "", "", false, "leases"},
	} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset(tc.objects...)
			client.Resources = append(client.Resources, &metav1.APIResourceList{GroupVersion: v1alpha1.GroupVersion.String()})
			if tc.forbid != "" {
				client.PrependReactor("get", tc.forbid, func(clienttesting.Action) (bool, runtime.Object, error) {
					return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: tc.forbid}, "x", nil)
				})
			}
			custom := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{v1alpha1.Remediations: "RemediationList"}, object(t, changed))
			rails, err := ReadRails(t.Context(), Deps{Client: client, Dynamic: custom, Now: func() time.Time { return now }}, "unpend")
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("%v, want %q", err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			says := rails.Guard(st)
			plan := func(node string) diagnosis.Held {
				return says(incident.Incident{ID: "gpu-0123456789"}, diagnosis.Fix{Kind: diagnosis.RepartitionGPU, Cost: diagnosis.Cost{Nodes: []string{node}},
					Actions: []diagnosis.Action{{Verb: diagnosis.VerbRelayout, Target: diagnosis.Target{Kind: "Node", Name: node}}}})
			}
			first, second := plan("gpu-1"), plan("gpu-2")
			if !strings.HasPrefix(first.Why, tc.first) || (first.Why == "") != (tc.first == "") || first.Refused != tc.refused {
				t.Errorf("gpu-1: %+v", first)
			}
			if !strings.HasPrefix(second.Why, tc.second) || (second.Why == "") != (tc.second == "") || second.Refused {
				t.Errorf("gpu-2: %+v", second)
			}
		})
	}
	t.Run("not installed", func(t *testing.T) {
		client := fake.NewClientset()
		client.PrependReactor("get", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "x", nil)
		})
		rails, err := ReadRails(t.Context(), Deps{Client: client, Now: func() time.Time { return now }}, "unpend")
		if rails != nil || err != nil {
			t.Errorf("%+v, %v", rails, err)
		}
	})
}
