package outside_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/edit/edittest"
	"github.com/unpend/unpend/rca/outside"
)

// What Kueue says of a Workload tells whether waiting helps, more quota, or neither.
func TestWhatAQueueSays(t *testing.T) {
	const wait, raise = "by hand, none risk: wait until its queue admits it", "by hand, medium risk: raise the quota of its ClusterQueue"
	for name, tc := range map[string]struct {
		active  any
		message string
		want    string
	}{
		"nothing is known":        {nil, "none", wait},
		"others hold it":          {nil, "insufficient unused quota for nvidia.com/gpu", wait + "; " + raise},
		"it can never have it":    {nil, "insufficient quota, request > maximum capacity (8 > 4)", raise},
		"something else":          {true, "waiting for its checks", wait},
		"somebody has stopped it": {false, "insufficient unused quota", "by hand, none risk: see who made its Workload inactive"},
	} {
		t.Run(name, func(t *testing.T) {
			w := edittest.New()
			if tc.message != "none" {
				spec := map[string]any{}
				if tc.active != nil {
					spec["active"] = tc.active
				}
				w.QueuedWorkloads = []*unstructured.Unstructured{{Object: map[string]any{"metadata": map[string]any{"namespace": "a", "name": "wl"}, "spec": spec,
					"status": map[string]any{"conditions": []any{map[string]any{"type": "QuotaReserved", "status": "False", "reason": "Pending", "message": tc.message}}}}}}
				w.Wait.Annotations = map[string]string{"kueue.x-k8s.io/workload": "wl"}
			}
			if got := edittest.ToldAll(outside.LetInByQueue(edit.New(w.Case(t, "Deployment")))); got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}

// Who has its quota and its checks, or whose back-off is over, waits for Kueue: not for quota,
// not for the check.
func TestKueueHasToTryAgain(t *testing.T) {
	since := func(kind, status, reason, message, at string) any {
		return map[string]any{"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": at}
	}
	evicted := []any{since("QuotaReserved", "False", "Pending", "The workload has failed admission checks", "2020-01-01T10:00:00Z"), since("Evicted", "True", "AdmissionCheck", "", "2020-01-01T10:00:00Z")}
	for name, tc := range map[string]struct {
		conditions []any
		state      string
		passes     bool
		want       string
	}{
		"in its back-off":      {evicted, "Retry", false, "by hand, none risk: wait until admission check prov agrees"},
		"the check refuses it": {evicted, "Rejected", false, "by hand, none risk: see why admission check prov has rejected it"},
		"its back-off is over": {append(slices.Clone(evicted), since("Requeued", "True", "BackoffFinished", "", "2020-01-01T10:01:00Z")), "Retry", false, "by hand, low risk: have Kueue try its admission checks again"},
		"no place by topology": {[]any{since("QuotaReserved", "True", "QuotaReserved", "", "2020-01-01T10:00:00Z")}, "Ready", true, "by hand, low risk: have Kueue place it again from the beginning"},
	} {
		t.Run(name, func(t *testing.T) {
			w := edittest.New()
			w.QueuedWorkloads = []*unstructured.Unstructured{{Object: map[string]any{"metadata": map[string]any{"namespace": "a", "name": "wl"}, "spec": map[string]any{},
				"status": map[string]any{"conditions": tc.conditions, "admissionChecks": []any{map[string]any{"name": "prov", "state": tc.state, "message": "Max nodepool size reached"}}}}}}
			if tc.passes {
				w.Events = append(w.Events, &corev1.Event{InvolvedObject: corev1.ObjectReference{Kind: "Workload", Namespace: "a", Name: "wl"}, Reason: "SecondPassFailed", Message: "insufficient unused quota"})
			}
			w.Wait.Annotations = map[string]string{"kueue.x-k8s.io/workload": "wl"}
			if got := edittest.ToldAll(outside.LetInByQueue(edit.New(w.Case(t, "Deployment")))); got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}
