package program

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/rcatest"
)

// crowd is a dump of a Job so many of whose pods wait.
func crowd(t *testing.T, pods int) string {
	t.Helper()
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	f := rcatest.MakeFleet(2, 1, 2, 0, now)
	for _, n := range f.Nodes {
		n.Spec.Taints = []corev1.Taint{{Key: "team", Value: "x", Effect: corev1.TaintEffectNoSchedule}}
	}
	f.Jobs = append(f.Jobs, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "sweep", UID: "uid-sweep"}})
	for i := range pods {
		p := rcatest.Pending("sweep", "nvidia.com/mig-1g.5gb", now)
		p.Name, p.UID = fmt.Sprintf("sweep-%05d", i), types.UID(fmt.Sprint("uid-", i))
		f.Pods = append(f.Pods, p)
	}
	data, err := f.List()
	must(t, err)
	path := filepath.Join(t.TempDir(), "fleet.json")
	must(t, os.WriteFile(path, data, 0o600))
	return path
}

// spent is the processor time of this process.
func spent(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	must(t, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// Ten thousand pods of one Job are one incident and a short message, and cost no more
// than ten times a thousand do.
func TestTenThousandPodsOfOneJob(t *testing.T) {
	few, many := crowd(t, 1000), crowd(t, 10000)
	var out string
	cost := func(path string) time.Duration {
		least := time.Duration(1 << 62)
		for range 3 {
			begin := spent(t)
			var code int
			if code, out, _ = call(t, "why", "-f", path, "-o", "json"); code != 0 {
				t.Fatal(out)
			}
			least = min(least, spent(t)-begin)
		}
		return least
	}
	thousand := cost(few)
	growth := float64(cost(many)) / float64(thousand)
	t.Logf("10,000 pods cost %.1f times what 1,000 do (%s)", growth, thousand)
	if growth > 20 {
		t.Errorf("10,000 pods cost %.1f times what 1,000 do", growth)
	}
	var list diagnosis.List
	must(t, json.Unmarshal([]byte(out), &list))
	if len(list.Items) != 1 || len(out) > 32<<10 {
		t.Fatalf("%d incidents, %d bytes", len(list.Items), len(out))
	}
	d := list.Items[0]
	if d.Pods.Waiting != 10000 || len(d.Pods.Names) > 20 {
		t.Errorf("%d wait, %d are named", d.Pods.Waiting, len(d.Pods.Names))
	}
	// Pods that are not named cannot be patched one by one: the Job is recreated, or
	// most of it would go on waiting.
	f := d.Fixes[0]
	if f.Kind != diagnosis.AddToleration || len(f.Actions) != 1 || f.Actions[0].Verb != diagnosis.VerbRecreate || f.Actions[0].Target.Name != "sweep" {
		t.Errorf("first fix %s: %+v", f.Title, f.Actions)
	}
	if _, text, _ := call(t, "why", "-f", many); strings.Count(text, "\n") > 25 {
		t.Errorf("%d lines:\n%s", strings.Count(text, "\n"), text)
	}
}
