// Package prometheus starts a real Prometheus for tests, built from the Go module proxy:
// on recorded samples, or scraping an exporter that a test serves.
package prometheus

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/unpend/unpend/testdata/built"
)

// Scrape is an exporter to scrape every 100 ms.
type Scrape struct {
	Target string            // host:port
	Labels map[string]string // of the target, as service discovery would give them
	// Honor keeps the exporter's labels where the target has the same; without it
	// Prometheus renames them to exported_…
	Honor bool
}

// Record starts a Prometheus that holds these samples, in OpenMetrics' text format,
// and returns its address. It ends with the test.
func Record(t testing.TB, openMetrics string) string {
	t.Helper()
	dir := t.TempDir()
	input := filepath.Join(dir, "metrics.txt")
	if err := os.WriteFile(input, []byte(openMetrics), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), program(t, "promtool"), "tsdb", "create-blocks-from", "openmetrics", input, filepath.Join(dir, "data")).CombinedOutput()
	if err != nil {
		t.Fatalf("promtool: %v\n%s", err, out)
	}
	return start(t, dir, "{}\n")
}

// Watch starts a Prometheus that scrapes, and returns its address. It ends with the
// test.
func Watch(t testing.TB, s Scrape) string {
	t.Helper()
	config, err := json.Marshal(map[string]any{"scrape_configs": []any{map[string]any{ // JSON is YAML
		"job_name": "dcgm", "scrape_interval": "100ms", "scrape_timeout": "100ms", "honor_labels": s.Honor,
		"static_configs": []any{map[string]any{"targets": []string{s.Target}, "labels": s.Labels}}}}})
	if err != nil {
		t.Fatal(err)
	}
	return start(t, t.TempDir(), string(config))
}

// Obey starts a Prometheus with these files of rules, and returns its address. It ends with
// the test.
func Obey(t testing.TB, rules ...string) string {
	t.Helper()
	config, err := json.Marshal(map[string]any{"rule_files": rules})
	if err != nil {
		t.Fatal(err)
	}
	return start(t, t.TempDir(), string(config))
}

// TestRules has promtool check that a file's tests of rules hold.
func TestRules(t testing.TB, file string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program(t, "promtool"), "test", "rules", filepath.Base(file))
	cmd.Dir = filepath.Dir(file)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("promtool: %v\n%s", err, out)
	}
}

// Shift moves the times of recorded samples.
func Shift(openMetrics string, by time.Duration) (string, error) {
	var out strings.Builder
	for line := range strings.Lines(openMetrics) {
		at := strings.LastIndexByte(strings.TrimRight(line, "\n"), ' ')
		if strings.HasPrefix(line, "#") || at < 0 {
			out.WriteString(line)
			continue
		}
		seconds, err := strconv.ParseFloat(strings.TrimSpace(line[at+1:]), 64)
		if err != nil {
			return "", fmt.Errorf("read the time of %q: %w", line, err)
		}
		fmt.Fprintf(&out, "%s %.3f\n", line[:at], seconds+by.Seconds())
	}
	return out.String(), nil
}

// program is the path of prometheus or promtool; both are built with what they need for
// tests alone.
func program(t testing.TB, name string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("needs the real Prometheus")
	}
	pins, err := built.Beside("build", "prometheus")
	if err != nil {
		t.Fatal(err)
	}
	const cmd = "github.com/prometheus/prometheus/cmd/"
	paths, err := built.Module{Pins: pins, Packages: []string{cmd + "prometheus", cmd + "promtool"}, Flags: []string{"-ldflags", "-s -w", "-tags", "remove_all_sd"}}.Programs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return paths[name]
}

// start runs Prometheus in dir until the test ends.
func start(t testing.TB, dir, config string) string {
	t.Helper()
	file := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	address := built.FreeAddress(t)
	built.Serve(t, dir, "http://"+address+"/-/ready", program(t, "prometheus"), "--config.file="+file, "--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--storage.tsdb.retention.time=100y", "--web.listen-address="+address, "--log.level=warn")
	return "http://" + address
}
