package parts

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// NRI's plugin is run by the toolkit: a policy that has the one on and the other off has nobody run it.
func TestPoliciesWhosePluginNobodyRuns(t *testing.T) {
	policy := func(nri, toolkit any) *unstructured.Unstructured {
		spec := map[string]any{"cdi": map[string]any{"enabled": true}, "toolkit": map[string]any{}}
		if nri != nil {
			spec["cdi"] = map[string]any{"nriPluginEnabled": nri}
		}
		if toolkit != nil {
			spec["toolkit"] = map[string]any{"enabled": toolkit}
		}
		return &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "cp"}, "spec": spec}}
	}
	for name, k := range map[string]struct {
		policies []*unstructured.Unstructured
		tells    bool
	}{
		"on, and the toolkit off":       {[]*unstructured.Unstructured{policy(nil, nil), policy(true, false)}, true},
		"on, and the toolkit on":        {[]*unstructured.Unstructured{policy(true, true)}, false},
		"on, and the toolkit's default": {[]*unstructured.Unstructured{policy(true, nil)}, false},
		"off":                           {[]*unstructured.Unstructured{policy(false, false)}, false},
		"not said":                      {[]*unstructured.Unstructured{policy(nil, false)}, false},
		"no flag":                       {[]*unstructured.Unstructured{policy("yes", false)}, false},
		"no policy":                     {nil, false},
	} {
		fact, commands := WithoutPlugin(k.policies)
		if (fact != nil) != k.tells || k.tells && (fact.Ref != "ClusterPolicy/cp" || len(fact.Claims) != 2 || !strings.HasPrefix(strings.Join(commands, "; "), `kubectl patch clusterpolicy cp --type=merge -p '{"spec":{"toolkit":{"enabled":true}}}'`)) {
			t.Errorf("%s: %+v %q", name, fact, commands)
		}
	}
}
