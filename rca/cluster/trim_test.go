package cluster

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Of a pod's volumes those stay that decide on nodes; of requests that are the limits there
// is one copy, and requests of their own stay. Of rights it stays that a container has all.
func TestTrimmedPod(t *testing.T) {
	asks := func(n string) corev1.ResourceList {
		return corev1.ResourceList{"nvidia.com/gpu": resource.MustParse(n)}
	}
	claim := corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}
	p := &corev1.Pod{Spec: corev1.PodSpec{
		Volumes: []corev1.Volume{
			{Name: "kube-api-access-x", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{}}},
			{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
			{Name: "data", VolumeSource: claim}},
		Containers: []corev1.Container{
			{Name: "same", Resources: corev1.ResourceRequirements{Limits: asks("1"), Requests: asks("1")}},
			{Name: "more", Resources: corev1.ResourceRequirements{Limits: asks("2"), Requests: asks("1")}, SecurityContext: &corev1.SecurityContext{Privileged: new(false)}},
			{Name: "root", SecurityContext: &corev1.SecurityContext{Privileged: new(true), RunAsUser: new(int64)}}}}}
	want := p.DeepCopy()
	want.Spec.Containers[1].SecurityContext, want.Spec.Containers[2].SecurityContext = nil, &corev1.SecurityContext{Privileged: new(true)}
	want.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: claim}}
	Trim(p)
	if diff := cmp.Diff(want, p); diff != "" {
		t.Error(diff)
	}
	p.Spec.Containers[0].Resources.Limits["cpu"] = resource.MustParse("1")
	if r := p.Spec.Containers[0].Resources.Requests; len(r) != 2 {
		t.Errorf("two copies: %v", r)
	}
}

// Of a pod's status and managed fields that stays which a diagnosis can rely on: what its
// containers are at, and who wrote its node.
func TestTrimmedStatus(t *testing.T) {
	at := metav1.NewTime(time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC))
	wrote := func(manager, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, Time: &at, FieldsV1: metav1.NewFieldsV1(fields)}
	}
	waits := corev1.ContainerStatus{Name: "main", Image: "registry.example/x", RestartCount: 3, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
		LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, FinishedAt: at}}}
	known := waits
	known.ContainerID, known.ImageID = "containerd://0", "registry.example/x@sha256:0"
	status := corev1.PodStatus{Phase: corev1.PodRunning, Message: "m", Reason: "r", StartTime: &at, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "ContainersNotReady"}}}
	p := &corev1.Pod{Status: *status.DeepCopy(), ObjectMeta: metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{
		wrote("kube-controller-manager", `{"f:metadata":{}}`), wrote("kubectl", `{"f:spec":{"f:containers":{},"f:nodeName":{}}}`), wrote("kubelet", `{"f:status":{}}`)}}}
	p.Status.PodIP, p.Status.PodIPs, p.Status.HostIP, p.Status.HostIPs = "10.0.0.1", []corev1.PodIP{{IP: "10.0.0.1"}}, "10.0.0.2", []corev1.HostIP{{IP: "10.0.0.2"}}
	p.Status.InitContainerStatuses, p.Status.ContainerStatuses = []corev1.ContainerStatus{known}, []corev1.ContainerStatus{known}
	want := &corev1.Pod{Status: status, ObjectMeta: metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{wrote("kubectl", `{"f:spec":{"f:nodeName":{}}}`)}}}
	want.Status.InitContainerStatuses, want.Status.ContainerStatuses = []corev1.ContainerStatus{waits}, []corev1.ContainerStatus{waits}
	Trim(p)
	if diff := cmp.Diff(want, p); diff != "" {
		t.Error(diff)
	}
}

