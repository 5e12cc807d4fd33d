package settings

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/unpend/unpend/rca/idle"
)

// The configuration of the service says the same as the flags.
func TestGPUWorkIsConfigured(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.yaml")
	for text, want := range map[string]idle.Options{
		"{}": {Window: 30 * time.Minute, Threshold: 5},
		"rca: {prometheus: 'http://p', prometheusTokenFile: /t, idleWindow: 1h, idleThreshold: 2.5}": {Address: "http://p", TokenFile: "/t", Window: time.Hour, Threshold: 2.5},
	} {
		must(t, os.WriteFile(file, []byte(text), 0o600))
		c, err := ReadConfig(file)
		if got := c.GPUWork(); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v; want %+v", text, got, err, want)
		}
	}
}
