package acceptance

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/unpend/unpend/cmd/internal/program"
	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/testdata/controlplane"
)

// lines is a writer that can be read while it is written.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *lines) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Split(strings.TrimSpace(l.buf.String()), "\n")
}

// The service, as the chart starts it, on a real control plane: it finds what
// waits, says why once, is ready, counts, and ends when told.
func TestRunObserves(t *testing.T) {
	needsControlPlane(t)
	c := start(t, controlplane.Extras{})
	c.AddNode(t, all1g("gpu-1"))
	c.WaitForServiceAccount(t, "default")
	metrics := controlplane.FreeAddress(t)
	config := filepath.Join(t.TempDir(), "config.yaml")
	var spans lines
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(&spans, r.Body) }))
	defer collector.Close()
	text := fmt.Sprintf("watcher: {sweep: 5s}\nknowledge: {folder: %s}\nbus: {storeDir: %s}\nweb: {metrics: %q}\ntraces: {url: %s/v1/traces}\noutbound: {allow: [127.0.0.1]}\n", runbooks(t), t.TempDir(), metrics, collector.URL)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var out, errs lines
	ended := make(chan int, 1)
	go func() {
		ended <- program.Run(ctx, []string{"unpend", "run", "--config", config, "--kubeconfig", c.Kubeconfig()}, program.Stdio{In: strings.NewReader(""), Out: &out, Err: &errs})
	}()
	controlplane.Eventually(t, 30*time.Second, "the service is ready", func() (bool, string) { return answers(metrics, "/readyz", "ok") })
	job("2g.10gb", "")(t, c)
	var d diagnosis.Diagnosis
	controlplane.Eventually(t, 20*time.Second, "a diagnosis is printed", func() (bool, string) {
		for _, line := range out.all() {
			if json.Unmarshal([]byte(line), &d) == nil && len(d.Causes) > 0 && d.Causes[0].ID == diagnosis.MIGLayoutMismatch {
				return true, ""
			}
		}
		return false, strings.Join(append(out.all(), errs.all()...), "\n")
	})
	if len(d.Knowledge) == 0 || d.Knowledge[0].Title != "2g pods wait on all-1g nodes" || d.Knowledge[0].Quote == "" {
		t.Errorf("knowledge %+v", d.Knowledge)
	}
	if ok, got := answers(metrics, "/metrics", `unpend_incidents_total{cause="MIGLayoutMismatch"}`); !ok {
		t.Errorf("metrics: %s", got)
	}
	for _, is := range []string{"unpend_build_info{", "process_resident_memory_bytes ", "go_goroutines "} {
		if ok, got := answers(metrics, "/metrics", is); !ok {
			t.Errorf("no %s: %s", is, got)
		}
	}
	controlplane.Eventually(t, 10*time.Second, "the gauges are told", func() (bool, string) {
		return answers(metrics, "/metrics", `unpend_mig_placeable_instances{profile="2g.10gb"} 3`)
	})
	_, told := answers(metrics, "/metrics", "\x00")
	if problems, err := promlint.New(strings.NewReader(told)).Lint(); err != nil || len(problems) > 0 {
		t.Errorf("of the metrics %v %+v", err, problems)
	}
	cancel()
	select {
	case code := <-ended:
		if code != 0 {
			t.Errorf("exit %d: %s", code, errs.all())
		}
	case <-time.After(10 * time.Second):
		t.Error("the service does not end")
	}
	for _, name := range []string{"found", "diagnose"} {
		if all := strings.Join(spans.all(), ""); !strings.Contains(all, `"name":"`+name+`"`) || !strings.Contains(all, d.Incident) {
			t.Errorf("no span %s in %s", name, all)
		}
	}
	for _, once := range []string{`"msg":"unpend starts","version":`, `"msg":"unpend ends","because":"context canceled"`, `"sweep":"5s","debounce":"200ms"`} {
		if n := strings.Count(strings.Join(errs.all(), "\n"), once); n != 1 {
			t.Errorf("%s is logged %d times: %s", once, n, errs.all())
		}
	}
	for _, e := range c.AuditEvents(t) {
		if strings.HasPrefix(e.UserAgent, filepath.Base(os.Args[0])+"/") && e.ObjectRef.Resource == "pods" && e.Verb != "list" && e.Verb != "watch" && e.Verb != "get" {
			t.Errorf("observing wrote: %+v", e)
		}
	}
}

func runbooks(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	text := "---\ntitle: 2g pods wait on all-1g nodes\nresolved: true\n---\nA pod asking nvidia.com/mig-2g.10gb waits with MIGLayoutMismatch. Repartition one GPU to all-2g.10gb.\n"
	for name, body := range map[string]string{"mig.md": text, "dns.md": "# Resolver outage\nCoreDNS ran out of memory.\n", "disk.md": "# Disk pressure\nImages filled the disk.\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func answers(address, path, want string) (bool, string) {
	resp, err := http.Get("http://" + address + path)
	if err != nil {
		return false, err.Error()
	}
	defer resp.Body.Close()
	var body bytes.Buffer
	if _, err := body.ReadFrom(resp.Body); err != nil {
		return false, err.Error()
	}
	return strings.Contains(body.String(), want), body.String()
}

// A user who may list only pods and nodes is told which right is missing, and
// gets the rest.
func TestMissingRightIsNamed(t *testing.T) {
	needsControlPlane(t)
	c := start(t, controlplane.Extras{})
	c.AddNode(t, sim.Node{Name: "gpu-1", Model: a100, Config: "all-1g.5gb", Layouts: [][]sim.Placed{sim.All(a100, "1g.5gb")}})
	c.WaitForServiceAccount(t, "default")
	c.Allow(t, "alice", "pods", "nodes")
	job("2g.10gb", "")(t, c)
	waitRefused(t, c, "")
	d := why(t, "-A", "--kubeconfig", c.KubeconfigFor(t, "alice"))
	if d.Causes[0].ID != diagnosis.MIGLayoutMismatch || d.Causes[0].Certainty != diagnosis.Possible {
		t.Errorf("without geometry: %+v", d.Causes)
	}
	if all := strings.Join(d.Unread, "\n"); !strings.Contains(all, "the right to list nodegeometries.unpend.dev is missing") || strings.Contains(all, "poddisruptionbudgets") { // of evictions none is offered
		t.Errorf("unread: %s", all)
	}
}
