package acceptance

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/admission"
	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/cluster/dump"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/v1alpha1"
	"github.com/unpend/unpend/testdata/controlplane"
)

// replay makes a scenario's objects on a real API server, and lets the real
// scheduler and controllers speak: of the pods that wait only the spec is made.
// What a kubelet says (a refusal, a report) is written as the scenario has it.
type replay struct {
	c  *controlplane.ControlPlane
	st *cluster.State
	// shift moves the scenario's times to now.
	shift time.Duration
	flags []string // that why and approve need besides
}

// partedConfig is where MIG manager reads its entries, where a scenario has it.
const partedConfig = "default-mig-parted-config"

// replays is how many scenarios are live at the same time, each on a control plane of its
// own: most of their time they wait for controllers.
const replays = 2

// TestScenariosReplayed holds every eighth scenario, live, to the want.yaml that it meets
// as a dump, as a whole each. Of each kind of fix the first is applied, as a whole all are.
func TestScenariosReplayed(t *testing.T) {
	needsControlPlane(t)
	dirs, err := os.ReadDir(scenarios)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	var replayed, applied atomic.Int32
	var known sync.Map // kinds of fixes that were applied
	apply := func(f diagnosis.Fix) bool {
		_, is := known.LoadOrStore(fmt.Sprint(f.Automatic, f.Kinds, f.Proof.Verdict), true)
		return !is || controlplane.Whole()
	}
	next := make(chan string)
	for range replays {
		c := start(t, controlplane.Extras{})
		c.InstallCRDs(t, crds)
		all.Go(func() {
			for name := range next {
				t.Run(name, func(t *testing.T) {
					if replayed.Add(1); replayScenario(t, c, name, apply) {
						applied.Add(1)
					}
				})
			}
		})
	}
	var names []string // the others are made live by a test of their own, or cannot be, and say why
	for _, dir := range dirs {
		if _, recorded := liveScenarios()[dir.Name()]; !recorded && readWant(t, dir.Name()).Offline == "" {
			names = append(names, dir.Name())
		}
	}
	for _, name := range controlplane.Some(names, 8) {
		next <- name
	}
	close(next)
	all.Wait()
	t.Logf("%d scenarios replayed, %d of them applied", replayed.Load(), applied.Load())
}

