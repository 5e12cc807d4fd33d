package parts

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// Disabled says whether a part of the GPU Operator is switched off.
func Disabled(policy *unstructured.Unstructured, part string) bool {
	on, found, err := unstructured.NestedBool(policy.Object, "spec", part, "enabled")
	return found && err == nil && !on
}

// DefaultWorkload is what the GPUs of nodes are given to that do not say it; empty where the GPU
// Operator knows containers alone.
func DefaultWorkload(policy *unstructured.Unstructured) string {
	on, _, err := unstructured.NestedBool(policy.Object, "spec", "sandboxWorkloads", "enabled")
	if err != nil || !on {
		return ""
	}
	kind, _, _ := unstructured.NestedString(policy.Object, "spec", "sandboxWorkloads", "defaultWorkload") //nolint:errcheck // what is no text is no workload
	return kind
}

// ByDrivers says whether the GPU Operator makes drivers by NVIDIADrivers.
func ByDrivers(policy *unstructured.Unstructured) bool {
	on, _, err := unstructured.NestedBool(policy.Object, "spec", "driver", "useNvidiaDriverCRD")
	return err == nil && on
}
