package main

import (
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// The test binary is the program too, for the scripts and as a child process, and a
// person who clicks.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"unpend": main, "clicker": clicker})
}

// The real command, run by script files as a person would type it.
func TestScripts(t *testing.T) {
	folder, err := filepath.Abs(scenarios)
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			e.Setenv("SCENARIOS", folder)
			e.Setenv("HOME", e.WorkDir) // no kubeconfig of whoever runs the test
			e.Setenv("NO_COLOR", "1")
			return nil
		},
	})
}
