package acceptance

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca"
	"github.com/unpend/unpend/rca/cluster/live"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/act"
	"github.com/unpend/unpend/remediate/executor"
	"github.com/unpend/unpend/remediate/plan"
	"github.com/unpend/unpend/remediate/v1alpha1"
	"github.com/unpend/unpend/testdata/chart"
	"github.com/unpend/unpend/testdata/controlplane"
	"github.com/unpend/unpend/watcher/incident"
)

// lane is a control plane on which one case is played after the other: an executor
// carries out every plan of a cluster, and its guard-rails look at all nodes.
type lane struct {
	*controlplane.ControlPlane
	stack *sim.Stack
	// The plans, as those write them who record and approve them.
	recorder, approvers plan.Store
	own                 bool         // layouts of the team's own
	groups              []any        // that may approve, beside the users
	kinds               chart.Values // of fixes, beside evictions
	heard               bool         // people decide in Slack
}

const (
	approver  = "alice"
	requester = "somebody"
)

// newLane starts one, with simulated MIG managers and a person who may approve.
func newLane(t *testing.T) *lane {
	t.Helper()
	return laneOn(t, start(t, controlplane.Extras{}), sim.Options{Now: time.Now, Logger: slog.New(slog.DiscardHandler), Apply: 300 * time.Millisecond})
}

func laneOn(t *testing.T, cp *controlplane.ControlPlane, options sim.Options) *lane {
	t.Helper()
	l := &lane{ControlPlane: cp, kinds: chart.Values{"nominate": true}}
	l.recorder, l.approvers = l.storeAs(t, requester), l.storeAs(t, approver)
	l.stack = sim.New(l.Client(), l.Dynamic(), options)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- l.stack.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "approver"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{act.Repartition}},
		{APIGroups: []string{""}, Resources: []string{"pods/eviction"}, Verbs: []string{"create"}}}}
	_, err := l.Client().RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{})
	must(t, err)
	_, err = l.Client().RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "approver"},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "approver"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: approver}}}, metav1.CreateOptions{})
	must(t, err)
	return l
}

func (l *lane) store() plan.Store { return plan.Store{Dynamic: l.Dynamic()} }

// onLanes plays cases on a few lanes at once, each on whichever is free. A lane takes seconds of
// a processor to start: there is one for every two cases at most.
func onLanes[C any](t *testing.T, lanes int, cases []C, play func(*testing.T, *lane, C)) {
	work := make(chan C, len(cases))
	for _, c := range cases {
		work <- c
	}
	close(work)
	var running sync.WaitGroup
	for n := range min(lanes, (len(cases)+1)/2) {
		running.Go(func() {
			t.Run(fmt.Sprintf("lane %d", n), func(t *testing.T) {
				l := newLane(t)
				for c := range work {
					play(t, l, c)
				}
			})
		})
	}
	running.Wait()
}

// cell is one case's part of a lane: a namespace, and a node on which three pods hold
// one GPU, so that a Job waits for another layout.
type cell struct {
	*lane
	ns, node string
	rem      *v1alpha1.Remediation
}

const (
	migConfig = nodeprobe.LabelMIGConfig
	migState  = nodeprobe.LabelMIGConfigState
)

// newCell makes one whose namespace is the executor's too.
func (l *lane) newCell(t *testing.T) *cell {
	t.Helper()
	ns := l.Namespace(t)
	l.install(t, ns, approver, requester)
	return l.cellFor(t, ns, ns)
}

