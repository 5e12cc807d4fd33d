package executor

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca"
	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/cluster/live"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/act"
	"github.com/unpend/unpend/remediate/journal"
	"github.com/unpend/unpend/remediate/pace"
	"github.com/unpend/unpend/remediate/plan"
	"github.com/unpend/unpend/remediate/v1alpha1"
	"github.com/unpend/unpend/testdata/controlplane"
	"github.com/unpend/unpend/watcher/incident"
)

var shared controlplane.Shared

func TestMain(m *testing.M) { os.Exit(shared.Run(m)) }

const a100 = "A100-40GB"

// cell is one case's part of the control plane: a namespace, nodes of its own, and
// an executor that the audit log knows by its user agent.
type cell struct {
	*controlplane.ControlPlane
	ns    string
	agent string
	stack *sim.Stack
	deps  Deps
	steps []journal.Progress
	// on is called at the beginning of the steps whose text begins with a key.
	on    map[string]func()
	crash *crash
	// actAs is the executor's; nil: it writes all as itself.
	actAs func(user string, groups []string) (kubernetes.Interface, error)
}

func newCell(t *testing.T) *cell {
	t.Helper()
	return newCellOn(t, shared.Get(t))
}

func newCellOn(t *testing.T, cp *controlplane.ControlPlane) *cell {
	t.Helper()
	c := &cell{ControlPlane: cp, ns: cp.Namespace(t), on: map[string]func(){}}
	c.agent = "executor-" + c.ns
	config := cp.Config()
	config.UserAgent = c.agent
	c.crash = &crash{sent: map[string]bool{}, asked: map[string]int{}}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return roundTripper{c.crash, next} })
	c.deps = Deps{Client: kubernetes.NewForConfigOrDie(config), Dynamic: dynamic.NewForConfigOrDie(config), Now: time.Now, Logger: slog.New(slog.DiscardHandler),
		Poll: 50 * time.Millisecond, Deadlines: pace.Deadlines{Evict: 30 * time.Second, Leave: 30 * time.Second, Manager: 20 * time.Second, Wedge: 15 * time.Second, Run: 40 * time.Second}}
	t.Cleanup(func() { c.forget(t) })
	ctx, cancel := context.WithCancel(t.Context())
	c.stack = sim.New(cp.Client(), cp.Dynamic(), sim.Options{Now: time.Now, Logger: slog.New(slog.DiscardHandler), Apply: 300 * time.Millisecond,
		Namespace: c.ns, ConfigMap: c.name(1) + "-mig-config"})
	ended := make(chan error, 1)
	go func() { ended <- c.stack.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return c
}

// name makes a node's name: no other case has it.
func (c *cell) name(n int) string { return fmt.Sprintf("%s-gpu%d", c.ns, n) }

// gpuNode adds a node in seven 1g instances.
func (c *cell) gpuNode(t *testing.T, n int, edit ...func(*sim.Node)) string {
	t.Helper()
	node := sim.Node{Name: c.name(n), Model: a100, Config: "all-1g.5gb", Layouts: [][]sim.Placed{sim.All(a100, "1g.5gb")}}
	for _, e := range edit {
		e(&node)
	}
	c.AddNode(t, node)
	return node.Name
}

// spec is of a pod that asks for one of a profile (none when it is empty) and CPUs.
func spec(profile, cpu string) corev1.PodSpec {
	limits := corev1.ResourceList{}
	if profile != "" {
		limits[corev1.ResourceName("nvidia.com/mig-"+profile)] = resource.MustParse("1")
	}
	if cpu != "" {
		limits[corev1.ResourceCPU] = resource.MustParse(cpu)
	}
	return corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "registry.example/x", Resources: corev1.ResourceRequirements{Limits: limits}}}}
}

func on(node string, s corev1.PodSpec) corev1.PodSpec {
	s.NodeSelector = map[string]string{"kubernetes.io/hostname": node}
	return s
}

