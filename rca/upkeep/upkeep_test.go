package upkeep

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/view"
)

// Who has closed a node shows in traces of its own, on the node or beside it; of another node they
// tell nothing, and nothing of a node that is open.
func TestWhoHasClosedANode(t *testing.T) {
	kured := func(lock string) func(*cluster.State, *corev1.Node) {
		return func(st *cluster.State, _ *corev1.Node) {
			st.DaemonSets = append(st.DaemonSets, &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kured", Annotations: map[string]string{RebootLock: lock}}})
		}
	}
	job := func(node, plan string, conditions ...batchv1.JobCondition) func(*cluster.State, *corev1.Node) {
		return func(st *cluster.State, _ *corev1.Node) {
			st.Jobs = append(st.Jobs, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "system-upgrade", Name: "apply", Labels: map[string]string{upgradedNode: node, upgradePlan: plan}}, Status: batchv1.JobStatus{Conditions: conditions}})
		}
	}
	is := func(kind batchv1.JobConditionType, status corev1.ConditionStatus) batchv1.JobCondition {
		return batchv1.JobCondition{Type: kind, Status: status}
	}
	machine := func(state, reason string) func(*cluster.State, *corev1.Node) {
		return func(_ *cluster.State, n *corev1.Node) {
			n.Annotations = map[string]string{machineConfig + "state": state, machineConfig + "reason": reason}
		}
	}
	const reboots = "kured: kured holds its lock for it since 2026-11-20 02:10 UTC, to drain and reboot it (again) | DaemonSet/kube-system/kured: its lock is held for n since 2026-11-20 02:10 UTC"
	for name, k := range map[string]struct {
		edit func(*cluster.State, *corev1.Node)
		want string
	}{
		"nobody":                   {func(*cluster.State, *corev1.Node) {}, ""},
		"kured":                    {kured(`{"nodeID":"n","created":"2026-11-20T02:10:00Z","TTL":0}`), reboots},
		"kured, of several":        {kured(`{"maxOwners":2,"locks":[{"nodeID":"m"},{"nodeID":"n","created":"2026-11-20T02:10:00Z"}]}`), reboots},
		"kured, nobody knows when": {kured(`{"nodeID":"n"}`), "kured: kured holds its lock for it, to drain and reboot it (again) | DaemonSet/kube-system/kured: its lock is held for n"},
		"kured, another node":      {kured(`{"nodeID":"m"}`), ""},
		"kured, nobody's turn":     {kured(""), ""},
		"kured, of no sense":       {kured("n"), ""},
		"a Plan":                   {job("n", "agents"), "Plan agents: upgrade Plan agents works on it (again) | Job/system-upgrade/apply: of Plan agents, is at work on n"},
		"a Plan that failed":       {job("n", "agents", is(batchv1.JobFailed, "True")), "Plan agents: perhaps left so by upgrade Plan agents, whose Job has failed there | Job/system-upgrade/apply: of Plan agents, for n, has failed"},
		"a Plan that has not":      {job("n", "agents", is(batchv1.JobFailed, "False")), "Plan agents: upgrade Plan agents works on it (again) | Job/system-upgrade/apply: of Plan agents, is at work on n"},
		"a Plan that is done":      {job("n", "agents", is(batchv1.JobComplete, "True")), ""},
		"a Plan, another node":     {job("m", "agents"), ""},
		"a Job of no Plan":         {job("n", ""), ""},
		"OpenShift":                {machine("Working", ""), "OpenShift: OpenShift works on its configuration (again) | Node/n: machineconfiguration.openshift.io/state is Working"},
		"OpenShift, in vain":       {machine("Degraded", "disk full"), "OpenShift: OpenShift could not give it its configuration: disk full (again) | Node/n: machineconfiguration.openshift.io/state is Degraded"},
		"OpenShift, and done":      {machine("Done", ""), ""},
	} {
		t.Run(name, func(t *testing.T) {
			n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Spec: corev1.NodeSpec{Unschedulable: true}}
			st := &cluster.State{Now: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC), Nodes: []*corev1.Node{n}, Unread: map[string]string{}}
			k.edit(st, n)
			w, got := view.New(st), ""
			if c := Of(w, w.Nodes["n"]); c != nil {
				got = c.Who + ": " + c.Says
				if c.Again {
					got += " (again)"
				}
				got += " | " + c.Evidence.Ref + ": " + c.Evidence.Fact
				if c.See == "" || len(c.Look) < 2 || len(c.Evidence.Claims) == 0 {
					t.Errorf("%+v", c)
				}
			}
			if got != k.want {
				t.Errorf("%s\nwant\n%s", got, k.want)
			}
			if n.Spec.Unschedulable = false; Of(w, w.Nodes["n"]) != nil {
				t.Error("the node is open")
			}
		})
	}
	if !strings.HasPrefix(RebootLock, "weave.works/") {
		t.Error(RebootLock)
	}
}
