package causes

import (
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What there is of a driver is told by its slices: none, or some that list no device, with the node
// that they are of; where no driver is named, of any.
func TestWhatADriverHasPublished(t *testing.T) {
	node := "n1"
	slice := func(driver string, node *string) *resourcev1.ResourceSlice {
		return &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "s"}, Spec: resourcev1.ResourceSliceSpec{Driver: driver, NodeName: node}}
	}
	for name, tc := range map[string]struct {
		slices  []*resourcev1.ResourceSlice
		drivers []string
		want    string
		claims  int
	}{
		"nothing":            {nil, nil, "no ResourceSlice of any driver exists", 1},
		"nothing of it":      {nil, []string{"a"}, "no ResourceSlice of driver a exists", 1},
		"nothing of two":     {nil, []string{"a", "b"}, "no ResourceSlice of driver a or b exists", 2},
		"another's":          {[]*resourcev1.ResourceSlice{slice("b", &node)}, []string{"a"}, "no ResourceSlice of driver a exists", 1},
		"no device":          {[]*resourcev1.ResourceSlice{slice("a", &node)}, []string{"a"}, "driver a has published no device: ResourceSlice s lists none", 3},
		"no device, no node": {[]*resourcev1.ResourceSlice{slice("a", nil)}, []string{"a"}, "driver a has published no device: ResourceSlice s lists none", 2},
		"no device of any":   {[]*resourcev1.ResourceSlice{slice("a", nil)}, nil, "no driver has published a device", 2},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.pod("w", "", "nvidia.com/gpu", 1)
			c := w.open(t)
			c.Cluster.State.ResourceSlices = tc.slices
			if says, claims := unpublished(c, tc.drivers); says != tc.want || len(claims) != tc.claims {
				t.Errorf("%q, %v; want %q, %d claims", says, claims, tc.want, tc.claims)
			}
		})
	}
}
