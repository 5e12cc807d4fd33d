package terms

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/rcatest"
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

// No node has two volumes together that are in places of their own by the same label; zones and
// racks say nothing of each other, and one volume is never apart from itself.
func TestVolumesApart(t *testing.T) {
	for name, tc := range map[string]struct {
		at   []Place // of the pod's claims c0, c1, each with a volume of its own
		want string
	}{
		"two zones":       {[]Place{{Key: "zone", values: []string{"a"}}, {Key: "zone", values: []string{"b"}}}, "c0 c1"},
		"one zone":        {[]Place{{Key: "zone", values: []string{"a"}}, {Key: "zone", values: []string{"a"}}}, ""},
		"a zone in both":  {[]Place{{Key: "zone", values: []string{"a", "b"}}, {Key: "zone", values: []string{"b", "c"}}}, ""},
		"zone and rack":   {[]Place{{Key: "zone", values: []string{"a"}}, {Key: "rack", values: []string{"b"}}}, ""},
		"one volume only": {[]Place{{Key: "zone", values: []string{"a"}}}, ""},
	} {
		w := rcatest.NewWorld()
		for i, p := range tc.at {
			name := fmt.Sprint("c", i)
			w.Wait.Spec.Volumes = append(w.Wait.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}})
			bound := &corev1.PersistentVolumeClaim{}
			bound.Namespace, bound.Name, bound.Spec.VolumeName = "a", name, "pv-"+name
			pv := &corev1.PersistentVolume{}
			pv.Name = "pv-" + name
			of := corev1.NodeSelectorRequirement{Key: p.Key, Operator: corev1.NodeSelectorOpIn, Values: p.values}
			terms := []corev1.NodeSelectorRequirement{of}
			if len(tc.at) == 1 { // said twice, and never both
				terms = append(terms, corev1.NodeSelectorRequirement{Key: p.Key, Operator: corev1.NodeSelectorOpIn, Values: []string{"z"}})
			}
			pv.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: terms}}}}
			w.PVCs, w.PVs = append(w.PVCs, bound), append(w.PVs, pv)
		}
		s, _ := subject(t, w)
		one, other, ok := VolumesOf(s).Apart()
		if got := strings.TrimSpace(one.Claim + " " + other.Claim); got != tc.want || ok != (tc.want != "") {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
