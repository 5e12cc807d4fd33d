package whatif

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
)

// Pods that are placed together have the nodes that they have one by one, also where a rule
// of theirs counts the pods of other nodes.
func TestPlaceAlikeIsPlaceOneByOne(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var objs Objects
		for i := range rapid.IntRange(1, 6).Draw(rt, "nodes") {
			n := node(fmt.Sprint("n", i), rapid.Int64Range(1, 8).Draw(rt, "cpu"), rapid.Int64Range(0, 4).Draw(rt, "slices"))
			n.Labels["zone"] = rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "zone")
			objs.Nodes = append(objs.Nodes, n)
		}
		like := pod("like", rapid.Int64Range(1, 3).Draw(rt, "asks"), 1)
		like.Labels = map[string]string{"app": "x"}
		self := metav1.LabelSelector{MatchLabels: like.Labels}
		switch rapid.SampledFrom([]string{"plain", "apart", "spread"}).Draw(rt, "rule") {
		case "apart":
			like.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{LabelSelector: &self, TopologyKey: corev1.LabelHostname}}}}
		case "spread":
			like.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: "zone", WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &self}}
		}
		var pods []*corev1.Pod
		for i := range rapid.IntRange(0, 12).Draw(rt, "pods") {
			p := like.DeepCopy()
			p.Name = fmt.Sprint("p", i)
			pods = append(pods, p)
		}
		s := snapshot(t, objs)
		var want, got []string
		one := func(s *Snapshot) (err error) { want, err = s.placeEach(t.Context(), pods); return err }
		all := func(s *Snapshot) (err error) { got, err = s.PlaceAlike(t.Context(), pods); return err }
		for _, place := range []func(*Snapshot) error{one, all} {
			if err := Try(s, place); err != nil {
				rt.Fatal(err)
			}
		}
		if !slices.Equal(got, want) {
			rt.Fatalf("%q, one by one %q", got, want)
		}
	})
}
