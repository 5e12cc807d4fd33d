// Command mutants says how many mistakes of one operator the short tests notice. It draws
// some of each package by a seed, builds the tests once with all of them behind switches (or,
// where an operator makes no truth value, with one in place of its source), and says at once
// which no test noticed: a rule that no test holds, or code that makes no difference. Other
// packages' tests, which take longest, judge only what a package's own let live, together.
//
//	go run ./testdata/mutants -seed 2 -n 30 ./remediate/guard
//
// Nothing is drawn twice for one seed and one source. A mutant that no test can notice,
// because nothing differs, stands in a file with why, and is not drawn. The tools that are kept
// for this (gremlins) try every mutant of a package: no sample, no seed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

// run draws and judges the mutants of all packages, and fails when too many live.
func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("mutants", flag.ContinueOnError)
	seed := flags.Uint64("seed", 1, "draws the same mutants for the same number")
	n := flags.Int("n", 20, "mutants of each package")
	only := flags.String("only", "", "the name of a file, as guard.go: of others no mutant is drawn")
	least := flags.Int("least", 0, "fail when fewer of 100 are killed in a package")
	also := flags.String("also", "", "packages, with commas, whose short tests judge what a package's own let live")
	alsoRun := flags.String("also-run", "", "which of these tests do, as go test -run has it: linking and running them all takes long")
	same := flags.String("same", "", "a file of mutants that make no difference, which are not drawn")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() == 0 {
		return errors.New("name packages, as ./remediate/guard")
	}
	known, err := readSame(*same)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "unpend-mutants-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	j := judge{dir: dir, run: *alsoRun}
	if *also != "" {
		j.packages = strings.Split(*also, ",")
	}
	draws, err := drawn(flags.Args(), *only, known, *seed)
	if err != nil {
		return err
	}
	b, err := j.open(draws, 2**n) // more of each than are drawn, as a rule
	if err != nil {
		return err
	}
	var all tally
	var below []string
	for _, d := range draws {
		t, err := sample(ctx, b, d, *n, out)
		if err != nil {
			return fmt.Errorf("./%s: %w", d.dir, err)
		}
		fmt.Fprintf(out, "%s: %s\n", d.dir, t)
		if all.add(t); t.percent() < *least {
			below = append(below, d.dir)
		}
	}
	fmt.Fprintf(out, "all: %s\n", all)
	if len(below) > 0 {
		return fmt.Errorf("fewer than %d of 100 are killed in %s", *least, strings.Join(below, ", "))
	}
	return nil
}

// draw is a package with its mutants, in the order in which a seed draws them.
type draw struct {
	dir  string
	list []mutant
}

// drawn are the draws of packages, or of one file of theirs.
func drawn(dirs []string, only string, known same, seed uint64) ([]draw, error) {
	var out []draw
	for _, p := range dirs {
		dir := filepath.Clean(p)
		list, err := mutants(dir)
		if err == nil {
			list, err = known.without(dir, list)
		}
		list = slices.DeleteFunc(list, func(m mutant) bool { return only != "" && filepath.Base(m.file) != only })
		if err == nil && len(list) == 0 {
			err = errors.New("it has no mutants")
		}
		if err != nil {
			return nil, fmt.Errorf("./%s: %w", dir, err)
		}
		shuffle(list, seed)
		out = append(out, draw{dir, list})
	}
	return out, nil
}

// sample judges n mutants of a package, and lists those that live as they are found.
func sample(ctx context.Context, b *bench, d draw, n int, out io.Writer) (tally, error) {
	t := tally{of: len(d.list)}
	if err := b.holds(ctx, b.own[d.dir]); err != nil {
		return t, err
	}
	for list := d.list; t.tried < n && len(list) > 0; { // again for those that did not compile
		some := list[:min(n-t.tried, len(list))]
		list = list[len(some):]
		err := b.fates(ctx, some, func(m mutant, f fate) {
			if t.count(f); f == lives {
				fmt.Fprintf(out, "lives: %s\n", m)
			}
		})
		if err != nil {
			return t, err
		}
	}
	return t, nil
}

// shuffle puts mutants into the order in which a seed draws them.
func shuffle(list []mutant, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 0))
	random.Shuffle(len(list), func(a, b int) { list[a], list[b] = list[b], list[a] })
}

// tally counts fates.
type tally struct{ of, tried, own, elsewhere int }

func (t *tally) count(f fate) {
	if f == stillborn {
		return
	}
	t.tried++
	switch f {
	case killed:
		t.own++
	case killedElsewhere:
		t.elsewhere++
	}
}

func (t *tally) add(o tally) {
	t.of += o.of
	t.tried += o.tried
	t.own += o.own
	t.elsewhere += o.elsewhere
}

// percent is how many of 100 are killed, rounded down.
func (t tally) percent() int { return (t.own + t.elsewhere) * 100 / max(t.tried, 1) }

func (t tally) String() string {
	dead := t.own + t.elsewhere
	return fmt.Sprintf("of %d tried (of %d that there are) %d killed, %d of them by other packages' tests alone; %d live (%d %% killed)", t.tried, t.of, dead, t.elsewhere, t.tried-dead, t.percent())
}
