package changes

import (
	"fmt"
	"math"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/causes"
	"github.com/unpend/unpend/rca/evict"
	"github.com/unpend/unpend/rca/rcatest"
	"github.com/unpend/unpend/rca/view"
	"github.com/unpend/unpend/watcher/incident"
)

// What affinity and spread come to is worked out in one pass over the pods, however many
// nodes they leave out: by allocations, since a clock tells of the machine too.
func TestAffinityGrowth(t *testing.T) {
	const few, times = 160, 4
	a, b := affinityAllocs(t, few), affinityAllocs(t, few*times)
	if exponent := math.Log(b/a) / math.Log(times); exponent > 1.05 {
		t.Errorf("%.0f allocations at %d nodes, %.0f at %d: exponent %.2f", a, few, b, few*times, exponent)
	}
}

func affinityAllocs(t *testing.T, nodes int) float64 {
	t.Helper()
	const asks = "nvidia.com/gpu"
	st := rcatest.Troubled(nodes, asks)
	for i, n := range st.Nodes {
		n.Labels["zone"], n.Labels[corev1.LabelHostname] = fmt.Sprint(i%8), n.Name
	}
	serves := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "serve"}}
	apart := &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{LabelSelector: serves, TopologyKey: corev1.LabelHostname}}}}
	for _, p := range st.Pods {
		p.Labels, p.Spec.Affinity = serves.MatchLabels, apart
		p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: "zone", WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: serves}}
	}
	w, done, err := view.Open(t.Context(), st, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	incident := incident.Group(st.Pods, st.Owner)[0]
	return testing.AllocsPerRun(2, func() {
		k, err := causes.Open(evict.NewLedger(w), incident)
		if err != nil {
			t.Fatal(err)
		}
		c := New(k, nil)
		changes := 0
		for _, n := range w.SortedNodes() {
			changes += len(c.resolveAffinity(n)) + len(c.loosenSpread(n))
		}
		if changes < nodes {
			t.Fatalf("%d changes for %d nodes", changes, nodes)
		}
	})
}
