package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// fate is what becomes of a mutant.
type fate int

const (
	lives fate = iota
	killed
	killedElsewhere // by the tests of other packages alone
	stillborn       // it does not compile
)

// judge runs tests on mutants; nothing is written beside the sources.
type judge struct {
	dir      string   // for the files of mutants
	packages []string // whose short tests judge what a package's own let live
	run      string   // which of them do, as go test -run has it; empty: all
}

// bench is packages with their mutants. Each test binary is built once with all that can be
// so, also that of the other packages, which takes longest.
type bench struct {
	judge
	numbers map[mutant]int // of those that are switched on
	overlay string
	own     map[string]*build // by the package's folder
	also    []*build
}

// build is a test binary, made when it is first asked for.
type build struct {
	dir      string
	run      string // as go test -run has it; empty: all
	once     sync.Once
	path     string
	err      error
	patience time.Duration // how long its tests are run; not known before they have passed
	met      map[int]bool  // the mutants that its tests come by, by their numbers
}

// patience is how often as long as without a mutant tests may take with one, and the least
// that this is: those that hang fail.
const (
	patience      = 10
	leastPatience = 20 * time.Second
)

// open is a bench of the first n mutants of each draw.
func (j judge) open(draws []draw, n int) (*bench, error) {
	b := &bench{judge: j, own: map[string]*build{}}
	var list []mutant
	for _, d := range draws {
		list = append(list, d.list[:min(n, len(d.list))]...)
		b.own[d.dir] = &build{dir: d.dir}
	}
	for _, p := range j.packages {
		b.also = append(b.also, &build{dir: filepath.Clean(p), run: j.run})
	}
	sources, numbers, err := switched(list)
	if err != nil {
		return nil, err
	}
	b.numbers = numbers
	b.overlay, err = j.written(sources)
	return b, err
}

// holds makes a test binary, once, and holds that its tests pass while no mutant is on.
func (b *bench) holds(ctx context.Context, t *build) error {
	t.once.Do(func() {
		if t.path, t.err = b.built(ctx, t.dir); t.err != nil || t.patience > 0 {
			return
		}
		failed, said, took, err := b.tests(ctx, t)
		if err == nil {
			t.met, err = readMet(t.path + met)
		}
		if t.err = err; failed {
			t.err = fmt.Errorf("tests fail without a mutant: %s", said)
		}
		t.patience = max(leastPatience, patience*took)
	})
	return t.err
}

// met ends the name of the file in which a test binary says which mutants it comes by.
const met = ".met"

