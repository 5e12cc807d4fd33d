package incident

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	kserveText = `{apiVersion: serving.kserve.io/v1beta1, kind: InferenceService, metadata: {namespace: ml, name: ft, uid: t, resourceVersion: "7", creationTimestamp: "2026-11-20T10:00:00Z"}, spec: {
    predictor: {minReplicas: 2, nodeSelector: {gpu: a100}, model: {modelFormat: {name: huggingface}, resources: {limits: {nvidia.com/gpu: "4"}}}},
    transformer: {containers: [{name: main, resources: {requests: {cpu: "1"}}}]}}}`
	sparkText = `{apiVersion: sparkoperator.k8s.io/v1beta2, kind: SparkApplication, metadata: {namespace: ml, name: ft, uid: t, resourceVersion: "7", creationTimestamp: "2026-11-20T10:00:00Z"}, spec: {
    driver: {cores: 2, coreRequest: 500m, memory: 512m, nodeSelector: {a: b}, gpu: {name: nvidia.com/gpu, quantity: 1}}, executor: {instances: 3, cores: 4}},
  status: {lastSubmissionAttemptTime: "2026-11-20T11:01:00Z", applicationState: {state: SUBMISSION_FAILED, errorMessage: refused}}}`
)

func madeOf(labels map[string]string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "made", CreationTimestamp: at(2), Labels: labels}, Status: corev1.PodStatus{Phase: corev1.PodPending}}
}

// An InferenceService lacks the pods of the first part that KServe could not make: whoever makes them names both in them.
func TestAnInferenceServiceLacksPods(t *testing.T) {
	const (
		first  = "2 of 2 ft-predictor-? spec.predictor.minReplicas, then 1 of transformer"
		second = "1 of 1 ft-transformer-? spec.transformercount(spec.transformer)"
	)
	predictor := madeOf(map[string]string{kserveService: "ft", kserveComponent: "predictor"})
	for name, k := range map[string]struct {
		edit func(*unstructured.Unstructured)
		pods []*corev1.Pod
		with func(*Makers)
		want string
	}{
		"none is there":          {want: first},
		"one is there":           {pods: []*corev1.Pod{predictor}, want: "1" + first[1:]},
		"another's is there":     {pods: []*corev1.Pod{madeOf(map[string]string{kserveService: "other", kserveComponent: "predictor"})}, want: first},
		"the predictor is whole": {edit: func(o *unstructured.Unstructured) { set(t, o, int64(1), "spec", "predictor", "minReplicas") }, pods: []*corev1.Pod{predictor}, want: second},
		"it scales to zero":      {edit: func(o *unstructured.Unstructured) { set(t, o, int64(0), "spec", "predictor", "minReplicas") }, want: second},
		"it is ready": {edit: func(o *unstructured.Unstructured) {
			set(t, o, []any{map[string]any{"type": "Ready", "status": "True"}}, "status", "conditions")
		}},
		"nothing is told":         {with: func(m *Makers) { m.Events = nil }},
		"another write was first": {with: func(m *Makers) { m.Events[0].Message = "Operation cannot be fulfilled: " + conflict }},
		"pods are not all known":  {with: func(m *Makers) { m.AllPods = false }},
		"it makes no sense":       {edit: func(o *unstructured.Unstructured) { set(t, o, "x", "spec") }},
	} {
		t.Run(name, func(t *testing.T) {
			o := object(t, kserveText)
			if k.edit != nil {
				k.edit(o)
			}
			if got := lacked(t, InferenceService, kserveFailure, o, k.pods, nil, k.with); got != k.want {
				t.Errorf("got  %s\nwant %s", got, k.want)
			}
		})
	}
	h, _ := HeldOf(InferenceService, object(t, kserveText))
	spec := h.sets[0].Template.Spec
	if q := spec.Containers[0].Resources.Limits["nvidia.com/gpu"]; len(spec.Containers) != 1 || q.Value() != 4 || spec.NodeSelector["gpu"] != "a100" {
		t.Errorf("%+v", spec)
	}
}

