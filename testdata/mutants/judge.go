package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
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
		failed, said, took, err := b.tests(ctx, t, 0)
		if t.err = err; failed {
			t.err = fmt.Errorf("tests fail without a mutant: %s", said)
		}
		t.patience = max(leastPatience, patience*took)
	})
	return t.err
}

// fates judges some mutants, as many at a time as there are processors, and tells of each
// at once: a run that is stopped has said what it knows. told is called by one at a time.
func (b *bench) fates(ctx context.Context, list []mutant, told func(mutant, fate)) error {
	var one sync.Mutex
	parts, ctx := errgroup.WithContext(ctx)
	parts.SetLimit(runtime.NumCPU())
	for _, m := range list {
		parts.Go(func() error {
			f, err := b.fate(ctx, m)
			if err != nil {
				return fmt.Errorf("%s: %w", m, err)
			}
			one.Lock()
			defer one.Unlock()
			told(m, f)
			return nil
		})
	}
	return parts.Wait()
}

// fate of a mutant. Its package's own short tests judge it first, then those of the other
// packages.
func (b *bench) fate(ctx context.Context, m mutant) (fate, error) {
	on, own, number := b, b.own[filepath.Dir(m.file)], b.numbers[m]
	if number == 0 {
		alone, err := b.alone(m)
		if err != nil {
			return lives, err
		}
		on, own = alone, own.again()
	}
	failed, err := on.notices(ctx, own, number)
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
		if number == 0 {
			t = t.again()
		}
		if failed, err := on.notices(ctx, t, number); failed || err != nil {
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

// notices says whether a test fails while the mutant of this number is on.
func (b *bench) notices(ctx context.Context, t *build, number int) (bool, error) {
	if err := b.holds(ctx, t); err != nil || t.path == "" {
		return false, err
	}
	failed, _, _, err := b.tests(ctx, t, number)
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

// tests runs the short tests of a package with one mutant on, until the first fails, and
// says how long that took.
func (b *bench) tests(ctx context.Context, t *build, number int) (failed bool, out []byte, took time.Duration, err error) {
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
	run.Dir, run.Env = t.dir, append(os.Environ(), fmt.Sprintf("%s=%d", switchVariable, number))
	began := time.Now()
	out, err = run.CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) && ctx.Err() == nil {
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
