package admit

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/edit/edittest"
	"github.com/unpend/unpend/rca/rcatest"
	"github.com/unpend/unpend/watcher/incident"
)

// world is a small cluster that a test fills, in which pod a/w of deployment a/w waits.
type world struct{ *edittest.World }

func newWorld() *world { return &world{edittest.New()} }

// bench is what the pod that waits is made from, of a workload of that kind named w.
func (w *world) bench(t *testing.T, kind string) *edit.Workload {
	t.Helper()
	return edit.New(w.Case(t, kind))
}

func list(pairs ...string) corev1.ResourceList { return rcatest.List(pairs...) }

// A quota is raised by what the pods that do not exist need, in all that they lack, and their
// owner is woken where its controller would sleep.
func TestQuotasAreRaised(t *testing.T) {
	quota := func(name, namespace, hard, status, used string) *corev1.ResourceQuota {
		return &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: "q"}, Spec: corev1.ResourceQuotaSpec{Hard: list("pods", hard)},
			Status: corev1.ResourceQuotaStatus{Hard: list("pods", status), Used: list("pods", used)}}
	}
	for name, tc := range map[string]struct {
		quotas  []*corev1.ResourceQuota
		owner   string
		want    string
		actions int
	}{
		"one":                        {[]*corev1.ResourceQuota{quota("q", "a", "2", "2", "2")}, "ReplicaSet", "raise quota q: pods 2 → 5", 2},
		"some of it is free":         {[]*corev1.ResourceQuota{quota("q", "a", "4", "4", "2")}, "ReplicaSet", "raise quota q: pods 4 → 5", 2},
		"two":                        {[]*corev1.ResourceQuota{quota("p", "a", "3", "3", "3"), quota("q", "a", "2", "2", "2")}, "ReplicaSet", "raise quota p: pods 3 → 6; raise quota q: pods 2 → 5", 3},
		"one has enough":             {[]*corev1.ResourceQuota{quota("p", "a", "9", "9", "2"), quota("q", "a", "2", "2", "2")}, "ReplicaSet", "raise quota q: pods 2 → 5", 2},
		"of another namespace":       {[]*corev1.ResourceQuota{quota("q", "b", "2", "2", "2")}, "ReplicaSet", "", 0},
		"it is raised already":       {[]*corev1.ResourceQuota{quota("q", "a", "5", "2", "2")}, "ReplicaSet", "", 0},
		"raised, and not enough":     {[]*corev1.ResourceQuota{quota("q", "a", "4", "2", "2")}, "ReplicaSet", "raise quota q: pods 4 → 5", 2},
		"Jobs wake by themselves":    {[]*corev1.ResourceQuota{quota("q", "a", "2", "2", "2")}, "Job", "raise quota q: pods 2 → 5", 1},
		"an owner that was not read": {[]*corev1.ResourceQuota{quota("q", "a", "2", "2", "2")}, "StatefulSet", "raise quota q: pods 2 → 5", 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.Quotas = tc.quotas
			w.ReplicaSets = []*appsv1.ReplicaSet{{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "w", UID: "r"}}}
			w.Pods = nil
			c := w.unborn(t, tc.owner)
			ch, ok := raiseQuota(c)
			if ch.Title != tc.want || ok != (tc.want != "") || ok && len(ch.Actions) != tc.actions {
				t.Errorf("%q, %v, %d actions; want %q, %d", ch.Title, ok, len(ch.Actions), tc.want, tc.actions)
			}
		})
	}
}

// unborn is that of a workload of which no pod exists: three are refused.
func (w *world) unborn(t *testing.T, kind string) *edit.Workload {
	t.Helper()
	w.Pods = append(w.Pods, w.Wait)
	c := w.bench(t, kind)
	c.Unborn = true
	c.Refused.All = []incident.Refusal{{Owner: incident.Ref{Kind: kind, Namespace: "a", Name: "w"}, Pod: w.Wait, Wants: 3, Missing: 3}}
	w.Pods = nil
	return c
}

