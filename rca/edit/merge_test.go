package edit

import (
	"reflect"
	"testing"
)

// Two patches of one pod spec are one that does what both did, and neither is changed.
func TestMergeSpecs(t *testing.T) {
	a := map[string]any{"tolerations": []string{"x"}, "nodeSelector": map[string]any{"zone": "a"},
		"containers": []map[string]any{{"name": "main", "resources": map[string]any{"limits": map[string]any{"cpu": "1"}}}}}
	b := map[string]any{"nodeSelector": map[string]any{"pool": nil}, "schedulerName": "default-scheduler",
		"containers": []map[string]any{{"name": "main", "resources": map[string]any{"limits": map[string]any{"memory": "1Gi"}, "requests": map[string]any{"cpu": "1"}}}, {"name": "side"}}}
	want := map[string]any{"tolerations": []string{"x"}, "nodeSelector": map[string]any{"zone": "a", "pool": nil}, "schedulerName": "default-scheduler",
		"containers": []map[string]any{
			{"name": "main", "resources": map[string]any{"limits": map[string]any{"cpu": "1", "memory": "1Gi"}, "requests": map[string]any{"cpu": "1"}}}, {"name": "side"}}}
	if got := mergeSpecs(a, b); !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if len(a["containers"].([]map[string]any)) != 1 || len(a["nodeSelector"].(map[string]any)) != 1 {
		t.Errorf("the first patch was changed: %v", a)
	}
}
