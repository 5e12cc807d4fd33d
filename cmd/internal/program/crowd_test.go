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

// least is the least that one answer of three costs, and the answer.
func least(t *testing.T, path string) (cost time.Duration, out string) {
	t.Helper()
	cost = time.Duration(1 << 62)
	for range 3 {
		begin := spent(t)
		var code int
		if code, out, _ = call(t, "why", "-f", path, "-o", "json"); code != 0 {
			t.Fatal(out)
		}
		cost = min(cost, spent(t)-begin)
	}
	return cost, out
}

// daemons is a dump of so many nodes, on each of which a DaemonSet's pod waits that is made for it.
func daemons(t *testing.T, nodes int) string {
	t.Helper()
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	f := rcatest.MakeFleet(nodes, 1, 7, 0, now)
	for i, n := range f.Nodes {
		p := rcatest.Pending("agent", "nvidia.com/mig-1g.5gb", now)
		p.Name, p.UID, p.OwnerReferences[0].Kind = fmt.Sprintf("agent-%05d", i), types.UID(fmt.Sprint("uid-", i)), "DaemonSet"
		made := corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{n.Name}}}}
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{made}}}}
		f.Pods = append(f.Pods, p)
	}
	data, err := f.List()
	must(t, err)
	path := filepath.Join(t.TempDir(), "fleet.json")
	must(t, os.WriteFile(path, data, 0o600))
	return path
}

// A thousand pods of a DaemonSet that wait, each for a node of its own, cost no more than twice ten times what a hundred do.
func TestAThousandDaemons(t *testing.T) {
	hundred, _ := least(t, daemons(t, 100))
	thousand, out := least(t, daemons(t, 1000))
	growth := float64(thousand) / float64(hundred)
	t.Logf("1,000 pods for 1,000 nodes cost %.1f times what 100 for 100 do (%s)", growth, hundred)
	if growth > 20 {
		t.Errorf("1,000 pods for 1,000 nodes cost %.1f times what 100 for 100 do", growth)
	}
	var list diagnosis.List
	must(t, json.Unmarshal([]byte(out), &list))
	if len(list.Items) != 1 || len(list.Items[0].Causes) != 1 || len(list.Items[0].Causes[0].Nodes) != 1000 {
		t.Errorf("%+v", list.Items[0].Causes)
	}
}

// Ten thousand pods of one Job are one incident and a short message, and cost no more
// than ten times a thousand do.
func TestTenThousandPodsOfOneJob(t *testing.T) {
	few, many := crowd(t, 1000), crowd(t, 10000)
	thousand, _ := least(t, few)
	ten, out := least(t, many)
	growth := float64(ten) / float64(thousand)
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
