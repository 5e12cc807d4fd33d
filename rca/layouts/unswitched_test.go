package layouts

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/rcatest"
	"github.com/unpend/unpend/rca/view"
)

// A MIG mode is told as not switched where MIG manager has failed, the mode is the other one, and the
// GPUs are of the generation and in a machine where a reset may not be had. Reported modes go before
// what is offered.
func TestModesThatAResetSwitches(t *testing.T) {
	const guest = "feature.node.kubernetes.io/cpu-cpuid.HYPERVISOR"
	whole := sim.Node{Name: "n", Config: "all-1g.5gb", MIGOff: []int{0}}
	parted := sim.Node{Name: "n", Config: "all-disabled", Layouts: [][]sim.Placed{sim.All(a100, "1g.5gb")}}
	product := func(name, family string) edits {
		return edits{label("nvidia.com/gpu.product", name), label("nvidia.com/gpu.family", family)}
	}
	has := func(pairs ...string) edits {
		return edits{func(n *corev1.Node, _ *nodeprobe.NodeGeometry) { n.Status.Capacity = rcatest.List(pairs...) }}
	}
	for name, tc := range map[string]struct {
		node  sim.Node
		edits edits
		fill  func(*rcatest.World)
		want  string
	}{
		"to be on":                 {whole, nil, nil, "on"},
		"to be on, by its offer":   {whole, nil, blind, "on"},
		"to be off":                {parted, nil, nil, "off"},
		"to be off, by its offer":  {parted, nil, blind, "off"},
		"on GKE":                   {whole, edits{label(guest, ""), label("cloud.google.com/gke-accelerator", "nvidia-tesla-a100")}, nil, "on"},
		"on AKS":                   {whole, edits{label(guest, ""), label("kubernetes.azure.com/agentpool", "gpu")}, nil, "on"},
		"on no virtual machine":    {whole, edits{label(guest, "")}, nil, ""},
		"by its own word on none":  {whole, edits{label(guest, "false")}, nil, ""},
		"it is applied":            {whole, edits{label(view.LabelMIGState, "success")}, nil, ""},
		"it is on already":         {sim.Node{Name: "n", Config: "all-1g.5gb", Layouts: parted.Layouts}, nil, nil, ""},
		"of an A30":                {whole, product("NVIDIA-A30", ""), nil, "on"},
		"of a later generation":    {whole, product("NVIDIA-H100-80GB-HBM3", "hopper"), nil, ""},
		"of an unknown board":      {whole, product("NVIDIA-A800", "ampere"), blind, "on"},
		"and of another family":    {whole, product("NVIDIA-X1", "hopper"), blind, ""},
		"GPUs differ":              {sim.Node{Name: "n", GPUs: 2, Config: "all-1g.5gb", MIGOff: []int{0}, Layouts: [][]sim.Placed{nil, sim.All(a100, "1g.5gb")}}, nil, nil, ""},
		"both are offered":         {whole, has("nvidia.com/gpu", "1", "nvidia.com/mig-1g.5gb", "7"), blind, ""},
		"neither is":               {whole, has("nvidia.com/gpu", "0", "nvidia.com/mig-1g.5gb", "0"), blind, ""},
		"names do not tell apart":  {whole, edits{label(view.LabelMIGStrategy, view.StrategySingle)}, blind, ""},
		"it is to be on for some":  {sim.Node{Name: "n", Config: "mine", MIGOff: []int{0}}, nil, mine("{devices: [0], mig-enabled: true, mig-devices: {1g.5gb: 7}}, {devices: [1], mig-enabled: false}"), ""},
		"the layout is not listed": {sim.Node{Name: "n", Config: "gone", MIGOff: []int{0}}, nil, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := rcatest.NewWorld()
			w.ConfigMaps = []*corev1.ConfigMap{sim.ConfigMap("gpu-operator", "default-mig-parted-config", a100)}
			w.AddNode(tc.node, append(edits{label(view.LabelMIGState, "failed"), label(guest, "true")}, tc.edits...)...)
			if tc.fill != nil {
				tc.fill(w)
			}
			v, done, err := view.Open(t.Context(), w.State, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer done()
			got := ""
			if u := UnswitchedOn(v, v.Nodes["n"]); u != nil {
				if got = onOff(u.On); len(u.Claims) != 2 {
					t.Errorf("%+v", u.Claims)
				}
			}
			if got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}
