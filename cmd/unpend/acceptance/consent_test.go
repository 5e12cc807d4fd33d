package acceptance

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/guard"
	"github.com/unpend/unpend/remediate/v1alpha1"
	"github.com/unpend/unpend/testdata/chart"
	"github.com/unpend/unpend/testdata/controlplane"
)

// Who approves with the program, a Job of which one pod runs and a Deployment of which two
// run, stops those pods that the fix named, and nobody else by anybody's hand: the executor
// and the terminal alike. Then all run, and the approval and what was stopped are on record.
func TestConsentEqualsEffect(t *testing.T) {
	needsControlPlane(t)
	l := newLane(t)
	l.kinds = chart.Values{"nominate": true, "changeWorkload": true, "recreate": true}
	l.carriesOut(t, approver)
	l.changesWorkloads(t, approver)
	held, stopped := 0, 0
	for _, tc := range []struct {
		kind string
		runs int
		led  bool
	}{{"Job", 1, false}, {"Deployment", 2, false}, {"Job", 1, true}, {"Deployment", 2, true}} {
		t.Run(fmt.Sprintf("%s, led %v", tc.kind, tc.led), func(t *testing.T) {
			c := &cell{lane: l, ns: l.Namespace(t)}
			l.install(t, c.ns, approver, requester)
			alice := l.KubeconfigFor(t, approver)
			if tc.led {
				proxy := newFaultProxy(t, l, c.ns, "executor-"+c.ns)
				newProcess(t, nil, "unpend", "run", "--mode", "approve", "--roles", "remediate", "--config", executorConfig(t, c.ns, unhurried), "--kubeconfig", proxy.kubeconfig).start(t)
				c.isLed(t, alice)
			}
			d, f := c.most(t, tc.kind, tc.runs, alice)
			before, began := c.pods(t), time.Now()
			code, out, errs := call(t, "approve", fmt.Sprintf("%s#%d", d.Incident, f.ID), "--plan", f.Plan, "--executor-namespace", c.ns, "--kubeconfig", alice)
			if code != exitDone || !strings.Contains(out, " runs (") || !strings.HasSuffix(out, fmt.Sprintf(", 0 evicted, %d restarted)\n", tc.runs)) {
				t.Fatalf("%d %s%s", code, out, errs)
			}
			c.allRun(t, tc.runs+1)
			is, named := c.stoppedSince(t, before, began), c.named(f)
			if !maps.Equal(is, named) || len(is) != tc.runs {
				t.Errorf("%v stopped, the fix names %v", is, named)
			}
			c.onRecord(t, f.Plan, alice, tc.led, tc.runs)
			if stopped += len(is); !t.Failed() {
				held++
			}
		})
	}
	t.Logf("%d of 4 plans: %d pods stopped, all named, 0 others", held, stopped)
}

// changesWorkloads gives a person what it takes to change the workloads of these cases.
func (l *lane) changesWorkloads(t *testing.T, who string) {
	t.Helper()
	meta := metav1.ObjectMeta{Name: who + "-workloads"}
	_, err := l.Client().RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"batch"}, Resources: []string{"jobs"}, Verbs: []string{"create", "delete"}},
		{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"patch"}}}}, metav1.CreateOptions{})
	must(t, err)
	_, err = l.Client().RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: who}}}, metav1.CreateOptions{})
	must(t, err)
}

// isLed waits until an executor leads.
func (c *cell) isLed(t *testing.T, config string) {
	t.Helper()
	controlplane.Eventually(t, time.Minute, "an executor leads", func() (bool, string) {
		code, out, errs := call(t, "status", "--executor-namespace", c.ns, "--kubeconfig", config)
		return code == exitDone && strings.Contains(out, "approve: "), out + errs
	})
}

