package full

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// What would do is what the flavor has and what is wanted beyond what is unused, the most of all pod sets; nothing is said where a figure is not known.
func TestWhatWouldDo(t *testing.T) {
	const has = `{spec: {resourceGroups: [{flavors: [{name: a, resources: [{name: nvidia.com/gpu, nominalQuota: "8"}]}, {name: b, resources: [{name: nvidia.com/gpu, nominalQuota: 4}]}]}]}}`
	for name, tc := range map[string]struct{ queue, says, want string }{
		"one flavor":             {has, "couldn't assign flavors to pod set main: insufficient unused quota for nvidia.com/gpu in flavor b, 3 more needed", "b nvidia.com/gpu 4 to 7"},
		"two flavors":            {has, "insufficient unused quota for nvidia.com/gpu in flavor a, 1 more needed, insufficient unused quota for nvidia.com/gpu in flavor b, 5 more needed", "a nvidia.com/gpu 8 to 9; b nvidia.com/gpu 4 to 9"},
		"two pod sets":           {has, "pod set x: insufficient unused quota for nvidia.com/gpu in flavor a, 1 more needed; pod set y: insufficient unused quota for nvidia.com/gpu in flavor a, 5 more needed", "a nvidia.com/gpu 8 to 13"},
		"no such flavor":         {has, "insufficient unused quota for nvidia.com/gpu in flavor c, 3 more needed", ""},
		"no such resource":       {has, "insufficient unused quota for cpu in flavor a, 100m more needed", ""},
		"no quantity":            {has, "insufficient unused quota for nvidia.com/gpu in flavor a, 3x more needed", ""},
		"it could never have it": {has, "insufficient quota for nvidia.com/gpu in flavor a, request > maximum capacity (9 > 8)", ""},
		"no quota":               {"{}", "insufficient unused quota for nvidia.com/gpu in flavor a, 3 more needed", ""},
	} {
		q, w := &unstructured.Unstructured{}, &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": []any{map[string]any{"type": "QuotaReserved", "status": "False", "reason": "Pending", "message": tc.says}}}}}
		if err := yaml.Unmarshal([]byte(tc.queue), &q.Object); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, s := range unused(q, w) {
			got = append(got, fmt.Sprintf("%s %s %s to %s", s.Flavor, s.Resource, s.Most.String(), s.Needs.String()))
		}
		if strings.Join(got, "; ") != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
