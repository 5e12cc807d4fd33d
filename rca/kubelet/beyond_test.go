package kubelet

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/view"
)

func asks(pairs ...string) corev1.Container {
	list := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		list[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return corev1.Container{Resources: corev1.ResourceRequirements{Requests: list, Limits: list.DeepCopy()}}
}

// zone is a NUMA node with so many CPUs and GPUs for pods.
func zone(cpu, gpus string) any {
	of := func(name, n string) any {
		return map[string]any{"name": name, "capacity": n, "allocatable": n, "available": "0"}
	}
	return map[string]any{"name": "node", "type": "Node", "resources": []any{of("cpu", cpu), of("nvidia.com/gpu", gpus), "odd"}}
}

// What a pod can never have on one NUMA node is told by what the largest has for pods, free or
// not: of the largest container, or of all where the kubelet aligns pods. CPUs count where the
// kubelet gives them to a container alone, and only of NUMA nodes that have the GPUs.
func TestWhatNoNUMANodeHas(t *testing.T) {
	three := []any{zone("6", "1"), zone("6", "1"), zone("4", "1")}
	for name, k := range map[string]struct {
		zones      any
		policies   []any
		attributes []any
		node       string
		class      corev1.PodQOSClass
		containers []corev1.Container
		want       string
	}{
		"CPUs":                          {zones: three, containers: []corev1.Container{asks("cpu", "8", "nvidia.com/gpu", "1")}, want: "6 of 8 cpu"},
		"GPUs":                          {zones: three, containers: []corev1.Container{asks("cpu", "2", "nvidia.com/gpu", "2")}, want: "1 of 2 nvidia.com/gpu"},
		"GPUs come first":               {zones: three, containers: []corev1.Container{asks("cpu", "8", "nvidia.com/gpu", "2")}, want: "1 of 2 nvidia.com/gpu"},
		"it fits":                       {zones: three, containers: []corev1.Container{asks("cpu", "6", "nvidia.com/gpu", "1")}},
		"CPUs where the GPUs are":       {zones: []any{zone("4", "4"), zone("32", "0")}, containers: []corev1.Container{asks("cpu", "8", "nvidia.com/gpu", "2")}, want: "4 of 8 cpu"},
		"each container by itself":      {zones: three, containers: []corev1.Container{asks("cpu", "6", "nvidia.com/gpu", "1"), asks("cpu", "6")}},
		"the whole pod, by its policy":  {zones: three, policies: []any{"SingleNUMANodePodLevel"}, containers: []corev1.Container{asks("cpu", "6", "nvidia.com/gpu", "1"), asks("cpu", "6")}, want: "6 of 12 cpu"},
		"the whole pod, by its scope":   {zones: three, attributes: []any{map[string]any{"name": "topologyManagerScope", "value": "pod"}}, containers: []corev1.Container{asks("cpu", "6", "nvidia.com/gpu", "1"), asks("cpu", "6")}, want: "6 of 12 cpu"},
		"another attribute":             {zones: three, attributes: []any{map[string]any{"name": "topologyManagerScope", "value": "container"}, "odd"}, containers: []corev1.Container{asks("cpu", "6", "nvidia.com/gpu", "1"), asks("cpu", "6")}},
		"CPUs that are not its own":     {zones: three, class: corev1.PodQOSBurstable, containers: []corev1.Container{asks("cpu", "8", "nvidia.com/gpu", "1")}},
		"CPUs that are not whole":       {zones: three, containers: []corev1.Container{asks("cpu", "8500m", "nvidia.com/gpu", "1")}},
		"a limit stands for a request":  {zones: three, containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("2")}}}}, want: "1 of 2 nvidia.com/gpu"},
		"GPUs are not told of by zone":  {zones: []any{map[string]any{"type": "Node", "resources": []any{map[string]any{"name": "cpu", "allocatable": "64"}}}}, containers: []corev1.Container{asks("cpu", "8", "nvidia.com/gpu", "1")}},
		"another node's":                {zones: three, node: "other", containers: []corev1.Container{asks("cpu", "8", "nvidia.com/gpu", "1")}},
		"a socket is none":              {zones: []any{map[string]any{"type": "Socket"}}, containers: []corev1.Container{asks("nvidia.com/gpu", "1")}},
		"zones are no list":             {zones: "x", containers: []corev1.Container{asks("nvidia.com/gpu", "1")}},
		"resources are no list of them": {zones: []any{map[string]any{"type": "Node", "resources": "x"}}, containers: []corev1.Container{asks("nvidia.com/gpu", "1")}},
	} {
		t.Run(name, func(t *testing.T) {
			on, class := "n", corev1.PodQOSGuaranteed
			if k.node != "" {
				on = k.node
			}
			if k.class != "" {
				class = k.class
			}
			object := map[string]any{"metadata": map[string]any{"name": on}, "zones": k.zones}
			if k.policies != nil {
				object["topologyPolicies"] = k.policies
			}
			if k.attributes != nil {
				object["attributes"] = k.attributes
			}
			st := &cluster.State{NodeTopologies: []*unstructured.Unstructured{{Object: object}}}
			c := &Case{Subject: view.Subject{Cluster: view.New(st), Pod: &corev1.Pod{Spec: corev1.PodSpec{Containers: k.containers}}}, Refusal: corev1.PodStatus{QOSClass: class}, On: "n", Asks: []view.Ask{{Resource: view.WholeGPU, Count: 1}}}
			got := ""
			if b := c.Beyond(&Turned{On: "n"}); b != nil {
				got = fmt.Sprintf("%s of %s %s", b.Most.String(), b.Asked.String(), b.Resource)
			}
			if got != k.want {
				t.Errorf("%q, want %q", got, k.want)
			}
		})
	}
}

// A node is occupied where another pod holds a GPU, or CPUs that are its own alone.
func TestWhoOccupiesANode(t *testing.T) {
	pod := func(class corev1.PodQOSClass, k corev1.Container) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "p"}, Spec: corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{k}}, Status: corev1.PodStatus{Phase: corev1.PodRunning, QOSClass: class}}
	}
	for name, k := range map[string]struct {
		pod  *corev1.Pod
		want bool
	}{
		"a GPU":                 {pod(corev1.PodQOSBurstable, asks("nvidia.com/gpu", "1")), true},
		"CPUs of its own":       {pod(corev1.PodQOSGuaranteed, asks("cpu", "2", "memory", "1Gi")), true},
		"parts of CPUs":         {pod(corev1.PodQOSGuaranteed, asks("cpu", "500m", "memory", "1Gi")), false},
		"CPUs of all":           {pod(corev1.PodQOSBurstable, asks("cpu", "2")), false},
		"nothing":               {pod(corev1.PodQOSGuaranteed, asks("memory", "1Gi")), false},
		"nobody is there":       {nil, false},
		"the node is not known": {pod("", corev1.Container{}), true},
	} {
		t.Run(name, func(t *testing.T) {
			st := &cluster.State{Nodes: []*corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "n"}}}}
			if k.pod != nil {
				st.Pods = []*corev1.Pod{k.pod}
			}
			turned := &Turned{On: "n", Node: view.New(st).Nodes["n"]}
			if name == "the node is not known" {
				turned.Node = nil
			}
			if got := turned.Occupied(); got != k.want {
				t.Error(got)
			}
		})
	}
}
