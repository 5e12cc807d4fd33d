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

// bench is one package with its mutants, built once with all that can be so.
type bench struct {
	judge
	of      string         // the package's folder
	numbers map[mutant]int // of those that are switched on
	overlay string
	own     *build
	also    []*build
}

// build is a test binary, made when it is first asked for.
type build struct {
	dir      string
	once     sync.Once
	path     string
	err      error
	patience time.Duration // how long its tests are run
}

// patience is how often as long as without a mutant tests may take with one, and the least
// that this is: those that hang fail.
const (
	patience      = 10
	leastPatience = 20 * time.Second
)

// open builds the tests of a package with its mutants, and holds that they pass while none
// of these is on.
func (j judge) open(ctx context.Context, dir string, list []mutant) (*bench, error) {
	sources, numbers, err := switched(list)
	if err != nil {
		return nil, err
	}
	b := &bench{judge: j, of: dir, numbers: numbers, own: &build{dir: dir}}
	if b.overlay, err = j.written(sources); err != nil {
		return nil, err
	}
	for _, p := range j.packages {
		b.also = append(b.also, &build{dir: filepath.Clean(p)})
	}
	for _, t := range append([]*build{b.own}, b.also...) {
		failed, said, took, err := b.tests(ctx, t, 0)
		if err != nil {
			return nil, err
		}
		if failed {
			return nil, fmt.Errorf("tests fail without a mutant: %s", said)
		}
		t.patience = max(leastPatience, patience*took)
	}
	return b, nil
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
	if b.numbers[m] == 0 {
		text, err := m.source()
		if err != nil {
			return lives, err
		}
		overlay, err := b.written(map[string]string{m.file: string(text)})
		if err != nil {
			return lives, err
		}
		alone := &bench{judge: b.judge, of: b.of, overlay: overlay, own: &build{dir: b.of, patience: b.own.patience}}
		for _, t := range b.also {
			alone.also = append(alone.also, &build{dir: t.dir, patience: t.patience})
		}
		b = alone
	}
	failed, _, _, err := b.tests(ctx, b.own, b.numbers[m])
	switch {
	case errors.Is(err, errBuild):
		return stillborn, nil
	case failed || err != nil:
		return killed, err
	}
	for _, t := range b.also {
		if failed, _, _, err := b.tests(ctx, t, b.numbers[m]); failed || err != nil {
			return killedElsewhere, err
		}
	}
	return lives, nil
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
	t.once.Do(func() { t.path, t.err = b.built(ctx, t.dir) })
	if t.err != nil || t.path == "" {
		return false, nil, 0, t.err
	}
	args := []string{"-test.short", "-test.failfast", "-test.timeout=" + t.patience.String()}
	if t != b.own {
		args = append(args, "-test.run="+b.run)
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
