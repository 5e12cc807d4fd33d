package rca

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// Every cause of the catalogue has a scenario of its name, or of its name and what is
// special about it, that tells it. (Of such a name is also what only looks like it.)
func TestEveryCauseHasAScenario(t *testing.T) {
	const folder = "../testdata/scenarios"
	dirs, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	scenarios := map[CauseID]int{}
	for _, dir := range dirs {
		name, _, _ := strings.Cut(dir.Name(), "-")
		if !slices.Contains(catalogueOrder, CauseID(name)) {
			continue
		}
		data, err := os.ReadFile(filepath.Join(folder, dir.Name(), "want.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		var want struct {
			Causes []CauseID `json:"causes"`
		}
		if err := yaml.Unmarshal(data, &want); err != nil {
			t.Fatalf("%s: %v", dir.Name(), err)
		}
		if slices.Contains(want.Causes, CauseID(name)) {
			scenarios[CauseID(name)]++
		}
	}
	var missing []string
	for _, id := range catalogueOrder {
		if scenarios[id] == 0 {
			missing = append(missing, string(id))
		}
	}
	if len(missing) > 0 {
		t.Errorf("%d causes without a scenario: %s", len(missing), strings.Join(missing, ", "))
	}
}
