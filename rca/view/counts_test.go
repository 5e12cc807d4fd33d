package view

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
			n := &Node{Node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{LabelMIGStrategy: "mixed", "nvidia.com/gpu.product": m.Products[0]}}}, Requested: corev1.ResourceList{}}
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
						Add(n.Requested, corev1.ResourceList{corev1.ResourceName(MIGPrefix + Spelled(gpu.Slots[k].Profile)): *resource.NewQuantity(1, resource.DecimalSI)})
					}
				}
				gpus = append(gpus, gpu)
			}
			n.Labels[LabelGPUCount] = strconv.Itoa(len(gpus))
			for _, p := range m.Profiles {
				a := Ask{Profile: Spelled(p.Name), Count: int64(1 + rng.IntN(3))}
				c, ok := n.CountsFor(a)
				if !ok {
					t.Fatalf("%s: nothing is said of %s", m.ID, p.Name)
				}
				room := 0
				for _, g := range gpus {
					room += g.Fit(p.Name).Room
				}
				if c.Fits(a) {
					if fits++; int64(room) < a.Count {
						t.Fatalf("%s: counts fit %d %s, positions %d: %+v", m.ID, a.Count, p.Name, room, gpus)
					}
				}
				if c.Full() {
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
