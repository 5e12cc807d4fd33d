package executor

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/guard"
	"github.com/unpend/unpend/remediate/v1alpha1"
	"github.com/unpend/unpend/watcher/incident"
)

// Guard-rails that were read stand while the API server does not answer, for a diagnosis of
// the service; who asks once is told that they are not known, and so is everybody when they
// may not be read.
func TestGuardRailsStandWhileNobodyAnswers(t *testing.T) {
	away := errors.New("connection refused")
	refused := apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "x", nil)
	for name, tc := range map[string]struct {
		keep  time.Duration
		says  []error // of the API server, one after the other
		known []bool
	}{
		"the service": {time.Second, []error{away, nil, away, away, refused, nil}, []bool{false, true, true, true, false, true}},
		"one command": {0, []error{away, nil, away}, []bool{false, true, false}},
	} {
		t.Run(name, func(t *testing.T) {
			now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
			client := fake.NewClientset(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "unpend", Name: guard.ConfigMap}, Data: map[string]string{guard.PausedKey: "true"}})
			client.Resources = append(client.Resources, &metav1.APIResourceList{GroupVersion: v1alpha1.GroupVersion.String()})
			var says error
			client.PrependReactor("get", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) { return says != nil, nil, says })
			ask := GuardOf(Deps{Client: client, Now: func() time.Time { return now }}, "unpend", tc.keep)
			for i := range tc.says {
				says, now = tc.says[i], now.Add(2*time.Second)
				g, err := ask(t.Context(), &cluster.State{Now: now})
				if known := err == nil; known != tc.known[i] {
					t.Errorf("time %d: %v", i, err)
				} else if known && g(incident.Incident{}, diagnosis.Fix{}).Why == "" {
					t.Errorf("time %d: the kill switch holds nothing back", i)
				}
			}
		})
	}
}
