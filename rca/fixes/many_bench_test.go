package fixes

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/causes"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/evict"
	"github.com/unpend/unpend/rca/rcatest"
	"github.com/unpend/unpend/rca/view"
	"github.com/unpend/unpend/watcher/incident"
)

// BenchmarkManyWaiting is what one incident of n waiting pods costs at 1,000 nodes, every
// fix proved for min(n, 64) of them. growth is by that of one pod.
func BenchmarkManyWaiting(b *testing.B) {
	one := 0.0
	for _, n := range []int{1, 10, 64, 100} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			st := rcatest.Troubled(1000, "nvidia.com/mig-2g.10gb")
			var like *corev1.Pod
			for _, p := range st.Pods {
				if p.Spec.NodeName == "" {
					like = p
				}
			}
			like.OwnerReferences = rcatest.Victim("x", 0, 1, 0, "train").OwnerReferences
			for i := 1; i < n; i++ {
				p := like.DeepCopy()
				p.Name = fmt.Sprint(like.Name, "-", i)
				st.Pods = append(st.Pods, p)
			}
			incidents := incident.Group(st.Pods, st.Owner)
			if len(incidents) != 1 || incidents[0].Waiting != n {
				b.Fatalf("%d incidents, %d wait", len(incidents), incidents[0].Waiting)
			}
			w, done, err := view.Open(b.Context(), st, nil)
			if err != nil {
				b.Fatal(err)
			}
			defer done()
			var effect *diagnosis.Effect
			for b.Loop() {
				k, err := causes.Open(evict.NewLedger(w), incidents[0])
				if err != nil {
					b.Fatal(err)
				}
				if k.Verdict, err = w.Snapshot.Explain(b.Context(), k.Pod); err != nil {
					b.Fatal(err)
				}
				nodes, causes := k.Judge()
				found, err := New(k, nil, nil, nil).Find(b.Context(), nodes, causes)
				if err != nil {
					b.Fatal(err)
				}
				effect = found[0].fix.Effect
			}
			if effect == nil || effect.Of != n || effect.Runs == 0 {
				b.Fatalf("effect %+v", effect)
			}
			ms := b.Elapsed().Seconds() * 1000 / float64(b.N)
			b.ReportMetric(ms, "ms/incident")
			b.ReportMetric(float64(effect.Runs), "run")
			if n == 1 {
				one = ms
			}
			b.ReportMetric(ms/one, "growth")
		})
	}
}
