package cluster

import (
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A rule taints what all of its selector names: an empty one everything, none nothing, and
// one that cannot be read here nothing that anybody could name. The slices themselves stay.
func TestTaintedSlices(t *testing.T) {
	for name, k := range map[string]struct {
		selector any
		want     string // the tainted devices
	}{
		"of the driver":     {map[string]any{"driver": "d"}, "ab"},
		"one device":        {map[string]any{"driver": "d", "pool": "p", "device": "b"}, "b"},
		"another pool":      {map[string]any{"driver": "d", "pool": "q"}, ""},
		"another driver":    {map[string]any{"driver": "e", "device": "a"}, ""},
		"everything":        {map[string]any{}, "ab"},
		"no selector":       {nil, ""},
		"an older selector": {map[string]any{"driver": "d", "deviceClassName": "c"}, ""},
		"no selector's":     {"all", ""},
	} {
		t.Run(name, func(t *testing.T) {
			spec := map[string]any{"taint": map[string]any{"key": "k", "value": "v", "effect": "NoSchedule"}}
			if k.selector != nil {
				spec["deviceSelector"] = k.selector
			}
			slice := &resourcev1.ResourceSlice{Spec: resourcev1.ResourceSliceSpec{Driver: "d", Pool: resourcev1.ResourcePool{Name: "p"}, Devices: []resourcev1.Device{{Name: "a"}, {Name: "b"}}}}
			s := &State{ResourceSlices: []*resourcev1.ResourceSlice{slice}, DeviceTaintRules: []*unstructured.Unstructured{{Object: map[string]any{"metadata": map[string]any{"name": "r"}, "spec": spec}}}}
			got := ""
			for _, d := range s.TaintedSlices()[0].Spec.Devices {
				for _, taint := range d.Taints {
					if got += d.Name; TaintText(taint) != "k=v:NoSchedule" {
						t.Errorf("%s", TaintText(taint))
					}
				}
			}
			if got != k.want || len(slice.Spec.Devices[0].Taints)+len(slice.Spec.Devices[1].Taints) > 0 {
				t.Errorf("tainted %q, want %q; the slice itself has %v", got, k.want, slice.Spec.Devices)
			}
		})
	}
}
