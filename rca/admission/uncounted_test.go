package admission

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/diagnosis"
)

// A quota that is new is counted in seconds; one that is old and has no figures is not counted at all.
func TestQuotasThatNobodyCounts(t *testing.T) {
	noon := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	quota := func(name string, age, changed time.Duration, used ...string) *corev1.ResourceQuota {
		q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: name, CreationTimestamp: metav1.NewTime(noon.Add(-age))},
			Spec: corev1.ResourceQuotaSpec{Hard: list("cpu", "9", "requests.nvidia.com/gpu", "1")}, Status: corev1.ResourceQuotaStatus{Used: list(used...)}}
		if changed > 0 {
			at := metav1.NewTime(noon.Add(-changed))
			q.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl-edit", Time: &at}, {Manager: "kube-controller-manager", Subresource: "status", Time: &metav1.Time{Time: noon}}}
		}
		return q
	}
	const soon = "possible: quota uncounted: its quota is not counted yet: a quota was new and what is used of it not counted yet, which passes within seconds"
	counted := quota("c", time.Hour, 0, "cpu", "1", "requests.nvidia.com/gpu", "0")
	for name, tc := range map[string]struct {
		quotas []*corev1.ResourceQuota
		unread string
		want   string
	}{
		"one that is new":          {[]*corev1.ResourceQuota{quota("q", time.Minute, 0)}, "", soon},
		"one that was changed now": {[]*corev1.ResourceQuota{quota("q", time.Hour, time.Minute)}, "", soon},
		"none was read":            {[]*corev1.ResourceQuota{quota("q", time.Hour, 0)}, "forbidden", soon},
		"another namespace's":      {[]*corev1.ResourceQuota{in("hr", quota("q", time.Hour, 0))}, "", soon},
		"one that is old":          {[]*corev1.ResourceQuota{counted, quota("q", time.Hour, 0)}, "", "likely: quota uncounted q: its quota is never counted: ResourceQuota q has been without a figure of what is used, of all that it limits, for 1 h: nobody counts it, and the API server takes no pod before that"},
		"one key of it":            {[]*corev1.ResourceQuota{quota("q", time.Hour, 10*time.Minute, "cpu", "1")}, "", "likely: quota uncounted q: its quota is never counted: ResourceQuota q has been without a figure of what is used, of requests.nvidia.com/gpu, for 10 min: nobody counts it, and the API server takes no pod before that"},
		"all are counted by now":   {[]*corev1.ResourceQuota{counted}, "", "possible: quota uncounted gone: its quota is counted by now: what is used of a quota was not counted yet when it refused; all quotas of ml are counted by now, and its controller has not tried again (its back-off reaches minutes)"},
	} {
		t.Run(name, func(t *testing.T) {
			c := refused(&cluster.State{Quotas: tc.quotas, Now: noon, Unread: map[string]string{"ResourceQuota": tc.unread}}, asking("p"), "status unknown for quota: q, resources: cpu")
			if got := toldRefusal(c.Refuses()); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
			if r := c.Refuses(); (r.Stale != nil) != slices.ContainsFunc(r.evidence, func(e diagnosis.Evidence) bool { return e.Ref == "ResourceQuota/ml/q" }) {
				t.Errorf("shown by %v", r.evidence)
			}
		})
	}
}
