package program

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// What tells a command which holders are idle, as the next command needs it.
func TestGPUWorkIsAskedTheSameWayAgain(t *testing.T) {
	for want, p := range map[string]gpuWork{
		"":                      {window: time.Hour},
		"--prometheus http://p": {address: "http://p", window: 30 * time.Minute, threshold: 5},
		"--prometheus http://p --prometheus-token-file /t --idle-window 1h0m0s --idle-threshold 2.5": {"http://p", "/t", time.Hour, 2.5},
	} {
		if got := p.again(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// The configuration of the service says the same as the flags.
func TestGPUWorkIsConfigured(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.yaml")
	for text, want := range map[string]gpuWork{
		"{}": {"", "", 30 * time.Minute, 5},
		"rca: {prometheus: 'http://p', prometheusTokenFile: /t, idleWindow: 1h, idleThreshold: 2.5}": {"http://p", "/t", time.Hour, 2.5},
	} {
		must(t, os.WriteFile(file, []byte(text), 0o600))
		c, err := readConfig(file)
		if got := c.gpuWork(); err != nil || got != want {
			t.Errorf("%s: %+v, %v; want %+v", text, got, err, want)
		}
	}
}
