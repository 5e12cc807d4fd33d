package scaling

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func parsed(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	return u
}

func amounts(l corev1.ResourceList) string {
	var out []string
	for name, q := range l {
		out = append(out, string(name)+"="+q.String())
	}
	slices.Sort(out)
	return fmt.Sprint(out)
}

// A machine that Karpenter asked for is read in full; what is of another form is left out, and
// what it waits for is a condition whose status is Unknown.
func TestNodeClaims(t *testing.T) {
	got := ReadClaim(parsed(t, `
metadata: {name: gpu-x7b2k, creationTimestamp: "2026-11-20T12:00:00Z", labels: {karpenter.sh/nodepool: gpu, node.kubernetes.io/instance-type: p4d.24xlarge}}
spec:
  resources: {requests: {cpu: 500m, nvidia.com/gpu: 8, memory: "?", pods: [1]}}
  requirements: [{key: a, operator: In, values: [b]}, nonsense]
  taints: [{key: nvidia.com/gpu, effect: NoSchedule}]
  startupTaints: [{key: ready, effect: NoExecute}]
status:
  nodeName: n1
  capacity: {nvidia.com/gpu: "8", cpu: 95.5}
  conditions:
  - nonsense
  - {type: Launched, status: "True", reason: Launched, message: Launched, lastTransitionTime: "2026-11-20T12:01:00Z"}
  - {type: Registered, status: "True", lastTransitionTime: then}
  - {type: Initialized, status: Unknown, reason: ResourceNotRegistered, message: "Resource\n \"nvidia.com/gpu\" was requested"}`))
	if got.Name != "gpu-x7b2k" || got.Pool != "gpu" || got.Node != "n1" || got.Type != "p4d.24xlarge" || got.Leaving || !got.Created.Equal(noon) {
		t.Errorf("%+v", got)
	}
	if text := amounts(got.Requests) + amounts(got.Capacity); text != "[cpu=500m nvidia.com/gpu=8][cpu=95 nvidia.com/gpu=8]" {
		t.Error(text)
	}
	if text := fmt.Sprint(got.Requirements, got.Taints, got.Startup); text != fmt.Sprint([]corev1.NodeSelectorRequirement{needs("a", in, "b")}, []corev1.Taint{{Key: "nvidia.com/gpu", Effect: "NoSchedule"}}, []corev1.Taint{{Key: "ready", Effect: "NoExecute"}}) {
		t.Error(text)
	}
	if !got.Launched.Met() || got.Launched.Words() != "Launched" || !got.Launched.Since.Equal(noon.Add(time.Minute)) || !got.Registered.Met() || !got.Registered.Since.IsZero() {
		t.Errorf("%+v, %+v", got.Launched, got.Registered)
	}
	if got.Initialized.Met() || got.Initialized.Words() != `ResourceNotRegistered: Resource "nvidia.com/gpu" was requested` {
		t.Errorf("%+v", got.Initialized)
	}
	leaving := &unstructured.Unstructured{Object: map[string]any{}}
	leaving.SetDeletionTimestamp(&metav1.Time{Time: noon})
	if empty := ReadClaim(leaving); !empty.Leaving || empty.Launched.Met() || empty.Launched.Status != "" || empty.Node != "" || len(empty.Requests) > 0 || empty.Taints != nil {
		t.Errorf("%+v", empty)
	}
	if odd := ReadClaim(parsed(t, `{metadata: {name: k}, spec: {resources: {requests: none}, taints: none}, status: {nodeName: [n], conditions: none}}`)); odd.Node != "" || odd.Requests != nil || odd.Taints != nil || odd.Launched.Status != "" {
		t.Errorf("%+v", odd)
	}
}

// A NodePool that is not Ready says why in the first of two conditions; those that are met, or
// say nothing, are no reason.
func TestNodePools(t *testing.T) {
	const pool = `
metadata: {name: p}
spec:
  limits: {nvidia.com/gpu: 8, cpu: "64"}
  template: {metadata: {labels: {team: ml}}, spec: {requirements: [{key: a, operator: Exists}], taints: [{key: t, effect: NoSchedule}], startupTaints: [{key: s, effect: NoSchedule}]}}
status:
  resources: {nvidia.com/gpu: "8", cpu: "60"}
  conditions: [{type: Ready, status: "False"}, {type: NodeRegistrationHealthy, status: "False", reason: Failing}`
	for conditions, why := range map[string]string{
		"]": "",
		", {type: NodeClassReady, status: \"False\", reason: NodeClassNotFound, message: no such}]":                                                                 "NodeClassReady=False NodeClassNotFound: no such",
		", {type: ValidationSucceeded, status: Unknown, reason: AwaitingReconciliation}, {type: NodeClassReady, status: \"True\"}]":                                 "ValidationSucceeded=Unknown AwaitingReconciliation",
		", {type: ValidationSucceeded, status: \"False\", reason: Second}, {type: NodeClassReady, status: \"False\", reason: First}]":                               "NodeClassReady=False First",
		", {type: ValidationSucceeded, status: \"True\", reason: ValidationSucceeded}, {type: NodeClassReady, status: \"True\"}, {type: Other, status: \"False\"}]": "",
	} {
		p := ReadPool(parsed(t, pool+conditions))
		if p.Why.Words() != why || p.Ready.Status != "False" || p.Registers.Reason != "Failing" || p.Class.Ref() != "" {
			t.Errorf("%s: %q, %+v", conditions, p.Why.Words(), p)
		}
		if text := amounts(p.Limits) + amounts(p.Used) + fmt.Sprint(p.Labels, len(p.Requirements), p.Taints[0].Key, p.Startup[0].Key); text != "[cpu=64 nvidia.com/gpu=8][cpu=60 nvidia.com/gpu=8]map[team:ml] 1ts" {
			t.Error(text)
		}
	}
}

// A limit is in the way where nothing is left of it, whatever is asked, or less than is asked;
// a resource without a limit never is.
func TestLimitsOfPools(t *testing.T) {
	p := &Pool{Limits: corev1.ResourceList{"cpu": limitOf("cpu", "8")["cpu"], "nvidia.com/gpu": limitOf("nvidia.com/gpu", "4")["nvidia.com/gpu"], "memory": limitOf("memory", "1Gi")["memory"]},
		Used: corev1.ResourceList{"cpu": limitOf("cpu", "6")["cpu"], "memory": limitOf("memory", "1Gi")["memory"], "pods": limitOf("pods", "9")["pods"]}}
	for asks, want := range map[string]string{"1": "[memory]", "2": "[memory]", "3": "[cpu memory]"} {
		if got := fmt.Sprint(p.Exhausted(limitOf("cpu", asks))); got != want {
			t.Errorf("of %s CPUs: %s", asks, got)
		}
	}
	if got := fmt.Sprint(p.Exhausted(corev1.ResourceList{"nvidia.com/gpu": limitOf("x", "5")["x"], "cpu": limitOf("x", "3")["x"], "pods": limitOf("x", "1")["x"]})); got != "[cpu memory nvidia.com/gpu]" {
		t.Error(got)
	}
	for name, want := range map[corev1.ResourceName]string{"cpu": "2 true", "nvidia.com/gpu": "4 true", "memory": "0 true", "pods": "-9 false"} {
		left, limited := p.Left(name)
		if got := fmt.Sprint(left.String(), " ", limited); got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
}
