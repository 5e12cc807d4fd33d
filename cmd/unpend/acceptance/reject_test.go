package acceptance

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/remediate/executor"
	"github.com/unpend/unpend/remediate/v1alpha1"
	"github.com/unpend/unpend/testdata/controlplane"
)

// permit gives people rights of unpend.dev, and to see who leads.
func (l *lane) permit(t *testing.T, who, resource string, verbs ...string) {
	t.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: who + "-" + resource}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{v1alpha1.GroupVersion.Group, "coordination.k8s.io"}, Resources: []string{resource}, Verbs: verbs}}}
	_, err := l.Client().RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{})
	must(t, err)
	_, err = l.Client().RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: role.ObjectMeta,
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: who}}}, metav1.CreateOptions{})
	must(t, err)
}

// A plan in the middle of a drain is rejected by who approved it: it stops there and is
// taken back, by a word that is on record under its own name. Who may not approve may
// not stop it either.
func TestRejectStopsWhatIsUnderWay(t *testing.T) {
	needsControlPlane(t)
	l := newLane(t)
	c := l.newCell(t)
	for _, who := range []string{approver, "eve"} {
		l.permit(t, who, "remediations", "get", "list")
		l.permit(t, who, "leases", "get")
	}
	l.permit(t, approver, "approvals", "get", "create")
	alice, eve := l.KubeconfigFor(t, approver), l.KubeconfigFor(t, "eve")
	proxy := newFaultProxy(t, l, c.ns, "executor-"+c.ns)
	proxy.set(proxy.onAnswer("POST pods/eviction #1", func() { c.budget(t) }))
	// Without a name from its pod it makes one up, for all that it does.
	newProcess(t, nil, "unpend", "run", "--mode", "approve", "--roles", "remediate", "--config", executorConfig(t, c.ns, unhurried), "--kubeconfig", proxy.kubeconfig).start(t)
	c.watched(t)
	c.reaches(t, time.Minute, "waits for the budget", func(s v1alpha1.RemediationStatus) bool { return s.Phase == v1alpha1.Running && s.Evicted == 1 })

	c.listed(t)
	plan := c.rem.Name[:12]
	if code, out, errs := call(t, "reject", plan, "--kubeconfig", eve); code != exitRefused || !strings.Contains(errs, `"eve" cannot create resource "approvals"`) || out != "" {
		t.Errorf("who may not: %d %s%s", code, out, errs)
	}
	if c.reaches(t, time.Second, "goes on", func(v1alpha1.RemediationStatus) bool { return true }); c.rem.Status.Phase != v1alpha1.Running {
		t.Errorf("it is %s", c.rem.Status.Phase)
	}
	code, out, errs := call(t, "status", "--executor-namespace", c.ns, "--kubeconfig", eve)
	for _, says := range []string{" leads (generation ", "unknown: you may not read the kill switch", "unknown: you may not read nodes, plans", `"eve" cannot get resource "configmaps"`} {
		if code != 0 || errs != "" || !strings.Contains(strings.Join(strings.Fields(out), " "), says) {
			t.Errorf("status for who may not read it: %d %s%s, want %q", code, out, errs, says)
		}
	}
	c.othersNo(t)
	want := "plan " + plan + " is told to stop: what was begun is taken back: " + c.rem.Spec.Title + "\nNext: unpend remediations " + plan + "\n"
	if code, out, errs := call(t, "reject", plan, "--reason", "the nightly job", "--executor-namespace", c.ns, "--kubeconfig", alice); code != 0 || out != want || errs != "" {
		t.Errorf("%d %q %s, want %q", code, out, errs, want)
	}
	status := c.ends(t, time.Minute)
	if status.Phase != v1alpha1.Stopped || !strings.Contains(status.Message, "halted: alice said no: the nightly job") || status.Evicted != 1 {
		t.Errorf("%s, %d evicted: %s", status.Phase, status.Evicted, status.Message)
	}
	if config := c.settled(t); config != "all-1g.5gb" {
		t.Errorf("the node is left with %s", config)
	}
	must(t, c.Client().PolicyV1().PodDisruptionBudgets(c.ns).Delete(t.Context(), "all", metav1.DeleteOptions{}))
	c.running(t)
	if code, out, errs := call(t, "reject", plan, "--kubeconfig", alice); code != exitRefused || !strings.Contains(errs, "the plan is Stopped already") || out != "" {
		t.Errorf("once more: %d %s%s", code, out, errs)
	}
	c.oneNo(t)
	c.oneName(t)
}

// othersNo puts a no to another plan in the way of theirs.
func (c *cell) othersNo(t *testing.T) {
	t.Helper()
	no := &unstructured.Unstructured{Object: map[string]any{"apiVersion": v1alpha1.GroupVersion.String(), "kind": "Approval", "metadata": map[string]any{"name": c.rem.Name + v1alpha1.No},
		"spec": map[string]any{"plan": c.rem.Name, "remediation": "another", "decision": "Reject", "approver": requester, "via": "kubectl"}}}
	_, err := c.recorder.Dynamic.Resource(v1alpha1.Approvals).Create(t.Context(), no, metav1.CreateOptions{})
	must(t, err)
}

