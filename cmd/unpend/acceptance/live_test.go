package acceptance

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/cmd/internal/program"
	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/cluster/live"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/testdata/controlplane"
)

var update = flag.Bool("update", false, "record the dumps of the live scenarios")

// onStage is a scenario made on a real control plane.
type onStage struct {
	nodes []sim.Node
	// holders are there before, wait is what then waits.
	holders, wait func(t *testing.T, c *controlplane.ControlPlane)
	// later changes the cluster under the waiting pod.
	later func(t *testing.T, c *controlplane.ControlPlane)
	// apply approves the best fix and wants the pod to run.
	apply bool
}

const a100 = "A100-40GB"

func all1g(name string) sim.Node {
	return sim.Node{Name: name, Model: a100, Config: "all-1g.5gb", Layouts: [][]sim.Placed{sim.All(a100, "1g.5gb")}}
}

func template(profile string, labels map[string]string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{
		Name: "main", Image: "registry.example/x", Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceName("nvidia.com/mig-" + profile): resource.MustParse("1")}}}}}}
}

func deploy(name, profile string, replicas int32) func(*testing.T, *controlplane.ControlPlane) {
	return func(t *testing.T, c *controlplane.ControlPlane) {
		labels := map[string]string{"app": name}
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: appsv1.DeploymentSpec{Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template(profile, labels)}}
		if _, err := c.Client().AppsV1().Deployments("default").Create(t.Context(), d, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

func barePods(name, profile string, n int) func(*testing.T, *controlplane.ControlPlane) {
	return func(t *testing.T, c *controlplane.ControlPlane) {
		for i := range n {
			tpl := template(profile, nil)
			p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name + "-" + string(rune('a'+i))}, Spec: tpl.Spec}
			p.Spec.NodeSelector = map[string]string{"kubernetes.io/hostname": fmt.Sprintf("gpu-%d", 1+i%2)}
			if _, err := c.Client().CoreV1().Pods("default").Create(t.Context(), p, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// job is made, and the scheduler has refused its pod.
func job(profile, cpu string) func(*testing.T, *controlplane.ControlPlane) {
	return func(t *testing.T, c *controlplane.ControlPlane) {
		j := madeJob(t, c, profile, cpu)
		controlplane.Eventually(t, time.Minute, "the scheduler has refused the pod of the Job", func() (bool, string) {
			pods, err := c.Client().CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{LabelSelector: batchv1.JobNameLabel + "=" + j.Name})
			must(t, err)
			return slices.ContainsFunc(pods.Items, func(p corev1.Pod) bool {
				return slices.ContainsFunc(p.Status.Conditions, func(k corev1.PodCondition) bool { return k.Reason == corev1.PodReasonUnschedulable })
			}), fmt.Sprintf("%d pods", len(pods.Items))
		})
	}
}

// madeJob asks for one instance, and for CPU where that is given.
func madeJob(t *testing.T, c *controlplane.ControlPlane, profile, cpu string) *batchv1.Job {
	t.Helper()
	tpl := template(profile, nil)
	tpl.Spec.RestartPolicy = corev1.RestartPolicyNever
	if cpu != "" {
		tpl.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
	}
	j, err := c.Client().BatchV1().Jobs("default").Create(t.Context(), &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "training"}, Spec: batchv1.JobSpec{Template: tpl}}, metav1.CreateOptions{})
	must(t, err)
	return j
}

// newCause gives the node the profile and, at the same time, a taint: the cause
// changes while the event still tells of the old one.
func newCause(t *testing.T, c *controlplane.ControlPlane) {
	nodes := c.Client().CoreV1().Nodes()
	controlplane.Eventually(t, 20*time.Second, "the scheduler has told of the first cause", func() (bool, string) {
		events, err := c.Client().CoreV1().Events("default").List(t.Context(), metav1.ListOptions{FieldSelector: "reason=FailedScheduling"})
		return err == nil && len(events.Items) > 0 && strings.Contains(events.Items[0].Message, "Insufficient"), "no event"
	})
	controlplane.Eventually(t, 10*time.Second, "the node is changed", func() (bool, string) {
		n, err := nodes.Get(t.Context(), "gpu-1", metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "team", Value: "vision", Effect: corev1.TaintEffectNoSchedule})
		if n, err = nodes.Update(t.Context(), n, metav1.UpdateOptions{}); err != nil {
			return false, err.Error()
		}
		n.Status.Allocatable["nvidia.com/mig-2g.10gb"] = resource.MustParse("1")
		n.Status.Capacity["nvidia.com/mig-2g.10gb"] = resource.MustParse("1")
		_, err = nodes.UpdateStatus(t.Context(), n, metav1.UpdateOptions{})
		return err == nil, "status not written"
	})
}

