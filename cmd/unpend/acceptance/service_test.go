package acceptance

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/testdata/controlplane"
)

// observer is the service as a child, with a control plane where Jobs wait.
type observer struct {
	*process
	*controlplane.ControlPlane
	metrics string
}

// observe starts it with a bus, as its configuration says, and waits for nothing. It runs
// below a command, if one is given.
func observe(t *testing.T, c *controlplane.ControlPlane, bus string, below ...string) *observer {
	t.Helper()
	return observeBy(t, c, c.Kubeconfig(), bus, below...)
}

// observeBy has it ask the API server that a kubeconfig names.
func observeBy(t *testing.T, c *controlplane.ControlPlane, kubeconfig, bus string, below ...string) *observer {
	t.Helper()
	o := &observer{ControlPlane: c, metrics: controlplane.FreeAddress(t)}
	config := filepath.Join(t.TempDir(), "unpend.yaml")
	must(t, os.WriteFile(config, fmt.Appendf(nil, "remediate: {namespace: default}\nbus: %s\nweb: {metrics: %q}\n", bus, o.metrics), 0o600))
	command := slices.Concat(below, []string{"unpend", "run", "--config", config, "--kubeconfig", kubeconfig})
	o.process = newProcess(t, nil, command[0], command[1:]...)
	o.start(t)
	return o
}

// serve starts the service with a bus of its own, and waits until it is ready.
func serve(t *testing.T, c *controlplane.ControlPlane) *observer {
	t.Helper()
	o := observe(t, c, fmt.Sprintf("{storeDir: %s}", t.TempDir()))
	o.says(t, "ok", time.Minute)
	return o
}

// says waits until /readyz has the text, and tells how long that took.
func (o *observer) says(t *testing.T, text string, within time.Duration) time.Duration {
	t.Helper()
	began := time.Now()
	controlplane.Eventually(t, within, "/readyz says "+text, func() (bool, string) {
		o.lives(t)
		return answers(o.metrics, "/readyz", text)
	})
	return time.Since(began)
}

// lives fails when the process has ended.
func (o *observer) lives(t *testing.T) {
	t.Helper()
	select {
	case <-o.ended:
		t.Fatalf("the service has ended:\n%s", strings.Join(o.out.all(), "\n"))
	default:
	}
}

// waits has so many Jobs wait, by their names.
func (o *observer) waits(t *testing.T, name string, n int) (names []string) {
	t.Helper()
	tpl := template("2g.10gb", nil)
	tpl.Spec.RestartPolicy = corev1.RestartPolicyNever
	for i := range n {
		j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%02d", name, i)}, Spec: batchv1.JobSpec{Template: tpl}}
		_, err := o.Client().BatchV1().Jobs("default").Create(t.Context(), j, metav1.CreateOptions{})
		must(t, err)
		names = append(names, j.Name)
	}
	return names
}

// explains waits until each of them was diagnosed, and tells how long that took.
func (o *observer) explains(t *testing.T, names []string, within time.Duration) time.Duration {
	t.Helper()
	began := time.Now()
	controlplane.Eventually(t, within, "all are diagnosed", func() (bool, string) {
		o.lives(t)
		left := map[string]bool{}
		for _, n := range names {
			left[n] = true
		}
		for _, d := range o.diagnoses() {
			delete(left, d.Workload.Name)
		}
		return len(left) == 0, fmt.Sprint("not yet: ", slices.Sorted(maps.Keys(left)))
	})
	return time.Since(began)
}

// figure is one of its metrics; -1 when it is not there.
func (o *observer) figure(t *testing.T, name string) float64 {
	t.Helper()
	_, text := answers(o.metrics, "/metrics", "")
	m := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(name) + ` (\S+)$`).FindStringSubmatch(text)
	if m == nil {
		return -1
	}
	v, err := strconv.ParseFloat(m[1], 64)
	must(t, err)
	return v
}

// told counts the lines that it has written with a text.
func (o *observer) told(text string) (n int) {
	for _, line := range o.out.all() {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}

// diagnoses is what it has published, in order.
func (o *observer) diagnoses() []diagnosis.Summary {
	var out []diagnosis.Summary
	for _, line := range o.out.all() {
		var d diagnosis.Summary
		if json.Unmarshal([]byte(line), &d) == nil && d.Incident != "" && len(d.Causes) > 0 {
			out = append(out, d)
		}
	}
	return out
}

// of is what it has published of a workload.
func (o *observer) of(namespace, name string) []diagnosis.Summary {
	var out []diagnosis.Summary
	for _, d := range o.diagnoses() {
		if d.Workload.Namespace == namespace && d.Workload.Name == name {
			out = append(out, d)
		}
	}
	return out
}

// toldBy waits until the last that is published of a workload names these causes, in any
// order, for what keeps the first node, and says how long that took.
func (o *observer) toldBy(t *testing.T, within time.Duration, namespace, name string, causes ...diagnosis.CauseID) time.Duration {
	t.Helper()
	began := time.Now()
	slices.Sort(causes)
	controlplane.Eventually(t, within, fmt.Sprintf("%s/%s is told by %s", namespace, name, causes), func() (bool, string) {
		all := o.of(namespace, name)
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
