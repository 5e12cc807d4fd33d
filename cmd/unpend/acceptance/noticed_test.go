package acceptance

import (
	"hash/fnv"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/unpend/unpend/testdata/oracle"
)

// Of one scenario in so many, chosen by its name, so many claims are asked: another scenario
// changes nothing of that.
const (
	changedOneIn  = 7
	changedClaims = 6
)

// A claim that nothing could make false says nothing: of what claims read one value is changed in
// the dump, by a seeded choice, and each time the old diagnosis is contradicted.
func TestAChangedValueIsNoticed(t *testing.T) {
	dirs, err := os.ReadDir(scenarios)
	must(t, err)
	asked, done, unread := 0, 0, map[string]int{}
	for _, dir := range dirs {
		seed := fnv.New64a()
		seed.Write([]byte(dir.Name()))
		if seed.Sum64()%changedOneIn != 0 {
			continue
		}
		asked++
		r := rand.New(rand.NewPCG(seed.Sum64(), 1))
		dump, err := oracle.Read(filepath.Join(scenarios, dir.Name()))
		must(t, err)
		for _, said := range saidIn(t, explained(t, dir.Name())) {
			claims := claimsOf(said)
			r.Shuffle(len(claims), func(i, j int) { claims[i], claims[j] = claims[j], claims[i] })
			for _, c := range claims[:min(len(claims), changedClaims)] {
				changed := dump.Changed(c, r, func(at string) {
					done++
					if against, _ := dump.Held(said); len(against) == 0 {
						t.Errorf("%s: %s: nothing is contradicted that was said, with the claim %s", dir.Name(), at, c)
					}
				})
				if !changed {
					unread[dir.Name()+": "+c.String()]++
				}
			}
		}
	}
	var left []string
	for c := range unread {
		left = append(left, c)
	}
	slices.Sort(left)
	t.Logf("%d values changed in %d dumps; nothing that could be changed was found for %d claims:\n%s", done, asked, len(left), strings.Join(left, "\n"))
	if asked == 0 || done < 2*asked {
		t.Errorf("%d values were changed in %d dumps", done, asked)
	}
}

func claimsOf(s oracle.Said) []oracle.Claim {
	var out []oracle.Claim
	for _, c := range s.Causes {
		for _, e := range c.Evidence {
			out = append(out, e.Claims...)
		}
	}
	return out
}
