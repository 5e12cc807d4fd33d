package queues

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/rca/rcatest"
)

// What a queue that passes over nobody has unused it keeps for its head, and only where it has something, and somebody waits.
func TestWhoKeepsTheQuotaOfACohort(t *testing.T) {
	queue := func(name, strategy, quota, reserved string) *unstructured.Unstructured {
		flavor := map[string]any{"name": "f", "resources": []any{map[string]any{"name": "cpu", "nominalQuota": quota}}}
		return object("", name, map[string]any{
			"spec":   map[string]any{"cohortName": "root", "queueingStrategy": strategy, "resourceGroups": []any{map[string]any{"coveredResources": []any{"cpu"}, "flavors": []any{flavor}}}},
			"status": map[string]any{"flavorsReservation": []any{map[string]any{"name": "f", "resources": []any{map[string]any{"name": "cpu", "total": reserved}}}}},
		})
	}
	waiting := func(why string) []any { return []any{condition("QuotaReserved", "False", "Pending", why)} }
	const outran = "Workload no longer fits after processing another workload"
	for name, tc := range map[string]struct {
		strategy, reserved, why string
		edit                    func(lender, head *unstructured.Unstructured)
		want                    string
	}{
		"it keeps it":             {"StrictFIFO", "1", outran, nil, "Workload/a/head"},
		"it takes what fits":      {"BestEffortFIFO", "1", outran, nil, ""},
		"it has nothing unused":   {"StrictFIFO", "2", outran, nil, ""},
		"quota lacks anyway":      {"StrictFIFO", "1", "insufficient unused quota for cpu in flavor f, 1 more needed", nil, ""},
		"it is of another cohort": {"StrictFIFO", "1", outran, func(lender, _ *unstructured.Unstructured) { set(lender, "other", "spec", "cohortName") }, ""},
		"its head is admitted": {"StrictFIFO", "1", outran, func(_, head *unstructured.Unstructured) {
			set(head, []any{condition("QuotaReserved", "True", "QuotaReserved", "")}, "status", "conditions")
		}, ""},
		"its head is of no queue yet": {"StrictFIFO", "1", outran, func(_, head *unstructured.Unstructured) { set(head, "none", "spec", "queueName") }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var mine *unstructured.Unstructured
			c := open(t, func(w *rcatest.World) {
				gated(w)
				mine = queued(w, map[string]any{"queueName": "team"}, map[string]any{"conditions": waiting(tc.why)})
				head := object("a", "head", map[string]any{"spec": map[string]any{"queueName": "lent"}, "status": map[string]any{"conditions": waiting("1 more needed")}})
				lender := queue("lender", tc.strategy, "2", tc.reserved)
				w.QueuedWorkloads = append(w.QueuedWorkloads, head)
				w.Queues.Local = []*unstructured.Unstructured{object("a", "team", map[string]any{"spec": map[string]any{"clusterQueue": "borrower"}}), object("a", "lent", map[string]any{"spec": map[string]any{"clusterQueue": "lender"}})}
				w.Queues.Cluster = []*unstructured.Unstructured{queue("borrower", "BestEffortFIFO", "0", "0"), lender}
				if tc.edit != nil {
					tc.edit(lender, head)
				}
			})
			c.Incident.Requests = map[string]string{"cpu": "1"}
			got := ""
			if h := Keeps(c, mine); h != nil {
				got = h.Ref()
			}
			if got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}
