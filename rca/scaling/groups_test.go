package scaling

import "testing"

// A group is a pool's where its name has the pool's between separators; to begin alike is not
// enough.
func TestGroupOfPool(t *testing.T) {
	for group, pools := range map[string]map[string]bool{
		"eks-gpu-0ac1-11":                  {"gpu": true, "gp": false, "": false, "gpu-0ac1": true},
		"eks-gpus-0ac1":                    {"gpu": false, "gpus": true},
		"https://c/zones/z/gke-c-l4-5-grp": {"l4": true, "c": true, "zones": false},
		"aks-gpugpu-gpu-vmss":              {"gpu": true},
	} {
		for pool, want := range pools {
			if got := (&Group{Name: group}).Of(pool); got != want {
				t.Errorf("%s of %q: %v", group, pool, got)
			}
		}
	}
}
