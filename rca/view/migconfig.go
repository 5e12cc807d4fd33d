package view

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/rca/placement"
)

// Labels of the GPU Operator's MIG manager (mig-parted, cmd/nvidia-mig-manager).
const (
	LabelMIGConfig   = nodeprobe.LabelMIGConfig
	LabelMIGState    = nodeprobe.LabelMIGConfigState
	LabelMIGStrategy = "nvidia.com/mig.strategy"
	LabelMIGCapable  = "nvidia.com/mig.capable"

	MIGConfigKey      = "config.yaml" // of the entries in a ConfigMap: the operator accepts no other
	fallbackConfigMap = "default-mig-parted-config"
)

// migEntry is one named entry of a mig-parted config: what it makes of which GPUs.
type migEntry []MIGRule

// MIGRule is one rule of a mig-parted entry: which devices, and the instances that it makes
// on each (mig-parted, api/spec/v1).
type MIGRule struct {
	DeviceFilter json.RawMessage `json:"device-filter,omitempty"`
	Devices      json.RawMessage `json:"devices"` // "all" or a list of indices
	MIGEnabled   bool            `json:"mig-enabled"`
	MIGDevices   map[string]int  `json:"mig-devices"`
}

// migConfig is the set of entries MIG manager knows on a node; none with a Source: it can read none there.
type migConfig struct {
	Entries map[string]migEntry
	// Source is the ConfigMap the entries were read from; nil when they are the
	// names that the operator generates for the model, which could not be read.
	Source *corev1.ConfigMap
	// Writable is set when ClusterPolicy names the ConfigMap: only then may a
	// custom entry be added, the operator generates its own maps again.
	Writable bool
}

// ConfigOf finds the config of a node: the ConfigMap that ClusterPolicy names,
// else the one generated for the node, else the operator's default, else the
// names the operator generates (gpu-operator v26.3.0 and later).
func (w *Cluster) ConfigOf(n *Node) migConfig {
	if n.config == nil {
		c := w.findConfig(n)
		n.config = &c
	}
	return *n.config
}

func (w *Cluster) findConfig(n *Node) migConfig {
	named := w.policy
	for _, name := range []string{named, n.Name + "-mig-config", fallbackConfigMap} {
		cm := w.configMaps[name]
		if cm == nil {
			continue
		}
		entries, known := w.configs[cm]
		if !known {
			entries, _ = parseMIGConfig(cm.Data[MIGConfigKey]) //nolint:errcheck // an unreadable map proves nothing; the next may be in force
			w.configs[cm] = entries
		}
		if entries != nil {
			return migConfig{Entries: entries, Source: cm, Writable: name == named}
		}
		if name == named {
			return migConfig{Source: cm} // MIG manager is given no other
		}
	}
	return migConfig{Entries: w.generatedFor(n)}
}

func policyConfig(policies []*unstructured.Unstructured) string {
	for _, p := range policies {
		name, _, err := unstructured.NestedString(p.Object, "spec", "migManager", "config", "name")
		if err == nil && name != "" && name != fallbackConfigMap {
			return name
		}
	}
	return ""
}

func parseMIGConfig(text string) (map[string]migEntry, error) {
	var f struct {
		Version string              `json:"version"`
		Entries map[string]migEntry `json:"mig-configs"`
	}
	if err := yaml.Unmarshal([]byte(text), &f); err != nil {
		return nil, fmt.Errorf("read mig-parted config: %w", err)
	}
	if f.Version != "v1" {
		return nil, fmt.Errorf("read mig-parted config: version %q, v1 was expected", f.Version)
	}
	return f.Entries, nil
}

// generatedFor are the generated entries of the node's model, made once for each.
func (w *Cluster) generatedFor(n *Node) map[string]migEntry {
	grid := n.grid()
	if grid == nil || w.generated == nil {
		return generatedEntries(n.Profiles())
	}
	entries, known := w.generated[grid]
	if !known {
		entries = generatedEntries(n.Profiles())
		w.generated[grid] = entries
	}
	return entries
}

// generatedEntries are the entries the operator generates for a model: all-<p>
// for each profile, as many as fit, and all-balanced.
func generatedEntries(profiles []nodeprobe.Profile) map[string]migEntry {
	out := map[string]migEntry{}
	all := json.RawMessage(`"all"`)
	for _, p := range profiles {
		out["all-"+strings.ReplaceAll(p.Name, "+", ".")] = migEntry{{Devices: all, MIGEnabled: true, MIGDevices: map[string]int{p.Name: p.Max}}}
	}
	if counts := balanced(profiles); len(counts) > 0 {
		out["all-balanced"] = migEntry{{Devices: all, MIGEnabled: true, MIGDevices: counts}}
	}
	return out
}

// balanced is the operator's all-balanced: two 1g, a 2g and a 3g on boards of seven
// compute slices, two 1g and a 2g on boards of four (mig-parted, config of the
// GPU Operator). The 1g is that of the least memory.
func balanced(profiles []nodeprobe.Profile) map[string]int {
	whole, ones := 0, 0
	for _, p := range profiles {
		whole = max(whole, p.ComputeSlices)
		if p.ComputeSlices == 1 && (ones == 0 || p.MemorySlices < ones) {
			ones = p.MemorySlices
		}
	}
	wanted := map[int]map[int]int{7: {1: 2, 2: 1, 3: 1}, 4: {1: 2, 2: 1}}[whole]
	out := map[string]int{}
	for _, p := range profiles {
		if n := wanted[p.ComputeSlices]; n > 0 && !strings.ContainsAny(p.Name, "+-") && (p.ComputeSlices > 1 || p.MemorySlices == ones) {
			out[p.Name] = n
		}
	}
	return out
}

