package acceptance

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/remediate/executor"
	"github.com/unpend/unpend/remediate/v1alpha1"
	"github.com/unpend/unpend/testdata/controlplane"
)

// decider is a person, and which commands they get what they ask for from: approve,
// reject, remediations, status, incidents.
type decider struct {
	name   string
	groups []string
	reads  bool // what a diagnosis is made from, which the chart gives to nobody
	want   [5]bool
}

var deciders = []decider{
	{"eve", []string{"developers"}, false, [5]bool{false, false, false, false, false}},
	{"vera", nil, true, [5]bool{false, false, true, true, true}},                 // looks on
	{"rex", nil, true, [5]bool{false, false, true, true, true}},                  // may record a plan too
	{"ada", nil, true, [5]bool{true, true, true, true, true}},                    // approver by name
	{"mia", []string{"gpu-admins"}, true, [5]bool{true, true, true, true, true}}, // approver by group
	{"root", []string{"system:masters"}, true, [5]bool{true, true, true, true, true}},
}

// promiseS05: six users, five commands, as processes with the users' own kubeconfigs and
// the rights that the chart gives. Who may not decide leaves no decision, whatever the
// command; who may leaves one, in their own name. Nobody writes to a node or a pod.
func promiseS05(t *testing.T) {
	needsControlPlane(t)
	l := newLane(t)
	l.groups = []any{"gpu-admins"}
	ns := l.Namespace(t)
	l.install(t, ns, "ada", requester)
	c := l.cellFor(t, ns, ns)
	l.permit(t, "rex", "remediations", "get", "list", "create")
	for _, d := range deciders {
		if d.reads && d.name != "root" {
			l.readsAll(t, d.name)
		}
	}
	held, of := 0, 0
	for _, d := range deciders {
		for i, got := range c.decides(t, d) {
			if of++; got == d.want[i] {
				held++
			} else {
				t.Errorf("%s, %s: %v, want %v", d.name, []string{"approve", "reject", "remediations", "status", "incidents"}[i], got, d.want[i])
			}
		}
	}
	for _, e := range l.AuditEvents(t) {
		person := slices.ContainsFunc(deciders, func(d decider) bool { return d.name == e.User.Username })
		if person && slices.Contains([]string{"create", "update", "patch", "delete"}, e.Verb) && slices.Contains([]string{"nodes", "pods", "configmaps"}, e.ObjectRef.Resource) {
			t.Errorf("%s: %s %s %s", e.User.Username, e.Verb, e.ObjectRef.Resource, e.ObjectRef.Name)
		}
	}
	report(t, held, of, "6 users x 5 commands, each a process")
}

// readsAll gives somebody the right to read everything, and no other.
func (l *lane) readsAll(t *testing.T, who string) {
	t.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: who + "-reads"}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"get", "list", "watch"}}}}
	_, err := l.Client().RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{})
	must(t, err)
	_, err = l.Client().RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: role.ObjectMeta,
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: who}}}, metav1.CreateOptions{})
	must(t, err)
}

// decides has one person run the five commands, and says from which they got what they
// asked for. Each finds the plan undecided.
func (c *cell) decides(t *testing.T, d decider) [5]bool {
	t.Helper()
	config := []string{"--kubeconfig", c.KubeconfigFor(t, d.name, d.groups...)}
	ours := append([]string{"--executor-namespace", c.ns}, config...)
	fix := fmt.Sprintf("%s#%d", c.rem.Spec.Incident, c.rem.Spec.Fix)
	var got [5]bool
	c.standsIn(t)
	got[0] = c.said(t, d, v1alpha1.Approve, c.untilDecided(t, append([]string{"approve", fix, "--plan", c.rem.Name}, ours...)...))
	got[1] = c.said(t, d, v1alpha1.Reject, c.untilDecided(t, append([]string{"reject", c.rem.Name[:12], "--reason", "not now"}, ours...)...))
	for i, k := range []struct {
		args  []string
		shows string
	}{
		{append([]string{"remediations"}, config...), c.rem.Name[:12]},
		{append([]string{"status"}, ours...), "stand-in leads"},
		{append([]string{"incidents"}, config...), c.ns + "/training"},
	} {
		code, out, _ := call(t, k.args...)
		got[2+i] = code == 0 && strings.Contains(out, k.shows)
		t.Logf("%s, %s: %d %s", d.name, k.args[0], code, out)
	}
	return got
}

// standsIn has somebody hold the executor's lease, who carries nothing out: what is said of a
// plan is all that comes of a command.
func (c *cell) standsIn(t *testing.T) {
	t.Helper()
	leases, now := c.Client().CoordinationV1().Leases(c.ns), metav1.NewMicroTime(time.Now())
	spec := coordinationv1.LeaseSpec{HolderIdentity: new("stand-in"), RenewTime: &now, AcquireTime: &now, LeaseDurationSeconds: new(int32(3600))}
	_, err := leases.Create(t.Context(), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: executor.LeaderLease}, Spec: spec}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		var l *coordinationv1.Lease
		l, err = leases.Get(t.Context(), executor.LeaderLease, metav1.GetOptions{})
		must(t, err)
		l.Spec = spec
		_, err = leases.Update(t.Context(), l, metav1.UpdateOptions{})
	}
	must(t, err)
}

// untilDecided runs a command until it ends, or a decision is there, after which approve
// looks on until Ctrl-C.
func (c *cell) untilDecided(t *testing.T, args ...string) int {
	t.Helper()
	p := newProcess(t, nil, "unpend", args...)
	p.start(t)
	controlplane.Eventually(t, time.Minute, args[0]+" has ended, or the plan is decided on", func() (bool, string) {
		select {
		case <-p.ended:
			return true, ""
		default:
			return len(c.decisions(t)) > 0, strings.Join(p.out.all(), "\n")
		}
	})
	if args[0] == "approve" {
		p.signal(syscall.SIGINT)
	}
	return p.exits(t, 20*time.Second)
}

func (c *cell) decisions(t *testing.T) []v1alpha1.Approval {
	t.Helper()
	all, err := c.store().Approvals(t.Context(), c.rem.Name)
	must(t, err)
	return all
}

// said says whether the plan is decided on, takes the decision away, and wants it to be
// the person's own, and the exit code to be that of a refusal where there is none.
func (c *cell) said(t *testing.T, d decider, says v1alpha1.Decision, code int) bool {
	t.Helper()
	all := c.decisions(t)
	if len(all) == 0 {
		if code == 0 || d.reads && code != exitRefused {
			t.Errorf("%s, %s: exit code %d", d.name, says, code)
		}
		return false
	}
	if a := all[0].Spec; len(all) != 1 || a.Approver != d.name || a.Decision != says || a.Plan != c.rem.Name || says == v1alpha1.Reject && code != 0 {
		t.Errorf("%s, %s: exit code %d, %+v", d.name, says, code, all)
	}
	for _, a := range all {
		must(t, c.Dynamic().Resource(v1alpha1.Approvals).Delete(context.WithoutCancel(t.Context()), a.Name, metav1.DeleteOptions{}))
	}
	return true
}
