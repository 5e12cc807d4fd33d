package terms

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// A volume is in places where its one term lists values; of alternatives, and of what it must not
// be, none is said.
func TestPlacesOfAVolume(t *testing.T) {
	in := func(key string, values ...string) corev1.NodeSelectorRequirement {
		return corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}
	}
	term := func(of ...corev1.NodeSelectorRequirement) corev1.NodeSelectorTerm {
		return corev1.NodeSelectorTerm{MatchExpressions: of}
	}
	needs := func(terms ...corev1.NodeSelectorTerm) *corev1.VolumeNodeAffinity {
		return &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: terms}}
	}
	for name, tc := range map[string]struct {
		affinity *corev1.VolumeNodeAffinity
		want     []string
	}{
		"anywhere":         {nil, nil},
		"nothing required": {&corev1.VolumeNodeAffinity{}, nil},
		"no term":          {needs(), nil},
		"one zone":         {needs(term(in("zone", "a"))), []string{"PersistentVolumeClaim data in a"}},
		"zone and region":  {needs(term(in("zone", "a", "b"), in("region", "r"))), []string{"PersistentVolumeClaim data in a|b", "PersistentVolumeClaim data in r"}},
		"not in one":       {needs(term(corev1.NodeSelectorRequirement{Key: "zone", Operator: corev1.NodeSelectorOpNotIn, Values: []string{"a"}})), nil},
		"either of two":    {needs(term(in("zone", "a")), term(in("zone", "b"))), nil},
	} {
		pv := &corev1.PersistentVolume{}
		pv.Spec.NodeAffinity = tc.affinity
		var got []string
		for _, p := range placesOf("data", pv) {
			got = append(got, p.String())
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