// layoutsOf is what an entry makes of each GPU of a node, by index. The second
// result says why it cannot be told or would need a change of MIG mode.
func (e migEntry) layoutsOf(n *Node) (map[int]placement.Layout, string) {
	out := map[int]placement.Layout{}
	for _, rule := range e {
		if len(rule.DeviceFilter) > 0 && !rule.FilterMatches(n) {
			continue
		}
		layout := rule.layout()
		for _, g := range n.Geometry.Report.GPUs {
			if !rule.Selects(g.Index) {
				continue
			}
			if g.MIG == nil || g.MIG.Current != rule.MIGEnabled || g.MIG.Pending != rule.MIGEnabled {
				return nil, fmt.Sprintf("it changes the MIG mode of GPU %d", g.Index)
			}
			out[g.Index] = layout
		}
	}
	return out, ""
}

// OneProfileEntries names the entries of a node's config that give all GPUs instances of one profile, which the node's
// model has. It asks no report: those that are for other models by their filter have profiles of those.
func (w *Cluster) OneProfileEntries(n *Node) []string {
	var out []string
	entries := w.ConfigOf(n).Entries
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		for _, rule := range entries[name] {
			if profile := rule.only(); profile != "" && HasProfile(n.Profiles(), profile) {
				out = append(out, name)
				break
			}
		}
	}
	return out
}

// only is the one profile that a rule makes, and of all GPUs; empty where it is for some of them, or of several.
func (r MIGRule) only() string {
	if !r.MIGEnabled || string(r.Devices) != `"all"` || len(r.MIGDevices) != 1 {
		return ""
	}
	for profile := range r.MIGDevices {
		return profile
	}
	return ""
}

// NamedLayouts is what one entry of a node's config makes of its GPUs, by index. Nodes
// that are alike share it: it is read only.
type NamedLayouts struct {
	Config  string
	Layouts map[int]placement.Layout
	Legal   bool // each has positions on its GPU
	// Gives is how many the GPUs have then of each profile, as the device plugin spells
	// it; nil where some GPU is not of the entry.
	Gives map[string]int64
}

// NamedLayouts lists, by name, what the entries of a node's config make of it,
// without those that would change the MIG mode. It is worked out once for nodes that
// are alike.
func (w *Cluster) NamedLayouts(n *Node) []NamedLayouts {
	if n.named != nil || n.Geometry == nil {
		return n.named
	}
	like, shared := w.makeup(n)
	if shared && w.named[like] != nil {
		n.named = w.named[like]
		return n.named
	}
	n.named = []NamedLayouts{}
	entries := w.ConfigOf(n).Entries
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		layouts, why := entries[name].layoutsOf(n)
		if why != "" {
			continue
		}
		named := NamedLayouts{Config: name, Layouts: layouts, Legal: true, Gives: map[string]int64{}}
		for _, g := range n.GPUs {
			layout, ok := layouts[g.Index]
			if ok && named.Legal {
				_, named.Legal = g.Grid.Place(layout)
			}
			if !ok {
				named.Gives = nil
			}
			for profile, count := range layout {
				if named.Gives != nil {
					named.Gives[Spelled(profile)] += int64(count)
				}
			}
		}
		n.named = append(n.named, named)
	}
	if shared {
		w.named[like] = n.named
	}
	return n.named
}

// makeup is the same for nodes of which the same entries make the same.
type makeup struct {
	source *corev1.ConfigMap
	grid   *placement.Grid
	gpus   int
}

// makeup is false for nodes that are like no other: those whose GPUs are not all of one
// model, partitioned, and numbered from 0.
func (w *Cluster) makeup(n *Node) (makeup, bool) {
	if len(n.GPUs) == 0 || len(n.GPUs) != len(n.Geometry.Report.GPUs) || w.named == nil {
		return makeup{}, false
	}
	grid := n.GPUs[0].Grid
	for i, g := range n.Geometry.Report.GPUs {
		if n.GPUs[i].Grid != grid || n.GPUs[i].Index != i || g.Index != i || !g.MIG.Pending {
			return makeup{}, false
		}
	}
	return makeup{w.ConfigOf(n).Source, grid, len(n.GPUs)}, true
}

// layout is what the rule makes of a GPU.
func (r MIGRule) layout() placement.Layout {
	layout := placement.Layout{}
	for name, count := range r.MIGDevices {
		if count > 0 {
			layout[name] = count
		}
	}
	return layout
}

// Selects says whether "devices" names the GPU.
func (r MIGRule) Selects(index int) bool {
	var list []int
	if json.Unmarshal(r.Devices, &list) == nil {
		return slices.Contains(list, index)
	}
	return string(r.Devices) == `"all"`
}

// FilterMatches judges a device-filter by the profiles the entry names: PCI ids
// are in no object, but an entry for another board names profiles this one lacks.
func (r MIGRule) FilterMatches(n *Node) bool {
	profiles := n.Profiles()
	for name := range r.MIGDevices {
		if !slices.ContainsFunc(profiles, func(p nodeprobe.Profile) bool { return p.Name == name }) {
			return false
		}
	}
	return true
}

// CustomEntry writes an entry that gives each GPU exactly the layout named,
// including those that stay as they are: a GPU no rule selects would be left
// out of the node's wanted state.
func CustomEntry(layouts map[int]placement.Layout) (json.RawMessage, error) {
	var entry migEntry
	for _, index := range slices.Sorted(maps.Keys(layouts)) {
		entry = append(entry, MIGRule{Devices: json.RawMessage("[" + strconv.Itoa(index) + "]"), MIGEnabled: true, MIGDevices: layouts[index]})
	}
	return json.Marshal(entry)
}
