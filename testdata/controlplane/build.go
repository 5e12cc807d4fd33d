// Package controlplane starts a real Kubernetes control plane for tests: etcd,
// kube-apiserver, kube-scheduler, kube-controller-manager and kwok as kubelet,
// built from the Go module proxy.
package controlplane

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// Version of the Kubernetes binaries; build/kube/go.mod pins the same.
const Version = "v1.37.1"

// module builds some of the binaries, in one go: their packages are compiled and
// linked side by side.
type module struct {
	name     string
	packages []string
}

var modules = []module{
	{"etcd", []string{"."}},
	{"kube", []string{"k8s.io/kubernetes/cmd/kube-apiserver", "k8s.io/kubernetes/cmd/kube-scheduler", "k8s.io/kubernetes/cmd/kube-controller-manager"}},
	{"kwok", []string{"sigs.k8s.io/kwok/cmd/kwok"}},
}

// ldflags tell the binaries their version: clients cannot parse one that is empty.
func ldflags() string {
	const at = "k8s.io/component-base/version."
	major, minor, _ := strings.Cut(strings.TrimPrefix(Version, "v"), ".")
	minor, _, _ = strings.Cut(minor, ".")
	return fmt.Sprintf("-s -w -X %sgitVersion=%s -X %sgitMajor=%s -X %sgitMinor=%s", at, Version, at, major, at, minor)
}

// source is the folder of this package.
func source() (string, error) {
	_, file, _, ok := runtime.Caller(0)
	if !ok || !filepath.IsAbs(file) {
		return "", errors.New("find the sources of the control plane: build tests without -trimpath")
	}
	return filepath.Dir(file), nil
}

// Build builds the binaries that are not in the cache yet and returns their
// folder. Several processes may call it at once.
func Build(ctx context.Context) (string, error) {
	src, err := source()
	if err != nil {
		return "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the cache: %w", err)
	}
	key, err := fingerprint(src)
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "unpend", "controlplane", key)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("make the cache: %w", err)
	}
	unlock, err := lock(filepath.Join(dir, "lock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	for _, m := range modules {
		done := filepath.Join(dir, m.name+".built")
		if _, err := os.Stat(done); err == nil {
			continue
		}
		if err := m.build(ctx, src, dir); err != nil {
			return "", err
		}
		if err := os.WriteFile(done, nil, 0o644); err != nil {
			return "", fmt.Errorf("mark as built: %w", err)
		}
	}
	return dir, nil
}

func (m module) build(ctx context.Context, src, dir string) error {
	fmt.Fprintf(os.Stderr, "building %s for the tests (once; minutes) …\n", m.name)
	began := time.Now()
	runtime.LockOSThread() // Pdeathsig follows the thread, not the process
	defer runtime.UnlockOSThread()
	// No -trimpath: the compiled packages are then those of the main module's tests too.
	args := append([]string{"build", "-ldflags", ldflags(), "-o", dir + string(filepath.Separator)}, m.packages...)
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = filepath.Join(src, "build", m.name)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=-mod=readonly -buildvcs=false")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", m.name, err, text)
	}
	fmt.Fprintf(os.Stderr, "built %s in %.0f s\n", m.name, time.Since(began).Seconds())
	return nil
}

// fingerprint changes when anything the binaries are made from does.
func fingerprint(src string) (string, error) {
	h := sha256.New()
	fmt.Fprintln(h, ldflags(), runtime.Version(), runtime.GOARCH)
	files, err := filepath.Glob(filepath.Join(src, "build", "*", "*")) // sorted
	if err != nil || len(files) == 0 {
		return "", fmt.Errorf("no pins below %s: build tests on the machine that runs them", src)
	}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			return "", fmt.Errorf("read the pins: %w", err)
		}
		fmt.Fprintf(h, "%s %d\n%s", filepath.Base(f), len(data), data)
	}
	return fmt.Sprintf("%s-%x", Version, h.Sum(nil)[:6]), nil
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
