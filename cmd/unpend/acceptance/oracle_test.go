package acceptance

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/unpend/unpend/testdata/oracle"
)

// saidOf is what the program says of a folder's dump.
func saidOf(t *testing.T, folder string) []oracle.Said {
	t.Helper()
	code, out, errs := call(t, "why", "-o", "json", "-f", folder)
	if code != 0 {
		t.Fatal(code, errs)
	}
	return saidIn(t, out)
}

func saidIn(t *testing.T, out string) []oracle.Said {
	t.Helper()
	var list struct{ Items []oracle.Said }
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// What a diagnosis says of nodes is so, by each node's own YAML: somebody who knows nothing
// of the rules reads it again, and evaluates every claim that its sentences are made from.
// Sentences that claim nothing are counted, and become fewer.
func TestNoFalseSentence(t *testing.T) {
	dirs, err := os.ReadDir(scenarios)
	if err != nil {
		t.Fatal(err)
	}
	all, tallies := 0, map[string]*oracle.Tally{}
	for _, dir := range dirs {
		t.Run(dir.Name(), func(t *testing.T) {
			folder := filepath.Join(scenarios, dir.Name())
			dump, err := oracle.Read(folder)
			if err != nil {
				t.Fatal(err)
			}
			for _, said := range saidIn(t, explained(t, dir.Name())) {
				against, statements := dump.Held(said)
				for _, a := range against {
					t.Error(a)
				}
				all += statements
				for _, c := range said.Causes {
					if tallies[c.ID] == nil {
						tallies[c.ID] = &oracle.Tally{}
					}
					tallies[c.ID].Add(c)
				}
			}
		})
	}
	t.Logf("%d statements held against %d dumps", all, len(dirs))
	unclaimed(t, tallies)
}

// unclaimed holds what no claim stands for to the committed figures, which only go down.
func unclaimed(t *testing.T, tallies map[string]*oracle.Tally) {
	t.Helper()
	data, err := os.ReadFile("../../../testdata/oracle/unclaimed.yaml")
	if err != nil {
		t.Fatal(err)
	}
	limits := map[string]oracle.Tally{}
	if err := yaml.UnmarshalStrict(data, &limits); err != nil {
		t.Fatal(err)
	}
	var sum oracle.Tally
	var now strings.Builder
	for _, id := range slices.Sorted(maps.Keys(tallies)) {
		got, most := tallies[id], limits[id]
		sum.Claims, sum.Sentences, sum.Bare, sum.Loose = sum.Claims+got.Claims, sum.Sentences+got.Sentences, sum.Bare+got.Bare, sum.Loose+got.Loose
		if got.Bare > 0 || got.Loose > 0 {
			fmt.Fprintf(&now, "%s: {bare: %d, loose: %d} # of %d\n\t%s\n", id, got.Bare, got.Loose, got.Sentences, strings.Join(slices.Compact(slices.Sorted(slices.Values(got.Left))), "\n\t"))
		}
		if got.Bare > most.Bare || got.Loose > most.Loose {
			t.Errorf("%s: %d sentences claim nothing and %d have a number that no claim has, at most %d and %d did: give them claims", id, got.Bare, got.Loose, most.Bare, most.Loose)
		}
	}
	t.Logf("%d claims; of %d sentences %d claim nothing, %d have a number that no claim has:\n%s", sum.Claims, sum.Sentences, sum.Bare, sum.Loose, now.String())
}
