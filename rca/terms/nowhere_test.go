package terms

import (
	"testing"

	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/rcatest"
)

// A volume that is local to a host of which no node has the name is told of as such, and which node was
// meant where one is called so; not where nodes were not read, nor of a zone that may come.
func TestVolumesOfNoNode(t *testing.T) {
	const host = "kubernetes.io/hostname"
	for name, tc := range map[string]struct {
		key, value, unread, want string
	}{
		"its host is there":   {host, "gpu-1", "", ""},
		"by a node's name":    {host, "n", "", "its volume is for no node at all: PersistentVolumeClaim data wants kubernetes.io/hostname=n, and the node of that name has gpu-1 there"},
		"of a node gone":      {host, "gone", "", "its volume is local to a node that is not there: PersistentVolumeClaim data wants kubernetes.io/hostname=gone"},
		"nodes were not read": {host, "gone", "Node", ""},
		"of a zone":           {"zone", "c", "", ""},
	} {
		w := rcatest.NewWorld()
		w.AddNode(sim.Node{Name: "n", Labels: map[string]string{host: "gpu-1"}})
		claim(w, "data", "v", tc.value)
		w.PVs[0].Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions[0].Key = tc.key
		if tc.unread != "" {
			w.Unread[tc.unread] = "forbidden"
		}
		s, _ := subject(t, w)
		got, evidence := VolumesOf(s).apartSays()
		if got != tc.want || (got != "") != (len(evidence) > 0) {
			t.Errorf("%s: %q %v, want %q", name, got, evidence, tc.want)
		}
	}
}
