package queues

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/rcatest"
	"github.com/unpend/unpend/watcher/incident"

	corev1 "k8s.io/api/core/v1"
)

const atGate = "\nPod/a/w: gate kueue.x-k8s.io/admission"

// What Kueue holds is told in the words of its own Workload: quota before the checks behind
// it, and nothing where neither a gate nor a suspended owner is Kueue's.
func TestWhatKueueHolds(t *testing.T) {
	no := map[string]any{"conditions": []any{condition("Admitted", "False", "Pending", "The workload has no reservation"), condition("Evicted", "False", "Never", "never"), condition("QuotaReserved", "False", "Pending", "couldn't assign flavors to pod set main: insufficient quota\n for nvidia.com/gpu")}}
	for name, tc := range map[string]struct {
		fill func(*rcatest.World)
		want string
	}{
		"no gate":                         {func(w *rcatest.World) { queued(w, nil, no) }, ""},
		"another's gate":                  {func(w *rcatest.World) { w.Wait.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "a"}} }, ""},
		"a gate that nothing is known of": {gated, "proven: its queue (Kueue) has not admitted it" + atGate},
		"of another pod":                  {func(w *rcatest.World) { gated(w); queued(w, nil, no).SetOwnerReferences(nil) }, "proven: its queue (Kueue) has not admitted it" + atGate},
		"of another namespace":            {func(w *rcatest.World) { gated(w); queued(w, nil, no).SetNamespace("b") }, "proven: its queue (Kueue) has not admitted it" + atGate},
		"an owner without UID is nobody's": {func(w *rcatest.World) {
			gated(w)
			queued(w, nil, no).SetOwnerReferences([]metav1.OwnerReference{{Name: "w"}})
			w.Wait.UID = ""
		}, "proven: its queue (Kueue) has not admitted it" + atGate},
		"quota before checks": {func(w *rcatest.World) {
			gated(w)
			w.Wait.Labels[incident.QueueLabel] = "team"
			queued(w, nil, no)
		}, "proven: its queue (Kueue) has not admitted it: insufficient quota for nvidia.com/gpu" + atGate + "\nPod/a/w: queue team\nWorkload/a/mine: QuotaReserved=False, Pending: couldn't assign flavors to pod set main: insufficient quota for nvidia.com/gpu"},
		"the checks behind the quota": {func(w *rcatest.World) {
			gated(w)
			w.Wait.Annotations = map[string]string{"kueue.x-k8s.io/workload": "mine"}
			queued(w, nil, map[string]any{"conditions": []any{condition("QuotaReserved", "True", "Reserved", "reserved"), condition("Admitted", "False", "Pending", "waits for a check")}}).SetOwnerReferences(nil)
		}, "proven: its queue (Kueue) has not admitted it: waits for a check" + atGate + "\nWorkload/a/mine: Admitted=False, Pending: waits for a check"},
		"of its group, and somebody has set it aside": {func(w *rcatest.World) {
			gated(w)
			w.Wait.Labels["kueue.x-k8s.io/pod-group-name"] = "mine"
			queued(w, map[string]any{"active": false}, no).SetOwnerReferences(nil)
		}, "proven: its queue (Kueue) has not admitted it: its Workload is not active" + atGate + "\nWorkload/a/mine: spec.active is false"},
		"nothing says why": {func(w *rcatest.World) {
			gated(w)
			queued(w, map[string]any{"active": true}, map[string]any{"conditions": []any{"odd"}})
		}, "proven: its queue (Kueue) has not admitted it" + atGate + "\nWorkload/a/mine: has no condition that says why"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := told(open(t, tc.fill).NotAdmitted()); got != tc.want {
				t.Errorf("%s\nwant\n%s", got, tc.want)
			}
		})
	}
}

