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
	dir      string   // for the files of a mutant
	packages []string // whose short tests judge what a package's own let live
	run      string   // which of them do, as go test -run has it; empty: all
}

// fates judges some mutants, as many at a time as there are processors, and tells of each
// at once: a run that is stopped has said what it knows. told is called by one at a time.
func (j judge) fates(ctx context.Context, list []mutant, told func(mutant, fate)) error {
	var one sync.Mutex
	parts, ctx := errgroup.WithContext(ctx)
	parts.SetLimit(runtime.NumCPU())
	for _, m := range list {
		parts.Go(func() error {
			f, err := j.fate(ctx, m)
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
func (j judge) fate(ctx context.Context, m mutant) (fate, error) {
	overlay, err := j.overlay(m)
	if err != nil {
		return lives, err
	}
	switch failed, out, err := ownTests(ctx, overlay, filepath.Dir(m.file)); {
	case err != nil:
		return lives, err
	case failed && bytes.Contains(out, []byte("[build failed]")):
		return stillborn, nil
	case failed:
		return killed, nil
	}
	if len(j.packages) == 0 {
		return lives, nil
	}
	failed, _, err := j.alsoTests(ctx, overlay)
	if failed {
		return killedElsewhere, err
	}
	return lives, err
}

// overlay is a file that has go read the mutant in place of its file.
func (j judge) overlay(m mutant) (string, error) {
	text, err := m.source()
	if err != nil {
		return "", err
	}
	real, err := filepath.Abs(m.file)
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp(j.dir, "")
	if err != nil {
		return "", err
	}
	mutated, overlay := filepath.Join(dir, "mutant.go"), filepath.Join(dir, "overlay.json")
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{real: mutated}})
	if err != nil {
		return "", err
	}
	return overlay, errors.Join(os.WriteFile(mutated, text, 0o600), os.WriteFile(overlay, replace, 0o600))
}

// ownTests runs a package's own short tests.
func ownTests(ctx context.Context, overlay, dir string) (failed bool, out []byte, err error) {
	args := []string{"./" + dir}
	if drawn, err := usesRapid(dir); err != nil {
		return false, nil, err
	} else if drawn { // a failure need not be small, and is not written beside the sources
		args = append(args, "-rapid.nofailfile", "-rapid.shrinktime=0s")
	}
	return tests(ctx, overlay, args...)
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

// alsoTests runs those of the other packages.
func (j judge) alsoTests(ctx context.Context, overlay string) (failed bool, out []byte, err error) {
	return tests(ctx, overlay, append([]string{"-run=" + j.run}, j.packages...)...)
}

// tests runs short tests, with an overlay or without, until the first fails. Those that hang
// fail: two minutes are many times what they take.
func tests(ctx context.Context, overlay string, more ...string) (failed bool, out []byte, err error) {
	args := []string{"test", "-short", "-failfast", "-vet=off", "-timeout=2m"}
	if overlay != "" {
		args = append(args, "-overlay="+overlay)
	}
	out, err = exec.CommandContext(ctx, "go", append(args, more...)...).CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) && ctx.Err() == nil {
		return true, out, nil
	}
	return false, out, err
}