// replayScenario makes a scenario live, asks why, and applies the first fix where that
// can be and is wanted; it says whether it did.
func replayScenario(t *testing.T, c *controlplane.ControlPlane, name string, apply func(diagnosis.Fix) bool) (applied bool) {
	t.Helper()
	w := readWant(t, name)
	st, err := dump.Read([]string{filepath.Join(scenarios, name)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	r := &replay{c: c, st: st, shift: time.Since(st.Now)}
	r.make(t)
	r.measured(t, name)
	w.Unread = nil // a dump lacks other kinds than a cluster
	d := whyOf(t, w.Of, append(r.flags, "-A", "--kubeconfig", c.Kubeconfig())...)
	w.check(t, d)
	// What is possible only changes with the first fresh report.
	mends := w.Fix.Verdict == diagnosis.Unproven && d.Fixes[0].Automatic // a node, and says that it schedules nobody
	restarts := w.Fix.Verdict == diagnosis.Waits && d.Fixes[0].Kind == diagnosis.RestartDevicePlugin && d.Fixes[0].Automatic
	if at := slices.IndexFunc(d.Fixes, func(f diagnosis.Fix) bool { return f.Automatic && f.Proof.Verdict == diagnosis.Schedules }); at > 0 && !mends && !restarts && w.Fix.Verdict != diagnosis.Schedules {
		d.Fixes = d.Fixes[at:] // musical chairs are as they say
	}
	if t.Failed() || w.Certainty == diagnosis.Possible || !r.applies(d) || d.Fixes[0].Proof.Verdict != diagnosis.Schedules && !mends && !restarts || !apply(d.Fixes[0]) {
		return false
	}
	switch {
	case mends:
		r.mend(t, d)
	case d.Fixes[0].Automatic:
		r.apply(t, d)
	default:
		r.byHand(t, d)
	}
	return true
}

// apply approves the first fix: what is proved to schedule has to run, with the
// evictions that were announced. The simulated device plugin and MIG manager work
// from here on.
func (r *replay) apply(t *testing.T, d diagnosis.Diagnosis) {
	t.Helper()
	if out := r.carryOut(t, d); !strings.Contains(out, "runs (") {
		t.Error(out)
	}
}

// mend approves the first fix where nobody was promised to run by it.
func (r *replay) mend(t *testing.T, d diagnosis.Diagnosis) {
	t.Helper()
	if out := r.carryOut(t, d); !strings.Contains(out, "the pod still waits (") {
		t.Error(out)
	}
	pods := r.c.Client().CoreV1().Pods(d.Workload.Namespace)
	if p, err := pods.Get(t.Context(), d.Pods.Names[0], metav1.GetOptions{}); err != nil || p.Spec.NodeName != "" {
		t.Errorf("on %q, %v", p.Spec.NodeName, err)
	}
	n, err := r.c.Client().CoreV1().Nodes().Get(t.Context(), d.Fixes[0].Cost.Nodes[0], metav1.GetOptions{})
	must(t, err)
	mark, err := diagnosis.OperationOn(n)
	must(t, err)
	if closed := d.Fixes[0].Kind == diagnosis.QuarantineGPU; n.Spec.Unschedulable != closed || (mark != nil) != closed || closed && mark.Quarantined != d.Fixes[0].Title {
		t.Errorf("unschedulable %v, mark %+v", n.Spec.Unschedulable, mark)
	}
}

// carryOut approves the first fix, with the simulated GPU software at work.
func (r *replay) carryOut(t *testing.T, d diagnosis.Diagnosis) string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	options := sim.Options{Now: time.Now, Logger: slog.New(slog.DiscardHandler), Apply: 200 * time.Millisecond}
	if slices.ContainsFunc(r.st.ConfigMaps, func(cm *corev1.ConfigMap) bool { return cm.Namespace == operatorNamespace && cm.Name == partedConfig }) {
		options.Namespace, options.ConfigMap = operatorNamespace, partedConfig
	}
	stack := sim.New(r.c.Client(), r.c.Dynamic(), options)
	for _, stuck := range d.Causes[0].Nodes {
		stack.SetFaults(stuck, sim.Faults{GiveUp: d.Causes[0].ID == diagnosis.MIGConfigStuck})
	}
	ended := make(chan error, 1)
	go func() { ended <- stack.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	before, announced := r.evictions(t)+r.preemptions(t), announced(d.Fixes[0])
	code, out, errs := call(t, append([]string{"approve", fmt.Sprintf("%s#%d", d.Incident, d.Fixes[0].ID), "--plan", d.Fixes[0].Plan, "--kubeconfig", r.c.Kubeconfig()}, r.flags...)...)
	if code != 0 {
		t.Fatalf("exit %d: %s%s", code, out, errs)
	}
	if got := r.evictions(t) + r.preemptions(t) - before; got != announced {
		t.Errorf("%d evictions and preemptions, %d were announced", got, announced)
	}
	return out
}

// evictions counts those that the API server has carried out so far.
func (r *replay) evictions(t *testing.T) int {
	t.Helper()
	n := 0
	for _, e := range r.c.AuditEvents(t) {
		if e.ObjectRef.Subresource == "eviction" && e.ResponseStatus.Code == 201 {
			n++
		}
	}
	return n
}

func (r *replay) make(t *testing.T) {
	t.Helper()
	for _, ns := range r.namespaces() {
		r.namespace(t, ns)
	}
	for _, cm := range r.st.ConfigMaps {
		cm := strip(cm.DeepCopy())
		_, err := r.c.Client().CoreV1().ConfigMaps(cm.Namespace).Create(t.Context(), cm, metav1.CreateOptions{})
		must(t, err)
	}
	r.volumes(t)
	classes := r.c.Client().SchedulingV1().PriorityClasses()
	for _, k := range r.st.PriorityClasses {
		if strings.HasPrefix(k.Name, "system-") {
			continue // every cluster has them
		}
		_, err := classes.Create(t.Context(), strip(k.DeepCopy()), metav1.CreateOptions{})
		must(t, err)
		ctx := context.WithoutCancel(t.Context())
		t.Cleanup(func() { must(t, classes.Delete(ctx, k.Name, metav1.DeleteOptions{})) })
	}
	for _, k := range r.st.RuntimeClasses {
		ctx, runtimes := context.WithoutCancel(t.Context()), r.c.Client().NodeV1().RuntimeClasses()
		_, err := runtimes.Create(ctx, strip(k.DeepCopy()), metav1.CreateOptions{})
		must(t, err)
		t.Cleanup(func() { must(t, runtimes.Delete(ctx, k.Name, metav1.DeleteOptions{})) })
	}
	for _, n := range r.st.Nodes {
		r.node(t, n)
	}
	r.devices(t)
	r.boundPods(t)
	r.daemons(t)
	for _, rs := range r.st.ReplicaSets {
		if r.runs(rs) && !r.lacking(rs) { // else its Deployment makes it, or its pod waits
			r.adopter(t, rs)
		}
	}
	r.limits(t)
	r.workloads(t)
	for _, name := range slices.Sorted(maps.Keys(r.st.Geometries)) {
		geo := *r.st.Geometries[name]
		geo.ObjectMeta = metav1.ObjectMeta{Name: geo.Name}
		geo.Report.ObservedAt = metav1.NewTime(geo.Report.ObservedAt.Add(r.shift + time.Second)) // after the binds
		r.c.AddGeometry(t, &geo)
	}
	r.budgets(t)
	r.customs(t)
	names := r.jobs(t)
	r.sets(t)
	for _, p := range r.st.Pods {
		if p.Spec.NodeName == "" && r.jobOf(p) == nil && r.setOf(p) == nil && !r.daemonsPod(p) {
			r.waitingPod(t, p)
		}
	}
	r.events(t, names)
	r.kubeletSays(t)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// strip leaves of an object's metadata what a person would write.
func strip[T metav1.Object](o T) T {
	o.SetUID("")
	o.SetResourceVersion("")
	o.SetManagedFields(nil)
	o.SetCreationTimestamp(metav1.Time{})
	o.SetOwnerReferences(nil)
	o.SetGeneration(0)
	return o
}

func (r *replay) namespaces() []string {
	seen := map[string]bool{}
	for _, p := range r.st.Pods {
		seen[p.Namespace] = true
	}
	for _, cm := range r.st.ConfigMaps {
		seen[cm.Namespace] = true
	}
	for _, p := range r.st.PDBs {
		seen[p.Namespace] = true
	}
	for _, ds := range r.st.DaemonSets {
		seen[ds.Namespace] = true // also where none of its pods is there
	}
	for _, f := range admission.Refusals(r.st) {
		seen[f.Owner.Namespace] = true
	}
	return slices.Sorted(maps.Keys(seen))
}

// namespace makes it once for all scenarios: deleting one takes long. What a
// scenario made in it goes with the scenario.
func (r *replay) namespace(t *testing.T, name string) {
	t.Helper()
	_, err := r.c.Client().CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		must(t, err)
	}
	r.c.WaitForServiceAccount(t, name)
	ctx := context.WithoutCancel(t.Context())
	t.Cleanup(func() { r.empty(ctx, t, name) })
}

func (r *replay) empty(ctx context.Context, t *testing.T, namespace string) {
	client, now := r.c.Client(), int64(0)
	all := metav1.ListOptions{}
	for _, err := range []error{
		r.retire(ctx, namespace),
		client.AppsV1().ReplicaSets(namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, all),
		client.PolicyV1().PodDisruptionBudgets(namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, all),
		client.CoreV1().ConfigMaps(namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{FieldSelector: "metadata.name!=kube-root-ca.crt"}),
		client.CoreV1().Pods(namespace).DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: &now}, all),
		// The next scenario has nodes of the same names, and nothing was done to them before.
		r.c.Dynamic().Resource(v1alpha1.Remediations).DeleteCollection(ctx, metav1.DeleteOptions{}, all),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	for range 200 {
		pods, err := client.CoreV1().Pods(namespace).List(ctx, all)
		if err == nil && len(pods.Items) == 0 {
			if err := r.unclaimed(ctx, namespace); err != nil {
				t.Error(err)
			}
			return
		}
		<-time.After(50 * time.Millisecond)
	}
	t.Errorf("namespace %s does not become empty", namespace)
}

func (r *replay) node(t *testing.T, from *corev1.Node) {
	t.Helper()
	n := strip(from.DeepCopy())
	if n.Annotations == nil {
		n.Annotations = map[string]string{}
	}
	if r.simulated(n.Name) {
		n.Annotations["kwok.x-k8s.io/node"] = "fake"
	} else {
		delete(n.Annotations, "kwok.x-k8s.io/node")
	}
	n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeUnschedulable }) // the node controller's
	r.c.AddNodeObject(t, n)
	r.wrote(t, from)
}

