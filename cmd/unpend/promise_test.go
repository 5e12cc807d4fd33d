package main

import (
	"fmt"
	"testing"
)

// promise is what unpend keeps when things break or someone attacks.
type promise struct {
	id  string
	run func(*testing.T)
}

var promises = []promise{
	{"R09", promiseR09},
}

// TestPromise holds the command, as real processes on a real control plane, to each
// promise, and prints its figure.
func TestPromise(t *testing.T) {
	for _, p := range promises {
		t.Run(p.id, p.run)
	}
}

// report prints the figure of a promise: "R9 40/40, worst recovery 7.1 s".
func report(t *testing.T, id string, passed, of int, figures string) {
	t.Helper()
	line := fmt.Sprintf("%s %d/%d", id, passed, of)
	if figures != "" {
		line += ", " + figures
	}
	t.Log(line)
	fmt.Println(line)
	if passed != of {
		t.Errorf("%s is not kept", id)
	}
}
