package diagnosis

import (
	"encoding/json"
	"testing"
)

// A plan that says the same in another way has the same name: keys in another order, and
// what is empty written down or left out, as of a node's namespace.
func TestPlanHashIsOfWhatIsSaid(t *testing.T) {
	hash := func(text string) string {
		var actions []Action
		if err := json.Unmarshal([]byte(text), &actions); err != nil {
			t.Fatal(err)
		}
		return PlanHash(actions)
	}
	plan := hash(`[{"verb":"relayout","target":{"kind":"Node","name":"gpu-1","uid":"d500693b"},"relies":{"mig":"all-1g.5gb","taints":""}}]`)
	for text, same := range map[string]bool{
		`[{"verb":"relayout","target":{"kind":"Node","namespace":"","name":"gpu-1","uid":"d500693b"},"relies":{"mig":"all-1g.5gb","taints":""}}]`:        true,
		`[{"relies":{"taints":"","mig":"all-1g.5gb"},"target":{"uid":"d500693b","name":"gpu-1","kind":"Node"},"verb":"relayout"}]`:                       true,
		`[{"verb":"relayout","target":{"kind":"Node","namespace":"default","name":"gpu-1","uid":"d500693b"},"relies":{"mig":"all-1g.5gb","taints":""}}]`: false,
		`[{"verb":"relayout","target":{"kind":"Node","name":"gpu-1","uid":"d500693b"},"relies":{"mig":"all-1g.5gb"}}]`:                                   false,
	} {
		if got := hash(text) == plan; got != same {
			t.Errorf("%s: the same %v, want %v", text, got, same)
		}
	}
}
