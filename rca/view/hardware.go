package view

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/scaling"
)

// Sign is one thing that says that a machine has NVIDIA GPUs, offered or not.
type Sign struct {
	diagnosis.Evidence
	// Count is how many, where it says so; 0 where it does not.
	Count int64
	// Meant says that it tells what the machine was made for, and not what it has.
	Meant bool
}

// Labels that say that a node has NVIDIA GPUs before anything of NVIDIA's runs there: of
// clouds, of node feature discovery by whichever fields it names devices, of autoscalers.
const (
	LabelGKE      = "cloud.google.com/gke-accelerator"
	labelEKS      = "k8s.amazonaws.com/accelerator"
	labelAKS      = "kubernetes.azure.com/accelerator"
	labelOldAKS   = "accelerator"
	labelAzureGPU = "karpenter.azure.com/sku-gpu-"
)

// GPULabels are those by which the GPU Operator knows a node with GPUs (gpu-operator
// controllers/state_manager.go); the device plugin's chart only knows the first.
var GPULabels = []string{"feature.node.kubernetes.io/pci-10de.present", "feature.node.kubernetes.io/pci-0302_10de.present", "feature.node.kubernetes.io/pci-0300_10de.present"}

// karpenterGPU begins what Karpenter and EKS Auto Mode write of an instance's GPUs.
var karpenterGPU = []string{"karpenter.k8s.aws/instance-gpu-", "eks.amazonaws.com/instance-gpu-"}

// Hardware is what says that the node's machine has NVIDIA GPUs, the strongest first; none:
// nothing does.
func (v *Node) Hardware() []Sign {
	if v.signs == nil {
		v.signs = v.findSigns()
	}
	return v.signs
}

func (v *Node) findSigns() []Sign {
	out := []Sign{}
	note := func(ref, fact string, count int64, claim diagnosis.Claim) {
		out = append(out, Sign{Evidence: diagnosis.Fact(ref, fact, claim), Count: count})
	}
	label := func(key, value string, count int64) {
		note(v.Ref(), "label "+key+"="+value, count, diagnosis.That(diagnosis.Labels, key, diagnosis.Is, value))
	}
	if v.claim != nil {
		if n := claimedGPUs(v.claim); n > 0 {
			note("NodeClaim/"+v.claim.GetName(), fmt.Sprintf("status.capacity %s=%d", WholeGPU, n), n, diagnosis.That(diagnosis.Capacity, string(WholeGPU), diagnosis.Is, strconv.FormatInt(n, 10)))
		}
	}
	if gpus := v.Reported(); len(gpus) > 0 {
		note(v.ReportRef(), CountOf(len(gpus), "GPU"), int64(len(gpus)), diagnosis.That("count(report.gpus)", "", diagnosis.Is, strconv.Itoa(len(gpus))))
	}
	none := v.Labels[LabelGPUCount] == "0" // by GPU feature discovery
	for _, key := range []string{LabelGPUCount, "nvidia.com/gpu.product"} {
		if value := v.Labels[key]; value != "" && !none {
			label(key, value, number(v.Labels[LabelGPUCount]))
		}
	}
	for _, prefix := range karpenterGPU {
		if by := v.Labels[prefix+"manufacturer"]; v.Labels[prefix+"name"] != "" && (by == "" || by == "nvidia") {
			label(prefix+"name", v.Labels[prefix+"name"], number(v.Labels[prefix+"count"]))
		}
	}
	if count, by := number(v.Labels[labelAzureGPU+"count"]), v.Labels[labelAzureGPU+"manufacturer"]; count > 0 && (by == "" || strings.EqualFold(by, "nvidia")) {
		label(labelAzureGPU+"count", v.Labels[labelAzureGPU+"count"], count)
	}
	for _, key := range GPULabels {
		if v.Labels[key] == "true" {
			label(key, "true", 0)
		}
	}
	for _, key := range []string{LabelGKE, labelEKS, labelAKS, labelOldAKS} {
		if value := v.Labels[key]; value != "" && key != labelAKS && key != labelOldAKS || value == "nvidia" || strings.HasPrefix(value, "nvidia-") { // with the model: Kubernetes' own guide to GPUs
			label(key, value, 0)
		}
	}
	if kernel := v.Status.NodeInfo.KernelVersion; OfJetson(kernel) {
		note(v.Ref(), "kernel "+kernel, 1, diagnosis.That("status.nodeInfo.kernelVersion", "", diagnosis.Is, kernel))
	}
	if key, kind := v.instanceType(); scaling.HasNVIDIA(kind) {
		label(key, kind, 0)
	}
	for _, s := range v.Facts().stocks { // the kubelet keeps the keys of what was registered once
		if s.Capacity == 0 && none {
			continue
		}
		note(v.Ref(), fmt.Sprintf("capacity %s=%d", s.name, s.Capacity), s.Capacity, diagnosis.That(diagnosis.Capacity, string(s.name), diagnosis.Is, strconv.FormatInt(s.Capacity, 10)))
	}
	if len(out) == 0 && !none && v.Labels["nvidia.com/gpu.present"] == "true" { // a person may have written it
		label("nvidia.com/gpu.present", "true", 0)
	}
	if len(out) == 0 && !none {
		if key := v.TalosDriver(); key != "" {
			label(key, v.Labels[key], 0)
			out[0].Meant = true
		}
	}
	return out
}

// TalosDriver is the label by which Talos says that NVIDIA's driver or toolkit is built into the
// machine's image (Talos: system extensions); empty for none.
func (v *Node) TalosDriver() string {
	for _, key := range slices.Sorted(maps.Keys(v.Labels)) {
		if strings.HasPrefix(key, "extensions.talos.dev/") && strings.Contains(key, "nvidia") {
			return key
		}
	}
	return ""
}

// OfJetson says whether a kernel is that of a Jetson (L4T), whose one GPU is part of the chip.
func OfJetson(kernel string) bool { return strings.HasSuffix(kernel, "-tegra") }

func (v *Node) instanceType() (key, value string) {
	for _, key := range []string{corev1.LabelInstanceTypeStable, corev1.LabelInstanceType} {
		if value := v.Labels[key]; value != "" {
			return key, value
		}
	}
	return "", ""
}

func number(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// claimedGPUs is how many GPUs Karpenter expects of the instance that it asked for.
func claimedGPUs(claim *unstructured.Unstructured) int64 {
	q, _, _ := unstructured.NestedString(claim.Object, "status", "capacity", string(WholeGPU)) //nolint:errcheck // what is no text is no number of GPUs
	return number(q)
}

// claimsByNode are the NodeClaims that have become a node.
func claimsByNode(claims []*unstructured.Unstructured) map[string]*unstructured.Unstructured {
	out := make(map[string]*unstructured.Unstructured, len(claims))
	for _, claim := range claims {
		if name, _, _ := unstructured.NestedString(claim.Object, "status", "nodeName"); name != "" { //nolint:errcheck // as above
			out[name] = claim
		}
	}
	return out
}

// Expected is how many whole GPUs the node should offer, by the strongest sign that says
// how many; 0: nothing does.
func (v *Node) Expected() int64 {
	for _, s := range v.Hardware() {
		if s.Count > 0 {
			return s.Count
		}
	}
	return 0
}