// cellFor makes one, up to the recorded plan of the repartition.
func (l *lane) cellFor(t *testing.T, exec, ns string) *cell {
	t.Helper()
	c := &cell{lane: l, ns: ns, node: ns + "-gpu"}
	l.AddNode(t, all1g(c.node))
	labels, replicas := map[string]string{"app": "inference"}, int32(3)
	holders := template("1g.5gb", labels)
	holders.Spec.NodeSelector = map[string]string{"kubernetes.io/hostname": c.node}
	_, err := l.Client().AppsV1().Deployments(c.ns).Create(t.Context(), &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "inference"},
		Spec: appsv1.DeploymentSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: holders}}, metav1.CreateOptions{})
	must(t, err)
	c.running(t)
	waits := template("2g.10gb", map[string]string{"app": "training"})
	waits.Spec.RestartPolicy, waits.Spec.NodeSelector = corev1.RestartPolicyNever, holders.Spec.NodeSelector
	_, err = l.Client().BatchV1().Jobs(c.ns).Create(t.Context(), &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "training"}, Spec: batchv1.JobSpec{Template: waits}}, metav1.CreateOptions{})
	must(t, err)
	c.record(t, diagnosis.RepartitionGPU)
	executors := storeOf(t, l.asExecutor(t, exec)) // nobody else may
	t.Cleanup(func() {                             // guard-rails look back at plans
		if err := executors.Forget(context.WithoutCancel(t.Context()), c.rem); err != nil {
			t.Error(err)
		}
	})
	return c
}

func (c *cell) pods(t *testing.T) []corev1.Pod {
	t.Helper()
	list, err := c.Client().CoreV1().Pods(c.ns).List(t.Context(), metav1.ListOptions{})
	must(t, err)
	return list.Items
}

// running waits until all three holders run.
func (c *cell) running(t *testing.T) {
	t.Helper()
	controlplane.Eventually(t, time.Minute, "all holders run", func() (bool, string) {
		run := 0
		for _, p := range c.pods(t) {
			if p.Labels["app"] == "inference" && p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil {
				run++
			}
		}
		return run == 3, fmt.Sprint(run, " run")
	})
}

// record waits for a proved fix of that kind alone, and records its plan.
func (c *cell) record(t *testing.T, kind diagnosis.FixKind) {
	t.Helper()
	controlplane.Eventually(t, time.Minute, "a plan is found", func() (bool, string) {
		if !slices.ContainsFunc(c.pods(t), func(p corev1.Pod) bool { return p.Labels["app"] == "training" && len(p.Status.Conditions) > 0 }) {
			return false, "nobody has looked at the pod that waits"
		}
		st, err := live.Read(t.Context(), c.Client(), c.Dynamic(), time.Now)
		must(t, err)
		found, err := rca.Diagnose(t.Context(), st, rca.Options{Only: func(i incident.Incident) bool { return i.Workload.Namespace == c.ns && i.Workload.Kind == "Job" }})
		must(t, err)
		for _, d := range found {
			for _, f := range d.Fixes {
				if slices.Equal(f.Kinds, []diagnosis.FixKind{kind}) && f.Proof.Verdict == diagnosis.Schedules {
					c.rem, err = c.recorder.Record(t.Context(), plan.Propose(plan.Found{State: st, Diagnosis: d, Fix: f}, requester, time.Now()))
					must(t, err)
					return true, ""
				}
			}
		}
		return false, fmt.Sprintf("%d findings", len(found))
	})
}

func (c *cell) approve(t *testing.T) {
	t.Helper()
	_, err := c.approvers.Decide(t.Context(), plan.NewApproval(c.rem, approver, nil, v1alpha1.Approve))
	must(t, err)
}

// reaches waits until something holds of the plan, and looks at each of its changes.
func (c *cell) reaches(t *testing.T, within time.Duration, what string, ok func(v1alpha1.RemediationStatus) bool) v1alpha1.RemediationStatus {
	t.Helper()
	now, err := c.store().Get(t.Context(), c.rem.Name)
	must(t, err)
	if c.rem = now; ok(now.Status) {
		return now.Status
	}
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	_, err = watchtools.Until(ctx, now.ResourceVersion, &cache.ListWatch{WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
		o.FieldSelector = fields.OneTermEqualSelector("metadata.name", now.Name).String()
		return c.Dynamic().Resource(v1alpha1.Remediations).Watch(ctx, o)
	}}, func(e watch.Event) (bool, error) {
		u, is := e.Object.(*unstructured.Unstructured)
		if e.Type == watch.Deleted {
			return false, nil // a terminal that carries a plan out records it again, under its name
		}
		if !is {
			return false, fmt.Errorf("%s: %v", e.Type, e.Object)
		}
		text, err := u.MarshalJSON()
		if err != nil {
			return false, err
		}
		c.rem = &v1alpha1.Remediation{}
		return json.Unmarshal(text, c.rem) == nil && ok(c.rem.Status), nil
	})
	if s := c.rem.Status; err != nil {
		t.Fatalf("the plan %s: not within %s: %s %s %s: %v", what, within, s.Phase, s.Progress, s.Message, err)
	}
	return c.rem.Status
}