func (c *cell) deployment(t *testing.T, name string, replicas int32, s corev1.PodSpec) {
	t.Helper()
	labels := map[string]string{"app": name}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: appsv1.DeploymentSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: s}}}
	if _, err := c.Client().AppsV1().Deployments(c.ns).Create(t.Context(), d, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (c *cell) job(t *testing.T, s corev1.PodSpec) {
	t.Helper()
	s.RestartPolicy = corev1.RestartPolicyNever
	j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "training"}, Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: s}}}
	if _, err := c.Client().BatchV1().Jobs(c.ns).Create(t.Context(), j, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (c *cell) pod(t *testing.T, name string, s corev1.PodSpec) *corev1.Pod {
	t.Helper()
	p, err := c.Client().CoreV1().Pods(c.ns).Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": name}}, Spec: s}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (c *cell) pods(t *testing.T) []corev1.Pod {
	t.Helper()
	list, err := c.Client().CoreV1().Pods(c.ns).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// running waits until so many pods of an app run.
func (c *cell) running(t *testing.T, app string, n int) []corev1.Pod {
	t.Helper()
	var out []corev1.Pod
	controlplane.Eventually(t, 30*time.Second, fmt.Sprintf("%d pods of %s run", n, app), func() (bool, string) {
		out = slices.DeleteFunc(c.pods(t), func(p corev1.Pod) bool {
			return p.Labels["app"] != app || p.Status.Phase != corev1.PodRunning || p.DeletionTimestamp != nil
		})
		return len(out) == n, fmt.Sprint(len(out), " run")
	})
	return out
}

func (c *cell) node(t *testing.T, name string) *corev1.Node {
	t.Helper()
	n, err := c.Client().CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// editNode changes a node as somebody else would.
func (c *cell) editNode(t *testing.T, name string, edit func(*corev1.Node)) {
	t.Helper()
	controlplane.Eventually(t, 10*time.Second, "node "+name+" is changed", func() (bool, string) {
		n := c.node(t, name)
		edit(n)
		_, err := c.Client().CoreV1().Nodes().Update(t.Context(), n, metav1.UpdateOptions{})
		return err == nil, fmt.Sprint(err)
	})
}

func (c *cell) state(t *testing.T) *cluster.State {
	t.Helper()
	st, err := live.Read(t.Context(), c.Client(), c.Dynamic(), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// finds waits for a proved fix of exactly these kinds.
func (c *cell) finds(t *testing.T, kinds ...diagnosis.FixKind) (diagnosis.Diagnosis, diagnosis.Fix) {
	t.Helper()
	return c.offers(t, diagnosis.Schedules, kinds...)
}

// offers waits for a fix of exactly these kinds that was judged so.
func (c *cell) offers(t *testing.T, verdict diagnosis.Verdict, kinds ...diagnosis.FixKind) (diagnosis.Diagnosis, diagnosis.Fix) {
	t.Helper()
	var d diagnosis.Diagnosis
	var fix diagnosis.Fix
	controlplane.Eventually(t, 30*time.Second, fmt.Sprintf("a fix %v", kinds), func() (bool, string) {
		if slices.ContainsFunc(c.pods(t), func(p corev1.Pod) bool { return p.Spec.NodeName == "" && len(p.Status.Conditions) == 0 }) {
			return false, "a pod that the scheduler has not looked at"
		}
		found, err := rca.Diagnose(t.Context(), c.state(t), rca.Options{Only: func(i incident.Incident) bool { return i.Workload.Namespace == c.ns }})
		if err != nil {
			t.Fatal(err)
		}
		if len(found) != 1 {
			return false, fmt.Sprint(len(found), " findings")
		}
		var seen []string
		for _, f := range found[0].Fixes {
			if slices.Equal(f.Kinds, kinds) && f.Proof.Verdict == verdict {
				d, fix = found[0], f
				return true, ""
			}
			seen = append(seen, fmt.Sprintf("%v %s (%s)", f.Kinds, f.Proof.Verdict, f.Title))
		}
		return false, fmt.Sprintf("%v %v", found[0].Causes, seen)
	})
	return d, fix
}

func (c *cell) apply(t *testing.T, d diagnosis.Diagnosis, f diagnosis.Fix) (Outcome, error) {
	t.Helper()
	c.steps = nil
	out, err := Apply(t.Context(), c.deps, d.Incident, f.ID, f.Plan, func(s journal.Progress) {
		c.steps = append(c.steps, s)
		if !s.Done {
			c.begins(s.Text)
		}
	})
	t.Logf("%d evicted, pod %q, %v", out.Evicted, out.Pod, err)
	for _, s := range c.steps {
		if s.N > s.Of {
			t.Errorf("step %d of %d: %s", s.N, s.Of, s.Text)
		}
	}
	return out, err
}

// begins does what is to happen at the beginning of a step.
func (c *cell) begins(step string) {
	for text, do := range c.on {
		if strings.HasPrefix(step, text) {
			delete(c.on, text)
			do()
		}
	}
}

// alone is a plan that is carried out without an executor.
type alone struct {
	*journal.Machine
	rem *v1alpha1.Remediation
}

// machine is made for one action alone, changed as the case wants it.
func (c *cell) machine(t *testing.T, d diagnosis.Diagnosis, f diagnosis.Fix, a diagnosis.Action) alone {
	t.Helper()
	f.Actions = []diagnosis.Action{a}
	st := c.state(t)
	deps := c.deps.withDefaults()
	rem := plan.Propose(plan.Found{State: st, Diagnosis: d, Fix: f}, "", time.Now())
	rem.UID = "this"
	act.Begin(rem, st, f, time.Now())
	m, err := journal.New(deps.journaling(), rem, act.New(deps.acting(), rem))
	if err != nil {
		t.Fatal(err)
	}
	return alone{m, rem}
}

// object is what the API has of one of our kinds.
func object(t testing.TB, o any) *unstructured.Unstructured {
	t.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	var u unstructured.Unstructured
	if err := u.UnmarshalJSON(text); err != nil {
		t.Fatal(err)
	}
	return &u
}

// write is one write of the executor in the API server's audit log.
type write struct {
	verb, resource, name string
	code                 int
}

// writes are what the executor wrote of others' objects, dry runs left out (an eviction or a deletion
// says in its body that it is one, which the log has not).
func (c *cell) writes(t *testing.T) []write {
	t.Helper()
	var out []write
	for _, e := range c.AuditEvents(t) {
		if e.UserAgent != c.agent || strings.Contains(e.RequestURI, "dryRun=All") || !slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, e.Verb) {
			continue
		}
		resource := e.ObjectRef.Resource
		if resource == "remediations" || resource == "leases" || strings.HasSuffix(resource, "reviews") {
			continue // the journal and the locks are its own, a review is a question
		}
		if e.ObjectRef.Subresource != "" {
			resource += "/" + e.ObjectRef.Subresource
		}
		out = append(out, write{e.Verb, resource, e.ObjectRef.Name, e.ResponseStatus.Code})
	}
	return out
}

// evictions holds the audit log to what was announced: each victim evicted once,
// and nothing deleted but by an eviction, or what a fix says it makes again.
func (c *cell) evictions(t *testing.T, f diagnosis.Fix, announced int) {
	t.Helper()
	evicted := 0
	remade := slices.ContainsFunc(f.Actions, func(a diagnosis.Action) bool { return a.Verb == diagnosis.VerbRecreate })
	for _, w := range c.writes(t) {
		if w.resource == "pods/eviction" && w.code == 201 {
			evicted++
		}
		if strings.HasPrefix(w.verb, "delete") && !remade {
			t.Errorf("deleted: %+v", w)
		}
	}
	if evicted != announced {
		t.Errorf("%d evictions in the audit log, %d were announced", evicted, announced)
	}
}

// asBefore wants the node open, unmarked, and with its prior config.
func (c *cell) asBefore(t *testing.T, node string) {
	t.Helper()
	n := c.node(t, node)
	if n.Spec.Unschedulable || n.Annotations[diagnosis.OperationAnnotation] != "" || n.Labels[nodeprobe.LabelMIGConfig] != "all-1g.5gb" {
		t.Errorf("node %s: unschedulable %v, mark %q, config %s", node, n.Spec.Unschedulable, n.Annotations[diagnosis.OperationAnnotation], n.Labels[nodeprobe.LabelMIGConfig])
	}
}