// most is a workload of one pod more than the node with so many GPUs has that its selector
// wants; another node has as many. It gives back the fix that drops the selector.
func (c *cell) most(t *testing.T, kind string, gpus int, config string) (diagnosis.Diagnosis, diagnosis.Fix) {
	t.Helper()
	for i, labels := range []map[string]string{{"pool": c.ns}, nil} {
		n := sim.Node{Name: fmt.Sprintf("%s-gpu%d", c.ns, i+1), Model: a100, GPUs: gpus, Config: "all-disabled", Labels: labels}
		for g := range gpus {
			n.MIGOff = append(n.MIGOff, g)
		}
		c.AddNode(t, n)
	}
	labels, pods := map[string]string{"app": "serving"}, int32(gpus+1)
	made := template("1g.5gb", labels)
	made.Spec.NodeSelector = map[string]string{"pool": c.ns}
	made.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}
	var err error
	if kind == "Job" {
		made.Spec.RestartPolicy = corev1.RestartPolicyNever
		_, err = c.Client().BatchV1().Jobs(c.ns).Create(t.Context(), &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "serving"}, Spec: batchv1.JobSpec{Parallelism: &pods, Completions: &pods, Template: made}}, metav1.CreateOptions{})
	} else {
		_, err = c.Client().AppsV1().Deployments(c.ns).Create(t.Context(), &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "serving"},
			Spec: appsv1.DeploymentSpec{Replicas: &pods, Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: made}}, metav1.CreateOptions{})
	}
	must(t, err)
	var d diagnosis.Diagnosis
	var fix diagnosis.Fix
	controlplane.Eventually(t, time.Minute, "the fix is found", func() (bool, string) {
		run := 0
		for _, p := range c.pods(t) {
			if p.Status.Phase == corev1.PodRunning {
				run++
			}
		}
		code, out, errs := call(t, "why", "-o", "json", "-n", c.ns, "--kubeconfig", config)
		var list diagnosis.List
		if run != gpus || code != exitDone || json.Unmarshal([]byte(out), &list) != nil || len(list.Items) != 1 {
			return false, fmt.Sprintf("%d run: %s%s", run, out, errs)
		}
		d = list.Items[0]
		i := slices.IndexFunc(d.Fixes, func(f diagnosis.Fix) bool {
			return slices.Equal(f.Kinds, []diagnosis.FixKind{diagnosis.FixSelector}) && f.Proof.Verdict == diagnosis.Schedules && f.Automatic
		})
		if i >= 0 {
			fix = d.Fixes[i]
		}
		return i >= 0, out
	})
	return d, fix
}

// allRun waits until so many pods run and there are no others.
func (c *cell) allRun(t *testing.T, n int) {
	t.Helper()
	controlplane.Eventually(t, time.Minute, "all run", func() (bool, string) {
		pods, run := c.pods(t), 0
		for _, p := range pods {
			if p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil {
				run++
			}
		}
		return run == n && len(pods) == n, fmt.Sprintf("%d of %d run", run, len(pods))
	})
}

// named are the pods that a fix says stop.
func (c *cell) named(f diagnosis.Fix) map[string]bool {
	out := map[string]bool{}
	for _, a := range f.Actions {
		for _, p := range a.Stopped() {
			out[p.Namespace+"/"+p.Name] = true
		}
	}
	return out
}

// stoppedSince are those of the pods that ran which were evicted or deleted since, by anybody.
func (c *cell) stoppedSince(t *testing.T, before []corev1.Pod, began time.Time) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	for _, e := range c.AuditEvents(t) {
		stops := e.Verb == "delete" && e.ObjectRef.Subresource == "" || e.ObjectRef.Subresource == "eviction"
		ran := slices.ContainsFunc(before, func(p corev1.Pod) bool {
			return p.Namespace == e.ObjectRef.Namespace && p.Name == e.ObjectRef.Name && p.Status.Phase == corev1.PodRunning
		})
		if e.ObjectRef.Resource == "pods" && stops && ran && e.ResponseStatus.Code < 300 && e.Received.After(began.Add(-time.Second)) {
			out[e.ObjectRef.Namespace+"/"+e.ObjectRef.Name] = true
		}
	}
	return out
}

// onRecord wants the plan, the approval and the count of the pods that stopped.
func (c *cell) onRecord(t *testing.T, plan, config string, led bool, stopped int) {
	t.Helper()
	rem, err := c.store().Get(t.Context(), plan)
	must(t, err)
	executors := storeOf(t, c.asExecutor(t, c.ns))
	t.Cleanup(func() { must(t, executors.Forget(context.WithoutCancel(t.Context()), rem)) })
	if st := rem.Status; st.Phase != v1alpha1.Succeeded || (rem.Spec.Carrier == v1alpha1.Terminal) == led || len(st.Restarted) != stopped || st.After == nil || st.After.Waiting != 0 || len(st.After.Stopped) != 0 {
		t.Errorf("carrier %q: %+v", rem.Spec.Carrier, st)
	}
	said, err := c.store().Approvals(t.Context(), plan)
	if err != nil || len(said) != 1 || said[0].Spec.Approver != approver || said[0].Spec.Decision != v1alpha1.Approve || said[0].Spec.Remediation != string(rem.UID) {
		t.Errorf("%+v, %v", said, err)
	}
	code, out, errs := call(t, "status", "-o", "json", "--executor-namespace", c.ns, "--kubeconfig", config)
	var s struct {
		Plans   map[string]int
		Figures guard.Figures
	}
	if err := json.Unmarshal([]byte(out), &s); code != exitDone || err != nil || s.Plans["Succeeded"] != 1 || s.Figures.StoppedLastHour != stopped || s.Figures.EvictedLastHour != 0 {
		t.Errorf("%d %s%s: %v", code, out, errs, err)
	}
}
