package scaling

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/rca/cluster"
)

func conditions(all ...[4]string) map[string]any {
	var list []any
	for _, k := range all {
		list = append(list, map[string]any{"type": k[0], "status": k[1], "reason": k[2], "message": k[3]})
	}
	return map[string]any{"conditions": list}
}

// A pool is usable by its own word and its class's; a class that was not read, or that is
// another kind's of the same name, says nothing.
func TestPoolsWithTheirClasses(t *testing.T) {
	ready, not := [4]string{"Ready", "True", "", ""}, [4]string{"Ready", "False", "UnhealthyDependents", "AMIsReady=False"}
	amis := [4]string{"AMIsReady", "False", "AMINotFound", "AMISelector did not match any AMIs"}
	for name, k := range map[string]struct {
		pool, class   map[string]any
		kind          string
		usable, known bool
		words         string
	}{
		"both are":                {conditions(ready), conditions(ready), "EC2NodeClass", true, true, "Ready=True "},
		"the class is not":        {conditions(ready), conditions(amis, not), "EC2NodeClass", false, true, "AMIsReady=False AMINotFound: AMISelector did not match any AMIs"},
		"no condition is behind":  {conditions(ready), conditions(not), "EC2NodeClass", false, true, "Ready=False UnhealthyDependents: AMIsReady=False"},
		"Azure's":                 {conditions(ready), conditions(not), "AKSNodeClass", false, true, "Ready=False UnhealthyDependents: AMIsReady=False"},
		"the class says nothing":  {conditions(ready), nil, "EC2NodeClass", true, true, "Ready= "},
		"EKS Auto Mode's":         {conditions(ready), conditions(not), "NodeClass", false, true, "Ready=False UnhealthyDependents: AMIsReady=False"},
		"Google's":                {conditions(ready), conditions(not), "GCENodeClass", false, true, "Ready=False UnhealthyDependents: AMIsReady=False"},
		"another kind's":          {conditions(ready), conditions(not), "KWOKNodeClass", true, true, "Ready= "},
		"the pool is not":         {conditions(not), conditions(ready), "EC2NodeClass", false, true, "Ready=True "},
		"neither says a word yet": {nil, nil, "EC2NodeClass", false, false, "Ready= "},
	} {
		t.Run(name, func(t *testing.T) {
			class := []*unstructured.Unstructured{{Object: map[string]any{"metadata": map[string]any{"name": "c"}, "status": k.class}}}
			st := &cluster.State{NodePools: []*unstructured.Unstructured{{Object: map[string]any{"metadata": map[string]any{"name": "p"}, "status": k.pool,
				"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"nodeClassRef": map[string]any{"kind": k.kind, "name": "c"}}}}}}}}
			st.NodeClasses = map[string]cluster.NodeClasses{"NodeClass": {AutoMode: class}, "AKSNodeClass": {Azure: class}, "GCENodeClass": {Google: class}, "EC2NodeClass": {AWS: class}, "KWOKNodeClass": {AWS: class}}[k.kind]
			p := Read(st).Pools[0]
			if usable, known := p.Usable(); usable != k.usable || known != k.known || p.Class.Words() != k.words || p.Class.Ref() != k.kind+"/c" {
				t.Errorf("usable %v, known %v: %+v says %q", usable, known, p.Class, p.Class.Words())
			}
		})
	}
}
