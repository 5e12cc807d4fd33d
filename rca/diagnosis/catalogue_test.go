package diagnosis

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// Each cause of the catalogue has a scenario that bears its name, and that wants it.
func TestEveryCauseHasAScenario(t *testing.T) {
	const scenarios = "../../testdata/scenarios"
	dirs, err := os.ReadDir(scenarios)
	if err != nil {
		t.Fatal(err)
	}
	told := map[CauseID]bool{}
	for _, dir := range dirs {
		data, err := os.ReadFile(filepath.Join(scenarios, dir.Name(), "want.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		var want struct {
			Causes []CauseID `json:"causes"`
		}
		if err := yaml.Unmarshal(data, &want); err != nil {
			t.Fatalf("%s: %v", dir.Name(), err)
		}
		for _, id := range want.Causes {
			if !slices.Contains(Catalogue(), id) {
				t.Errorf("%s wants %s, which the catalogue lacks", dir.Name(), id)
			}
			if dir.Name() == string(id) || strings.HasPrefix(dir.Name(), string(id)+"-") {
				told[id] = true
			}
		}
	}
	for _, id := range Catalogue() {
		if !told[id] {
			t.Errorf("no scenario %s or %s-… wants %s", id, id, id)
		}
		if id.Words() == "" {
			t.Errorf("%s has no words for a headline", id)
		}
	}
}