func (c *cell) ends(t *testing.T, within time.Duration) v1alpha1.RemediationStatus {
	t.Helper()
	status := c.reaches(t, within, "has ended", func(s v1alpha1.RemediationStatus) bool { return s.Phase.Ended() })
	for _, e := range status.Journal {
		if e.Ended == nil {
			t.Errorf("step %s has not ended", e.Step)
		}
	}
	return status
}

// settled wants what every plan that has ended leaves: a node that is open, without a
// mark, whose config is in force, and no locks. It returns the config.
func (c *cell) settled(t *testing.T) string {
	t.Helper()
	n, err := c.Client().CoreV1().Nodes().Get(t.Context(), c.node, metav1.GetOptions{})
	must(t, err)
	if n.Spec.Unschedulable || n.Annotations[diagnosis.OperationAnnotation] != "" || n.Labels[migState] != "success" {
		t.Errorf("the node: unschedulable %v, mark %q, config %s, state %s", n.Spec.Unschedulable, n.Annotations[diagnosis.OperationAnnotation], n.Labels[migConfig], n.Labels[migState])
	}
	leases, err := c.Client().CoordinationV1().Leases(c.ns).List(t.Context(), metav1.ListOptions{})
	must(t, err)
	for _, l := range leases.Items {
		if l.Name != executor.LeaderLease {
			t.Errorf("lock %s is left", l.Name)
		}
	}
	return n.Labels[migConfig]
}

// victims are the pods that the plan evicts.
func (c *cell) victims() []string {
	var out []string
	for _, a := range c.rem.Spec.Actions {
		if a.Verb == diagnosis.VerbEvict {
			out = append(out, a.Target.Namespace+"/"+a.Target.Name)
		}
		if a.Relayout != nil {
			for _, v := range a.Relayout.Victims {
				out = append(out, v.Namespace+"/"+v.Name)
			}
		}
	}
	return out
}

// evictedOnce holds the audit log to the plans of cells: each victim was evicted once,
// by the executor as the approver, and nobody else was. It returns how many cells that
// is not so of.
func (l *lane) evictedOnce(t *testing.T, cells []*cell) int {
	t.Helper()
	evicted := map[string]int{}
	for _, e := range l.AuditEvents(t) {
		if e.ObjectRef.Subresource == "eviction" && e.ResponseStatus.Code == 201 {
			evicted[e.ObjectRef.Namespace+"/"+e.ObjectRef.Name]++
			if by := e.User.Username; by != "system:serviceaccount:"+e.ObjectRef.Namespace+":"+executor.LeaderLease || e.ImpersonatedUser.Username != approver {
				t.Errorf("%s was evicted by %s as %q", e.ObjectRef.Name, by, e.ImpersonatedUser.Username)
			}
		}
	}
	wrong := 0
	for _, c := range cells {
		before := wrong
		for _, v := range c.victims() {
			if n := evicted[v]; n != 1 {
				t.Errorf("%s was evicted %d times", v, n)
				wrong = before + 1
			}
			delete(evicted, v)
		}
	}
	for pod := range evicted {
		if slices.ContainsFunc(cells, func(c *cell) bool { return strings.HasPrefix(pod, c.ns+"/") }) {
			t.Errorf("%s is no victim of the plan, and was evicted", pod)
			wrong++
		}
	}
	return wrong
}
