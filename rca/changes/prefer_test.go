package changes

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// Terms that a node does not meet become wishes, behind those that there are; the others stay
// as they are, and the patch has the lists that change, whole.
func TestTermsBecomeWishes(t *testing.T) {
	terms := func(keys ...string) []corev1.PodAffinityTerm {
		var out []corev1.PodAffinityTerm
		for _, k := range keys {
			out = append(out, corev1.PodAffinityTerm{TopologyKey: k})
		}
		return out
	}
	wish := []corev1.WeightedPodAffinityTerm{{Weight: 1, PodAffinityTerm: terms("w")[0]}}
	from := &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms("a", "b"), PreferredDuringSchedulingIgnoredDuringExecution: wish},
		PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms("c", "d")}}
	text := func(required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm) string {
		var out []string
		for _, term := range required {
			out = append(out, term.TopologyKey)
		}
		for _, term := range preferred {
			if term.Weight == mostWeight {
				out = append(out, "("+term.PodAffinityTerm.TopologyKey+")")
			} else {
				out = append(out, "("+term.PodAffinityTerm.TopologyKey+" a little)")
			}
		}
		return strings.Join(out, " ")
	}
	for name, tc := range map[string]struct {
		unmet, broken []int
		with, apart   string
		patch         []string // its keys
	}{
		"the first of those that are wanted near": {[]int{0}, nil, "b (w a little) (a)", "c d", []string{"podAffinity"}},
		"both of them":                          {[]int{0, 1}, nil, "(w a little) (a) (b)", "c d", []string{"podAffinity"}},
		"the second of those that are kept off": {nil, []int{1}, "a b (w a little)", "c (d)", []string{"podAntiAffinity"}},
		"one of each":                           {[]int{1}, []int{0}, "a (w a little) (b)", "d (c)", []string{"podAffinity", "podAntiAffinity"}},
		"none":                                  {nil, nil, "a b (w a little)", "c d", nil},
	} {
		t.Run(name, func(t *testing.T) {
			a := preferring(from, tc.unmet, tc.broken)
			with, apart := text(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution, a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution), text(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution, a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
			if with != tc.with || apart != tc.apart {
				t.Errorf("%q, %q; want %q, %q", with, apart, tc.with, tc.apart)
			}
			patch := affinityPatch(a, tc.unmet, tc.broken)
			var keys []string
			for key, lists := range patch {
				keys = append(keys, key)
				required := len(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution)
				if key == "podAntiAffinity" {
					required = len(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution)
				}
				data, err := json.Marshal(lists)
				if err != nil || strings.Contains(string(data), `"requiredDuringSchedulingIgnoredDuringExecution":null`) != (required == 0) {
					t.Errorf("%s: %s, %v", key, data, err)
				}
			}
			if slices.Sort(keys); !slices.Equal(keys, tc.patch) {
				t.Errorf("the patch has %v, want %v", keys, tc.patch)
			}
		})
	}
	if got := text(from.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution, wish); got != "a b (w a little)" {
		t.Errorf("what was given is changed: %s", got)
	}
}
