package outside_test

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/edit/edittest"
	"github.com/unpend/unpend/rca/outside"
	"github.com/unpend/unpend/rca/rcatest"
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

// More quota is offered while the queue has too little, and not where Kueue has only not tried again.
func TestQuotaThatIsUnusedIsNotRaised(t *testing.T) {
	const wait = "by hand, none risk: wait until its queue admits it"
	for reserved, want := range map[string]string{"7": wait, "8": wait + "; by hand, medium risk: raise the quota of ClusterQueue gpus from 8 to 9 nvidia.com/gpu of flavor x"} {
		w := edittest.New()
		w.Asking(rcatest.List("nvidia.com/gpu", "1"))
		add(t, &w.QueuedWorkloads, `{metadata: {namespace: a, name: wl}, spec: {queueName: team, podSets: [{name: main, count: 1}]}, status: {conditions: [{type: QuotaReserved, status: "False", message: "insufficient unused quota for nvidia.com/gpu in flavor x, 1 more needed"}]}}`)
		add(t, &w.Queues.Local, `{metadata: {namespace: a, name: team}, spec: {clusterQueue: gpus}}`)
		add(t, &w.Queues.Cluster, `{metadata: {name: gpus}, spec: {resourceGroups: [{flavors: [{name: x, resources: [{name: nvidia.com/gpu, nominalQuota: "8"}]}]}]}, status: {flavorsReservation: [{name: x, resources: [{name: nvidia.com/gpu, total: "`+reserved+`"}]}]}}`)
		w.Wait.Annotations = map[string]string{"kueue.x-k8s.io/workload": "wl"}
		if got := edittest.ToldAll(outside.LetInByQueue(edit.New(w.Case(t, "Deployment")))); got != want {
			t.Errorf("%s reserved: %s, want %s", reserved, got, want)
		}
	}
}

// What Kueue has let in, or given up, waits for no quota.
func TestWhoWaitsForNoQuota(t *testing.T) {
	const look = "  kubectl -n a describe workloads.kueue.x-k8s.io wl\n"
	conditions := func(active, list string) func(*edittest.World) {
		return func(w *edittest.World) {
			add(t, &w.QueuedWorkloads, `{metadata: {namespace: a, name: wl}, spec: {queueName: team`+active+`}, status: {conditions: [`+list+`]}}`)
			w.Wait.Annotations = map[string]string{"kueue.x-k8s.io/workload": "wl"}
		}
	}
	at := func(ago time.Duration) string {
		return `{type: Admitted, status: "True", lastTransitionTime: "` + rcatest.Noon.Add(-ago).Format(time.RFC3339) + `"}`
	}
	const evicted = `{type: Evicted, status: "True", reason: WorkloadEvictedByDeactivation, message: "The workload is deactivated due to exceeding the maximum number of re-queuing retries"}`
	run(t, map[string]row{
		"let in a moment ago": {outside.LetInByQueue, conditions("", at(time.Minute-time.Second)), `Wait for "", 0 min, by hand, none risk: wait until Kueue lets it begin
until Kueue lets it begin
` + look},
		"let in, and it does not begin": {outside.LetInByQueue, conditions("", at(time.Minute)), `Manual for "", 0 min, by hand, none risk: see why Kueue does not let begin what it has admitted
until Kueue lets it begin
` + look + `  kubectl -n kueue-system logs deploy/kueue-controller-manager --since=1h | grep w  # what it may not patch is there alone
  kubectl -n a get events --field-selector involvedObject.name=w
`},
		"given up": {outside.LetInByQueue, conditions(", active: false", evicted), `Manual for "", 0 min, by hand, low risk: set its Workload active again once there is room for it: Kueue has given up and does not try again by itself
until its Workload is active
` + look + `  kubectl -n a patch workloads.kueue.x-k8s.io wl --type merge -p '{"spec":{"active":true}}'
  kubectl -n kueue-system get configmap kueue-manager-config -o yaml  # waitForPodsReady: timeout, requeuingStrategy.backoffLimitCount
`},
	})
}

