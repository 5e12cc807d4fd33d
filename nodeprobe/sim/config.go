package sim

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/unpend/unpend/nodeprobe"
)

// entryRule is one rule of a mig-parted config entry.
type entryRule struct {
	DeviceFilter json.RawMessage `json:"device-filter,omitempty"`
	Devices      any             `json:"devices"`
	MIGEnabled   bool            `json:"mig-enabled"`
	MIGDevices   map[string]int  `json:"mig-devices"`
}

type configFile struct {
	Version string                 `json:"version"`
	Configs map[string][]entryRule `json:"mig-configs"`
}

// ConfigMap holds the entries that the operator generates for models, in
// mig-parted's format.
func ConfigMap(namespace, name string, models ...string) *corev1.ConfigMap {
	f := configFile{Version: "v1", Configs: map[string][]entryRule{}}
	for _, id := range models {
		maps.Copy(f.Configs, generated(modelOf(id)))
	}
	data, err := yaml.Marshal(f)
	if err != nil {
		data = nil // plain strings and numbers always marshal
	}
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string]string{"config.yaml": string(data)}}
}

// balancedCounts is how many an entry all-balanced makes, by the compute slices of the
// board, and the compute and memory slices of the profile: A100 to B300, A30, and RTX
// PRO 6000 (config of the GPU Operator).
var balancedCounts = map[[3]int]int{
	{7, 1, 1}: 2, {7, 2, 2}: 1, {7, 3, 4}: 1,
	{4, 1, 1}: 2, {4, 2, 2}: 1,
	{4, 1, 3}: 2, {4, 2, 6}: 1,
}

func generated(m nodeprobe.Model) map[string][]entryRule {
	out := map[string][]entryRule{
		"all-disabled": {{Devices: "all"}},
		"all-enabled":  {{Devices: "all", MIGEnabled: true, MIGDevices: map[string]int{}}},
	}
	balanced := map[string]int{}
	for _, p := range m.Profiles {
		out["all-"+strings.ReplaceAll(p.Name, "+", ".")] = []entryRule{{Devices: "all", MIGEnabled: true, MIGDevices: map[string]int{p.Name: p.Max}}}
		if n := balancedCounts[[3]int{m.ComputeSlices, p.ComputeSlices, p.MemorySlices}]; n > 0 && !strings.ContainsAny(p.Name, "+-") {
			balanced[p.Name] = n
		}
	}
	if len(balanced) > 0 {
		out["all-balanced"] = []entryRule{{Devices: "all", MIGEnabled: true, MIGDevices: balanced}}
	}
	return out
}

func parseConfig(text string) (map[string][]entryRule, error) {
	var f configFile
	if err := yaml.Unmarshal([]byte(text), &f); err != nil {
		return nil, fmt.Errorf("read mig-parted config: %w", err)
	}
	return f.Configs, nil
}

// selects says whether the rule's devices name the GPU.
func (r entryRule) selects(index int) bool {
	list, ok := r.Devices.([]any)
	if !ok {
		return r.Devices == "all"
	}
	return slices.ContainsFunc(list, func(v any) bool { return fmt.Sprint(v) == fmt.Sprint(index) })
}

// target is what an entry makes of one GPU.
type target struct {
	enabled bool
	counts  map[string]int
}

func targets(entry []entryRule, gpus []nodeprobe.GPU) map[int]target {
	out := map[int]target{}
	for _, r := range entry {
		for _, g := range gpus {
			if r.selects(g.Index) && (len(r.DeviceFilter) == 0 || knows(g, r)) {
				out[g.Index] = target{r.MIGEnabled, r.MIGDevices}
			}
		}
	}
	return out
}

// knows stands in for a device-filter's PCI id, which a simulated GPU has not: an
// entry for another board names profiles this one lacks.
func knows(g nodeprobe.GPU, r entryRule) bool {
	for name := range r.MIGDevices {
		if !slices.ContainsFunc(g.Profiles, func(p nodeprobe.Profile) bool { return p.Name == name }) {
			return false
		}
	}
	return true
}

// asWanted compares counts, as mig-parted does; positions are not looked at.
func (t target) asWanted(g nodeprobe.GPU) bool {
	have := map[string]int{}
	for _, in := range g.Instances {
		have[in.Profile]++
	}
	return partitioned(g) == t.enabled && maps.Equal(have, t.positive())
}

func (t target) positive() map[string]int {
	out := map[string]int{}
	for name, n := range t.counts {
		if n > 0 {
			out[name] = n
		}
	}
	return out
}
