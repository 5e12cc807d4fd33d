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
	packages []string // whose short tests judge it too
}

// fates judges some mutants, as many at a time as there are processors.
func (j judge) fates(ctx context.Context, list []mutant) ([]fate, error) {
	out := make([]fate, len(list))
	parts, ctx := errgroup.WithContext(ctx)
	parts.SetLimit(runtime.NumCPU())
	for i, m := range list {
		parts.Go(func() (err error) {
			if out[i], err = j.fate(ctx, m); err != nil {
				return fmt.Errorf("%s: %w", m, err)
			}
			return nil
		})
	}
	return out, parts.Wait()
}

// fate of a mutant. Its package's own short tests judge it first, then those of the other
// packages.
func (j judge) fate(ctx context.Context, m mutant) (fate, error) {
	overlay, err := j.overlay(m)
	if err != nil {
		return lives, err
	}
	own := "./" + filepath.Dir(m.file)
	switch failed, out, err := tests(ctx, overlay, own); {
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
	failed, _, err := tests(ctx, overlay, j.packages...)
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

// tests runs short tests, with an overlay or without, until the first fails. Those that hang fail.
func tests(ctx context.Context, overlay string, packages ...string) (failed bool, out []byte, err error) {
	args := []string{"test", "-short", "-failfast", "-vet=off", "-timeout=5m"}
	if overlay != "" {
		args = append(args, "-overlay="+overlay)
	}
	args = append(args, packages...)
	out, err = exec.CommandContext(ctx, "go", args...).CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) && ctx.Err() == nil {
		return true, out, nil
	}
	return false, out, err
}
