package sources

import (
	"testing"
	"time"

	"github.com/unpend/unpend/rca/idle"
)

// What tells a command which holders are idle, as the next command needs it.
func TestGPUWorkIsAskedTheSameWayAgain(t *testing.T) {
	for want, p := range map[string]idle.Options{
		"":                      {Window: time.Hour},
		"--prometheus http://p": {Address: "http://p", Window: 30 * time.Minute, Threshold: 5},
		"--prometheus http://p --prometheus-token-file /t --idle-window 1h0m0s --idle-threshold 2.5": {Address: "http://p", TokenFile: "/t", Window: time.Hour, Threshold: 2.5},
	} {
		if got := (GPUWork{p}).Again(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
