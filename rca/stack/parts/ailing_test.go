package parts

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// What clouds say of a node's GPUs by its conditions is quoted where it says that something is not well, with claims that are true of
// the node; AKS is known by its conditions whatever they say.
func TestWhatCloudsSayOfGPUs(t *testing.T) {
	long := strings.Repeat("x", 200)
	for name, k := range map[string]struct {
		is    corev1.NodeCondition
		aks   bool
		fact  string
		claim string // the last
	}{
		"AKS's":           {corev1.NodeCondition{Type: "GPUMissing", Status: "True", Reason: "Gone", Message: "7 of  8"}, true, "condition GPUMissing=True: Gone 7 of 8", "status.conditions[type=GPUMissing] contains 7 of 8"},
		"AKS's, wordless": {corev1.NodeCondition{Type: "XIDErrors", Status: "True"}, true, "condition XIDErrors=True", "status.conditions[type=XIDErrors].status = True"},
		"AKS's, well":     {corev1.NodeCondition{Type: "NVLinkStatusInactive", Status: "False", Reason: "Active"}, true, "", ""},
		"AKS's, unknown":  {corev1.NodeCondition{Type: "NVLinkStatusInactive", Status: "Unknown"}, true, "", ""},
		"GKE's":           {corev1.NodeCondition{Type: "XidCriticalError", Status: "True", Reason: `{"79":true}`}, false, `condition XidCriticalError=True: {"79":true}`, `status.conditions[type=XidCriticalError] contains {"79":true}`},
		"EKS's":           {corev1.NodeCondition{Type: "AcceleratedHardwareReady", Status: "False", Reason: "NvidiaXID79Error", Message: long}, false, "condition AcceleratedHardwareReady=False: NvidiaXID79Error " + long[:142] + "…", "status.conditions[type=AcceleratedHardwareReady] contains " + long[:99]},
		"EKS's, well":     {corev1.NodeCondition{Type: "AcceleratedHardwareReady", Status: "True"}, false, "", ""},
		"of others":       {corev1.NodeCondition{Type: "KernelDeadlock", Status: "True", Reason: "Stuck"}, false, "", ""},
	} {
		n := &view.Node{Node: &corev1.Node{Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: "Ready", Status: "True"}, k.is}}}}
		n.Name = "n"
		if of := OfAKS(n); (of != nil) != k.aks || of != nil && of.Type != k.is.Type {
			t.Errorf("%s: %+v", name, of)
		}
		got, fact, claim := Ailing(n), "", ""
		if len(got) > 0 {
			last := got[0].Claims[len(got[0].Claims)-1]
			fact, claim = got[0].Fact, strings.TrimSpace(fmt.Sprintf("%s %s %s", last.Path, last.Op, last.Value))
			if got[0].Ref != "Node/n" || got[0].Claims[0] != (diagnosis.Claim{Ref: "Node/n", Path: "status.conditions[type=" + string(k.is.Type) + "].status", Op: diagnosis.Is, Value: string(k.is.Status)}) {
				t.Errorf("%s: %+v", name, got[0])
			}
		}
		if len(got) > 1 || fact != k.fact || claim != k.claim {
			t.Errorf("%s: %q by %q", name, fact, claim)
		}
	}
}
