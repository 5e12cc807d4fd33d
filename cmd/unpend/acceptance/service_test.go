package acceptance

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/testdata/controlplane"
)

// serving is the service as a child process: it watches and diagnoses.
type serving struct {
	*process
	metrics string // its address
}

// serve starts the service and waits until it is ready.
func serve(t *testing.T, c *controlplane.ControlPlane) *serving {
	t.Helper()
	s := &serving{metrics: freeAddress(t)}
	config := filepath.Join(t.TempDir(), "unpend.yaml")
	must(t, os.WriteFile(config, fmt.Appendf(nil, "bus: {storeDir: %s}\nweb: {metrics: %q}\n", t.TempDir(), s.metrics), 0o600))
	s.process = newProcess(t, nil, "unpend", "run", "--config", config, "--kubeconfig", c.Kubeconfig())
	s.process.start(t)
	controlplane.Eventually(t, time.Minute, "the service is ready", func() (bool, string) { return answers(s.metrics, "/readyz", "ok") })
	t.Cleanup(func() {
		if t.Failed() {
			_, all := answers(s.metrics, "/metrics", "no such line")
			for line := range strings.Lines(all) {
				if strings.HasPrefix(line, "unpend_") && !strings.Contains(line, "_bucket") {
					t.Log(strings.TrimSpace(line))
				}
			}
		}
	})
	return s
}

// diagnoses is what it has published, in order.
func (s *serving) diagnoses() []diagnosis.Summary {
	var out []diagnosis.Summary
	for _, line := range s.out.all() {
		var d diagnosis.Summary
		if json.Unmarshal([]byte(line), &d) == nil && d.Incident != "" && len(d.Causes) > 0 {
			out = append(out, d)
		}
	}
	return out
}

// of is what it has published of a workload.
func (s *serving) of(namespace, name string) []diagnosis.Summary {
	var out []diagnosis.Summary
	for _, d := range s.diagnoses() {
		if d.Workload.Namespace == namespace && d.Workload.Name == name {
			out = append(out, d)
		}
	}
	return out
}

// told waits until the last that is published of a workload names these causes, in any
// order, for what keeps the first node, and says how long that took.
func (s *serving) told(t *testing.T, within time.Duration, namespace, name string, causes ...diagnosis.CauseID) time.Duration {
	t.Helper()
	began := time.Now()
	slices.Sort(causes)
	controlplane.Eventually(t, within, fmt.Sprintf("%s/%s is told by %s", namespace, name, causes), func() (bool, string) {
		all := s.of(namespace, name)
		if len(all) == 0 {
			return false, "nothing is published of it"
		}
		var last []diagnosis.CauseID
		for _, b := range all[len(all)-1].Nodes[0].Blockers {
			last = append(last, b.Cause)
		}
		slices.Sort(last)
		return slices.Equal(last, causes), fmt.Sprint(last)
	})
	return time.Since(began)
}