func liveScenarios() map[string]onStage {
	reserved := []corev1.Taint{{Key: "gpu", Value: "reserved", Effect: corev1.TaintEffectNoSchedule}}
	tiny := all1g("gpu-1")
	tiny.Taints, tiny.CPU = reserved, "2"
	return map[string]onStage{
		"all-1g":      {nodes: []sim.Node{all1g("gpu-1"), all1g("gpu-2")}, holders: deploy("inference", "1g.5gb", 6), wait: job("2g.10gb", ""), apply: true},
		"all-1g-bare": {nodes: []sim.Node{all1g("gpu-1"), all1g("gpu-2")}, holders: barePods("inference", "1g.5gb", 6), wait: job("2g.10gb", "")},
		"1-0-5": {nodes: []sim.Node{{Name: "gpu-1", Model: a100, Config: "custom", Layouts: [][]sim.Placed{{{Profile: "1g.5gb", Start: 0}, {Profile: "1g.5gb", Start: 1}, {Profile: "1g.5gb", Start: 5}}}}},
			holders: deploy("inference", "1g.5gb", 3), wait: job("3g.20gb", ""), apply: true},
		"hidden-second-blocker": {nodes: []sim.Node{tiny}, wait: job("1g.5gb", "4"), apply: true},
		"stale-event":           {nodes: []sim.Node{all1g("gpu-1")}, wait: job("2g.10gb", ""), later: newCause, apply: true},
		"unknown-profile":       {nodes: []sim.Node{all1g("gpu-1")}, wait: job("9g.90gb", "")},
	}
}

func TestScenariosLive(t *testing.T) {
	needsControlPlane(t)
	for name, l := range liveScenarios() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l.play(t, name)
		})
	}
}

func (l onStage) play(t *testing.T, name string) {
	c := start(t, controlplane.Extras{})
	ctx, cancel := context.WithCancel(t.Context())
	stack := sim.New(c.Client(), c.Dynamic(), sim.Options{Now: time.Now, Logger: slog.New(slog.DiscardHandler), Apply: 500 * time.Millisecond})
	ended := make(chan error, 1)
	go func() { ended <- stack.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	for _, n := range l.nodes {
		c.AddNode(t, n)
	}
	c.WaitForServiceAccount(t, "default")
	if l.holders != nil {
		l.holders(t, c)
		waitHolders(t, c)
	}
	l.wait(t, c)
	waitRefused(t, c, "")
	if l.later != nil {
		l.later(t, c)
		waitRefused(t, c, "untolerated taint")
	}
	if *update {
		record(t, c, name)
	}
	w := readWant(t, name)
	d := why(t, "-A", "--kubeconfig", c.Kubeconfig())
	w.check(t, d)
	if l.apply {
		approveAndRun(t, c, w, d.Incident)
	}
}

// waitHolders waits until every pod runs and its node's report names it.
func waitHolders(t *testing.T, c *controlplane.ControlPlane) {
	t.Helper()
	controlplane.Eventually(t, 30*time.Second, "the holders run", func() (bool, string) {
		st, err := live.Read(t.Context(), c.Client(), c.Dynamic(), time.Now)
		if err != nil {
			return false, err.Error()
		}
		for _, p := range st.Pods {
			if p.Status.Phase != corev1.PodRunning {
				return false, p.Name + " is " + string(p.Status.Phase)
			}
		}
		for _, n := range st.Nodes {
			if known, why := st.HoldersKnown(n.Name); !known {
				return false, why
			}
		}
		return len(st.Pods) > 0, "no pods"
	})
}

// waitRefused waits for the scheduler's word about the waiting pod.
func waitRefused(t *testing.T, c *controlplane.ControlPlane, text string) {
	t.Helper()
	controlplane.Eventually(t, 60*time.Second, "the scheduler refuses the pod", func() (bool, string) {
		pods, err := c.Client().CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return false, err.Error()
		}
		for _, p := range pods.Items {
			for _, cond := range p.Status.Conditions {
				if cond.Type == corev1.PodScheduled && cond.Status == corev1.ConditionFalse && strings.Contains(cond.Message, text) {
					return true, ""
				}
			}
		}
		return false, "no such condition yet"
	})
}

