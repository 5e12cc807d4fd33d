package changes

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Where a volume can be had is said where that is one zone, or one node.
func TestWhereAVolumeIs(t *testing.T) {
	in := func(key string, values ...string) corev1.NodeSelectorRequirement {
		return corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}
	}
	for name, tc := range map[string]struct {
		at   []corev1.NodeSelectorRequirement
		want string
	}{
		"a zone":       {[]corev1.NodeSelectorRequirement{in("topology.kubernetes.io/region", "r"), in("topology.kubernetes.io/zone", "r-a")}, " (zone r-a)"},
		"a cloud's":    {[]corev1.NodeSelectorRequirement{in("topology.gke.io/zone", "r-a")}, " (zone r-a)"},
		"a node":       {[]corev1.NodeSelectorRequirement{in("kubernetes.io/hostname", "n")}, " (node n)"},
		"one of zones": {[]corev1.NodeSelectorRequirement{in("topology.kubernetes.io/zone", "r-a", "r-b")}, ""},
		"anywhere":     {nil, ""},
	} {
		v := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "v"}}
		if tc.at != nil {
			v.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: tc.at}}}}
		}
		if got := volumeAt([]*corev1.PersistentVolume{{ObjectMeta: metav1.ObjectMeta{Name: "u"}}, v}, "v"); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// One node more where a volume is helps a pod that may be there; where no node is, nobody knows.
func TestPodsThatMayNotBeWhereTheirVolumeIs(t *testing.T) {
	zone := func(name string) *corev1.VolumeNodeAffinity {
		return &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: []string{name}}}}}}}
	}
	for name, tc := range map[string]struct {
		volume, selects string
		barred          bool
	}{
		"elsewhere":            {"z", "y", true},
		"there":                {"z", "z", false},
		"anywhere":             {"z", "", false},
		"where no node is":     {"x", "y", false},
		"and it is not chosen": {"x", "", false},
	} {
		w := newWorld()
		w.Wholes("n", "o")
		if tc.selects != "" {
			w.Wait.Spec.NodeSelector = map[string]string{"zone": tc.selects}
		}
		for i, n := range w.Nodes {
			n.Labels["zone"] = []string{"z", "y"}[i%2]
		}
		w.PVs = []*corev1.PersistentVolume{{ObjectMeta: metav1.ObjectMeta{Name: "u"}}, {ObjectMeta: metav1.ObjectMeta{Name: "v"}, Spec: corev1.PersistentVolumeSpec{NodeAffinity: zone(tc.volume)}}}
		if got := barredThere(w.bench(t, "Deployment"), "v"); got != tc.barred {
			t.Errorf("%s: %v", name, got)
		}
	}
}
