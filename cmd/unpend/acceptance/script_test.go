package acceptance

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/unpend/unpend/cmd/internal/program"
)

// The test binary is the program too, for the scripts and as a child process, and a
// person who clicks.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", fmt.Sprint(max(8, runtime.GOMAXPROCS(0)))); err != nil { // most of their time tests wait
		panic(err)
	}
	if os.Getenv("WORK") == "" { // a script has a folder of its own
		if err := os.Setenv("XDG_DATA_HOME", filepath.Join(os.TempDir(), "nobody's")); err != nil { // no library of who runs the test
			panic(err)
		}
	}
	testscript.Main(m, map[string]func(){"unpend": unpend, "kubectl-unpend": unpend, "clicker": clicker, "nats-server": natsServer})
}

// unpend is what the command's main does.
func unpend() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := program.Run(ctx, os.Args, program.Stdio{In: os.Stdin, Out: os.Stdout, Err: os.Stderr})
	stop()
	os.Exit(code)
}

// The real command, run by script files as a person would type it.
func TestScripts(t *testing.T) {
	t.Parallel() // most of it waits
	folder, err := filepath.Abs(scenarios)
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			e.Setenv("SCENARIOS", folder)
			e.Setenv("HOME", e.WorkDir) // no kubeconfig of who runs the test
			e.Setenv("NO_COLOR", "1")
			return nil
		},
	})
}
