package decisions

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/executor"
	"github.com/unpend/unpend/remediate/guard"
	"github.com/unpend/unpend/remediate/journal"
	"github.com/unpend/unpend/remediate/plan"
	"github.com/unpend/unpend/remediate/v1alpha1"
	"github.com/unpend/unpend/watcher/incident"
)

// Who asks for a plan that takes two persons does not take the place of one of them.
func TestAskerLeavesRoomForTwo(t *testing.T) {
	const name = "24ac8de5d78c24ac8de5d78c24ac8de5d78c24ac8de5d78c24ac8de5d78c24ac"
	found := plan.Found{State: &cluster.State{}, Diagnosis: diagnosis.Diagnosis{Incident: "gpu-0123456789", Workload: incident.Ref{Kind: "Job", Namespace: "ml", Name: "training"}, Causes: []diagnosis.Cause{{ID: diagnosis.MIGLayoutMismatch}}},
		Fix: diagnosis.Fix{ID: 1, Plan: name, Actions: []diagnosis.Action{{Verb: diagnosis.VerbEvict, Target: diagnosis.Target{Kind: "Pod", Namespace: "ml", Name: "web", UID: "web"}}}}}
	for _, tc := range []struct {
		limits string
		words  []string // of who, in the order they come
		want   string   // approvals
		says   string
	}{
		{"", []string{"alice", "bob"}, "[" + name + " by alice " + name + "-2 by bob]", ""},
		{"twoPersons: {evictions: 0}", []string{"alice", "bob", "carol"}, "[" + name + " by bob " + name + "-2 by carol]",
			"You have asked for this plan, and two others have to approve it (it stops 1 pods, one person may stop 0): each by 'unpend approve gpu-0123456789#1'.\n"},
		{"twoPersons: {evictions: 0}", []string{"alice", "bob", "alice", "carol"}, "[" + name + " by bob " + name + "-2 by carol]",
			strings.Repeat("You have asked for this plan, and two others have to approve it (it stops 1 pods, one person may stop 0): each by 'unpend approve gpu-0123456789#1'.\n", 2)},
	} {
		t.Run(fmt.Sprint(tc.words), func(t *testing.T) {
			who := ""
			client := fake.NewClientset(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "there", Name: guard.ConfigMap}, Data: map[string]string{guard.LimitsKey: tc.limits}})
			client.PrependReactor("create", "selfsubjectreviews", func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, &authenticationv1.SelfSubjectReview{Status: authenticationv1.SelfSubjectReviewStatus{UserInfo: authenticationv1.UserInfo{Username: who}}}, nil
			})
			custom := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{v1alpha1.Remediations: "RemediationList", v1alpha1.Approvals: "ApprovalList"})
			d := executor.Deps{Client: client, Dynamic: custom, Now: time.Now}
			var out bytes.Buffer
			for _, who = range tc.words {
				ctx, cancel := context.WithCancel(t.Context())
				_, err := byExecutor(d, found, "there", &out)(ctx, func(journal.Progress) { cancel() })
				if cancel(); err == nil || !strings.Contains(err.Error(), "no longer watching") {
					t.Errorf("%s: %v", who, err)
				}
			}
			list, err := custom.Resource(v1alpha1.Approvals).List(t.Context(), metav1.ListOptions{})
			must(t, err)
			var got []string
			for _, a := range list.Items {
				spec, _ := a.Object["spec"].(map[string]any)
				got = append(got, fmt.Sprintf("%s by %s", a.GetName(), spec["approver"]))
			}
			if fmt.Sprint(got) != tc.want || out.String() != tc.says {
				t.Errorf("%v and %q, want %s and %q", got, out.String(), tc.want, tc.says)
			}
		})
	}
}
