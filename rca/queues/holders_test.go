package queues

import (
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/rcatest"
)

// team has the pod's Workload wait in LocalQueue team of ClusterQueue gpus, for what Kueue says.
func team(w *rcatest.World, why string) *unstructured.Unstructured {
	gated(w)
	w.Queues.Local = []*unstructured.Unstructured{object("a", "team", map[string]any{"spec": map[string]any{"clusterQueue": "gpus"}})}
	w.Queues.Cluster = []*unstructured.Unstructured{object("", "gpus", map[string]any{"spec": map[string]any{"resourceGroups": []any{map[string]any{"flavors": []any{map[string]any{"name": "a100", "resources": []any{map[string]any{"name": gpu, "nominalQuota": "8"}}}}}}}})}
	return queued(w, map[string]any{"queueName": "team"}, map[string]any{"conditions": []any{condition("QuotaReserved", "False", "Pending", why)}})
}

// holds adds a Workload that Kueue has given GPUs of a queue in, of as many pod sets.
func holds(w *rcatest.World, name, queue string, conditions []any, gpus ...string) {
	var sets []any
	for _, n := range gpus {
		sets = append(sets, map[string]any{"flavors": map[string]any{gpu: "a100"}, "resourceUsage": map[string]any{gpu: n, "cpu": "1"}})
	}
	w.QueuedWorkloads = append(w.QueuedWorkloads, object("b", name, map[string]any{"status": map[string]any{"admission": map[string]any{"clusterQueue": queue, "podSetAssignments": sets}, "conditions": conditions}}))
}

// Who holds a queue's quota is named: first who was evicted and keeps it for too long, then who
// holds most, by name where that is the same; three of them.
func TestWhoHoldsTheQuota(t *testing.T) {
	const lacks = "insufficient unused quota for nvidia.com/gpu in flavor a100, 1 more needed"
	evicted := func(ago time.Duration) []any {
		return []any{stood("Evicted", "True", "Preempted", "", ago), condition("Finished", "False", "", "")}
	}
	c := open(t, func(w *rcatest.World) {
		team(w, lacks)
		holds(w, "less", "gpus", nil, "1")
		holds(w, "same", "gpus", nil, "2", "2")
		holds(w, "most", "gpus", nil, "4")
		holds(w, "none", "gpus", nil, "0")
		holds(w, "odd", "gpus", nil, "x")
		holds(w, "elsewhere", "other", nil, "9")
		holds(w, "over", "gpus", []any{condition("Finished", "True", "", "")}, "9")
		holds(w, "leaves", "gpus", evicted(10*time.Minute), "2")
		holds(w, "stuck", "gpus", evicted(10*time.Minute+time.Second), "1")
	})
	var got []string
	for _, h := range c.Holders(c.ClusterQueue(c.Queued())) {
		got = append(got, fmt.Sprintf("%s %s %s %v", h.Ref(), h.Amount.String(), h.Flavor, h.Stuck(rcatest.Noon)))
	}
	const want = "Workload/b/stuck 1 a100 true; Workload/b/most 4 a100 false; Workload/b/same 4 a100 false; Workload/b/leaves 2 a100 false; Workload/b/less 1 a100 false"
	if strings.Join(got, "; ") != want {
		t.Errorf("%s\nwant\n%s", strings.Join(got, "; "), want)
	}
	f := c.NotAdmitted()
	if !strings.HasSuffix(f.Says, lacks+"; Workload/b/stuck was evicted and still holds 1") {
		t.Error(f.Says)
	}
	const end = `
ClusterQueue/gpus: flavor a100: nvidia.com/gpu quota 8
Workload/b/stuck: holds 1 nvidia.com/gpu of flavor a100, though Kueue has evicted it at 2026-11-20 11:49 UTC (Preempted)
Workload/b/most: holds 4 nvidia.com/gpu of flavor a100
Workload/b/same: holds 4 nvidia.com/gpu of flavor a100`
	if !strings.HasSuffix(told(f), end) {
		t.Errorf("%s\nwant at its end%s", told(f), end)
	}
}

// Quota that an evicted Workload keeps is what the pod waits for where Kueue says that unused
// quota is short.
func TestQuotaThatIsKept(t *testing.T) {
	for name, tc := range map[string]struct {
		why  string
		ago  time.Duration
		kept bool
	}{
		"it keeps it":            {"insufficient unused quota", 10*time.Minute + time.Second, true},
		"it is about to let go":  {"insufficient unused quota", 10 * time.Minute, false},
		"Kueue says other words": {"insufficient quota, request > maximum capacity", time.Hour, false},
	} {
		c := open(t, func(w *rcatest.World) {
			team(w, tc.why)
			holds(w, "x", "gpus", []any{stood("Evicted", "True", "Preempted", "", tc.ago)}, "1")
		})
		if all := c.Kept(c.Queued()); (len(all) == 1) != tc.kept || len(all) > 0 && all[0].Ref() != "Workload/b/x" {
			t.Errorf("%s: %+v", name, all)
		}
	}
	c := open(t, func(w *rcatest.World) { team(w, "insufficient unused quota"); w.Queues.Local = nil })
	if h := c.Kept(c.Queued()); h != nil {
		t.Errorf("%+v of a queue that was not read", h)
	}
}

