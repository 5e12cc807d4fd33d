package acceptance

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/testdata/controlplane"
)

// allButEvents is what a diagnosis is made from, of the kinds that every cluster serves.
var allButEvents = []string{"nodes", "pods", "namespaces", "resourcequotas", "limitranges", "persistentvolumeclaims", "persistentvolumes",
	"poddisruptionbudgets.policy", "priorityclasses.scheduling.k8s.io", "replicasets.apps", "deployments.apps", "statefulsets.apps", "daemonsets.apps", "jobs.batch", "cronjobs.batch",
	"storageclasses.storage.k8s.io", "csinodes.storage.k8s.io", "nodegeometries.unpend.dev", "remediations.unpend.dev"}

// promiseR04: all Events are deleted, or nobody may read them. Pods that wait are diagnosed
// all the same, within the time of a sweep.
func promiseR04(t *testing.T) {
	needsControlPlane(t)
	c := start(t, controlplane.Extras{})
	c.AddNode(t, all1g("gpu-1"))
	c.WaitForServiceAccount(t, "default")
	o := serve(t, c)
	before := o.waits(t, "before", 3)
	o.explains(t, before, 20*time.Second)
	must(t, c.Client().CoreV1().Events("default").DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	o.kill()

	again := serve(t, c)
	worst := again.explains(t, before, time.Minute)
	again.kill()

	c.Allow(t, "eventless", allButEvents...)
	blind := &observer{ControlPlane: c, metrics: controlplane.FreeAddress(t)}
	config := filepath.Join(t.TempDir(), "unpend.yaml")
	must(t, os.WriteFile(config, fmt.Appendf(nil, "bus: {storeDir: %q}\nweb: {metrics: %q}\n", t.TempDir(), blind.metrics), 0o600))
	blind.process = newProcess(t, nil, "unpend", "run", "--config", config, "--kubeconfig", c.KubeconfigFor(t, "eventless"))
	blind.start(t)
	blind.says(t, "ok", time.Minute)
	began := time.Now()
	blind.explains(t, append(before, blind.waits(t, "unseen", 3)...), time.Minute)
	worst = max(worst, time.Since(began))
	if n := blind.told(`"kind":"Event`); n == 0 {
		t.Error("that Events may not be read is not said")
	}
	for _, line := range blind.out.all() {
		if strings.Contains(line, "panic") {
			t.Error(line)
		}
	}
	report(t, 2, 2, fmt.Sprintf("Events deleted, and the right to read them missing: all that wait are diagnosed within %.1f s", worst.Seconds()))
}
