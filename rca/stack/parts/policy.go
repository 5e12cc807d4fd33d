package parts

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/rca/diagnosis"
)

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
	return cmp.Or(kind, "container")                                                                      // the operator's own default
}

// ByDrivers says whether the GPU Operator makes drivers by NVIDIADrivers.
func ByDrivers(policy *unstructured.Unstructured) bool {
	on, _, err := unstructured.NestedBool(policy.Object, "spec", "driver", "useNvidiaDriverCRD")
	return err == nil && on
}

// WithoutPlugin tells of a policy by which the GPU Operator goes by NRI, and switches off the toolkit, which is what would run
// that plugin (gpu-operator pull request 2384 has it be an error); nil for any other.
func WithoutPlugin(policies []*unstructured.Unstructured) (fact *diagnosis.Evidence, commands []string) {
	for _, p := range policies {
		nri, _, err := unstructured.NestedBool(p.Object, "spec", "cdi", "nriPluginEnabled")
		if err != nil || !nri || !Disabled(p, "toolkit") {
			continue
		}
		e := diagnosis.Fact("ClusterPolicy/"+p.GetName(), "cdi.nriPluginEnabled is true and toolkit.enabled is false: nobody runs that plugin",
			diagnosis.That("spec.cdi.nriPluginEnabled", "", diagnosis.Is, "true"), diagnosis.That("spec.toolkit.enabled", "", diagnosis.Is, "false"))
		patch := func(fields string) string {
			return fmt.Sprintf("kubectl patch clusterpolicy %s --type=merge -p '{\"spec\":%s}'", p.GetName(), fields)
		}
		return &e, []string{patch(`{"toolkit":{"enabled":true}}`) + "  # where the machine has no toolkit of its own", patch(`{"cdi":{"nriPluginEnabled":false}}`) + "  # or this, where it has one: pods then name RuntimeClass nvidia"}
	}
	return nil, nil
}

// PolicySays is why the GPU Operator's ClusterPolicy is not, or is only in name, ready.
func PolicySays(policies []*unstructured.Unstructured) (reason, message string) {
	for _, p := range policies {
		list, _, _ := unstructured.NestedSlice(p.Object, "status", "conditions") //nolint:errcheck // conditions that are no list say nothing
		for _, c := range list {
			k, ok := c.(map[string]any)
			if !ok {
				continue
			}
			if r, _ := k["reason"].(string); r != "" && r != "Reconciled" && k["status"] == "True" {
				m, _ := k["message"].(string) //nolint:errcheck // a reason may stand alone
				return r, m
			}
		}
	}
	return "", ""
}