func record(t *testing.T, c *controlplane.ControlPlane, name string) {
	t.Helper()
	var out, errs bytes.Buffer
	if code := program.Run(t.Context(), []string{"unpend", "dump", "-A", "--kubeconfig", c.Kubeconfig()}, program.Stdio{In: strings.NewReader(""), Out: &out, Err: &errs}); code != 0 {
		t.Fatal(errs.String())
	}
	dir := filepath.Join(scenarios, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "cluster.yaml"), out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// approveAndRun applies the best fix and holds the API server's own audit log to
// what was promised.
func approveAndRun(t *testing.T, c *controlplane.ControlPlane, w want, incident string) {
	t.Helper()
	d := why(t, "-A", "--kubeconfig", c.Kubeconfig())
	code, _, tried := call(t, "approve", incident+"#1", "--dry-run", "--kubeconfig", c.Kubeconfig())
	if code != 0 {
		t.Fatalf("a dry run: exit %d: %s", code, tried)
	}
	dry := len(c.AuditEvents(t)) // an eviction says in its body alone that it is dry
	code, out, errs := call(t, "approve", incident+"#1", "--yes", "--kubeconfig", c.Kubeconfig())
	if code != 0 || !strings.Contains(out, "runs (") {
		t.Fatalf("exit %d: %s%s", code, out, errs)
	}
	for _, line := range []string{"Ctrl-C: no further step is begun, and what was begun is taken back before this ends.", " wait until the pod runs  0s of at most 5m"} {
		if !strings.Contains(errs, line) {
			t.Errorf("it does not say %q:\n%s", line, errs)
		}
	}
	consentedTo(t, d, errs)
	if promised, is := stepsOf(errs, ""), stepsOf(errs, "[x] "); !slices.Equal(promised, is) || !slices.Equal(promised, stepsOf(tried, "[x] ")) || len(is) == 0 {
		t.Errorf("announced %q, carried out %q, tried %q", promised, is, stepsOf(tried, "[x] "))
	}
	nodes, err := c.Client().CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range nodes.Items {
		if n.Spec.Unschedulable || n.Annotations[diagnosis.OperationAnnotation] != "" {
			t.Errorf("node %s was left cordoned or marked: %v", n.Name, n.Annotations)
		}
	}
	evictions := 0
	for _, e := range c.AuditEvents(t)[dry:] {
		if e.ObjectRef.Subresource == "eviction" && e.ResponseStatus.Code == 201 {
			evictions++
		}
		if e.Verb == "delete" && e.ObjectRef.Resource == "pods" && strings.HasPrefix(e.UserAgent, filepath.Base(os.Args[0])+"/") {
			t.Errorf("a pod was deleted: %+v", e)
		}
	}
	if evictions != *w.Fix.Evictions {
		t.Errorf("%d evictions in the audit log, %d were announced", evictions, *w.Fix.Evictions)
	}
	if code, _, errs := call(t, "approve", incident+"#1", "--yes", "--kubeconfig", c.Kubeconfig()); code != exitStale {
		t.Errorf("a second approval: exit %d, want %d: %s", code, exitStale, errs)
	}
}

// consentedTo holds the screen before the question to the fix: where it is carried out, who
// is stopped, what guard-rails say and the plan.
func consentedTo(t *testing.T, d diagnosis.Diagnosis, screen string) {
	t.Helper()
	f := d.Fixes[0]
	want := []string{"cluster   context ", "server https://", "incident  " + d.Incident + "  ", "plan      " + f.Plan + "\n", "rails     nothing stops it: no executor leads"}
	for _, p := range f.Cost.Evictions {
		want = append(want, "\n  "+p.Namespace+"/"+p.Name+"\n    evicted, on ")
	}
	if len(f.Cost.Evictions)+len(f.Cost.Restarts) == 0 {
		want = append(want, "stops     nobody\n")
	}
	for _, w := range want {
		if !strings.Contains(screen, w) {
			t.Errorf("what was consented to does not say %q:\n%s", w, screen)
		}
	}
	if strings.Contains(screen, "FIXES") {
		t.Errorf("the diagnosis is told again:\n%s", screen)
	}
}

var stepLine = regexp.MustCompile(`^(\d+/\d+ .*?)(  [0-9.]+m?s.*)?$`)

// stepsOf are the lines that name steps, behind a mark; those of the announcement have none.
func stepsOf(text, mark string) []string {
	var out []string
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimSpace(strings.TrimPrefix(line, "steps"))
		if !strings.HasPrefix(line, mark) {
			continue
		}
		if m := stepLine.FindStringSubmatch(strings.TrimPrefix(line, mark)); m != nil {
			out = append(out, m[1])
		}
	}
	return out
}
