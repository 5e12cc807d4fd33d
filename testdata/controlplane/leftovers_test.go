package controlplane

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// childMark in its environment tells a copy of the test binary to start a
// control plane and wait to be killed.
const childMark = "UNPEND_CONTROLPLANE_CHILD"

func beChild() {
	c := &ControlPlane{}
	err := c.launch(context.Background())
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("ready", c.dir)
	select {}
}

// running are the programs whose command line names a folder.
func running(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, f := range files {
		args, err := os.ReadFile(f)
		if err == nil && strings.Contains(string(args), dir) {
			name, _, _ := strings.Cut(string(args), "\x00")
			out = append(out, filepath.Base(name))
		}
	}
	slices.Sort(out)
	return out
}

var all = []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok"}

func TestStartLeavesNothing(t *testing.T) {
	skipShort(t)
	var dir string
	t.Run("inner", func(t *testing.T) {
		c := Start(t)
		dir = c.dir
		if got := running(t, dir); !slices.Equal(got, all) {
			t.Errorf("%v run, want %v", got, all)
		}
	})
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("%s was left behind: %v", dir, err)
	}
	if got := running(t, dir); len(got) > 0 {
		t.Errorf("%v were left behind", got)
	}
}

func TestKilledTestLeavesNothing(t *testing.T) {
	skipShort(t)
	t.Setenv("TMPDIR", t.TempDir())
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), childMark+"=1")
	child.Stderr = os.Stderr
	pipe, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(pipe).ReadString('\n')
	dir, ok := strings.CutPrefix(strings.TrimSpace(line), "ready ")
	if err != nil || !ok {
		t.Fatalf("%q: %v", line, err)
	}
	if got := running(t, dir); !slices.Equal(got, all) {
		t.Errorf("%v run, want %v", got, all)
	}
	if err := sweep(0); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "kubeconfig")); err != nil {
		t.Errorf("the folder of a living test was swept: %v", err)
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	child.Wait()
	Eventually(t, 10*time.Second, "all programs end with the test", func() (bool, string) {
		got := running(t, dir)
		return len(got) == 0, fmt.Sprint(got)
	})
	if err := sweep(0); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("%s was left behind: %v", dir, err)
	}
}

// A component that cannot start is named at once, with what it said last.
func TestFailedStartSaysWhy(t *testing.T) {
	dir, hold, err := newFolder()
	if err != nil {
		t.Fatal(err)
	}
	c := &ControlPlane{dir: dir, hold: hold, procs: newProcesses(dir)}
	if err := c.procs.start("/bin/sh", "-c", "echo no such flag; exit 2"); err != nil {
		t.Fatal(err)
	}
	err = c.await(t.Context(), []component{{name: "sh", health: "http://127.0.0.1:1"}})
	if got, want := fmt.Sprint(err), "wait for sh: it ended"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := fmt.Sprint(c.stop()), "sh ended before the tests did\nsh, last lines:\nno such flag\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("%s was left behind: %v", dir, err)
	}
}

// recorder is a test that notes why it failed.
type recorder struct {
	testing.TB
	failed string
}

func (r *recorder) Fatalf(format string, args ...any) { r.failed = fmt.Sprintf(format, args...) }

func TestEventuallyTellsWhatItSawLast(t *testing.T) {
	r, n := &recorder{TB: t}, 0
	Eventually(r, 120*time.Millisecond, "the pod runs", func() (bool, string) {
		n++
		return false, "it is Pending"
	})
	if want := "the pod runs: not within 120ms: it is Pending"; r.failed != want || n < 2 {
		t.Errorf("got %q after %d looks, want %q", r.failed, n, want)
	}
}
