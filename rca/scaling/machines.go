package scaling

import (
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Instance types with NVIDIA GPUs, as their clouds document them. EC2's g4ad, Azure's NVv4,
// V710 and MI300X, Oracle's MI300X and MI355X have AMD's; Google's n1 may have GPUs attached, which its
// name does not say.
var (
	ec2GPUs   = regexp.MustCompile(`^(p[2-6][a-z0-9-]*|g3s?|g4dn|g5g?|g6[ef]?|gr6f?|g7e?)\.`)
	gceGPUs   = regexp.MustCompile(`^(a2|a3|a4x?|g2|g4)-`)
	azureGPUs = regexp.MustCompile(`^Standard_N[CDV]`)
	azureAMD  = regexp.MustCompile(`^Standard_NV\d+as_v4|_V710_|_MI\d+`)
	ociGPUs   = regexp.MustCompile(`^(VM|BM)\.GPU`)
	ociAMD    = regexp.MustCompile(`\.GPU\.MI\d+`)
)

// HasNVIDIA says whether a cloud's machines of an instance type have NVIDIA GPUs, by the
// type's name.
func HasNVIDIA(instanceType string) bool {
	return ec2GPUs.MatchString(instanceType) || gceGPUs.MatchString(instanceType) ||
		azureGPUs.MatchString(instanceType) && !azureAMD.MatchString(instanceType) || ociGPUs.MatchString(instanceType) && !ociAMD.MatchString(instanceType)
}

// ofGPUs says what requirements tell of NVIDIA GPUs.
func ofGPUs(all []corev1.NodeSelectorRequirement) Fit {
	fit := Maybe
	for _, r := range all {
		_, name, _ := strings.Cut(r.Key, "/")
		if gpu, known := valuesWithGPUs[name]; known && r.Operator == corev1.NodeSelectorOpIn {
			fit = gpuValues(r.Values, fit, gpu)
		} else if strings.HasPrefix(name, "instance-gpu-") || strings.HasPrefix(name, "sku-gpu-") {
			switch r.Operator {
			case corev1.NodeSelectorOpDoesNotExist:
				fit = No
			case corev1.NodeSelectorOpIn, corev1.NodeSelectorOpExists, corev1.NodeSelectorOpGt:
				fit = Yes
			}
		}
		if fit == No {
			return No
		}
	}
	return fit
}

// valuesWithGPUs says of the values of a label, by its name without the cloud's domain, which
// are of machines with NVIDIA GPUs (karpenter.k8s.aws, karpenter.azure.com, Kubernetes' own).
var valuesWithGPUs = map[string]func(string) bool{
	"instance-gpu-manufacturer": func(v string) bool { return v == "nvidia" },
	"instance-category":         func(v string) bool { return v == "g" || v == "p" || v == "gr" },
	"instance-family":           func(v string) bool { return HasNVIDIA(v+".") || HasNVIDIA(v+"-") },
	"instance-type":             HasNVIDIA,
	"instance-shape":            HasNVIDIA,
	"sku-family":                func(v string) bool { return v == "N" },
	"sku-name":                  HasNVIDIA,
}

// gpuValues is Yes where all values are of machines with GPUs, No where none is.
func gpuValues(values []string, fit Fit, gpu func(string) bool) Fit {
	with := 0
	for _, v := range values {
		if gpu(v) {
			with++
		}
	}
	switch with {
	case 0:
		return No
	case len(values):
		return Yes
	}
	return fit
}
