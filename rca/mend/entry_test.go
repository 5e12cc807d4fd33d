package mend

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit/edittest"
)

// A label whose entry is at fault is mended in the ConfigMap or on the node, once who holds the GPUs
// has left; of a config that is not read nothing is said.
func TestEntriesThatAreAtFault(t *testing.T) {
	for name, tc := range map[string]struct {
		entries string
		cause   diagnosis.CauseID
		held    bool
		want    string
	}{
		"there is none of that name": {"  ones: [{devices: all, mig-enabled: true, mig-devices: {1g.5gb: 7}}]\n", diagnosis.MIGConfigUnknown, false,
			`by hand, medium risk: write entry "odd" into ConfigMap gpu-operator/default-mig-parted-config, or label n with one that is there (ones) (what the entry is to make is in no object)`},
		"it asks for too much": {"  odd: [{devices: all, mig-enabled: true, mig-devices: {3g.20gb: 3}}]\n", diagnosis.MIGConfigInvalidForGPU, true,
			`by hand, high risk: have entry "odd" of ConfigMap gpu-operator/default-mig-parted-config ask no more of a GPU of n than it has places for (what the entry is to make is in no object)`},
		"it is not read": {"", diagnosis.MIGConfigUnknown, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.Laid("odd", "failed")
			w.ConfigMaps = nil
			if tc.entries != "" {
				w.ConfigMaps = []*corev1.ConfigMap{{ObjectMeta: metav1.ObjectMeta{Namespace: "gpu-operator", Name: "default-mig-parted-config"}, Data: map[string]string{"config.yaml": "version: v1\nmig-configs:\n" + tc.entries}}}
			}
			if tc.held {
				w.AddHolder("h", "n", "nvidia.com/mig-1g.5gb", 0).OwnerReferences = nil
			}
			c := w.bench(t)
			all := Entry(c, c.Node("n"), tc.cause)
			if got := edittest.ToldAll(all); got != tc.want {
				t.Fatalf("%s\nwant %s", got, tc.want)
			}
			if len(all) > 0 && (len(all[0].Drained) > 0) != tc.held {
				t.Errorf("%d have to leave", len(all[0].Drained))
			}
		})
	}
	if got := named(strings.Split("abcdefg", "")); got != "a, b, c, d, e, f, …" {
		t.Error(got)
	}
	if got := named(strings.Split("abcdef", "")); got != "a, b, c, d, e, f" {
		t.Error(got)
	}
}