// A SparkApplication lacks its driver while that is to be submitted: its status says so, and no event.
func TestASparkApplicationLacksItsDriver(t *testing.T) {
	const driver = "1 of 1 ft-driver-? spec.drivercount(spec.driver)"
	for name, k := range map[string]struct {
		state string
		edit  func(*unstructured.Unstructured)
		pods  []*corev1.Pod
		want  string
	}{
		"it could not be submitted": {state: "SUBMISSION_FAILED", want: driver},
		"it is to be run again":     {state: "PENDING_RERUN", want: driver},
		"it runs":                   {state: "RUNNING"},
		"it has failed":             {state: "FAILED"},
		"it is new":                 {state: ""},
		"its driver is there":       {state: "PENDING_RERUN", pods: []*corev1.Pod{madeOf(map[string]string{sparkApp: "ft", sparkRole: sparkDriver})}},
		"an executor is there":      {state: "PENDING_RERUN", pods: []*corev1.Pod{madeOf(map[string]string{sparkApp: "ft", sparkRole: "executor"})}, want: driver},
		"it makes no sense":         {state: "PENDING_RERUN", edit: func(o *unstructured.Unstructured) { set(t, o, "x", "spec") }},
	} {
		t.Run(name, func(t *testing.T) {
			o := object(t, sparkText)
			set(t, o, k.state, "status", "applicationState", "state")
			if k.edit != nil {
				k.edit(o)
			}
			if got := lacked(t, SparkApplication, FailedCreate, o, k.pods, nil, func(m *Makers) { m.Events = nil }); got != k.want {
				t.Errorf("got  %s\nwant %s", got, k.want)
			}
		})
	}
	for unit, want := range map[string]string{"512m": "512Mi", "2g": "2Gi", "1024MB": "1Gi", "": "0", "x": "0"} {
		o := object(t, sparkText)
		set(t, o, unit, "spec", "driver", "memory")
		h, _ := HeldOf(SparkApplication, o)
		r := h.sets[0].Template.Spec.Containers[0].Resources
		cpu, memory, gpus := r.Requests[corev1.ResourceCPU], r.Requests[corev1.ResourceMemory], r.Limits["nvidia.com/gpu"]
		if cpu.String() != "500m" || memory.String() != want || gpus.Value() != 1 {
			t.Errorf("%s: cpu %s, memory %s, %s GPUs; want memory %s", unit, cpu.String(), memory.String(), gpus.String(), want)
		}
	}
}

// KubeRay before 0.4 says that a cluster failed, and not of what: where none of its pods is there it could make none.
func TestARayClusterFailsWithoutAWord(t *testing.T) {
	text := `{apiVersion: ray.io/v1alpha1, kind: RayCluster, metadata: {namespace: ml, name: ft, uid: t, resourceVersion: "7", creationTimestamp: "2026-11-20T10:00:00Z"}, spec: {headGroupSpec: {template: {spec: {containers: [{name: head}]}}},
    workerGroupSpecs: [{groupName: g, replicas: 2, template: {spec: {containers: [{name: worker}]}}}]}, status: {state: failed}}`
	h, _ := HeldOf(RayCluster, object(t, text))
	m := Makers{Held: []*Held{h}, AllPods: true}
	got := m.Refusals(nil, nobody)
	if len(got) != 1 || got[0].Pod.Name != "ft-head-?" || got[0].Says != "" || !got[0].Since.Equal(h.CreationTimestamp.Time) || len(got[0].Later) != 1 {
		t.Errorf("%+v", got)
	}
	if got := m.Refusals([]*corev1.Pod{madeOf(map[string]string{rayCluster: "ft", rayNodeType: rayHead})}, nobody); len(got) != 0 {
		t.Errorf("its head is there: %+v", got)
	}
}
