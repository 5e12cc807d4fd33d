// Package alertmanager starts a real Alertmanager for tests, built from the Go module proxy.
package alertmanager

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/unpend/unpend/testdata/built"
)

// Start starts one with a configuration, and returns its address. It ends with the test.
func Start(t testing.TB, config string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("needs the real Alertmanager")
	}
	pins, err := built.Beside("build", "alertmanager")
	if err != nil {
		t.Fatal(err)
	}
	programs, err := built.Module{Pins: pins, Packages: []string{"github.com/prometheus/alertmanager/cmd/alertmanager"}, Flags: []string{"-ldflags", "-s -w"}}.Programs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "alertmanager.yml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	address := built.FreeAddress(t)
	built.Serve(t, dir, "http://"+address+"/-/ready", programs["alertmanager"], "--config.file="+file, "--storage.path="+filepath.Join(dir, "data"), "--web.listen-address="+address, "--cluster.listen-address=", "--log.level=warn")
	return "http://" + address
}
