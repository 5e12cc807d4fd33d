package acceptance

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/testdata/controlplane"
)

// queuesThere is a control plane with the kinds of queues, and of what they hold.
func queuesThere(t *testing.T) *controlplane.ControlPlane {
	t.Helper()
	c := start(t, controlplane.Extras{})
	c.InstallCRDs(t, crds)
	c.WaitForServiceAccount(t, "default")
	return c
}

// writeQueued makes an object of a queue in namespace default, or writes its status.
func writeQueued(t *testing.T, c *controlplane.ControlPlane, r schema.GroupVersionResource, text string, owner *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	must(t, yaml.Unmarshal([]byte(text), &u.Object))
	if owner != nil {
		u.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(owner, owner.GroupVersionKind())})
	}
	client := c.Dynamic().Resource(r).Namespace("default")
	before, err := client.Get(t.Context(), u.GetName(), metav1.GetOptions{})
	if err != nil {
		got, err := client.Create(t.Context(), u, metav1.CreateOptions{})
		must(t, err)
		return got
	}
	before.Object["status"] = u.Object["status"]
	got, err := client.Update(t.Context(), before, metav1.UpdateOptions{})
	must(t, err)
	return got
}

// The service tells of who waits in a queue and has no pod, under the id that a terminal gives it,
// quotes the queue, and takes it back once the queue has let it begin: of Kueue a RayCluster, and of
// Volcano a Job whose group is not let in. So it does of a RayCluster that a quota refuses a pod.
func TestQueuedWithoutAPodIsTold(t *testing.T) {
	needsControlPlane(t)
	c := queuesThere(t)
	var (
		clusters  = schema.GroupVersionResource{Group: "ray.io", Version: "v1", Resource: "rayclusters"}
		workloads = schema.GroupVersionResource{Group: "kueue.x-k8s.io", Version: "v1beta1", Resource: "workloads"}
		jobs      = schema.GroupVersionResource{Group: "batch.volcano.sh", Version: "v1alpha1", Resource: "jobs"}
		groups    = schema.GroupVersionResource{Group: "scheduling.volcano.sh", Version: "v1beta1", Resource: "podgroups"}
	)
	const asks = `template: {spec: {containers: [{name: main, image: registry.example/x, resources: {requests: {nvidia.com/gpu: "8"}, limits: {nvidia.com/gpu: "8"}}}]}}`
	queue := func(reserved string) string {
		return `{apiVersion: kueue.x-k8s.io/v1beta1, kind: Workload, metadata: {name: raycluster-llm}, spec: {queueName: team, podSets: [{name: worker, count: 2, ` + asks + `}]},
  status: {conditions: [{type: QuotaReserved, status: "` + reserved + `", reason: Pending, message: "couldn't assign flavors to pod set worker: insufficient unused quota for nvidia.com/gpu in flavor a100, 8 more needed", lastTransitionTime: "2026-11-20T10:00:00Z"},
    {type: Admitted, status: "` + reserved + `", reason: NoReservation, message: "", lastTransitionTime: "2026-11-20T10:00:00Z"}]}}`
	}
	group := func(phase string) string {
		return `{apiVersion: scheduling.volcano.sh/v1beta1, kind: PodGroup, metadata: {name: train-1}, spec: {queue: default, minMember: 2}, status: {phase: ` + phase + `, conditions: [{type: Unschedulable, status: "True", reason: NotEnoughResources, message: "0/0 tasks in gang unschedulable: pod group is not ready, 2 minAvailable", lastTransitionTime: "2026-11-20T10:00:00Z"}]}}`
	}
	refused := func(conditions string) string {
		return `{apiVersion: ray.io/v1, kind: RayCluster, metadata: {name: tune}, spec: {workerGroupSpecs: [{groupName: a100, replicas: 2, minReplicas: 0, maxReplicas: 4, ` + asks + `}]}, status: {conditions: [` + conditions + `]}}`
	}
	_, err := c.Client().CoreV1().ResourceQuotas("default").Create(t.Context(), &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "gpus"}, Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"requests.nvidia.com/gpu": resource.MustParse("4")}}}, metav1.CreateOptions{})
	must(t, err)
	ray := writeQueued(t, c, clusters, `{apiVersion: ray.io/v1, kind: RayCluster, metadata: {name: llm}, spec: {suspend: true}}`, nil)
	writeQueued(t, c, workloads, queue("False"), ray)
	o := serve(t, c)
	job := writeQueued(t, c, jobs, `{apiVersion: batch.volcano.sh/v1alpha1, kind: Job, metadata: {name: train}, spec: {queue: default, minAvailable: 2, tasks: [{name: worker, replicas: 2, `+asks+`}]}, status: {state: {phase: Pending}}}`, nil)
	writeQueued(t, c, groups, group("Pending"), job)
	writeQueued(t, c, clusters, refused(`{type: ReplicaFailure, status: "True", reason: FailedCreateWorkerPod, message: "FailedCreateWorkerPod\npods \"tune-a100-worker-x\" is forbidden: exceeded quota: gpus", lastTransitionTime: "2026-11-20T10:00:00Z"}`), nil)
	o.explains(t, []string{"llm", "train", "tune"}, time.Minute)
	for name, cause := range map[string]diagnosis.CauseID{"llm": diagnosis.QueueNotAdmitted, "train": diagnosis.SchedulerRefused, "tune": diagnosis.QuotaExceeded} {
		told := o.of("default", name)
		d := told[len(told)-1]
		here := whyOf(t, d.Workload.Kind+"/"+name, "-A", "--kubeconfig", c.Kubeconfig())
		if d.Incident != here.Incident || d.Causes[0].ID != cause || here.Causes[0].ID != cause || d.Pods.Waiting != 2 {
			t.Errorf("%s: the service says %s of %s, %d wait; a terminal %s of %s", name, d.Causes[0].ID, d.Incident, d.Pods.Waiting, here.Causes[0].ID, here.Incident)
		}
		code, dump, errs := call(t, "dump", "-o", "yaml", "-A", "--kubeconfig", c.Kubeconfig())
		file := filepath.Join(t.TempDir(), "dump.yaml")
		must(t, os.WriteFile(file, []byte(dump), 0o600))
		if again := whyOf(t, d.Workload.Kind+"/"+name, "-A", "-f", file); code != exitDone || again.Incident != d.Incident {
			t.Errorf("%s: %s in its dump, exit %d: %s", name, again.Incident, code, errs)
		}
	}
	resolved := `unpend_incidents_published_total{resolved="true"}`
	if n := o.figure(t, resolved); n > 0 {
		t.Errorf("%v are over already", n)
	}
	writeQueued(t, c, workloads, queue("True"), ray)
	writeQueued(t, c, groups, group("Running"), job)
	writeQueued(t, c, clusters, refused(""), nil)
	controlplane.Eventually(t, 30*time.Second, "all are over", func() (bool, string) {
		n := o.figure(t, resolved)
		return n == 3, fmt.Sprint(n)
	})
	if code, out, errs := call(t, "incidents", "-o", "name", "--kubeconfig", c.Kubeconfig()); code != exitDone || strings.Contains(out, "gpu-") {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
}
