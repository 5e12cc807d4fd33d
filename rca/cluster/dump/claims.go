package dump

import (
	"fmt"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/unpend/unpend/rca/cluster"
)

// countable refuses claims that no API server takes and that the scheduler's code
// cannot bear: that allocates memory for as many devices as a claim asks.
func countable(o cluster.Object) error {
	var requests []resourcev1.DeviceRequest
	switch t := o.(type) {
	case *resourcev1.ResourceClaim:
		requests = t.Spec.Devices.Requests
	case *resourcev1.ResourceClaimTemplate:
		requests = t.Spec.Spec.Devices.Requests
	}
	for _, r := range requests {
		counts := []int64{}
		if r.Exactly != nil {
			counts = append(counts, r.Exactly.Count)
		}
		for _, sub := range r.FirstAvailable {
			counts = append(counts, sub.Count)
		}
		if least := slices.Min(append(counts, 0)); least < 0 {
			return fmt.Errorf("request %s asks for %d devices", r.Name, least)
		}
	}
	return nil
}