// boundPod is there with its node: the scheduler chose before the story begins. It has
// worked for as long as in the scenario, and where that does not say, as long as all.
func (r *replay) boundPod(t *testing.T, from *corev1.Pod) {
	t.Helper()
	p := strip(from.DeepCopy())
	status := p.Status
	p.Status = corev1.PodStatus{}
	r.account(t, p)
	pods := r.c.Client().CoreV1().Pods(p.Namespace)
	if stuck(from) {
		doesNotRun(p)
		made, err := pods.Create(t.Context(), p, metav1.CreateOptions{})
		must(t, err)
		made.Status = r.now(t, status)
		_, err = pods.UpdateStatus(t.Context(), made, metav1.UpdateOptions{})
		must(t, err)
		return
	}
	made, err := pods.Create(t.Context(), p, metav1.CreateOptions{})
	must(t, err)
	controlplane.Eventually(t, 20*time.Second, p.Name+" is "+string(status.Phase), func() (bool, string) {
		if made, err = pods.Get(t.Context(), p.Name, metav1.GetOptions{}); err != nil {
			return false, err.Error()
		}
		if made.Status.Phase == status.Phase && made.Status.Reason == status.Reason {
			began := metav1.NewTime(cmp.Or(status.StartTime, &metav1.Time{Time: r.st.Now}).Add(r.shift))
			made.Status.StartTime = &began
			made.Status.Conditions = slices.DeleteFunc(made.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodScheduled })
			for _, c := range status.Conditions {
				if c.Type == corev1.PodScheduled { // what the scheduler says when it binds a pod
					made.Status.Conditions = append(made.Status.Conditions, c)
				}
			}
			made, err = pods.UpdateStatus(t.Context(), made, metav1.UpdateOptions{})
			return err == nil, fmt.Sprint(err)
		}
		if status.Phase == corev1.PodFailed {
			made.Status = status
			_, err = pods.UpdateStatus(t.Context(), made, metav1.UpdateOptions{})
			return false, fmt.Sprint(err)
		}
		return false, string(made.Status.Phase)
	})
}

