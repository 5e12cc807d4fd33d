package cluster

import (
	"fmt"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// TaintRules are the DeviceTaintRules of the cluster (resource.k8s.io), as v1 has them: the
// versions before call the same fields by the same names. Of one that selects devices in a
// way that v1 does not know, nobody can say here which they are: it is left out.
func (s *State) TaintRules() []*resourcev1.DeviceTaintRule {
	var out []*resourcev1.DeviceTaintRule
	for _, u := range s.DeviceTaintRules {
		var rule resourcev1.DeviceTaintRule
		if knownSelector(u) && runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &rule) == nil {
			out = append(out, &rule)
		}
	}
	return out
}

// knownSelector says whether a rule selects devices by what v1 knows alone.
func knownSelector(u *unstructured.Unstructured) bool {
	selector, _, err := unstructured.NestedMap(u.Object, "spec", "deviceSelector")
	for key := range selector {
		if !slices.Contains([]string{"driver", "pool", "device"}, key) {
			return false
		}
	}
	return err == nil
}

// Taints says whether a rule taints a device: all that its selector names has to be so. An empty
// selector takes every device, none at all takes none.
func Taints(rule *resourcev1.DeviceTaintRule, driver, pool, device string) bool {
	selector := rule.Spec.DeviceSelector
	if selector == nil {
		return false
	}
	is := func(want *string, has string) bool { return want == nil || *want == has }
	return is(selector.Driver, driver) && is(selector.Pool, pool) && is(selector.Device, device)
}

// TaintedSlices are the ResourceSlices with the taints of the DeviceTaintRules on their
// devices, as the scheduler reads them (dynamic-resource-allocation resourceslice/tracker,
// 1.37.1).
func (s *State) TaintedSlices() []*resourcev1.ResourceSlice {
	rules := s.TaintRules()
	if len(rules) == 0 {
		return s.ResourceSlices
	}
	out := slices.Clone(s.ResourceSlices)
	for i, slice := range out {
		for k := range slice.Spec.Devices {
			for _, rule := range rules {
				if !Taints(rule, slice.Spec.Driver, slice.Spec.Pool.Name, slice.Spec.Devices[k].Name) {
					continue
				}
				if out[i] == slice {
					out[i] = slice.DeepCopy()
				}
				d := &out[i].Spec.Devices[k]
				d.Taints = append(d.Taints, rule.Spec.Taint)
			}
		}
	}
	return out
}

// TaintText writes a device's taint as kubectl does.
func TaintText(t resourcev1.DeviceTaint) string {
	return fmt.Sprintf("%s=%s:%s", t.Key, t.Value, t.Effect)
}
