package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/remediate/v1alpha1"
	"github.com/unpend/unpend/testdata/controlplane"
)

// said is what a command answers.
type said struct {
	code     int
	out, err string
}

// says runs a command in this process, as whoever's kubeconfig it is.
func says(t *testing.T, kubeconfig string, args ...string) said {
	t.Helper()
	var out, err bytes.Buffer
	code := run(t.Context(), append(append([]string{"unpend"}, args...), "--kubeconfig", kubeconfig), stdio{in: strings.NewReader(""), out: &out, err: &err})
	return said{code, out.String(), err.String()}
}

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
	if testing.Short() {
		t.Skip("needs the real control plane")
	}
	l := newLane(t)
	c := l.newCell(t)
	for _, who := range []string{approver, "eve"} {
		l.permit(t, who, "remediations", "get", "list")
		l.permit(t, who, "leases", "get")
	}
	l.permit(t, approver, "approvals", "get", "create")
	alice, eve := l.KubeconfigFor(t, approver), l.KubeconfigFor(t, "eve")
	proxy := newFaultProxy(t, l.ControlPlane, "executor-"+c.ns)
	proxy.set(proxy.onAnswer("POST pods/eviction #1", func() { c.budget(t) }))
	// Without a name from its pod it makes one up, for all that it does.
	newProcess(t, nil, "unpend", "run", "--mode", "approve", "--roles", "remediate", "--config", executorConfig(t, c.ns, unhurried), "--kubeconfig", proxy.kubeconfig).start(t)
	c.approve(t)
	c.reaches(t, time.Minute, "waits for the budget", func(s v1alpha1.RemediationStatus) bool { return s.Phase == v1alpha1.Running && s.Evicted == 1 })

	plan := c.rem.Name[:12]
	if got := says(t, eve, "reject", plan); got.code != exitRefused || !strings.Contains(got.err, `"eve" cannot create resource "approvals"`) || got.out != "" {
		t.Errorf("who may not: %+v", got)
	}
	if c.reaches(t, time.Second, "goes on", func(s v1alpha1.RemediationStatus) bool { return true }); c.rem.Status.Phase != v1alpha1.Running {
		t.Errorf("it is %s", c.rem.Status.Phase)
	}
	got := says(t, alice, "reject", plan, "--reason", "the nightly job", "--executor-namespace", c.ns)
	if want := "plan " + plan + " is told to stop: what was begun is taken back: " + c.rem.Spec.Title + "\nNext: unpend remediations " + plan + "\n"; got != (said{0, want, ""}) {
		t.Errorf("%+v, want %q", got, want)
	}
	status := c.ends(t, time.Minute)
	if status.Phase != v1alpha1.Stopped || !strings.Contains(status.Message, "halted: alice said no: the nightly job") || status.Evicted != 1 {
		t.Errorf("%s, %d evicted: %s", status.Phase, status.Evicted, status.Message)
	}
	if config := c.settled(t); config != "all-1g.5gb" {
		t.Errorf("the node is left with %s", config)
	}
	must(t, c.Client().PolicyV1().PodDisruptionBudgets(c.ns).Delete(t.Context(), "all", metav1.DeleteOptions{}))
	c.running(t, 3)
	if got := says(t, alice, "reject", plan); got.code != exitRefused || !strings.Contains(got.err, "the plan is Stopped already") {
		t.Errorf("once more: %+v", got)
	}
	c.oneNo(t)
	c.oneName(t)
}

// oneNo wants the API server to have taken one no, from its speaker.
func (c *cell) oneNo(t *testing.T) {
	t.Helper()
	nos := 0
	for _, e := range c.AuditEvents(t) {
		if e.ObjectRef.Resource == "approvals" && e.Verb == "create" && e.ResponseStatus.Code == 201 && e.User.Username == approver {
			if nos++; e.ObjectRef.Name != c.rem.Name+"-no" {
				t.Errorf("%s was taken", e.ObjectRef.Name)
			}
		}
	}
	if nos != 1 {
		t.Errorf("%d decisions of %s, want one", nos, approver)
	}
}

// oneName wants the Events to be by whom the journal names as leader.
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
