package cluster

import (
	"testing"

	"github.com/unpend/unpend/nodeprobe"
)

// That a GPU is sick a report has to say: one that says nothing of it is told apart.
func TestUntoldHealth(t *testing.T) {
	const report = `{"metadata": {"name": "gpu-1"}, "report": {"gpus": [{"index": 0, "healthy": true}, {"index": 1, "healthy": false}, {"index": 2}]}}`
	o, err := KindNamed(nodeprobe.Kind.Kind).Decode("unpend.dev/v1alpha1", []byte(report))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct{ healthy, untold bool }{{true, false}, {false, false}, {false, true}} {
		if g := o.(*nodeprobe.NodeGeometry).Report.GPUs[i]; g.Healthy != want.healthy || g.Untold != want.untold {
			t.Errorf("GPU %d: healthy %v, untold %v", i, g.Healthy, g.Untold)
		}
	}
}
