package executor

import (
	"errors"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/unpend/unpend/remediate/guard"
	"github.com/unpend/unpend/remediate/plan"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

// What stops all plans stops one that is carried out without an executor too, also once
// it has begun; and so does that nobody can tell.
func TestUnled(t *testing.T) {
	now := time.Date(2026, 11, 22, 0, 30, 0, 0, time.UTC)
	object := func(name string, data map[string]string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "there", Name: name}, Data: data}
	}
	for name, tc := range map[string]struct {
		guards, breaker map[string]string
		forbidden       bool
		installed       bool
		deleted         bool
		says            string // empty: it may begin
	}{
		"nothing":                      {},
		"paused":                       {guards: map[string]string{guard.PausedKey: "true"}, says: "unpend is paused by a person: nothing is written until paused is false in ConfigMap unpend-guards"},
		"the breaker":                  {breaker: map[string]string{"open": "true", "since": "2026-11-21T12:00:00Z", "why": "three plans failed"}, says: "the breaker is open since 2026-11-21T12:00:00Z: three plans failed; "},
		"a freeze over midnight there": {guards: map[string]string{guard.LimitsKey: "freeze: [{cron: '0 23 * * *', duration: 3h, timezone: Europe/Berlin}]"}, says: "which lasts until 2026-11-22T02:00:00+01:00; freeze in"},
		"a freeze that is over":        {guards: map[string]string{guard.LimitsKey: "freeze: [{cron: '0 23 * * *', duration: 2h, timezone: Europe/Berlin}]"}},
		"limits of no sense":           {guards: map[string]string{guard.LimitsKey: "coolDown: banana"}, says: "whether all plans are stopped cannot be told: configmap there/unpend-guards: read limits.yaml: coolDown is banana: "},
		"may not be read":              {forbidden: true, installed: true, says: "whether all plans are stopped cannot be told: read configmap there/unpend-guards: "},
		"not installed":                {forbidden: true},
		"deleted since":                {deleted: true, says: "ConfigMap unpend-guards was deleted, and the kill switch with it: nothing is written until it is there again"},
	} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset(object(guard.ConfigMap, tc.guards), object(guard.BreakerConfigMap, tc.breaker))
			if tc.installed {
				client.Resources = []*metav1.APIResourceList{{GroupVersion: v1alpha1.GroupVersion.String()}}
			}
			client.PrependReactor("get", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
				return tc.forbidden, nil, apierrors.NewForbidden(corev1.Resource("configmaps"), guard.ConfigMap, errors.New("no right"))
			})
			if tc.deleted {
				lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "there", Name: LeaderLease}}
				client = fake.NewClientset(object(guard.ConfigMap, nil), lease)
				g := railsOf(Deps{Client: client, Now: func() time.Time { return now }}, "there")
				for range 2 { // the second changes nothing
					if err := g.remember(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				if err := g.halted(t.Context()); err != nil {
					t.Fatal(err)
				}
				if err := client.CoreV1().ConfigMaps("there").Delete(t.Context(), guard.ConfigMap, metav1.DeleteOptions{}); err != nil {
					t.Fatal(err)
				}
				if err := g.halted(t.Context()); !errors.Is(err, plan.ErrHalted) {
					t.Errorf("between two writes: %v", err)
				}
			}
			d, err := Unled(t.Context(), Deps{Client: client, Now: func() time.Time { return now }}, "there")
			if tc.says == "" && err != nil || tc.says != "" && (!errors.Is(err, plan.ErrRefused) || !strings.Contains(err.Error(), tc.says)) {
				t.Fatalf("%v, want %q", err, tc.says)
			}
			if tc.says != "" || tc.forbidden {
				return
			}
			if err := d.Hold(t.Context()); err != nil {
				t.Error(err)
			}
			if _, err := client.CoreV1().ConfigMaps("there").Update(t.Context(), object(guard.ConfigMap, map[string]string{guard.PausedKey: "yes"}), metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			if err := d.Hold(t.Context()); !errors.Is(err, plan.ErrHalted) {
				t.Errorf("paused since: %v", err)
			}
		})
	}
}
