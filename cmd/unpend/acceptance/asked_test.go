package acceptance

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/unpend/unpend/rca/diagnosis"
)

// The relevance set of knowledge asks what diagnoses ask: those of the scenarios that it
// names.
func TestRelevanceSetAsksWhatDiagnosesAsk(t *testing.T) {
	const set = "../../../testdata/knowledge"
	var queries []struct{ From string }
	data, err := os.ReadFile(filepath.Join(set, "queries.yaml"))
	if err == nil {
		err = yaml.Unmarshal(data, &queries)
	}
	if err != nil {
		t.Fatal(err)
	}
	asked := map[string][]string{}
	for _, q := range queries {
		if q.From == "" || asked[q.From] != nil {
			continue
		}
		var list diagnosis.List
		if err := json.Unmarshal([]byte(explained(t, q.From)), &list); err != nil || len(list.Items) == 0 {
			t.Fatalf("%s: %d findings, %v", q.From, len(list.Items), err)
		}
		asked[q.From] = list.Items[0].Words()
	}
	file := filepath.Join(set, "asked.yaml")
	if *update {
		data, err := yaml.Marshal(asked)
		if err == nil {
			err = os.WriteFile(file, data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	was := map[string][]string{}
	if data, err = os.ReadFile(file); err == nil {
		err = yaml.Unmarshal(data, &was)
	}
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(asked, was); diff != "" {
		t.Error(diff)
	}
}
