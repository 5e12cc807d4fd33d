package stack

import (
	"strings"
	"testing"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/stack/parts"
	"github.com/unpend/unpend/rca/view"
)

// A machine with Talos has its driver in its image: the operator's is kept off, of that machine alone where others
// need it.
func TestADriverOnTalos(t *testing.T) {
	for name, k := range map[string]struct {
		other bool
		want  string
	}{
		"alone":               {false, `'{"spec":{"driver":{"enabled":false}}}'`},
		"beside another kind": {true, "kubectl label node n nvidia.com/gpu.deploy.driver=false --overwrite"},
	} {
		l := newLab()
		l.gpuNode("n").Status.NodeInfo.OSImage = "Talos (v1.6.5)"
		if k.other {
			l.gpuNode("m").Status.NodeInfo.OSImage = "Ubuntu 22.04.5 LTS"
		}
		l.pod(parts.Driver, "n", crashes("no package for 6.1.78-talos"))
		w := view.New(l.State)
		f := Of(w).On(w.Nodes["n"])
		if f == nil || f.Cause != diagnosis.DriverNotReady || !strings.HasSuffix(f.Says, "it runs Talos, whose driver is an extension of the machine's image, and not to be installed by the GPU Operator") {
			t.Fatalf("%s: %+v", name, f)
		}
		if m := f.Mends[0]; len(f.Mends) != 1 || !m.Reboots || !strings.Contains(strings.Join(m.Commands, "\n"), k.want) {
			t.Errorf("%s: %+v", name, f.Mends)
		}
	}
}
