package queues

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/rcatest"
)

// figures are what a ClusterQueue may give of GPUs in a flavor, and what is reserved of that.
func figures(queue *unstructured.Unstructured, flavor, nominal, reserved string) {
	of := func(field, value string) []any {
		return []any{map[string]any{"name": flavor, "resources": []any{map[string]any{"name": "cpu", field: "0"}, map[string]any{"name": "nvidia.com/gpu", field: value}}}}
	}
	set(queue, []any{map[string]any{"flavors": of("nominalQuota", nominal)}, map[string]any{"flavors": []any{}}}, "spec", "resourceGroups")
	if reserved != "" {
		set(queue, of("total", reserved), "status", "flavorsReservation")
	}
}

// evicted is that Kueue has taken its quota back, so long ago.
func evicted(reason string, ago time.Duration) any {
	k := condition("Evicted", "True", reason, "").(map[string]any)
	k["lastTransitionTime"] = rcatest.Noon.Add(-ago).UTC().Format(time.RFC3339)
	return k
}

// Kueue's last word on quota is outdated where the queue has as much unused by now as all pods of the Workload ask:
// it is told so, unless others may have borrowed it.
func TestWhatKueueSaidOfQuotaBefore(t *testing.T) {
	const gpus = "insufficient unused quota for nvidia.com/gpu in flavor a, 4 more needed"
	const says, by = "proven: its queue (Kueue) has not admitted it: ", "; by the figures of ClusterQueue gpus that is unused now, and Kueue has not tried again"
	requests := func(amounts ...string) (out []any) {
		for _, a := range amounts {
			out = append(out, map[string]any{"name": "main", "resources": map[string]any{"nvidia.com/gpu": a}})
		}
		return out
	}
	for name, tc := range map[string]struct {
		words             string
		nominal, reserved string
		counted           []any // by Kueue
		sets              []any // of the Workload, where Kueue has not counted
		cohort            string
		want              bool
	}{
		"just as much is unused":        {gpus, "8", "4", requests("4"), nil, "", true},
		"less is":                       {gpus, "8", "5", requests("4"), nil, "", false},
		"all sets together ask more":    {gpus, "8", "4", requests("4", "1"), nil, "", false},
		"in another flavor":             {strings.ReplaceAll(gpus, "flavor a", "flavor b"), "8", "0", requests("4"), nil, "", false},
		"in that and in another":        {strings.ReplaceAll(gpus, "flavor a", "flavor b") + ", " + gpus, "8", "0", requests("4"), nil, "", true},
		"of another resource, too":      {gpus + ", insufficient unused quota for cpu in flavor a, 1 more needed", "8", "0", requests("4"), nil, "", false},
		"others may have borrowed":      {gpus, "8", "0", requests("4"), nil, "all", false},
		"what is reserved is not known": {gpus, "8", "", requests("4"), nil, "", false},
		"it is never enough":            {"insufficient quota for nvidia.com/gpu in flavor a, request > maximum capacity (8 > 4)", "8", "0", requests("4"), nil, "", false},
		"by the pod":                    {gpus, "8", "4", nil, []any{map[string]any{"name": "main", "count": int64(2)}}, "", true},
		"by more such pods":             {gpus, "8", "4", nil, []any{map[string]any{"name": "main", "count": int64(3)}}, "", false},
		"pods that differ":              {gpus, "8", "0", nil, []any{map[string]any{"name": "a", "count": int64(1)}, map[string]any{"name": "b", "count": int64(1)}}, "", false},
		"Kueue has counted other":       {gpus, "8", "0", []any{map[string]any{"resources": map[string]any{"cpu": "1"}}}, []any{map[string]any{"name": "main", "count": int64(1)}}, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			var mine *unstructured.Unstructured
			c := open(t, func(w *rcatest.World) {
				gated(w)
				w.Asking(rcatest.List("nvidia.com/gpu", "2"))
				status := map[string]any{"conditions": []any{condition("QuotaReserved", "False", "Pending", tc.words)}}
				if tc.counted != nil {
					status["resourceRequests"] = tc.counted
				}
				mine = queued(w, map[string]any{"queueName": "team", "podSets": tc.sets}, status)
				queue := object("", "gpus", map[string]any{"spec": map[string]any{"cohort": tc.cohort}})
				figures(queue, "a", tc.nominal, tc.reserved)
				w.Queues.Local = []*unstructured.Unstructured{object("a", "team", map[string]any{"spec": map[string]any{"clusterQueue": "gpus"}})}
				w.Queues.Cluster = []*unstructured.Unstructured{queue}
			})
			got, _, _ := strings.Cut(told(c.NotAdmitted()), "\n")
			if c.QuotaOf(mine).Outdated() != tc.want || strings.HasSuffix(got, by) != tc.want || !strings.HasPrefix(got, says) {
				t.Errorf("%v: %s", c.QuotaOf(mine).Outdated(), got)
			}
		})
	}
}

// Of a node quota is to spare where a flavor that stands for it has as much unused as the Workload asks: another
// flavor's is not the node's, and of a flavor that was not read it is not known.
func TestQuotaToSpareOnANode(t *testing.T) {
	for name, tc := range map[string]struct {
		labels            map[string]any // of the flavor's nodes
		nominal, reserved string
		asks              string
		unread, cohort    bool
		none              bool // no GPU is asked
		want              string
	}{
		"its flavor's":         {map[string]any{"pool": "x"}, "8", "4", "4", false, false, false, "n"},
		"too little of it":     {map[string]any{"pool": "x"}, "8", "4", "5", false, false, false, ""},
		"any node's":           {nil, "8", "4", "4", false, false, false, "n other"},
		"another's":            {map[string]any{"pool": "y"}, "8", "4", "4", false, false, false, ""},
		"the flavor is unread": {map[string]any{"pool": "x"}, "8", "4", "4", true, false, false, ""},
		"others may have it":   {map[string]any{"pool": "x"}, "8", "4", "4", false, true, false, ""},
		"of no GPU":            {map[string]any{"pool": "x"}, "8", "4", "4", false, false, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var mine *unstructured.Unstructured
			c := open(t, func(w *rcatest.World) {
				gated(w)
				if tc.none {
					w.Asking(rcatest.List("cpu", "1"))
				}
				w.AddNode(sim.Node{Name: "n", Labels: map[string]string{"pool": "x"}})
				w.AddNode(sim.Node{Name: "other", Labels: map[string]string{"pool": "z"}})
				mine = queued(w, map[string]any{"queueName": "team"}, map[string]any{"resourceRequests": []any{map[string]any{"resources": map[string]any{"nvidia.com/gpu": tc.asks}}}})
				queue := object("", "gpus", map[string]any{"spec": map[string]any{}})
				if tc.cohort {
					set(queue, "all", "spec", "cohortName")
				}
				figures(queue, "a", tc.nominal, tc.reserved)
				if !tc.unread {
					w.Queues.Flavors = []*unstructured.Unstructured{object("", "a", map[string]any{"spec": map[string]any{"nodeLabels": tc.labels}})}
				}
				w.Queues.Local = []*unstructured.Unstructured{object("a", "team", map[string]any{"spec": map[string]any{"clusterQueue": "gpus"}})}
				w.Queues.Cluster = []*unstructured.Unstructured{queue}
			})
			var got []string
			for _, n := range c.Cluster.SortedNodes() {
				if c.QuotaOf(mine).Spare(n) {
					got = append(got, n.Name)
				}
			}
			if strings.Join(got, " ") != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}
