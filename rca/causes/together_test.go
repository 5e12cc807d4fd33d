package causes

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/diagnosis"
)

// Several things that keep a pod from a node are told each by its own rule.
func TestCausesBesideOneAnother(t *testing.T) {
	rows{
		"more than any node has is not spread over nodes": {func(w *world) {
			w.gpuNode(l4("n1", 2))
			w.gpuNode(l4("n2", 2))
			w.pod("w", "", "nvidia.com/gpu", 3)
		}, `
GPURequestTooLarge proven n1,n2: has fewer GPUs than one pod asks for
  Node/n1: capacity nvidia.com/gpu=2, one pod asks for 3
  Node/n2: capacity nvidia.com/gpu=2, one pod asks for 3
`},
		"a label that is missed, and GPUs that are held": {func(w *world) {
			n := l4("n1", 1)
			n.Labels = map[string]string{"pool": "a"}
			w.gpuNode(n)
			w.pod("h", "n1", "nvidia.com/gpu", 1)
			w.pod("w", "", "nvidia.com/gpu", 1, func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"pool": "b"} })
		}, `
GPUsInUse proven n1: all whole GPUs are held
  Node/n1: allocatable nvidia.com/gpu=1, requested 1
NodeSelectorMismatch proven n1: selector pool=b (nearest: "a") does not match
  Node/n1: label pool is "a", b was asked
`},
		"an entry of profiles that the model has not": {func(w *world) {
			w.config("  strange: [{devices: all, mig-enabled: true, mig-devices: {1g.12gb: 7}}]\n")
			w.gpuNode(sim.Node{Name: "n1", Model: "A100-40GB", Config: "strange", Layouts: [][]sim.Placed{nil}})
			w.pod("w", "", "nvidia.com/mig-2g.10gb", 1)
		}, `
MIGConfigInvalidForGPU proven n1: mig.config "strange" cannot exist on NVIDIA A100-SXM4-40GB
  ConfigMap/gpu-operator/default-mig-parted-config: entry strange wants 7×1g.12gb
  NodeGeometry/n1: GPU 0 has no legal positions for that
`},
		"an entry of another model's, by its filter": {func(w *world) {
			w.config("  strange: [{device-filter: [\"0x1\"], devices: all, mig-enabled: true, mig-devices: {1g.12gb: 7}}]\n")
			w.gpuNode(sim.Node{Name: "n1", Model: "A100-40GB", Config: "strange", Layouts: [][]sim.Placed{nil}})
			w.pod("w", "", "nvidia.com/mig-2g.10gb", 1)
		}, `
MIGLayoutMismatch proven n1: not laid out with 2g.10gb, though a legal position is unheld
  NodeGeometry/n1: GPU 0: 2g.10gb could start at memory slice 4, nobody holds it; the layout is empty
  Node/n1: allocatable nvidia.com/mig-2g.10gb=0, requested 0
`},
	}.run(t)
}

// Evidence is told once: what is read from a node for each node, what is of no node for all.
func TestEvidenceIsToldOnce(t *testing.T) {
	node := func(n, fact string) diagnosis.Evidence { return diagnosis.Evidence{Ref: "Node/" + n, Fact: fact} }
	quota := diagnosis.Evidence{Ref: "ResourceQuota/n1", Fact: "used up"}
	other := diagnosis.Evidence{Ref: "Pod/ml/h", Fact: "holds it"}
	all := tellings{}
	for _, told := range []struct {
		node string
		e    []diagnosis.Evidence
	}{
		{"n1", []diagnosis.Evidence{node("n1", "full"), quota, other}},
		{"n1", []diagnosis.Evidence{node("n1", "full"), node("n1", "cordoned"), quota}},
		{"n2", []diagnosis.Evidence{node("n2", "full"), node("n1", "full"), other, {Ref: "Node/n2"}}},
		{"n2", []diagnosis.Evidence{{Ref: "NodeGeometry/n2", Fact: "full"}, {Ref: "NodeGeometry/n2", Fact: "full"}}},
	} {
		all.note(diagnosis.GPUsInUse, told.node, &finding{Certainty: diagnosis.Proven, Says: "held", Evidence: told.e})
	}
	want := []diagnosis.Evidence{node("n1", "full"), quota, other, node("n1", "cordoned"), node("n2", "full"), node("n1", "full"), {Ref: "NodeGeometry/n2", Fact: "full"}}
	k := all[diagnosis.GPUsInUse]
	if len(k.Evidence) != len(want) {
		t.Fatalf("%+v, want %+v", k.Evidence, want)
	}
	for i := range want {
		if !k.Evidence[i].Same(want[i]) {
			t.Errorf("%+v, want %+v", k.Evidence[i], want[i])
		}
	}
	if len(k.Nodes) != 2 || k.Nodes[0] != "n1" || k.Nodes[1] != "n2" {
		t.Errorf("%q", k.Nodes)
	}
}
