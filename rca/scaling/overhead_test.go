package scaling

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// What DaemonSets take is read from Karpenter's words, whole or not at all.
func TestWhatDaemonSetsTake(t *testing.T) {
	const head = `Failed to schedule pod, incompatible with nodepool "gpu", daemonset overhead=`
	for text, want := range map[string]string{
		head + `{"cpu":"690m","memory":"843162368","pods":"11"}, no instance type`: "690m 843162368 11 0",
		head + `{"cpu":"1","nvidia.com/gpu":"8","pods":"7"}, no instance type`:     "1 0 7 8",
		head + `{"cpu":"690m","memory":"8431`:                                      "0 0 0 0",
		head + `{"cpu":"odd"}, no instance type`:                                   "0 0 0 0",
		"no instance type has enough resources":                                    "0 0 0 0",
	} {
		got := NotScheduled(text)[0].Overhead()
		said := got.Cpu().String() + " " + got.Memory().String() + " " + got.Pods().String() + " " + got.Name("nvidia.com/gpu", "").String()
		if said != want {
			t.Errorf("%s: %s, want %s", text, said, want)
		}
	}
}

// A pool is of another maker's GPUs where all that it takes are known to be.
func TestPoolsOfOtherGPUs(t *testing.T) {
	in := func(key string, values ...string) corev1.NodeSelectorRequirement {
		return corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}
	}
	for name, k := range map[string]struct {
		all  []corev1.NodeSelectorRequirement
		want string
	}{
		"AMD's family":      {[]corev1.NodeSelectorRequirement{in("kubernetes.io/arch", "amd64"), in("karpenter.k8s.aws/instance-family", "g4ad")}, "karpenter.k8s.aws/instance-family"},
		"its types":         {[]corev1.NodeSelectorRequirement{in("node.kubernetes.io/instance-type", "g4ad.2xlarge", "trn1.2xlarge")}, "node.kubernetes.io/instance-type"},
		"one is NVIDIA's":   {[]corev1.NodeSelectorRequirement{in("karpenter.k8s.aws/instance-family", "g4ad", "g4dn")}, ""},
		"by its maker":      {[]corev1.NodeSelectorRequirement{in("karpenter.k8s.aws/instance-gpu-manufacturer", "amd")}, "karpenter.k8s.aws/instance-gpu-manufacturer"},
		"by the right one":  {[]corev1.NodeSelectorRequirement{in("karpenter.k8s.aws/instance-gpu-manufacturer", "nvidia", "amd")}, ""},
		"all but those":     {[]corev1.NodeSelectorRequirement{{Key: "karpenter.k8s.aws/instance-family", Operator: corev1.NodeSelectorOpNotIn, Values: []string{"g4ad"}}}, ""},
		"nothing said":      {[]corev1.NodeSelectorRequirement{in("karpenter.sh/capacity-type", "spot")}, ""},
		"no value of a key": {[]corev1.NodeSelectorRequirement{in("karpenter.k8s.aws/instance-family")}, ""},
	} {
		if got, _ := (&Pool{Requirements: k.all}).OtherGPUs(); got != k.want {
			t.Errorf("%s: %q, want %q", name, got, k.want)
		}
	}
}
