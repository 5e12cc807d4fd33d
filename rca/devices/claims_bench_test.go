package devices

import (
	"fmt"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/cluster"
)

// What one claim costs of own time where 1,000 nodes publish 8 GPUs each; the
// inventory is taken once for all incidents of a diagnosis.
func BenchmarkClaims(b *testing.B) {
	st, kind := &cluster.State{}, "gpu"
	for i := range 1000 {
		name := fmt.Sprintf("gpu-%03d", i)
		s := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: name}}
		s.Spec = resourcev1.ResourceSliceSpec{Driver: "gpu.nvidia.com", NodeName: &name, Pool: resourcev1.ResourcePool{Name: name, ResourceSliceCount: 1}}
		for k := range 8 {
			s.Spec.Devices = append(s.Spec.Devices, resourcev1.Device{Name: fmt.Sprintf("gpu-%d", k),
				Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"type": {StringValue: &kind}},
				Capacity:   map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: resource.MustParse("40Gi")}}})
		}
		st.ResourceSlices = append(st.ResourceSlices, s)
	}
	cel := func(expression string) []resourcev1.DeviceSelector {
		return []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: expression}}}
	}
	st.DeviceClasses = []*resourcev1.DeviceClass{{ObjectMeta: metav1.ObjectMeta{Name: "gpu"},
		Spec: resourcev1.DeviceClassSpec{Selectors: cel(`device.driver == "gpu.nvidia.com" && device.attributes["gpu.nvidia.com"].type == "gpu"`)}}}
	b.Run("inventory", func(b *testing.B) {
		for b.Loop() {
			TakeInventory(st)
		}
	})
	b.Run("read", func(b *testing.B) {
		v := &Claims{Inventory: TakeInventory(st)}
		for b.Loop() {
			a := &Ask{Class: "gpu", count: 1, selectors: cel(`device.capacity["gpu.nvidia.com"].memory.compareTo(quantity("80Gi")) >= 0`)}
			if v.askSelectors(b.Context(), a); a.near == nil || len(a.matching) > 0 {
				b.Fatalf("%d devices match", len(a.matching))
			}
		}
	})
}