// Who makes the pods may be held in their place: then the finding is about that.
func TestASuspendedOwnerIsHeld(t *testing.T) {
	c := open(t, func(*rcatest.World) {})
	c.Held = &incident.Refusal{Owner: incident.Ref{Kind: "Job", Namespace: "a", Name: "train"}, Wants: 2, Queue: "team"}
	if got, want := told(c.NotAdmitted()), "proven: its queue (Kueue) has not admitted it\nJob/a/train: suspended, and wants 2 pods\nJob/a/train: queue team"; got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// With its quota a Workload waits for its checks, the one that refuses first; before that
// nobody has asked them.
func TestChecksBehindTheQuota(t *testing.T) {
	check := func(name, state, message string) any {
		return map[string]any{"name": name, "state": state, "message": message}
	}
	for reserved, want := range map[string]string{
		"True": "proven: its queue (Kueue) has not admitted it: it has its quota, and admission check prov is Retry: Retrying after failure: no capacity" + atGate + `
Workload/a/mine: Admitted=False, Pending: unsatisfied
Workload/a/mine: admission check prov is Retry: Retrying after failure: no capacity
Workload/a/mine: admission check budget is Pending
AdmissionCheck/budget: Active=False NoController: nobody
ProvisioningRequest/a/mine-prov-1: Failed=True Out: of stock`,
		"False": "proven: its queue (Kueue) has not admitted it: no" + atGate + "\nWorkload/a/mine: QuotaReserved=False, Pending: no",
	} {
		c := open(t, func(w *rcatest.World) {
			gated(w)
			queued(w, nil, map[string]any{"conditions": []any{condition("QuotaReserved", reserved, "Pending", "no"), condition("Admitted", "False", "Pending", "unsatisfied")},
				"admissionChecks": []any{check("fine", "Ready", "ok"), check("budget", "Pending", ""), check("prov", "Retry", "Retrying after failure: no capacity")}})
			w.Queues.Checks = []*unstructured.Unstructured{
				object("", "budget", map[string]any{"status": map[string]any{"conditions": []any{condition("Active", "False", "NoController", "nobody")}}}),
				object("", "prov", map[string]any{"status": map[string]any{"conditions": []any{condition("Active", "True", "Active", "")}}})}
			w.ProvisioningRequests = []*unstructured.Unstructured{object("a", "mine-prov-1", map[string]any{"status": map[string]any{"conditions": []any{condition("Failed", "True", "Out", "of stock")}}}), object("a", "another", map[string]any{})}
			w.ProvisioningRequests[0].SetOwnerReferences([]metav1.OwnerReference{{Kind: "Workload", Name: "mine"}})
		})
		if got := told(c.NotAdmitted()); got != want {
			t.Errorf("reserved %s: %s\nwant\n%s", reserved, got, want)
		}
	}
}

// The quota of each flavor is told with its numbers, and which nodes it stands for.
func TestQuotaOfEachFlavor(t *testing.T) {
	has := func(quota string) []any {
		return []any{map[string]any{"name": "cpu", "nominalQuota": "9"}, map[string]any{"name": gpu, "nominalQuota": quota, "borrowingLimit": "1"}}
	}
	flavor := func(name string, labels map[string]any) *unstructured.Unstructured {
		return object("", name, map[string]any{"spec": map[string]any{"nodeLabels": labels}})
	}
	c := open(t, func(w *rcatest.World) {
		w.AddNode(sim.Node{Name: "n", GPUs: 2, MIGOff: []int{0, 1}}, func(n *corev1.Node, _ *nodeprobe.NodeGeometry) { n.Labels["pool"] = "a100" })
		gated(w)
		queued(w, map[string]any{"queueName": "team"}, map[string]any{})
		w.Queues.Local = []*unstructured.Unstructured{object("a", "team", map[string]any{"spec": map[string]any{"clusterQueue": "gpus"}})}
		w.Queues.Cluster = []*unstructured.Unstructured{object("", "gpus", map[string]any{
			"spec":   map[string]any{"cohort": "all", "resourceGroups": []any{map[string]any{"flavors": []any{map[string]any{"name": "a100", "resources": has("2")}, map[string]any{"name": "h100", "resources": has("8")}, map[string]any{"name": "any", "resources": has("0")}}}}},
			"status": map[string]any{"flavorsReservation": []any{map[string]any{"name": "a100", "resources": []any{map[string]any{"name": gpu, "total": "3", "borrowed": "1"}}}}}})}
		w.Queues.Flavors = []*unstructured.Unstructured{flavor("a100", map[string]any{"pool": "a100"}), flavor("h100", map[string]any{"pool": "h100"}), flavor("any", nil)}
	})
	const want = `
ClusterQueue/gpus: flavor a100: nvidia.com/gpu quota 2, 3 reserved, 1 of it borrowed, cohort all, borrows at most 1
ResourceFlavor/a100: stands for nodes with pool=a100: 1 node with 2 nvidia.com/gpu
ClusterQueue/gpus: flavor h100: nvidia.com/gpu quota 8, cohort all, borrows at most 1
ResourceFlavor/h100: stands for nodes with pool=h100: no node has that now
ClusterQueue/gpus: flavor any: nvidia.com/gpu quota 0, cohort all, borrows at most 1`
	if got := told(c.NotAdmitted()); !strings.HasSuffix(got, want) {
		t.Errorf("%s\nwant at its end\n%s", got, want)
	}
}

// A queue of Kueue's is broken where it, or the one it leads to, is not there or is stopped;
// not where it was not read, and not where Kueue has looked at it and says something else.
func TestQueuesOfKueueThatAdmitNobody(t *testing.T) {
	local := func(w *rcatest.World, spec, status map[string]any) {
		w.Queues.Local = []*unstructured.Unstructured{object("a", "team", map[string]any{"spec": spec, "status": status})}
	}
	owner := func(w *rcatest.World, spec, status map[string]any) {
		w.Queues.Cluster = []*unstructured.Unstructured{object("", "gpus", map[string]any{"spec": spec, "status": status})}
	}
	to := map[string]any{"clusterQueue": "gpus"}
	inactive := func(reason string) map[string]any {
		return map[string]any{"conditions": []any{condition("Active", "False", reason, "for a reason")}}
	}
	for name, tc := range map[string]struct {
		fill func(*rcatest.World)
		want string // Ref and words
	}{
		"it is there":           {func(w *rcatest.World) { local(w, to, nil); owner(w, nil, nil) }, ""},
		"it is not":             {func(*rcatest.World) {}, "-n a localqueues.kueue.x-k8s.io team: LocalQueue team does not exist in namespace a"},
		"it was not read":       {func(w *rcatest.World) { w.Unread["LocalQueue"] = "x" }, ""},
		"another namespace's":   {func(w *rcatest.World) { local(w, to, nil); w.Queues.Local[0].SetNamespace("b") }, "-n a localqueues.kueue.x-k8s.io team: LocalQueue team does not exist in namespace a"},
		"it leads nowhere":      {func(w *rcatest.World) { local(w, to, nil) }, "clusterqueues.kueue.x-k8s.io gpus: LocalQueue team leads to ClusterQueue gpus, which does not exist"},
		"where it leads unread": {func(w *rcatest.World) { local(w, to, nil); w.Unread["ClusterQueue"] = "x" }, ""},
		"somebody stopped it": {func(w *rcatest.World) {
			local(w, map[string]any{"clusterQueue": "gpus", "stopPolicy": "Hold"}, nil)
			owner(w, nil, nil)
		}, "-n a localqueues.kueue.x-k8s.io team: LocalQueue team is stopped (stopPolicy Hold)"},
		"None stops nothing": {func(w *rcatest.World) {
			local(w, map[string]any{"clusterQueue": "gpus", "stopPolicy": "None"}, nil)
			owner(w, nil, nil)
		}, ""},
		"the one above": {func(w *rcatest.World) { local(w, to, nil); owner(w, map[string]any{"stopPolicy": "HoldAndDrain"}, nil) }, "clusterqueues.kueue.x-k8s.io gpus: ClusterQueue gpus is stopped (stopPolicy HoldAndDrain)"},
		"by the one above": {func(w *rcatest.World) {
			local(w, to, inactive("ClusterQueueIsInactive"))
			owner(w, nil, inactive("FlavorNotFound"))
		}, "clusterqueues.kueue.x-k8s.io gpus: ClusterQueue gpus is not active: FlavorNotFound: for a reason"},
		"by that, and it is well": {func(w *rcatest.World) { local(w, to, inactive("ClusterQueueIsInactive")); owner(w, nil, nil) }, "-n a localqueues.kueue.x-k8s.io team: LocalQueue team is not active: ClusterQueueIsInactive: for a reason"},
		"Kueue says so": {func(w *rcatest.World) {
			w.Unread["LocalQueue"] = "x"
			queued(w, nil, map[string]any{"conditions": []any{condition("QuotaReserved", "False", "Inadmissible", "LocalQueue team doesn't exist")}})
		}, "-n a localqueues.kueue.x-k8s.io team: Kueue says: LocalQueue team doesn't exist"},
		"Kueue says so of one that was read": {func(w *rcatest.World) {
			queued(w, nil, map[string]any{"conditions": []any{condition("QuotaReserved", "False", "Inadmissible", "LocalQueue team doesn't exist")}})
		}, "-n a localqueues.kueue.x-k8s.io team: LocalQueue team does not exist in namespace a"},
		"Kueue has said nothing yet": {func(w *rcatest.World) { queued(w, nil, map[string]any{}) }, "-n a localqueues.kueue.x-k8s.io team: LocalQueue team does not exist in namespace a"},
		"Kueue says another thing": {func(w *rcatest.World) {
			queued(w, nil, map[string]any{"conditions": []any{condition("QuotaReserved", "False", "Pending", "insufficient quota")}})
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := open(t, func(w *rcatest.World) {
				gated(w)
				w.Wait.Labels[incident.QueueLabel] = "team"
				tc.fill(w)
			})
			got := ""
			if q := c.Broken(); q != nil {
				got = q.Ref() + ": " + q.Says
			}
			if got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

// Kueue writes into a Workload within seconds; of one that it has written nothing into for long nobody knows when it will.
func TestAWorkloadThatKueueHasNotLookedAt(t *testing.T) {
	made := rcatest.Noon
	for name, k := range map[string]struct {
		now        time.Time
		conditions []any
		born       bool
		want       bool
	}{
		"long ago":          {made.Add(unlooked + time.Second), nil, true, true},
		"just now":          {made.Add(unlooked), nil, true, false},
		"it has said so":    {made.Add(time.Hour), []any{map[string]any{"type": "QuotaReserved", "status": "False"}}, true, false},
		"nobody knows when": {made.Add(time.Hour), nil, false, false},
	} {
		w := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{}}}
		if k.born {
			w.SetCreationTimestamp(metav1.Time{Time: made})
		}
		if k.conditions != nil {
			w.Object["status"] = map[string]any{"conditions": k.conditions}
		}
		if got := Unlooked(w, k.now); got != k.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
