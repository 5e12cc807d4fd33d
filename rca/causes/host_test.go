package causes

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe/sim"
)

// Where a node has too little CPU only for what a LimitRange gives to containers that state none, that is told: who
// wrote no word of CPU would not know.
func TestCPUThatNobodyWrote(t *testing.T) {
	const given, fact = "not enough cpu; LimitRange defaults gives some to containers that state none (proxy)", "\n  LimitRange/ml/defaults: gives 8 of cpu to containers that state none\n"
	for name, tc := range map[string]struct {
		own, has string // CPU that the pod states, and that the node has
		note     string
		want     bool
	}{
		"it would fit without":       {"4", "11", "cpu request for container proxy", true},
		"just so":                    {"4", "4", "cpu request for container proxy", true},
		"it would not":               {"5", "4", "cpu request for container proxy", false},
		"it was given other":         {"4", "11", "memory request for container proxy", false},
		"who asks states that there": {"4", "11", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.gpuNode(sim.Node{Name: "n1", Model: "L4", GPUs: 1}).Status.Allocatable["cpu"] = resource.MustParse(tc.has)
			w.LimitRanges = []*corev1.LimitRange{{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "defaults"}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer, DefaultRequest: corev1.ResourceList{"cpu": resource.MustParse("8")}}}}}}
			w.pod("w", "", "nvidia.com/gpu", 1, func(p *corev1.Pod) {
				p.Annotations = map[string]string{"kubernetes.io/limit-ranger": "LimitRanger plugin set: " + tc.note}
				p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse(tc.own), "nvidia.com/gpu": resource.MustParse("1")}
				p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "proxy", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("8")}}})
			})
			got := w.told(t)
			if !strings.Contains(got, "HostResourcesShort proven n1: not enough cpu") || strings.Contains(got, given) != tc.want || strings.Contains(got, fact) != tc.want {
				t.Error(got)
			}
		})
	}
}
