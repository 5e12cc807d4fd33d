package acceptance

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/cmd/internal/program"
	"github.com/unpend/unpend/rca/cluster/dump"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/testdata/controlplane"
)

// A Prometheus that does not help is told, and the rest of the diagnosis is there, in
// time.
func TestWhyWithoutItsPrometheus(t *testing.T) {
	down := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }))
	defer down.Close()
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body) // else its end is not noticed
		<-r.Context().Done()
	}))
	defer silent.Close()
	for address, unread := range map[string]string{
		"":         "GPU work: no Prometheus is configured; idle holders are not told apart",
		down.URL:   "server error: 503; idle holders are not told apart",
		silent.URL: "no answer within 2s; idle holders are not told apart",
	} {
		began := time.Now()
		d := why(t, "-f", filepath.Join(scenarios, "IdleGPUHolders"), "--prometheus", address)
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("%q took %s", address, took)
		}
		if d.Causes[0].ID != diagnosis.GPUsInUse || d.Fixes[0].Kind != diagnosis.Wait || !strings.Contains(strings.Join(d.Unread, "\n"), unread) {
			t.Errorf("%q: %v, %s, unread %q", address, d.Causes, d.Fixes[0].Title, d.Unread)
		}
	}
	// Of a pod that waits for no held GPU nothing is asked.
	if d := why(t, "-f", filepath.Join(scenarios, "HostResourcesShort-cpu"), "--prometheus", silent.URL); strings.Contains(strings.Join(d.Unread, "\n"), "GPU work") {
		t.Errorf("unread %q", d.Unread)
	}
}

func TestGPUWorkFlags(t *testing.T) {
	for _, args := range []string{"--prometheus prometheus:9090", "--prometheus ftp://prometheus", "--prometheus-token-file /t", "--prometheus http://p --idle-threshold 101", "--prometheus http://p --idle-window 1ms"} {
		for _, command := range []string{"why -f " + filepath.Join(scenarios, "all-1g"), "approve gpu-7f3a01c9be#1"} {
			if code, out, errs := call(t, strings.Fields(command+" "+args)...); code != exitUsage || out != "" || !strings.HasPrefix(errs, "unpend: ") {
				t.Errorf("%s %s: exit %d, %s%s", command, args, code, out, errs)
			}
		}
	}
	file := filepath.Join(t.TempDir(), "config.yaml")
	must(t, os.WriteFile(file, []byte("rca: {prometheus: nowhere}"), 0o600))
	if code, _, errs := call(t, "run", "--config", file); code != exitUsage || !strings.Contains(errs, "address of Prometheus") {
		t.Errorf("exit %d: %s", code, errs)
	}
}

// The service tells who is idle; and what was approved of an idle pod is not done
// once it works again, or when nobody can say that it does not.
func TestIdleHolderThatWorksAgain(t *testing.T) {
	needsControlPlane(t)
	st, err := dump.Read([]string{filepath.Join(scenarios, "IdleGPUHolders")}, nil)
	must(t, err)
	r := &replay{c: start(t, controlplane.Extras{}), st: st, shift: time.Since(st.Now)}
	r.make(t)
	r.measured(t, "IdleGPUHolders")
	d := r.served(t)
	if d.Fixes[0].Kind != diagnosis.ReleaseIdleHolder {
		t.Fatalf("%+v", d.Fixes[0])
	}
	down := httptest.NewServer(http.NotFoundHandler())
	defer down.Close()
	for name, flags := range map[string][]string{
		"it works again":       recorded(t, "IdleGPUHolders-paused", time.Since(st.Now)),
		"nobody is asked":      nil,
		"nobody can be asked":  {"--prometheus", down.URL},
		"idle is less than so": append([]string{"--idle-threshold", "0.1"}, r.flags...),
	} {
		code, out, errs := call(t, append([]string{"approve", d.Incident + "#1", "--plan", d.Fixes[0].Plan, "--kubeconfig", r.c.Kubeconfig()}, flags...)...)
		if code != exitStale || !strings.Contains(errs, "plan is stale") {
			t.Errorf("%s: exit %d: %s%s", name, code, out, errs)
		}
	}
	if n := r.evictions(t); n != 0 {
		t.Errorf("%d evictions", n)
	}
	pods, err := r.c.Client().CoreV1().Pods("demo").List(t.Context(), metav1.ListOptions{})
	must(t, err)
	for _, p := range pods.Items {
		if p.Spec.NodeName != "" && (p.Status.Phase != corev1.PodRunning || p.DeletionTimestamp != nil) {
			t.Errorf("pod %s: %s", p.Name, p.Status.Phase)
		}
	}
	r.apply(t, d)
}

// served is what the service says of the one incident.
func (r *replay) served(t *testing.T) diagnosis.Diagnosis {
	t.Helper()
	config := filepath.Join(t.TempDir(), "config.yaml")
	must(t, os.WriteFile(config, fmt.Appendf(nil, "rca: {prometheus: %q}\nbus: {storeDir: %s}\nweb: {metrics: %q}\n", r.flags[1], t.TempDir(), controlplane.FreeAddress(t)), 0o600))
	ctx, cancel := context.WithCancel(t.Context())
	var out, errs lines
	ended := make(chan int, 1)
	go func() {
		ended <- program.Run(ctx, []string{"unpend", "run", "--config", config, "--kubeconfig", r.c.Kubeconfig()}, program.Stdio{In: strings.NewReader(""), Out: &out, Err: &errs})
	}()
	defer func() {
		cancel()
		if code := <-ended; code != 0 {
			t.Errorf("exit %d: %s", code, errs.all())
		}
	}()
	var d diagnosis.Diagnosis
	controlplane.Eventually(t, 30*time.Second, "the idle holder is told", func() (bool, string) {
		for _, line := range out.all() {
			if json.Unmarshal([]byte(line), &d) == nil && len(d.Causes) > 0 && d.Causes[0].ID == diagnosis.IdleGPUHolders {
				return true, ""
			}
		}
		return false, strings.Join(append(out.all(), errs.all()...), "\n")
	})
	return d
}
