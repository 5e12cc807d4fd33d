// Package built builds programs of others from their Go modules, for tests: nothing has
// to be installed. A folder with a go.mod and a go.sum pins what a program is made of; it
// is built by the first test that asks, and kept in the user's cache until a pin changes.
package built

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"time"
)

// Module builds some programs in one go: their packages are compiled and linked side by
// side.
type Module struct {
	// Pins is the folder of its go.mod.
	Pins string
	// Packages of the programs; "." is one whose main lies beside the go.mod, and which has
	// the name of that folder.
	Packages []string
	// Flags of go build.
	Flags []string
}

// Beside is a path below the folder of the caller's source file.
func Beside(elem ...string) (string, error) {
	_, file, _, ok := runtime.Caller(1)
	if !ok || !filepath.IsAbs(file) {
		return "", errors.New("find the sources of the tests: build tests without -trimpath")
	}
	return filepath.Join(slices.Concat([]string{filepath.Dir(file)}, elem)...), nil
}

// Programs builds what is not in the cache yet and returns the paths of the programs by
// their names. Several processes may call it at once: one builds, the others wait.
func (m Module) Programs(ctx context.Context) (map[string]string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, fmt.Errorf("find the cache: %w", err)
	}
	print, err := m.fingerprint()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(cache, "unpend", "built", m.name()+"-"+print)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make the cache: %w", err)
	}
	unlock, err := lock(filepath.Join(dir, "lock"))
	if err != nil {
		return nil, err
	}
	defer unlock()
	done := filepath.Join(dir, "built")
	if _, err := os.Stat(done); err != nil {
		if err := m.build(ctx, dir); err != nil {
			return nil, err
		}
		if err := os.WriteFile(done, nil, 0o644); err != nil {
			return nil, fmt.Errorf("mark as built: %w", err)
		}
	}
	out := map[string]string{}
	for _, p := range m.Packages {
		name := path.Base(p)
		if p == "." {
			name = m.name()
		}
		out[name] = filepath.Join(dir, name)
	}
	return out, nil
}

func (m Module) name() string { return filepath.Base(m.Pins) }

func (m Module) build(ctx context.Context, dir string) error {
	fmt.Fprintf(os.Stderr, "building %s for the tests (once; minutes) …\n", m.name())
	began := time.Now()
	runtime.LockOSThread() // Pdeathsig follows the thread, not the process
	defer runtime.UnlockOSThread()
	// No -trimpath: the compiled packages are then those of the main module's tests too.
	args := slices.Concat([]string{"build"}, m.Flags, []string{"-o", dir + string(filepath.Separator)}, m.Packages)
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = m.Pins
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=-mod=readonly -buildvcs=false")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", m.name(), err, text)
	}
	fmt.Fprintf(os.Stderr, "built %s in %.0f s\n", m.name(), time.Since(began).Seconds())
	return nil
}

// fingerprint changes when anything the programs are made from does.
func (m Module) fingerprint() (string, error) {
	h := sha256.New()
	fmt.Fprintf(h, "%q %q %s %s\n", m.Packages, m.Flags, runtime.Version(), runtime.GOARCH)
	files, err := filepath.Glob(filepath.Join(m.Pins, "*")) // sorted
	if err != nil || len(files) == 0 {
		return "", fmt.Errorf("no pins in %s: build tests on the machine that runs them", m.Pins)
	}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			return "", fmt.Errorf("read the pins: %w", err)
		}
		fmt.Fprintf(h, "%s %d\n%s", filepath.Base(f), len(data), data)
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:6]), nil
}

// lock waits for the one process that may build.
func lock(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("lock the cache: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		return nil, errors.Join(fmt.Errorf("lock the cache: %w", err), f.Close())
	}
	return func() { f.Close() }, nil
}