// watched has the person approve at a terminal, look on until the budget stands in the
// way, and press Ctrl-C: nothing is lost.
func (c *cell) watched(t *testing.T) {
	t.Helper()
	config := c.KubeconfigFor(t, approver, "system:masters") // reading takes many rights
	fix := fmt.Sprintf("%s#%d", c.rem.Spec.Incident, c.rem.Spec.Fix)
	p := newProcess(t, nil, "unpend", "approve", fix, "--plan", c.rem.Name, "--executor-namespace", c.ns, "--kubeconfig", config)
	controlplane.Eventually(t, time.Minute, "an executor leads", func() (bool, string) {
		_, err := c.Client().CoordinationV1().Leases(c.ns).Get(t.Context(), executor.LeaderLease, metav1.GetOptions{})
		return err == nil, fmt.Sprint(err)
	})
	p.start(t)
	c.reaches(t, time.Minute, "waits for the budget", func(s v1alpha1.RemediationStatus) bool { return s.Evicted == 1 })
	seen := func() string { return strings.Join(p.out.all(), "\n") }
	controlplane.Eventually(t, 10*time.Second, "the eviction is shown", func() (bool, string) { return strings.Contains(seen(), "[ ] 4/11 evict "), seen() })
	p.signal(syscall.SIGINT)
	if code := p.exits(t, 10*time.Second); code != exitError {
		t.Errorf("exit code %d", code)
	}
	for _, line := range []string{
		"Ctrl-C: nothing is lost, the executor goes on ('unpend reject " + c.rem.Name[:12] + "' stops it and takes it back).",
		"[x] 2/11 cordon " + c.node + "  ",
		"s of at most 1m\n[x] 2/11 cordon ",
		"unpend: no longer watching; the executor goes on (unpend remediations shows where it stands, unpend reject " + c.rem.Name[:12] + " stops it and takes it back)",
	} {
		if !strings.Contains(seen(), line) {
			t.Errorf("it does not say %q", line)
		}
	}
}

// listed wants the incident to be told of with its plan; to who may not read plans,
// that it was not read.
func (c *cell) listed(t *testing.T) {
	t.Helper()
	row := c.rem.Spec.Incident + "  " + c.ns + "/training   " // the evicted pods' workload has a longer name
	code, out, errs := call(t, "incidents", "--kubeconfig", c.Kubeconfig())
	if want := fmt.Sprintf("%s#%d step 4/11 (%s)  ", row, c.rem.Spec.Fix, approver); code != 0 || errs != "" || !strings.Contains(out, want) {
		t.Errorf("%d %s%s, want %q", code, errs, out, want)
	}
	if code, out, errs := call(t, "incidents", "-n", "default", "--kubeconfig", c.Kubeconfig()); code != 0 || errs != "Nothing waits in namespace default.\n" || strings.Contains(out, c.ns) {
		t.Errorf("of another namespace: %d %s%s", code, errs, out)
	}
	c.Allow(t, "nora", "pods", "nodes", "nodegeometries.unpend.dev", "jobs.batch", "deployments.apps", "replicasets.apps")
	code, out, errs = call(t, "incidents", "--kubeconfig", c.KubeconfigFor(t, "nora"))
	if code != 0 || !strings.Contains(errs, "unread: Remediation: the right to list remediations.unpend.dev is missing: ") || !strings.Contains(out, row+"unread  ") {
		t.Errorf("who may not: %d %s%s", code, errs, out)
	}
}

// oneNo wants the API server to have taken one no beside the yes, from its speaker.
func (c *cell) oneNo(t *testing.T) {
	t.Helper()
	nos := 0
	for _, e := range c.AuditEvents(t) {
		if e.ObjectRef.Resource == "approvals" && e.Verb == "create" && e.ResponseStatus.Code == 201 && e.User.Username == approver {
			if e.ObjectRef.Name == c.rem.Name {
				continue
			}
			if nos++; e.ObjectRef.Name != c.rem.Name+"-no" {
				t.Errorf("%s was taken", e.ObjectRef.Name)
			}
		}
	}
	if nos != 1 {
		t.Errorf("%d more decisions of %s, want one", nos, approver)
	}
}

// oneName wants the Events to be by the leader that the journal names.
func (c *cell) oneName(t *testing.T) {
	t.Helper()
	leader := c.rem.Status.Journal[0].Leader
	controlplane.Eventually(t, 10*time.Second, "Events by "+leader, func() (bool, string) {
		list, err := c.Client().EventsV1().Events("").List(t.Context(), metav1.ListOptions{})
		must(t, err)
		ours := 0
		for _, e := range list.Items {
			if e.ReportingController == "unpend.dev/executor" {
				if ours++; e.ReportingInstance != leader {
					t.Fatalf("an Event is by %q, the leader is %q", e.ReportingInstance, leader)
				}
			}
		}
		return ours >= len(c.rem.Status.Journal), ""
	})
}
