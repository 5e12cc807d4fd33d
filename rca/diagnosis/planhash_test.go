package diagnosis

import (
	"encoding/json"
	"testing"
	"time"
)

// A plan that says the same in another way has the same name: keys in another order, and
// what is empty written down or left out, as of a node's namespace.
func TestPlanHashIsOfWhatIsSaid(t *testing.T) {
	hash := func(text string) string {
		var actions []Action
		if err := json.Unmarshal([]byte(text), &actions); err != nil {
			t.Fatal(err)
		}
		return PlanHash("gpu-7f3a01c9be", time.Unix(1763640000, 0), actions)
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

// The same actions for another incident, or for the same one that waits again, are another
// plan; how its time is written is not part of it. Without a time the actions alone are the
// plan, as they were before.
func TestPlanHashIsOfTheWait(t *testing.T) {
	actions := []Action{{Verb: VerbUncordon, Target: Target{Kind: "Node", Name: "gpu-1", UID: "d500693b"}, Relies: map[string]string{"unschedulable": "true"}}}
	since := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	plan := PlanHash("gpu-7f3a01c9be", since, actions)
	for name, tc := range map[string]struct {
		incident string
		since    time.Time
		same     bool
	}{
		"the same":                  {"gpu-7f3a01c9be", since, true},
		"in another zone":           {"gpu-7f3a01c9be", since.In(time.FixedZone("", 3600)), true},
		"what the API server keeps": {"gpu-7f3a01c9be", since.Add(time.Millisecond), true},
		"it waits again":            {"gpu-7f3a01c9be", since.Add(time.Second), false},
		"another incident":          {"gpu-11aa22bb33", since, false},
		"nobody knows since when":   {"gpu-7f3a01c9be", time.Time{}, false},
	} {
		if got := PlanHash(tc.incident, tc.since, actions) == plan; got != tc.same {
			t.Errorf("%s: the same %v, want %v", name, got, tc.same)
		}
	}
	const before = "6d26e7026506dae525313b01aa8205c37c5d0ac40ff5c22aaad3c352d9b796ce"
	if got := PlanHash("gpu-7f3a01c9be", time.Time{}, actions); got != before {
		t.Errorf("without a time: %s, want %s", got, before)
	}
}

// What a person does has a name of its own, too: its commands tell it from the others of the incident, not its title, in which
// times pass; where there are none its title does.
func TestFixesByHandAreToldApart(t *testing.T) {
	since := time.Unix(1763640000, 0)
	named := func(f Fix) string { return f.Named("gpu-7f3a01c9be", since) }
	wait := Fix{Kinds: []FixKind{Wait}, Title: "wait ~5 min", Commands: []string{"kubectl get pod -w"}}
	later, look, other := wait, wait, wait
	later.Title, look.Commands, other.Kinds = "wait ~4 min", []string{"kubectl get nodes"}, []FixKind{Manual}
	if named(later) != named(wait) || named(look) == named(wait) || named(other) == named(wait) {
		t.Errorf("%s, later %s, looks %s, other %s", named(wait), named(later), named(look), named(other))
	}
	if bare := (Fix{Kinds: wait.Kinds, Title: "a"}); named(bare) == named(Fix{Kinds: wait.Kinds, Title: "b"}) || wait.Named("gpu-0000000000", since) == named(wait) || wait.Named("gpu-7f3a01c9be", since.Add(time.Hour)) == named(wait) {
		t.Error("two fixes have one name")
	}
	if acts := (Fix{Actions: []Action{{Verb: VerbEvict}}, Title: "evict"}); named(acts) != PlanHash("gpu-7f3a01c9be", since, acts.Actions) {
		t.Error("a plan is not named by its actions")
	}
}
