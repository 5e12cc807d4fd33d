package dump

import (
	"github.com/google/go-cmp/cmp"
	"strings"
	"testing"
)

// Equal tables of profiles are kept once; a GPU of the same model whose driver tells others
// keeps its own.
func TestProfilesAreShared(t *testing.T) {
	const (
		table = `, product: A100, profiles: [{name: 1g.5gb, id: 19, computeSlices: 1, memorySlices: 1, max: 7, starts: [0, 1]}]}`
		other = `, product: A100, profiles: [{name: 1g.5gb, id: 19, computeSlices: 1, memorySlices: 1, max: 7, starts: [0, 2]}]}`
		dump  = "apiVersion: unpend.dev/v1alpha1\nkind: NodeGeometry\nmetadata: {name: gpu-1}\nreport: {gpus: [{index: 0, healthy: true" + table + ", {index: 1, healthy: true" + table + ", {index: 2, healthy: true" + other + "]}\n"
	)
	st, err := Read([]string{"-"}, strings.NewReader(dump))
	if err != nil {
		t.Fatal(err)
	}
	gpus := st.Geometries["gpu-1"].Report.GPUs
	if &gpus[0].Profiles[0] != &gpus[1].Profiles[0] {
		t.Error("the same table is there twice")
	}
	if diff := cmp.Diff([][]int{{0, 1}, {0, 1}, {0, 2}}, [][]int{gpus[0].Profiles[0].Starts, gpus[1].Profiles[0].Starts, gpus[2].Profiles[0].Starts}); diff != "" {
		t.Error(diff)
	}
}
