package whatif

import (
	"testing"

	fwk "k8s.io/kube-scheduler/framework"
)

// Of several resources that are no CPU, memory or storage the scheduler tells in the order of a map, and here they are told in that
// of their names, behind the others.
func TestScalarResourcesAreTold(t *testing.T) {
	for _, reasons := range [][]string{
		{"Insufficient cpu", "Insufficient hugepages-2Mi", "Insufficient habana.ai/gaudi"},
		{"Insufficient cpu", "Insufficient habana.ai/gaudi", "Insufficient hugepages-2Mi"},
	} {
		got := blockersOf("NodeResourcesFit", fwk.NewStatus(fwk.Unschedulable, reasons...))
		if len(got) != 3 || got[0].Reason != "Insufficient cpu" || got[1].Reason != "Insufficient habana.ai/gaudi" || got[2].Reason != "Insufficient hugepages-2Mi" {
			t.Errorf("%v: %v", reasons, got)
		}
	}
}
