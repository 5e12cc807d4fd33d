package acceptance

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// promise is what must hold when something breaks (R) or somebody attacks (S), and of size and
// speed (P).
type promise struct {
	id  string // two digits: they sort, and -run TestPromise/R01 is that one alone
	run func(t *testing.T)
}

// promises are in order of their ids; each has a file promise_*_test.go and says what
// it came to with report.
var promises = []promise{
	{"P15", promiseP15},
	{"R01", promiseR01},
	{"R02", promiseR02},
	{"R03", promiseR03},
	{"R04", promiseR04},
	{"R05", promiseR05},
	{"R06", promiseR06},
	{"R07", promiseR07},
	{"R08", promiseR08},
	{"R09", promiseR09},
	{"R12", promiseR12},
	{"R13", promiseR13},
	{"R16", promiseR16},
	{"R17", promiseR17},
	{"R18", promiseR18},
	{"R20", promiseR20},
	{"R21", promiseR21},
	{"R22", promiseR22},
	{"R23", promiseR23},
	{"R24", promiseR24},
	{"R30", promiseR30},
	{"R32", promiseR32},
	{"S05", promiseS05},
	{"S07", promiseS07},
	{"S10", promiseS10},
	{"S15", promiseS15},
}

func TestPromise(t *testing.T) {
	byID := func(a, b promise) int { return cmp.Compare(a.id, b.id) }
	if !slices.IsSortedFunc(promises, byID) {
		t.Error("the promises are not in order of their ids")
	}
	t.Parallel()
	for _, p := range promises {
		t.Run(p.id, p.run)
	}
}

// countHeld counts what is so; what is not is an error, by its words.
func countHeld(t *testing.T, all map[string]bool) (held int) {
	t.Helper()
	for what, ok := range all {
		if ok {
			held++
		} else {
			t.Error(what)
		}
	}
	return held
}

// report is the one line of a promise that `make promises` shows: how many of how many
// cases it held in, and the figures behind it. Fewer than all, or none, fail the test.
func report(t *testing.T, held, of int, figures string) {
	t.Helper()
	_, id, _ := strings.Cut(t.Name(), "/")
	id = id[:1] + strings.TrimLeft(id[1:], "0")
	line := fmt.Sprintf("%s %d/%d, %s", id, held, of, figures)
	t.Log(line)
	fmt.Println(line)
	if held != of || of == 0 {
		t.Errorf("%s does not hold", id)
	}
}