// adopter is made after its pods, which it takes over by their labels.
func (r *replay) adopter(t *testing.T, from *appsv1.ReplicaSet) {
	t.Helper()
	rs := strip(from.DeepCopy())
	_, err := r.c.Client().AppsV1().ReplicaSets(rs.Namespace).Create(t.Context(), rs, metav1.CreateOptions{})
	must(t, err)
	controlplane.Eventually(t, 20*time.Second, "replicaset "+rs.Name+" has adopted its pods", func() (bool, string) {
		got, err := r.c.Client().AppsV1().ReplicaSets(rs.Namespace).Get(t.Context(), rs.Name, metav1.GetOptions{})
		return err == nil && got.Status.ObservedGeneration == got.Generation && got.Status.Replicas == *rs.Spec.Replicas, fmt.Sprint(err)
	})
}

// waitingPod is made without a status; where the scenario has the scheduler's
// word, the real one is waited for.
func (r *replay) waitingPod(t *testing.T, from *corev1.Pod) {
	t.Helper()
	p := strip(from.DeepCopy())
	p.Status = corev1.PodStatus{}
	r.account(t, p)
	_, err := r.c.Client().CoreV1().Pods(p.Namespace).Create(t.Context(), p, metav1.CreateOptions{})
	must(t, err)
	r.said(t, from, p.Name)
}
