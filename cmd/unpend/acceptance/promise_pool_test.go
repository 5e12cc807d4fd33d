package acceptance

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca"
	"github.com/unpend/unpend/rca/cluster/live"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/guard"
	"github.com/unpend/unpend/remediate/plan"
	"github.com/unpend/unpend/remediate/v1alpha1"
	"github.com/unpend/unpend/testdata/controlplane"
	"github.com/unpend/unpend/watcher/incident"
)

// pool is a lane with many GPU nodes: of each, a Job that may run nowhere else waits
// for another layout. The namespace is the executor's too. All goes with the lane.
type pool struct {
	*lane
	ns    string
	nodes []string
	ahead time.Duration // how much later than usual the plans expire
}

func newPool(t *testing.T, nodes int) *pool {
	t.Helper()
	l := newLane(t)
	p := &pool{lane: l, ns: l.Namespace(t)}
	l.install(t, p.ns, approver, requester)
	for i := range nodes {
		p.add(t, all1g(fmt.Sprintf("gpu-%02d", i+1)).Object(time.Now()))
	}
	p.open(t)
	return p
}

// add makes a node as sim.Node makes it, with its status and its report.
func (p *pool) add(t *testing.T, n *corev1.Node) {
	t.Helper()
	nodes := p.Client().CoreV1().Nodes()
	_, err := nodes.Create(t.Context(), n, metav1.CreateOptions{})
	must(t, err)
	p.status(t, n.Name, func(made *corev1.Node) { made.Status = n.Status })
	geo, err := sim.Unstructured(all1g(n.Name).Geometry(time.Now()))
	must(t, err)
	_, err = p.Dynamic().Resource(nodeprobe.Resource).Create(t.Context(), geo, metav1.CreateOptions{})
	must(t, err)
	p.nodes = append(p.nodes, n.Name)
}

// status changes a node's status, no matter who else writes to the node.
func (p *pool) status(t *testing.T, node string, change func(*corev1.Node)) {
	t.Helper()
	nodes := p.Client().CoreV1().Nodes()
	controlplane.Eventually(t, 10*time.Second, "the status of "+node, func() (bool, string) {
		n, err := nodes.Get(t.Context(), node, metav1.GetOptions{})
		if err == nil {
			change(n)
			_, err = nodes.UpdateStatus(t.Context(), n, metav1.UpdateOptions{})
		}
		return err == nil, fmt.Sprint(err)
	})
}

// open waits until admission's taint, which every new node has, is gone.
func (p *pool) open(t *testing.T) {
	t.Helper()
	controlplane.Eventually(t, 30*time.Second, "the nodes are open", func() (bool, string) {
		list, err := p.Client().CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
		must(t, err)
		for _, n := range list.Items {
			if slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeNotReady }) {
				return false, n.Name
			}
		}
		return true, ""
	})
}

func pinned(node, profile string, n int64) corev1.PodTemplateSpec {
	out := template(profile, map[string]string{"on": node})
	out.Spec.NodeSelector = map[string]string{"kubernetes.io/hostname": node}
	for name := range out.Spec.Containers[0].Resources.Limits {
		out.Spec.Containers[0].Resources.Limits[name] = *resource.NewQuantity(n, resource.DecimalSI)
	}
	return out
}

// waits makes a Job that may run on that node alone and wants so many of a profile.
func (p *pool) waits(t *testing.T, node, profile string, n int64) {
	t.Helper()
	tpl := pinned(node, profile, n)
	tpl.Spec.RestartPolicy = corev1.RestartPolicyNever
	_, err := p.Client().BatchV1().Jobs(p.ns).Create(t.Context(), &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%dx%s", node, n, profile)}, Spec: batchv1.JobSpec{Template: tpl}}, metav1.CreateOptions{})
	must(t, err)
}

// holds makes a pod hold an instance of each node, and waits until all do.
func (p *pool) holds(t *testing.T) {
	t.Helper()
	for _, node := range p.nodes {
		tpl, one := pinned(node, "1g.5gb", 1), int32(1)
		_, err := p.Client().AppsV1().Deployments(p.ns).Create(t.Context(), &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: node},
			Spec: appsv1.DeploymentSpec{Replicas: &one, Selector: &metav1.LabelSelector{MatchLabels: tpl.Labels}, Template: tpl}}, metav1.CreateOptions{})
		must(t, err)
	}
	controlplane.Eventually(t, time.Minute, "every node has a holder", func() (bool, string) {
		list, err := p.Client().CoreV1().Pods(p.ns).List(t.Context(), metav1.ListOptions{FieldSelector: "status.phase=Running"})
		must(t, err)
		return len(list.Items) == len(p.nodes), fmt.Sprint(len(list.Items), " run")
	})
}