// readMet reads such a file; without one none was met.
func readMet(name string) (map[int]bool, error) {
	text, err := os.ReadFile(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	out := map[int]bool{}
	for number := range strings.FieldsSeq(string(text)) {
		n, err := strconv.Atoi(number)
		if err != nil {
			return nil, err
		}
		out[n] = true
	}
	return out, nil
}

// fates judges some mutants, as many at a time as there are processors, and tells of each
// at once: a run that is stopped has said what it knows. told is called by one at a time.
// A package's own short tests judge first, then those of the other packages what these let live.
func (b *bench) fates(ctx context.Context, list []mutant, told func(mutant, fate)) error {
	var one sync.Mutex
	var left []mutant
	parts, own := errgroup.WithContext(ctx)
	parts.SetLimit(runtime.NumCPU())
	for _, m := range list {
		parts.Go(func() error {
			f, err := b.fate(own, m)
			if err != nil {
				return fmt.Errorf("%s: %w", m, err)
			}
			one.Lock()
			defer one.Unlock()
			if f == lives && b.numbers[m] > 0 && len(b.also) > 0 {
				left = append(left, m)
			} else {
				told(m, f)
			}
			return nil
		})
	}
	if err := parts.Wait(); err != nil {
		return err
	}
	slices.SortFunc(left, func(x, y mutant) int { return cmp.Compare(b.numbers[x], b.numbers[y]) })
	for len(left) > 0 {
		var together []mutant
		together, left = apart(left)
		if err := b.elsewhere(ctx, together, func(m mutant, f fate) {
			one.Lock()
			defer one.Unlock()
			told(m, f)
		}); err != nil {
			return err
		}
	}
	return nil
}

// apart are those of a list that can be on at once, one of each operator, and the rest.
func apart(list []mutant) (together, rest []mutant) {
	for _, m := range list {
		if slices.ContainsFunc(together, func(o mutant) bool { return o.at == m.at }) {
			rest = append(rest, m)
		} else {
			together = append(together, m)
		}
	}
	return together, rest
}

// elsewhere has other packages' tests judge mutants that their own have let live: all are on at
// once, since most live on, and halves of them where a test fails.
func (b *bench) elsewhere(ctx context.Context, list []mutant, told func(mutant, fate)) error {
	var numbers []int
	for _, m := range list {
		numbers = append(numbers, b.numbers[m])
	}
	noticed := false
	for _, t := range b.also {
		failed, err := b.notices(ctx, t, numbers...)
		if err != nil {
			return err
		}
		noticed = noticed || failed
	}
	if !noticed || len(list) == 1 {
		f := lives
		if noticed {
			f = killedElsewhere
		}
		for _, m := range list {
			told(m, f)
		}
		return nil
	}
	halves, ctx := errgroup.WithContext(ctx)
	for _, half := range [][]mutant{list[:len(list)/2], list[len(list)/2:]} {
		halves.Go(func() error { return b.elsewhere(ctx, half, told) })
	}
	return halves.Wait()
}

// fate of a mutant by its package's own short tests; of one that cannot be switched on beside
// others, which has a build of its own, by those of the other packages too.
func (b *bench) fate(ctx context.Context, m mutant) (fate, error) {
	own := b.own[filepath.Dir(m.file)]
	if number := b.numbers[m]; number > 0 {
		failed, err := b.notices(ctx, own, number)
		if failed {
			return killed, err
		}
		return lives, err
	}
	alone, err := b.alone(m)
	if err != nil {
		return lives, err
	}
	failed, err := alone.notices(ctx, own.again())
	switch {
	case errors.Is(err, errBuild):
		return stillborn, nil
	case failed || err != nil:
		return killed, err
	}
	for _, t := range b.also {
		if err := b.holds(ctx, t); err != nil {
			return lives, err
		}
		if failed, err := alone.notices(ctx, t.again()); failed || err != nil {
			return killedElsewhere, err
		}
	}
	return lives, nil
}

// again is the same to be built of other sources, with the patience that is known.
func (t *build) again() *build { return &build{dir: t.dir, run: t.run, patience: t.patience} }

// alone is a bench whose sources have one mutant in place of what stands there.
func (b *bench) alone(m mutant) (*bench, error) {
	text, err := m.source()
	if err != nil {
		return nil, err
	}
	overlay, err := b.written(map[string]string{m.file: string(text)})
	return &bench{judge: b.judge, overlay: overlay}, err
}

// notices says whether a test fails while the mutants of these numbers are on; without numbers,
// whether one does at all. Those that no test comes by are noticed by none.
func (b *bench) notices(ctx context.Context, t *build, numbers ...int) (bool, error) {
	if err := b.holds(ctx, t); err != nil || t.path == "" {
		return false, err
	}
	if len(numbers) > 0 && !slices.ContainsFunc(numbers, func(n int) bool { return t.met[n] }) {
		return false, nil
	}
	failed, _, _, err := b.tests(ctx, t, numbers...)
	return failed, err
}

// written is a file that has go read sources in place of files, or beside them.
func (j judge) written(sources map[string]string) (string, error) {
	dir, err := os.MkdirTemp(j.dir, "")
	if err != nil {
		return "", err
	}
	replace := map[string]string{}
	for name, text := range sources {
		real, err := filepath.Abs(name)
		if err != nil {
			return "", err
		}
		replace[real] = filepath.Join(dir, fmt.Sprint(len(replace), ".go"))
		if err := os.WriteFile(replace[real], []byte(text), 0o600); err != nil {
			return "", err
		}
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	name := filepath.Join(dir, "overlay.json")
	return name, os.WriteFile(name, overlay, 0o600)
}

// errBuild is that something does not compile.
var errBuild = errors.New("it does not compile")

// tests runs the short tests of a package with some mutants on, until the first fails, and
// says how long that took.
func (b *bench) tests(ctx context.Context, t *build, numbers ...int) (failed bool, out []byte, took time.Duration, err error) {
	if t.path == "" {
		return false, nil, 0, nil
	}
	args := []string{"-test.short", "-test.failfast", "-test.timeout=" + t.patience.String()}
	if t.run != "" {
		args = append(args, "-test.run="+t.run)
	}
	if drawn, err := usesRapid(t.dir); err != nil {
		return false, nil, 0, err
	} else if drawn { // a failure need not be small, and is not written beside the sources
		args = append(args, "-rapid.nofailfile", "-rapid.shrinktime=0s")
	}
	run := exec.CommandContext(ctx, t.path, args...)
	run.Dir, run.Env = t.dir, append(os.Environ(), switchVariable+"="+strings.Trim(strings.ReplaceAll(fmt.Sprint(numbers), " ", ","), "[]"))
	if len(numbers) == 0 {
		run.Env = append(run.Env, metVariable+"="+t.path+met)
	}
	began := time.Now()
	out, err = run.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil: // it was killed for that, which is no verdict
		err = ctx.Err()
	case errors.As(err, &exit):
		failed, err = true, nil
	}
	return failed, out, time.Since(began), err
}

// built is the binary of a package's tests; empty where it has none.
func (b *bench) built(ctx context.Context, dir string) (string, error) {
	out, err := os.MkdirTemp(b.dir, "")
	if err != nil {
		return "", err
	}
	path := filepath.Join(out, "tests")
	said, err := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-overlay="+b.overlay, "-o="+path, "./"+filepath.ToSlash(dir)).CombinedOutput()
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if err != nil {
		return "", fmt.Errorf("%w: %s", errBuild, said)
	}
	path, err = filepath.Abs(path)
	if _, none := os.Stat(path); none != nil {
		return "", err
	}
	return path, err
}

// usesRapid says whether tests of a package are drawn by pgregory.net/rapid, which then
// knows its flags.
func usesRapid(dir string) (bool, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil || bytes.Contains(text, []byte(`"pgregory.net/rapid"`)) {
			return err == nil, err
		}
	}
	return false, err
}
