package outside_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/edit/edittest"
	"github.com/unpend/unpend/rca/outside"
	"github.com/unpend/unpend/rca/rcatest"
)

// Why Kueue takes quota from nobody of lower priority in the same queue is said by that queue's policy, and by nothing else.
func TestWhyKueuePreemptsNobody(t *testing.T) {
	const let = "let ClusterQueue q preempt Workload/a/low, of lower priority: now Kueue "
	const short = "insufficient unused quota for nvidia.com/gpu in flavor f, 4 more needed"
	for name, tc := range map[string]struct {
		policy, nominal, low, why string
		want, patch               string
	}{
		"none in its queue":           {"{reclaimWithinCohort: Any}", "4", "0", short, let + "preempts nobody of its own queue (withinClusterQueue: Never)", `{"withinClusterQueue":"LowerPriority"}`},
		"none that borrows":           {"{withinClusterQueue: LowerPriority, reclaimWithinCohort: Any}", "2", "0", short, let + "preempts nobody for who asks more than its nominal quota (borrowWithinCohort: Never)", `{"borrowWithinCohort":{"policy":"LowerPriority"}}`},
		"and it reclaims nothing":     {"{withinClusterQueue: LowerPriority}", "2", "0", short, let + "preempts nobody for who asks more than its nominal quota (borrowWithinCohort: Never)", `{"borrowWithinCohort":{"policy":"LowerPriority"},"reclaimWithinCohort":"LowerPriority"}`},
		"it need not borrow":          {"{withinClusterQueue: LowerPriority}", "4", "0", short, "", ""},
		"who borrows may":             {"{withinClusterQueue: LowerPriority, borrowWithinCohort: {policy: LowerPriority}}", "2", "0", short, "", ""},
		"nobody is of lower priority": {"{}", "4", "9", short, "", ""},
		"for another reason":          {"{}", "4", "0", "insufficient quota, request > maximum capacity (8 > 4)", "", ""},
	} {
		w := edittest.New()
		w.Asking(rcatest.List("nvidia.com/gpu", "4"))
		w.Wait.Annotations = map[string]string{"kueue.x-k8s.io/workload": "wl"}
		w.Wait.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "kueue.x-k8s.io/admission"}}
		add(t, &w.Queues.Local, "{metadata: {namespace: a, name: l}, spec: {clusterQueue: q}}")
		add(t, &w.Queues.Cluster, "{metadata: {name: q}, spec: {cohort: team, preemption: "+tc.policy+", resourceGroups: [{coveredResources: [nvidia.com/gpu], flavors: [{name: f, resources: [{name: nvidia.com/gpu, nominalQuota: '"+tc.nominal+"'}]}]}]}}")
		add(t, &w.QueuedWorkloads, "{metadata: {namespace: a, name: wl}, spec: {queueName: l, priority: 5, podSets: [{name: main, count: 1}]}, status: {conditions: [{type: QuotaReserved, status: 'False', reason: Pending, message: '"+tc.why+"'}]}}")
		add(t, &w.QueuedWorkloads, "{metadata: {namespace: a, name: low, ownerReferences: [{apiVersion: batch/v1, kind: Job, name: low}]}, spec: {queueName: l, priority: "+tc.low+"}, status: {admission: {clusterQueue: q, podSetAssignments: [{name: main, flavors: {nvidia.com/gpu: f}, resourceUsage: {nvidia.com/gpu: '4'}}]}}}")
		runs := rcatest.Victim("low-0", 0, 0, 0, "low-0")
		runs.Spec.NodeName, w.Pods = "n", append(w.Pods, runs)
		runs.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "low", Controller: new(true)}}
		var got, patch string
		for _, ch := range outside.LetInByQueue(edit.New(w.Case(t, "Deployment"))) {
			if strings.Contains(ch.Title, " preempt ") {
				got, patch = ch.Title, ch.Commands[0]
				if len(ch.Drained) != 1 || ch.Drained[0] != runs || !ch.StopsUnknown {
					t.Errorf("%s: stops %v", name, ch.Drained)
				}
			}
		}
		if got != tc.want || !strings.Contains(patch, tc.patch) {
			t.Errorf("%s: got  %s\n%s\nwant %s", name, got, patch, tc.want)
		}
	}
}
