package rca

import (
	"math/rand/v2"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/rca/placement"
)

// What counts say, positions never contradict.
func TestCountsClaimNothingFalse(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	fits, full := 0, 0
	for _, m := range nodeprobe.Models() {
		if len(m.Profiles) == 0 || len(m.Products) == 0 {
			continue
		}
		for range 200 {
			n := &nodeView{Node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{labelMIGStrategy: "mixed", "nvidia.com/gpu.product": m.Products[0]}}}, requested: corev1.ResourceList{}}
			var gpus []placement.GPU
			for i := range 1 + rng.IntN(3) {
				gpu, err := placement.Read("n", nodeprobe.GPU{Index: i, Profiles: m.Profiles})
				if err != nil {
					t.Fatal(err)
				}
				layouts := gpu.Grid.Layouts()
				gpu.Slots, _ = gpu.Grid.Place(layouts[rng.IntN(len(layouts))])
				for k := range gpu.Slots {
					if gpu.Slots[k].Held = rng.IntN(4) > 0; gpu.Slots[k].Held {
						add(n.requested, corev1.ResourceList{corev1.ResourceName(migPrefix + spelled(gpu.Slots[k].Profile)): *resource.NewQuantity(1, resource.DecimalSI)})
					}
				}
				gpus = append(gpus, gpu)
			}
			n.Labels[labelGPUCount] = strconv.Itoa(len(gpus))
			for _, p := range m.Profiles {
				a := ask{profile: spelled(p.Name), count: int64(1 + rng.IntN(3))}
				c, ok := n.countsFor(a)
				if !ok {
					t.Fatalf("%s: nothing is said of %s", m.ID, p.Name)
				}
				room := 0
				for _, g := range gpus {
					room += g.Fit(p.Name).Room
				}
				if c.fits(a) {
					if fits++; int64(room) < a.count {
						t.Fatalf("%s: counts fit %d %s, positions %d: %+v", m.ID, a.count, p.Name, room, gpus)
					}
				}
				if c.full() {
					if full++; room > 0 {
						t.Fatalf("%s: counts say full for %s, positions have room for %d: %+v", m.ID, p.Name, room, gpus)
					}
				}
			}
		}
	}
	if fits == 0 || full == 0 {
		t.Errorf("fits was said %d times, full %d", fits, full)
	}
}
