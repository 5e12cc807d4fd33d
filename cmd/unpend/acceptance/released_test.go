package acceptance

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/plan"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

// A node whose owner is alive is not released: the owner is told to stop. One that nobody
// works on is told of in status with the way out, and is released by who may.
func TestRelease(t *testing.T) {
	needsControlPlane(t)
	l := newLane(t)
	l.carriesOut(t, approver)
	c := l.newCell(t)
	l.readsAll(t, "vera")
	ours := func(who string, args ...string) (int, string, string) {
		return call(t, append(args, "--executor-namespace", c.ns, "--kubeconfig", c.KubeconfigFor(t, who))...)
	}
	t.Run("alive", func(t *testing.T) { c.alive(t, ours) })
	c.mark(t, &diagnosis.Operation{Plan: strings.Repeat("a", 64), ID: "gone", Step: "cordon", PriorMIGConfig: "all-1g.5gb"})
	before := c.nodeOf(t)
	for _, tc := range []struct {
		name, who string
		args      []string
		code      int
		says      []string
		released  bool
	}{
		{"status", approver, []string{"status"}, exitDone, []string{"ORPHANED " + c.node + ": its plan is not under way any more", "give it back: unpend release " + c.node}, false},
		{"nobody to be asked", approver, []string{"release", c.node}, exitRefused, []string{"uncordon it", "nobody is there to be asked: give --yes"}, false},
		{"who may not", "vera", []string{"release", c.node, "--yes"}, exitRefused, []string{"refused: nothing was written: you may not patch nodes " + c.node}, false},
		{"a dry run", approver, []string{"release", "--all", "--dry-run"}, exitDone, []string{"plan aaaaaaaaaaaa, which has set its mark, is not on record any more", "Dry run: the API server would accept every write; node " + c.node + " is as it was."}, false},
		{"neither", approver, []string{"release"}, exitUsage, []string{"name one node or plan, or give --all"}, false},
		{"no such thing", approver, []string{"release", "no-such-node"}, exitError, []string{`"no-such-node" is no node, and no plan`}, false},
		{"all", approver, []string{"release", "--all", "--yes"}, exitDone, []string{`leave nvidia.com/mig.config=all-1g.5gb, as it was; MIG manager says "success"`, "node " + c.node + " is released: it is open"}, true},
		{"again", approver, []string{"release", c.node, "--yes"}, exitDone, []string{"No mark of unpend is there: nothing is to be released."}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			code, out, errs := ours(tc.who, tc.args...)
			for _, says := range tc.says {
				if code != tc.code || !strings.Contains(strings.Join(strings.Fields(out+errs), " "), says) {
					t.Errorf("%d %s%s, want %d %q", code, out, errs, tc.code, says)
				}
			}
			n := c.nodeOf(t)
			if marked := n.Annotations[diagnosis.OperationAnnotation] != ""; marked == tc.released || n.Spec.Unschedulable == tc.released {
				t.Errorf("marked %v, unschedulable %v", marked, n.Spec.Unschedulable)
			}
			if !tc.released && n.ResourceVersion != before.ResourceVersion && n.Annotations[diagnosis.OperationAnnotation] != before.Annotations[diagnosis.OperationAnnotation] {
				t.Errorf("the mark is %s", n.Annotations[diagnosis.OperationAnnotation])
			}
		})
	}
}

// alive has a terminal wait for a budget: release is refused, and a no stops it.
func (c *cell) alive(t *testing.T, ours func(who string, args ...string) (int, string, string)) {
	x, proxy := c.atTerminal(t)
	proxy.set(proxy.onAnswer("POST pods/eviction #1", func() { c.budget(t) }))
	x.start(t)
	c.reaches(t, time.Minute, "waits for the budget", func(s v1alpha1.RemediationStatus) bool { return s.Evicted == 1 })
	want := fmt.Sprintf("refused: plan %.12s is carried out on node %s at a terminal of %s (step 3/9): 'unpend reject %.12s' stops it and takes it back", c.rem.Name, c.node, approver, c.rem.Name)
	if code, out, errs := ours(approver, "release", c.node, "--yes"); code != exitRefused || out != "" || !strings.Contains(errs, want) {
		t.Errorf("%d %s%s, want %q", code, out, errs, want)
	}
	if code, out, errs := ours(approver, "status"); code != exitDone || !strings.Contains(out, "keep "+c.node+" closed afterwards: kubectl annotate node "+c.node+" unpend.dev/keep-cordoned=true") || strings.Contains(out, "ORPHANED") {
		t.Errorf("%d %s%s", code, out, errs)
	}
	if code, out, errs := ours(approver, "reject", c.rem.Name[:12], "--reason", "the nightly job"); code != exitDone {
		t.Errorf("%d %s%s", code, out, errs)
	}
	if code := x.exits(t, time.Minute); code != exitError {
		t.Errorf("exit code %d", code)
	}
	status := c.ends(t, time.Second)
	if status.Phase != v1alpha1.Stopped || !strings.Contains(status.Message, approver+" said no: the nightly job") || status.Evicted != 1 {
		t.Errorf("%s, %d evicted: %s", status.Phase, status.Evicted, status.Message)
	}
	c.settled(t)
}

func (c *cell) nodeOf(t *testing.T) *corev1.Node {
	t.Helper()
	n, err := c.Client().CoreV1().Nodes().Get(t.Context(), c.node, metav1.GetOptions{})
	must(t, err)
	return n
}

// mark leaves the node as an operation does whose owner is gone.
func (c *cell) mark(t *testing.T, op *diagnosis.Operation) {
	t.Helper()
	text, err := op.Annotation()
	must(t, err)
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}},"spec":{"unschedulable":true}}`, diagnosis.OperationAnnotation, text)
	_, err = c.Client().CoreV1().Nodes().Patch(t.Context(), c.node, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: plan.FieldManager})
	must(t, err)
}

// Who has all rights of an approver and is not in the chart's list is refused before the
// first write: the node is not cordoned, and no operation has failed.
func TestStrangerIsRefusedBeforeTheFirstWrite(t *testing.T) {
	needsControlPlane(t)
	l := newLane(t)
	c := l.newCell(t)
	l.permit(t, "zed", "approvals", "get", "create")
	_, err := l.Client().RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "zed-approves"},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "approver"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "zed"}}}, metav1.CreateOptions{})
	must(t, err)
	began := time.Now()
	_, err = l.storeAs(t, "zed").Decide(t.Context(), plan.NewApproval(c.rem, "zed", nil, v1alpha1.Approve))
	must(t, err)
	startExecutor(t, "executor-0", executorConfig(t, c.ns, unhurried), newFaultProxy(t, l, c.ns, "executor-"+c.ns))
	status := c.ends(t, time.Minute)
	if status.Phase != v1alpha1.Refused || !strings.Contains(status.Message, "so it cannot act as zed: the chart lists people in remediate.approvers") || len(status.Journal) > 0 {
		t.Errorf("%s: %s, %d steps", status.Phase, status.Message, len(status.Journal))
	}
	c.settled(t)
	c.running(t)
	for _, e := range l.writesBy(t, "executor-"+c.ns) {
		if e.ObjectRef.Resource != "remediations" && e.Received.After(began) {
			t.Errorf("written: %s %s", e.Verb, e.RequestURI)
		}
	}
}