// guards sets the guard-rails.
func (p *pool) guards(t *testing.T, limits string) { setGuards(t, p.lane, p.ns, limits) }

func setGuards(t *testing.T, l *lane, ns, limits string) {
	t.Helper()
	patch, err := json.Marshal(corev1.ConfigMap{Data: map[string]string{guard.LimitsKey: limits}})
	must(t, err)
	_, err = l.Client().CoreV1().ConfigMaps(ns).Patch(t.Context(), guard.ConfigMap, types.MergePatchType, patch, metav1.PatchOptions{})
	must(t, err)
}

// plans waits for a proved repartition of each of the nodes, and records them.
func (p *pool) plans(t *testing.T, nodes ...string) map[string]*v1alpha1.Remediation {
	t.Helper()
	out := map[string]*v1alpha1.Remediation{}
	controlplane.Eventually(t, 2*time.Minute, "a plan for each node is found", func() (bool, string) {
		if refused := p.refused(t); slices.ContainsFunc(nodes, func(n string) bool { return !refused[n] }) {
			return false, fmt.Sprintf("the scheduler has refused who waits for %d nodes", len(refused))
		}
		st, err := live.Read(t.Context(), p.Client(), p.Dynamic(), time.Now)
		must(t, err)
		found, err := rca.Diagnose(t.Context(), st, rca.Options{Only: func(i incident.Incident) bool {
			return i.Workload.Kind == "Job" && slices.ContainsFunc(nodes, func(n string) bool { return out[n] == nil && strings.HasPrefix(i.Workload.Name, n+"-") })
		}})
		must(t, err)
		for _, d := range found {
			for _, f := range d.Fixes {
				if slices.Equal(f.Kinds, []diagnosis.FixKind{diagnosis.RepartitionGPU}) && f.Proof.Verdict == diagnosis.Schedules {
					out[f.Proof.Node], err = p.recorder.Record(t.Context(), plan.Propose(plan.Found{State: st, Diagnosis: d, Fix: f}, requester, time.Now().Add(p.ahead)))
					must(t, err)
					break
				}
			}
		}
		return len(out) == len(nodes), fmt.Sprintf("%d plans, %d findings", len(out), len(found))
	})
	return out
}

// refused are the nodes whose Jobs the scheduler has said no to: of others there is no plan yet.
func (p *pool) refused(t *testing.T) map[string]bool {
	t.Helper()
	list, err := p.Client().CoreV1().Pods(p.ns).List(t.Context(), metav1.ListOptions{LabelSelector: batchv1.JobNameLabel})
	must(t, err)
	out := map[string]bool{}
	for _, pod := range list.Items {
		if slices.ContainsFunc(pod.Status.Conditions, func(k corev1.PodCondition) bool { return k.Reason == corev1.PodReasonUnschedulable }) {
			out[pod.Spec.NodeSelector[corev1.LabelHostname]] = true
		}
	}
	return out
}

func (l *lane) approve(t *testing.T, plans map[string]*v1alpha1.Remediation) {
	t.Helper()
	for _, node := range slices.Sorted(maps.Keys(plans)) {
		_, err := l.approvers.Decide(t.Context(), plan.NewApproval(plans[node], approver, nil, v1alpha1.Approve))
		must(t, err)
	}
}

// end waits until all plans have ended, and reads them.
func (l *lane) end(t *testing.T, within time.Duration, plans map[string]*v1alpha1.Remediation) {
	t.Helper()
	controlplane.Eventually(t, within, "every plan has ended", func() (bool, string) {
		var open []string
		for _, node := range slices.Sorted(maps.Keys(plans)) {
			if plans[node].Status.Phase.Ended() {
				continue
			}
			now, err := l.store().Get(t.Context(), plans[node].Name)
			if err != nil {
				return false, err.Error()
			}
			if plans[node] = now; !now.Status.Phase.Ended() {
				open = append(open, fmt.Sprintf("%s %s %s %s", node, now.Status.Phase, now.Status.Progress, now.Status.Message))
			}
		}
		return len(open) == 0, strings.Join(open, "; ")
	})
}

