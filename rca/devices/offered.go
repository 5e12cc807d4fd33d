package devices

import (
	"strconv"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	"github.com/unpend/unpend/rca/diagnosis"
)

// maxOffered bounds the ResourceSlices of a node that are claimed.
const maxOffered = 8

// OfferedOn claims which ResourceSlices name the node, and how many devices each lists; where
// none does, that.
func OfferedOn(all []*resourcev1.ResourceSlice, node string) []diagnosis.Claim {
	var out []diagnosis.Claim
	for _, s := range all {
		if ptr.Deref(s.Spec.NodeName, "") == node && len(out) < 2*maxOffered {
			ref := "ResourceSlice/" + s.Name
			out = append(out, diagnosis.That("spec.nodeName", "", diagnosis.Is, node).Of(ref), diagnosis.That("count(spec.devices)", "", diagnosis.Is, strconv.Itoa(len(s.Spec.Devices))).Of(ref))
		}
	}
	if out == nil {
		out = append(out, diagnosis.That("spec.nodeName", "", diagnosis.IsNot, node).Of("ResourceSlice/*"))
	}
	return out
}