// Of a pod that is ready those conditions go that it had to pass for that, and the room that
// they took; of one that is not, all stay.
func TestTrimmedConditions(t *testing.T) {
	is := func(c corev1.PodConditionType, status corev1.ConditionStatus) corev1.PodCondition {
		return corev1.PodCondition{Type: c, Status: status}
	}
	for _, ready := range []corev1.ConditionStatus{corev1.ConditionTrue, corev1.ConditionFalse} {
		all := []corev1.PodCondition{is(corev1.PodReadyToStartContainers, corev1.ConditionTrue), is(corev1.PodInitialized, corev1.ConditionTrue),
			is(corev1.PodReady, ready), is(corev1.ContainersReady, ready), is(corev1.PodScheduled, corev1.ConditionTrue), is("example.com/gate", corev1.ConditionTrue)}
		want := all
		if ready == corev1.ConditionTrue {
			want = []corev1.PodCondition{all[0], all[2], all[4], all[5]}
		}
		p := &corev1.Pod{Status: corev1.PodStatus{Conditions: slices.Clone(all)}}
		Trim(p)
		if diff := cmp.Diff(want, p.Status.Conditions); diff != "" || cap(p.Status.Conditions) > len(all) || ready == corev1.ConditionTrue && cap(p.Status.Conditions) == len(all) {
			t.Errorf("ready %s, room for %d: %s", ready, cap(p.Status.Conditions), diff)
		}
	}
}

// Of pods that stand in a custom resource what places them is kept, as of a pod; of other lists of
// that name everything, and of what an operator is told to set not the values. Trimmed again it is the
// same.
func TestTrimmedTemplates(t *testing.T) {
	const text = `{
  "kind": "Workload", "metadata": {"name": "w", "namespace": "ml"},
  "spec": {"podSets": [{"name": "main", "count": 2, "template": {"metadata": {"labels": {"app": "x"}}, "spec": {
    "initContainers": [{"name": "proxy", "image": "p", "restartPolicy": "Always", "securityContext": {"privileged": true, "runAsUser": 0}}],
    "containers": [{"name": "main", "image": "x", "command": ["run"], "env": [{"name": "A", "value": "1"}], "volumeMounts": [{"name": "tmp"}],
      "ports": [{"hostPort": 80}], "resources": {"limits": {"nvidia.com/gpu": "1"}}, "securityContext": {"privileged": false}}],
    "volumes": [{"name": "tmp", "emptyDir": {}}, {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
    "tolerations": [{"operator": "Exists"}]}}}],
   "driver": {"env": [{"name": "B", "value": "2"}], "containers": [{"name": "main", "command": ["stays"]}]}}}`
	const want = `{
  "kind": "Workload", "metadata": {"name": "w", "namespace": "ml"},
  "spec": {"podSets": [{"name": "main", "count": 2, "template": {"metadata": {"labels": {"app": "x"}}, "spec": {
    "initContainers": [{"name": "proxy", "image": "p", "restartPolicy": "Always", "securityContext": {"privileged": true}}],
    "containers": [{"name": "main", "image": "x", "ports": [{"hostPort": 80}], "resources": {"limits": {"nvidia.com/gpu": "1"}}}],
    "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
    "tolerations": [{"operator": "Exists"}]}}}],
   "driver": {"env": [{"name": "B"}], "containers": [{"name": "main", "command": ["stays"]}]}}}`
	read := func(text string) *unstructured.Unstructured {
		o := &unstructured.Unstructured{}
		if err := json.Unmarshal([]byte(text), &o.Object); err != nil {
			t.Fatal(err)
		}
		return o
	}
	o := read(text)
	for range 2 {
		if Trim(o); !cmp.Equal(read(want).Object, o.Object) {
			t.Error(cmp.Diff(read(want).Object, o.Object))
		}
	}
}

// Of what a queue has, or an operator's job is, nobody asks who wrote it; of another API's kind of that name it stays.
func TestTrimmedWorkloads(t *testing.T) {
	for of, want := range map[[2]string]int{{"kueue.x-k8s.io/v1beta1", "Workload"}: 0, {"kubeflow.org/v1", "PyTorchJob"}: 0, {"scheduling.k8s.io/v1beta1", "Workload"}: 1, {"nvidia.com/v1", "ClusterPolicy"}: 1} {
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": of[0], "kind": of[1], "metadata": map[string]any{"name": "w"}}}
		o.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "kueue", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:status":{}}`)}})
		if Trim(o); len(o.GetManagedFields()) != want {
			t.Errorf("%s: %v", of, o.GetManagedFields())
		}
	}
}