// phases counts plans by phase, and lists the others than the expected.
func phases(t *testing.T, plans map[string]*v1alpha1.Remediation, expected ...v1alpha1.Phase) map[v1alpha1.Phase]int {
	t.Helper()
	out := map[v1alpha1.Phase]int{}
	for node, rem := range plans {
		out[rem.Status.Phase]++
		if !slices.Contains(expected, rem.Status.Phase) {
			t.Errorf("the plan of %s: %s: %s", node, rem.Status.Phase, rem.Status.Message)
		}
	}
	return out
}

// census follows the GPU nodes by a watch. It judges after every change, so between
// any two looks too, and counts the looks of every 100 ms.
type census struct {
	mu            sync.Mutex
	nodes         map[string]*corev1.Node
	looks, events int
	now           int // nodes that are worked on
	worked, out   int // most nodes at once that are worked on: marked, and not parked; that are out of use
	broke         error
}

// census begins one; it ends with the test.
func (p *pool) census(t *testing.T) *census {
	t.Helper()
	list, err := p.Client().CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	must(t, err)
	c := &census{nodes: map[string]*corev1.Node{}}
	for i := range list.Items {
		c.nodes[list.Items[i].Name] = &list.Items[i]
	}
	ctx, cancel := context.WithCancel(t.Context())
	w, err := p.Client().CoreV1().Nodes().Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	must(t, err)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case e, ok := <-w.ResultChan():
				n, isNode := e.Object.(*corev1.Node)
				if !ok || !isNode {
					c.mu.Lock()
					c.broke = fmt.Errorf("the watch on nodes broke off: %v", e.Object)
					c.mu.Unlock()
					return
				}
				c.count(n, true)
			case <-tick.C:
				c.count(nil, false)
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		w.Stop()
		<-ended
	})
	return c
}

func (c *census) count(changed *corev1.Node, event bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if event {
		c.events++
		c.nodes[changed.Name] = changed
	} else {
		c.looks++
	}
	worked, out := 0, 0
	for _, n := range c.nodes {
		if op, err := diagnosis.OperationOn(n); err != nil || op != nil && !op.Kept() {
			worked++
		}
		ready := slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
		})
		if n.Spec.Unschedulable || !ready {
			out++
		}
	}
	c.now = worked
	c.worked, c.out = max(c.worked, worked), max(c.out, out)
}

func (c *census) busy() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now > 0
}

// seen is what came of it so far.
func (c *census) seen(t *testing.T) (looks, events, worked, out int) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	must(t, c.broke)
	return c.looks, c.events, c.worked, c.out
}

// promiseR20: plans are approved at once for all of 20 nodes, and in short of 10. At no moment
// is more than one node worked on, or more than 10 % of the pool out of use; and no plan is left.
func promiseR20(t *testing.T) {
	needsControlPlane(t)
	nodes := controlplane.Of(10, 20)
	p := newPool(t, nodes)
	p.guards(t, fmt.Sprintf("planTTL: %ds", controlplane.Of(40, 60))) // so that some are too late: all of them ends too
	p.holds(t)
	for _, node := range p.nodes {
		p.waits(t, node, "2g.10gb", 1)
	}
	plans := p.plans(t, p.nodes...)
	p.approve(t, plans)
	seen := p.census(t)
	proxy := newFaultProxy(t, p.lane, p.ns, "executor-"+p.ns)
	began := time.Now()
	startExecutor(t, "executor-0", executorConfig(t, p.ns, ""), proxy)
	p.end(t, 2*time.Minute, plans)
	took := time.Since(began)
	looks, events, worked, out := seen.seen(t)
	if worked != 1 || out > nodes/10 {
		t.Errorf("%d nodes worked on at once, %d of %d out of use", worked, out, nodes)
	}
	count := phases(t, plans, v1alpha1.Succeeded, v1alpha1.Expired)
	if count[v1alpha1.Succeeded] < 3 {
		t.Errorf("only %d succeeded", count[v1alpha1.Succeeded])
	}
	held := count[v1alpha1.Succeeded] + count[v1alpha1.Expired]
	report(t, held, nodes, fmt.Sprintf("%d done and %d expired in %.0f s; at most %d node worked on and %d of %d out of use in %d looks 100 ms apart and after each of %d changes",
		count[v1alpha1.Succeeded], count[v1alpha1.Expired], took.Seconds(), worked, out, nodes, looks, events))
}
