package nodeprobe

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Model is what is known about the MIG geometry of one GPU board without
// asking its driver.
type Model struct {
	ID            string   // e.g. "A100-40GB"
	Names         []string // as NVML reports them
	Products      []string // as GPU feature discovery labels them
	MemorySlices  int
	ComputeSlices int
	Profiles      []Profile
}

//go:embed mig_profiles.json
var modelsJSON []byte

// Models lists the boards with a known MIG geometry. The figures come from
// NVIDIA's MIG user guide (R580), published nvidia-smi dumps and the NVML mock;
// mig_profiles.json names the source and the confidence of each.
var Models = sync.OnceValue(func() []Model {
	models, err := parseModels(modelsJSON)
	if err != nil {
		panic(fmt.Sprintf("embedded mig_profiles.json: %v", err)) // a build defect, not an input
	}
	return models
})

// ModelOf finds the board with that NVML name or GFD product label (a "-MIG-…"
// or "-SHARED" suffix is ignored). False when the board is not in the table.
func ModelOf(product string) (Model, bool) {
	product, _, _ = strings.Cut(product, "-MIG-")
	product = strings.TrimSuffix(product, "-SHARED")
	for _, m := range Models() {
		if slices.Contains(m.Names, product) || slices.Contains(m.Products, product) {
			return m, true
		}
	}
	return Model{}, false
}

// Profile finds a profile of the board by name, or by the name under which the
// device plugin offers it ('+' becomes '.').
func (m Model) Profile(name string) (Profile, bool) {
	for _, p := range m.Profiles {
		if p.Name == name || strings.ReplaceAll(p.Name, "+", ".") == name {
			return p, true
		}
	}
	return Profile{}, false
}

type modelFile struct {
	GPUs []struct {
		ID            string   `json:"id"`
		Names         []string `json:"nvml_names"`
		Products      []string `json:"gfd_products"`
		MemorySlices  int      `json:"memory_slices"`
		ComputeSlices int      `json:"compute_slices"`
		Profiles      []struct {
			Name          string `json:"name"`
			ID            *int   `json:"gi_profile_id_cgi"`
			ComputeSlices int    `json:"compute_slices"`
			MemoryMiB     struct {
				Value int64 `json:"value"`
			} `json:"memory_mib"`
			Max        int `json:"max_instances"`
			Placements struct {
				Starts []int `json:"starts"`
				Size   int   `json:"size"`
			} `json:"placements"`
		} `json:"profiles"`
	} `json:"gpus"`
}

func parseModels(data []byte) ([]Model, error) {
	var f modelFile
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, err
	}
	var out []Model
	for _, g := range f.GPUs {
		if len(g.Profiles) == 0 {
			continue // a board whose geometry nobody has published
		}
		m := Model{ID: g.ID, Names: g.Names, Products: g.Products, MemorySlices: g.MemorySlices, ComputeSlices: g.ComputeSlices}
		for _, p := range g.Profiles {
			q := Profile{Name: p.Name, ID: -1, ComputeSlices: p.ComputeSlices, MemorySlices: p.Placements.Size,
				MemoryMiB: p.MemoryMiB.Value, Max: p.Max, Starts: p.Placements.Starts}
			if p.ID != nil {
				q.ID = *p.ID
			}
			m.Profiles = append(m.Profiles, q)
		}
		out = append(out, m)
	}
	return out, nil
}