// What Kueue gives to another cluster is looked for there: in the one that takes it, where that is
// told.
func TestWhatAnotherClusterTakes(t *testing.T) {
	given := func(controller, message string) func(*edittest.World) {
		return func(w *edittest.World) {
			add(t, &w.QueuedWorkloads, `{metadata: {namespace: a, name: wl}, spec: {queueName: team}, status: {conditions: [{type: QuotaReserved, status: "True"}], admissionChecks: [{name: far, state: Ready, message: '`+message+`'}]}}`)
			add(t, &w.Queues.Checks, `{metadata: {name: far}, spec: {controllerName: `+controller+`}}`)
			w.Wait.Annotations = map[string]string{"kueue.x-k8s.io/workload": "wl"}
		}
	}
	const multi = "kueue.x-k8s.io/multikueue"
	const commands = ` (another cluster decides, which is not read here)
  kubectl -n a describe workloads.kueue.x-k8s.io wl
  kubectl get multikueueclusters.kueue.x-k8s.io
  kubectl --context CLUSTER -n a get workloads.kueue.x-k8s.io,pods
`
	run(t, map[string]row{
		"one has it":    {outside.LookInCluster, given(multi, `The workload got reservation on "east-1"`), `Manual for "QueueNotAdmitted", 0 min, by hand, none risk: look for it in cluster east-1: what it does, or waits for, is said there` + commands},
		"none yet":      {outside.LookInCluster, given(multi, ""), `Manual for "QueueNotAdmitted", 0 min, by hand, none risk: see which cluster takes it: what it waits for is said there` + commands},
		"another check": {outside.LookInCluster, given("example.com/check", ""), ""},
		"no Workload":   {outside.LookInCluster, func(*edittest.World) {}, ""},
	})
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
		"in its back-off":      {append(slices.Clone(evicted), since("Requeued", "False", "AdmissionCheck", "", "2020-01-01T10:01:00Z")), "Retry", false, "by hand, none risk: wait until admission check prov agrees"},
		"it was given none":    {evicted, "Retry", false, "by hand, low risk: have Kueue try its admission checks again"},
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

// A device that no template has is left out of the request; GPUs are what it is about.
func TestMachinesWithoutADevice(t *testing.T) {
	lacks := func(what string) func(*edittest.World) {
		return func(w *edittest.World) {
			asks := rcatest.List("nvidia.com/gpu", "1")
			asks["x.io/fuse"] = asks["nvidia.com/gpu"]
			w.Asking(asks)
			w.Wait.Labels = map[string]string{"kueue.x-k8s.io/queue-name": "team"}
			w.Wait.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "kueue.x-k8s.io/admission"}}
			add(t, &w.QueuedWorkloads, `{metadata: {namespace: a, name: wl, ownerReferences: [{kind: Pod, name: w, uid: w}]}, spec: {queueName: team}, status: {conditions: [{type: QuotaReserved, status: "True"}], admissionChecks: [{name: prov, state: Pending}]}}`)
			add(t, &w.ProvisioningRequests, `{metadata: {namespace: a, name: pr, ownerReferences: [{kind: Workload, name: wl}]}, status: {conditions: [{type: Failed, status: "True", reason: No, message: "pool (Insufficient `+what+`), "}]}}`)
		}
	}
	const mend = `Manual for "", 0 min, by hand, low risk: mend what ProvisioningRequest pr says, and have Kueue ask for machines again
until a ProvisioningRequest of its Workload is Provisioned
  kubectl -n a describe provisioningrequests.autoscaling.x-k8s.io pr
  kubectl get provisioningrequestconfigs.kueue.x-k8s.io,resourceflavors.kueue.x-k8s.io -o yaml  # the class that is asked, and the labels, taints and tolerations of the flavor
  kubectl -n a delete workloads.kueue.x-k8s.io wl  # Kueue makes it again; its place in the queue is that of a new one
`
	run(t, map[string]row{
		"one that it asks for": {outside.AskForMachinesAgain, lacks("x.io/fuse"), `Manual for "", 0 min, by hand, medium risk: ask without x.io/fuse, which by ProvisioningRequest pr no machine that it may have offers, and have Kueue ask for machines again
until a ProvisioningRequest of its Workload is Provisioned
  kubectl -n a describe provisioningrequests.autoscaling.x-k8s.io pr
  kubectl -n a edit deployment/w  # requests and limits without x.io/fuse; Kueue then asks again
`},
		"a volume that is made with it": {outside.AskForMachinesAgain, func(w *edittest.World) {
			lacks("cpu")(w)
			w.Wait.Spec.Volumes = []corev1.Volume{{Name: "own"}, {Name: "scratch", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}}}
		}, `Manual for "", 0 min, by hand, medium risk: have volume scratch of another kind (a claim that exists, or emptyDir): its claim is made with the pod, and ProvisioningRequest pr asks for one that is not there, and have Kueue ask for machines again
until a ProvisioningRequest of its Workload is Provisioned
  kubectl -n a describe provisioningrequests.autoscaling.x-k8s.io pr
  kubectl -n a edit deployment/w  # volume scratch other than by ephemeral.volumeClaimTemplate; Kueue then asks again
`},
		"GPUs":                 {outside.AskForMachinesAgain, lacks("nvidia.com/gpu"), mend},
		"nothing that it asks": {outside.AskForMachinesAgain, lacks("x.io/other"), mend},
		"no device":            {outside.AskForMachinesAgain, lacks("cpu"), mend},
	})
}
