package terms

import (
	"testing"

	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/rcatest"
)

// A label that no node has is told by what nodes call it: Kubernetes' own by their other name, others
// by a slip of the pen, and only with the value that is asked. One that a RuntimeClass gives is told so.
func TestLabelsByAnotherName(t *testing.T) {
	for name, tc := range map[string]struct {
		key, value string
		class      map[string]string
		want       string
	}{
		"Kubernetes' old one":    {"beta.kubernetes.io/os", "linux", nil, "selector beta.kubernetes.io/os=linux (nearest: label kubernetes.io/os=linux) does not match"},
		"of another value":       {"beta.kubernetes.io/os", "windows", nil, "selector beta.kubernetes.io/os=windows does not match"},
		"a slip of the pen":      {"acelerator", "a100", nil, "selector acelerator=a100 (nearest: label accelerator=a100) does not match"},
		"another word":           {"pool-b", "true", nil, "selector pool-b=true does not match"},
		"nodes have that label":  {"accelerator", "h100", nil, `selector accelerator=h100 (nearest: "a100") does not match`},
		"of its class":           {"cc", "on", map[string]string{"cc": "on"}, "selector cc=on (of RuntimeClass kata) does not match"},
		"its class has another":  {"cc", "on", map[string]string{"cc": "off"}, "selector cc=on does not match"},
		"its class selects else": {"cc", "on", map[string]string{"x": "on"}, "selector cc=on does not match"},
	} {
		w := rcatest.NewWorld()
		w.AddNode(sim.Node{Name: "n", Labels: map[string]string{"kubernetes.io/os": "linux", "accelerator": "a100", "pool-a": "true"}})
		w.Wait.Spec.NodeSelector = map[string]string{tc.key: tc.value}
		if tc.class != nil {
			w.Wait.Spec.RuntimeClassName = new("kata")
			w.RuntimeClasses = []*nodev1.RuntimeClass{{ObjectMeta: metav1.ObjectMeta{Name: "kata"}, Scheduling: &nodev1.Scheduling{NodeSelector: tc.class}}}
		}
		s, _ := subject(t, w)
		if f := LabelsOf(s).Tell(s.Cluster.Nodes["n"]); f == nil || f.Says != tc.want {
			t.Errorf("%s: %+v, want %s", name, f, tc.want)
		}
	}
}
