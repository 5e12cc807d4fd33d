package program

import (
	"bytes"
	"strings"
	"testing"

	"github.com/unpend/unpend/rca/cluster/dump"
)

// suspended is a Job and a PyTorchJob that Kueue holds, and a Job that somebody suspended.
const suspended = `
apiVersion: batch/v1
kind: Job
metadata: {name: train, namespace: ml, uid: uid-j, labels: {kueue.x-k8s.io/queue-name: team-a}}
spec: {suspend: true}
---
apiVersion: batch/v1
kind: Job
metadata: {name: by-hand, namespace: ml, uid: uid-h}
spec: {suspend: true}
---
apiVersion: batch/v1
kind: Job
metadata: {name: unheard, namespace: ml, uid: uid-u, labels: {kueue.x-k8s.io/queue-name: team-a}}
spec: {suspend: true}
---
apiVersion: v1
kind: PodList
items: []
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: Workload
metadata: {name: job-train-12345, namespace: ml, ownerReferences: [{apiVersion: batch/v1, kind: Job, name: train, uid: uid-j, controller: true}]}
spec: {queueName: team-a}
status: {conditions: [{type: QuotaReserved, status: "False", reason: Pending, message: "insufficient unused quota for nvidia.com/gpu in flavor a100, 1 more needed"}]}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: Workload
metadata: {name: pytorchjob-bert-12345, namespace: ml, ownerReferences: [{apiVersion: kubeflow.org/v1, kind: PyTorchJob, name: bert, uid: uid-k, controller: true}]}
spec: {queueName: nope}
status: {conditions: [{type: QuotaReserved, status: "False", reason: Inadmissible, message: "LocalQueue nope doesn't exist"}]}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: vc-abc, namespace: ml, ownerReferences: [{apiVersion: batch.volcano.sh/v1alpha1, kind: Job, name: vc, uid: uid-v, controller: true}]}
spec: {minMember: 2, queue: research}
status: {phase: Pending}
---
apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata: {name: nightly, namespace: ml}
spec: {suspend: true}
`

// What a queue or somebody holds is there, though it has no pod: it is named with its
// object, and with what that says.
func TestWhatAQueueHoldsIsThere(t *testing.T) {
	st, err := dump.Read([]string{"-"}, strings.NewReader(suspended))
	if err != nil {
		t.Fatal(err)
	}
	for asked, want := range map[string]string{
		"job/train":       "job/train in namespace ml is there, and is suspended: it has no pods until somebody or its queue resumes it (spec.suspend is true); job/train in namespace ml waits in Kueue: Workload job-train-12345 in queue team-a says QuotaReserved=False Pending: insufficient unused quota for nvidia.com/gpu in flavor a100, 1 more needed.\n",
		"job/by-hand":     "job/by-hand in namespace ml is there, and is suspended: it has no pods until somebody or its queue resumes it (spec.suspend is true).\n",
		"unheard":         "job/unheard in namespace ml is there, and is suspended: it has no pods until somebody or its queue resumes it (spec.suspend is true); its queue is team-a, and Kueue has made no Workload for it (does Kueue run, with its integration for Jobs?).\n",
		"pytorchjob/bert": "pytorchjob/bert in namespace ml waits in Kueue: Workload pytorchjob-bert-12345 in queue nope says QuotaReserved=False Inadmissible: LocalQueue nope doesn't exist.\n",
		"job/vc":          "job/vc in namespace ml is there: PodGroup vc-abc is Pending, queue research.\n",
		"job/none":        "",

		"workflow/nightly":              "workflow/nightly in namespace ml is there, and no pod of it waits.\n",
		"nightly":                       "workflow/nightly in namespace ml is there, and no pod of it waits.\n",
		"workflows.argoproj.io/nightly": "workflow/nightly in namespace ml is there, and no pod of it waits.\n",
		"workflows.example.org/nightly": "",
		"jobs.batch/by-hand":            "job/by-hand in namespace ml is there, and is suspended: it has no pods until somebody or its queue resumes it (spec.suspend is true).\n",
		"jobs.batch.volcano.sh/vc":      "job/vc in namespace ml is there: PodGroup vc-abc is Pending, queue research.\n",
		"jobs.batch/vc":                 "",
		"jobs.batch.volcano.sh/by-hand": "",
	} {
		target, err := newTarget([]string{asked}, "ml")
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		err = target.explainNothing(st, &out)
		if missing := err != nil && strings.Contains(err.Error(), "is not there"); out.String() != want || missing != (want == "") {
			t.Errorf("%s: %q, %v; want %q", asked, out.String(), err, want)
		}
	}
}