// Holders that end by themselves are waited for before those that do not, as many as one pod
// needs.
func TestWhoLeavesQuotaFree(t *testing.T) {
	deadline := int64(60)
	holders := func(edits ...func(*corev1.Pod)) []*corev1.Pod {
		var out []*corev1.Pod
		for i, edit := range edits {
			p := rcatest.Victim(fmt.Sprint("p", i), 0, 1, 0, "p")
			edit(p)
			out = append(out, p)
		}
		return out
	}
	as := func(policy corev1.RestartPolicy) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Spec.RestartPolicy = policy }
	}
	server := as(corev1.RestartPolicyAlways)
	waits := func(p *corev1.Pod) { p.Spec.RestartPolicy, p.Spec.NodeName = corev1.RestartPolicyNever, "" }
	for name, tc := range map[string]struct {
		pods []*corev1.Pod
		hard string
		want string
	}{
		"one that ends":               {holders(server, as(corev1.RestartPolicyNever)), "2", "a/p1 ends"},
		"one that ends once it works": {holders(server, as(corev1.RestartPolicyOnFailure)), "2", "a/p1 ends"},
		"one that may not go on":      {holders(server, func(p *corev1.Pod) { server(p); p.Spec.ActiveDeadlineSeconds = &deadline }), "2", "a/p1 ends"},
		"none ends":                   {holders(server, server), "2", "a/p0 is stopped, which nothing says will be"},
		"more is held than may be":    {holders(server, as(corev1.RestartPolicyNever), as(corev1.RestartPolicyNever)), "2", "2 pods (a/p1, …) ends"},
		"it may have none":            {holders(server), "0", ""},
		"one that waits itself":       {holders(waits), "1", "a/p0 is gone"},
		"one that runs before it":     {holders(waits, as(corev1.RestartPolicyNever)), "2", "a/p1 ends"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.Quotas = []*corev1.ResourceQuota{{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "q"}, Spec: corev1.ResourceQuotaSpec{Hard: list("pods", tc.hard)},
				Status: corev1.ResourceQuotaStatus{Hard: list("pods", tc.hard), Used: list("pods", fmt.Sprint(len(tc.pods)))}}}
			c := w.unborn(t, "ReplicaSet")
			c.Cluster.State.Pods = tc.pods
			ch, ok := waitForQuota(c, c.Refused.Refusing())
			if got := ch.Until; got != tc.want || ok != (tc.want != "") {
				t.Errorf("%q, %v; want %q", got, ok, tc.want)
			}
		})
	}
}

// A quota that is used up is raised, or somebody leaves it; one that demands what the pod does
// not say, or none that is known, a person has to see.
func TestWhatHelpsAgainstQuotas(t *testing.T) {
	const look = "by hand, none risk: look at the quotas of a"
	for name, tc := range map[string]struct {
		hard corev1.ResourceList
		want string
	}{
		"none refuses":        {list("pods", "5"), look},
		"one demands a limit": {list("limits.cpu", "5"), look},
		"one is used up":      {list("pods", "0"), "by plan, medium risk: raise quota q: pods 0 → 3"},
		"one demands, and is": {list("limits.cpu", "5", "pods", "0"), "by plan, medium risk: raise quota q: pods 0 → 3"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.Quotas = []*corev1.ResourceQuota{{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "q"}, Spec: corev1.ResourceQuotaSpec{Hard: tc.hard}, Status: corev1.ResourceQuotaStatus{Hard: tc.hard, Used: list("pods", "0")}}}
			if got := edittest.ToldAll(AgainstQuotas(w.unborn(t, "ReplicaSet"))); got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}

// What a quota wants stated is limited to what is requested where that is known, and no more
// quota is offered; where nothing is known a person says how much.
func TestWhatHelpsAgainstDemands(t *testing.T) {
	for name, tc := range map[string]struct {
		hard, requests corev1.ResourceList
		want           string
	}{
		"a limit of what is requested": {list("limits.cpu", "5"), list("cpu", "2"), "by hand, medium risk: limit its containers to what they request in replicaset/w; by hand, none risk: give a a LimitRange with defaults for what its pods do not state (the amounts are a share of a node, and hold for every pod of a that states none)"},
		"nobody knows how much":        {list("limits.memory", "9Gi"), nil, "by hand, none risk: state limits.memory of container c in replicaset/w (how much its containers need nobody has said: the amounts are a share of a node); by hand, none risk: give a a LimitRange with defaults for what its pods do not state (the amounts are a share of a node, and hold for every pod of a that states none)"},
		"nothing is demanded":          {list("pods", "5"), nil, "by hand, none risk: look at the quotas of a"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.Quotas = []*corev1.ResourceQuota{{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "q"}, Spec: corev1.ResourceQuotaSpec{Hard: tc.hard}, Status: corev1.ResourceQuotaStatus{Hard: tc.hard, Used: list("pods", "0")}}}
			c := w.unborn(t, "ReplicaSet")
			c.Refused.Next().Spec.Containers[0].Resources.Requests = tc.requests
			if got := edittest.ToldAll(StateRequests(c)); got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}