// What is borrowed is told where some is, and what may be borrowed or lent only in a cohort.
func TestWhatOfAQuotaIsTold(t *testing.T) {
	has := map[string]any{"name": gpu, "nominalQuota": int64(8), "borrowingLimit": "1", "lendingLimit": "2"}
	reserves := func(flavor, name string, borrowed any) map[string]any {
		return map[string]any{"flavorsReservation": []any{map[string]any{"name": flavor, "resources": []any{map[string]any{"name": name, "total": "3", "borrowed": borrowed}}}}}
	}
	for name, tc := range map[string]struct {
		spec, status map[string]any
		want         string
	}{
		"no cohort":           {map[string]any{}, nil, "flavor a100: nvidia.com/gpu quota 8"},
		"a cohort":            {map[string]any{"cohortName": "all"}, nil, "flavor a100: nvidia.com/gpu quota 8, cohort all, borrows at most 1, lends at most 2"},
		"some is borrowed":    {map[string]any{}, reserves("a100", gpu, "1"), "flavor a100: nvidia.com/gpu quota 8, 3 reserved, 1 of it borrowed"},
		"none is borrowed":    {map[string]any{}, reserves("a100", gpu, "0"), "flavor a100: nvidia.com/gpu quota 8, 3 reserved"},
		"that is not said":    {map[string]any{}, reserves("a100", gpu, nil), "flavor a100: nvidia.com/gpu quota 8, 3 reserved"},
		"of another flavor":   {map[string]any{}, reserves("h100", gpu, "1"), "flavor a100: nvidia.com/gpu quota 8"},
		"of another resource": {map[string]any{}, reserves("a100", "cpu", "1"), "flavor a100: nvidia.com/gpu quota 8"},
	} {
		if got := quotaOf(object("", "gpus", map[string]any{"spec": tc.spec, "status": tc.status}), "a100", has).Fact; got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

// Pods that are wanted together need a domain of the flavor's topology that offers enough: the
// one that offers most is told, and where there is none why.
func TestWherePodsAreWantedTogether(t *testing.T) {
	const rack, block = "rack", "block"
	set := func(edit func(map[string]any)) map[string]any {
		m := map[string]any{"name": "main", "count": int64(4)}
		edit(m)
		return m
	}
	request := func(kind, level string) func(map[string]any) {
		return func(m map[string]any) { m["topologyRequest"] = map[string]any{kind: level} }
	}
	note := func(kind, level string) func(map[string]any) {
		return func(m map[string]any) {
			m["template"] = map[string]any{"metadata": map[string]any{"annotations": map[string]any{"kueue.x-k8s.io/podset-" + kind + "-topology": level}}}
		}
	}
	topology := func(w *rcatest.World) {
		w.Queues.Topologies = []*unstructured.Unstructured{object("", "tree", map[string]any{"spec": map[string]any{"levels": []any{map[string]any{"nodeLabel": block}, map[string]any{"nodeLabel": rack}}}})}
	}
	on := func(w *rcatest.World, name string, gpus int, labels map[string]string) {
		off := make([]int, gpus)
		for i := range off {
			off[i] = i
		}
		w.AddNode(sim.Node{Name: name, GPUs: gpus, MIGOff: off, Labels: labels}, func(n *corev1.Node, _ *nodeprobe.NodeGeometry) { n.Labels["pool"] = "a100" })
	}
	nodes := func(w *rcatest.World) {
		topology(w)
		on(w, "n1", 2, map[string]string{block: "b1", rack: "r1"})
		on(w, "n2", 2, map[string]string{block: "b1", rack: "r1"})
		on(w, "n3", 3, map[string]string{block: "b0", rack: "r1"})
		on(w, "n4", 9, map[string]string{block: "b1", rack: "r9"})
		w.Nodes[3].Labels["pool"] = "other"
	}
	flavor := map[string]any{"nodeLabels": map[string]any{"pool": "a100"}, "topologyName": "tree"}
	for name, tc := range map[string]struct {
		set    map[string]any
		flavor map[string]any
		fill   func(*rcatest.World)
		want   string
	}{
		"required":             {set(request("required", rack)), flavor, nodes, "Topology/tree: no rack has more than 4 nvidia.com/gpu; pod set main wants 4 × 1 in one"},
		"preferred":            {set(request("preferred", rack)), flavor, nodes, "Topology/tree: no rack has more than 4 nvidia.com/gpu; pod set main would like 4 × 1 in one"},
		"by an annotation":     {set(note("required", block)), flavor, nodes, "Topology/tree: no block has more than 4 nvidia.com/gpu; pod set main wants 4 × 1 in one"},
		"by another":           {set(note("preferred", block)), flavor, nodes, "Topology/tree: no block has more than 4 nvidia.com/gpu; pod set main would like 4 × 1 in one"},
		"nodes beside it":      {set(request("required", rack)), flavor, func(w *rcatest.World) { nodes(w); on(w, "n5", 9, map[string]string{rack: "r1"}) }, "Topology/tree: no rack has more than 4 nvidia.com/gpu; nodes without the label are in none; pod set main wants 4 × 1 in one"},
		"no node is in one":    {set(request("required", rack)), flavor, topology, "Topology/tree: no node of flavor a100 has the label rack"},
		"a level it has not":   {set(request("required", "host")), flavor, nodes, "Topology/tree: has the levels block, rack, and pod set main wants its pods in one host"},
		"a topology unmade":    {set(request("required", rack)), flavor, func(*rcatest.World) {}, "Topology/tree: is not among those that were read; ResourceFlavor a100 names it"},
		"a topology unread":    {set(request("required", rack)), flavor, func(w *rcatest.World) { w.Unread["Topology"] = "x" }, ""},
		"no topology":          {set(request("required", rack)), map[string]any{}, nodes, "ResourceFlavor/a100: names no Topology (spec.topologyName), so it places no pods together"},
		"nobody wants it":      {set(func(map[string]any) {}), flavor, nodes, ""},
		"a flavor that is not": {set(request("required", rack)), nil, nodes, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := open(t, func(w *rcatest.World) {
				o := team(w, "x")
				o.Object["spec"].(map[string]any)["podSets"] = []any{tc.set}
				if tc.flavor != nil {
					w.Queues.Flavors = []*unstructured.Unstructured{object("", "a100", map[string]any{"spec": tc.flavor})}
				}
				tc.fill(w)
			})
			var got []string
			for _, e := range flavorOf(c.Cluster, "a100", gpu).placed(c.Queued(), 1) {
				got = append(got, e.Ref+": "+e.Fact)
			}
			if strings.Join(got, "; ") != tc.want {
				t.Errorf("%s\nwant\n%s", strings.Join(got, "; "), tc.want)
			}
		})
	}
}

// Quota that is reserved for a pod or a Job that is gone is nobody's: by the uid in Kueue's label, once it has been so for a while.
func TestQuotaOfWhatIsGone(t *testing.T) {
	reserved := func(ago time.Duration) []any { return []any{stood("QuotaReserved", "True", "QuotaReserved", "", ago)} }
	for name, tc := range map[string]struct {
		workload, uid string
		conditions    []any
		edit          func(w *rcatest.World)
		want          string
	}{
		"of a pod":               {"pod-x", "gone", reserved(10 * time.Minute), nil, "Pod"},
		"of a Job":               {"job-x", "gone", reserved(time.Hour), nil, "Job"},
		"just now":               {"pod-x", "gone", reserved(10*time.Minute - time.Second), nil, ""},
		"it has none reserved":   {"pod-x", "gone", nil, nil, ""},
		"of a pod that is there": {"pod-x", "w", reserved(time.Hour), func(w *rcatest.World) { w.Wait.UID = "w" }, ""},
		"of a Job that is there": {"job-x", "j", reserved(time.Hour), func(w *rcatest.World) { w.Jobs = append(w.Jobs, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{UID: "j"}}) }, ""},
		"no label says of what":  {"pod-x", "", reserved(time.Hour), nil, ""},
		"of a kind nobody reads": {"rayjob-x", "gone", reserved(time.Hour), nil, ""},
		"pods are not read":      {"pod-x", "gone", reserved(time.Hour), func(w *rcatest.World) { w.Unread["Pod"] = "x" }, ""},
		"Jobs are not read":      {"job-x", "gone", reserved(time.Hour), func(w *rcatest.World) { w.Unread["Job"] = "x" }, ""},
	} {
		c := open(t, func(w *rcatest.World) {
			team(w, "insufficient unused quota")
			holds(w, tc.workload, "gpus", tc.conditions, "1")
			if tc.uid != "" {
				w.QueuedWorkloads[len(w.QueuedWorkloads)-1].SetLabels(map[string]string{jobUID: tc.uid})
			}
			if tc.edit != nil {
				tc.edit(w)
			}
		})
		all := c.Holders(c.ClusterQueue(c.Queued()))
		if got := all[0].Orphan; got != tc.want || (len(c.Kept(c.Queued())) == 1) != (got != "") {
			t.Errorf("%s: %q, want %q: %+v", name, got, tc.want, all)
		}
	}
}
