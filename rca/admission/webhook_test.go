package admission

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/watcher/incident"
)

// A webhook that is asked about the pods of its own server's namespace, and answers nobody, keeps that server from coming
// back: where nobody there is on the way, and one is refused by the very same Service.
func TestWebhooksThatLockOutTheirServer(t *testing.T) {
	said := func(service, why string) string {
		return `Internal error occurred: failed calling webhook "pods.guard": failed to call webhook: Post "https://` + service + `.svc:443/mutate?timeout=10s": ` + why
	}
	const none, reset = `no endpoints available for service "guard"`, "dial tcp 10.0.0.1:443: connect: connection refused"
	server := func(owner, namespace string, wants, missing int, says string) incident.Refusal {
		return incident.Refusal{Owner: incident.Ref{Kind: "ReplicaSet", Namespace: namespace, Name: owner}, Pod: asking("p"), Wants: wants, Missing: missing, Says: says}
	}
	pod := func(namespace string, phase corev1.PodPhase, ready corev1.ConditionStatus) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "x"}, Status: corev1.PodStatus{Phase: phase, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}}}
	}
	const down = "possible: webhook down: an admission webhook fails: an admission webhook does not answer the API server: whatever it is asked about cannot be made"
	const locked = "possible: webhook locks out its server ops: a webhook blocks its own server: an admission webhook does not answer the API server, and it is asked about the pods of ops, too, where its own server (Service guard) is to run: none of them can be made while it is down"
	for name, tc := range map[string]struct {
		said   string
		others []incident.Refusal
		pods   []*corev1.Pod
		unread string
		want   string
		shown  string // owners
	}{
		"its server is refused":           {said("guard.ops", none), []incident.Refusal{server("guard", "ops", 1, 1, said("guard.ops", none))}, nil, "", locked, "guard"},
		"by the network's words":          {said("guard.ops", reset), []incident.Refusal{server("guard", "ops", 2, 2, said("guard.ops", reset))}, nil, "", locked, "guard"},
		"nobody there is refused":         {said("guard.ops", none), nil, nil, "", down, ""},
		"of another namespace":            {said("guard.ops", none), []incident.Refusal{server("guard", "web", 1, 1, said("guard.ops", none))}, nil, "", down, ""},
		"by another webhook's server":     {said("guard.ops", none), []incident.Refusal{server("guard", "ops", 1, 1, said("other.ops", none))}, nil, "", down, ""},
		"by that of another namespace":    {said("guard.ops", none), []incident.Refusal{server("guard", "ops", 1, 1, said("guard.web", none))}, nil, "", down, ""},
		"for another reason":              {said("guard.ops", none), []incident.Refusal{server("guard", "ops", 1, 1, "exceeded quota: q")}, nil, "", down, ""},
		"it has a pod":                    {said("guard.ops", none), []incident.Refusal{server("guard", "ops", 2, 1, said("guard.ops", none))}, nil, "", down, ""},
		"one is coming up":                {said("guard.ops", none), []incident.Refusal{server("guard", "ops", 1, 1, said("guard.ops", none))}, []*corev1.Pod{pod("ops", corev1.PodRunning, corev1.ConditionFalse)}, "", down, ""},
		"another's is, elsewhere":         {said("guard.ops", none), []incident.Refusal{server("guard", "ops", 1, 1, said("guard.ops", none))}, []*corev1.Pod{pod("web", corev1.PodRunning, corev1.ConditionFalse)}, "", locked, "guard"},
		"another of the namespace serves": {said("guard.ops", none), []incident.Refusal{server("guard", "ops", 1, 1, said("guard.ops", none))}, []*corev1.Pod{pod("ops", corev1.PodRunning, corev1.ConditionTrue)}, "", locked, "guard"},
		"one of it has ended":             {said("guard.ops", none), []incident.Refusal{server("guard", "ops", 1, 1, said("guard.ops", none))}, []*corev1.Pod{pod("ops", corev1.PodSucceeded, corev1.ConditionFalse)}, "", locked, "guard"},
		"pods were not read":              {said("guard.ops", none), []incident.Refusal{server("guard", "ops", 1, 1, said("guard.ops", none))}, nil, "forbidden", down, ""},
		"it is slow":                      {said("guard.ops", "context deadline exceeded"), []incident.Refusal{server("guard", "ops", 1, 1, said("guard.ops", none))}, nil, "", down, ""},
		"it is no Service":                {`failed calling webhook "w": Post "https://10.0.0.1/x": ` + none, []incident.Refusal{server("guard", "ops", 1, 1, said("guard.ops", none))}, nil, "", down, ""},
		"its own pods are meant":          {said("guard.ml", none), []incident.Refusal{server("w", "ml", 3, 3, said("guard.ml", none))}, nil, "", strings.ReplaceAll(locked, "ops", "ml"), ""},
		"many are": {said("guard.ops", none), []incident.Refusal{server("a", "ops", 1, 1, said("guard.ops", none)), server("b", "ops", 1, 1, said("guard.ops", none)), server("c", "ops", 1, 1, said("guard.ops", none)),
			server("d", "ops", 1, 1, said("guard.ops", none))}, nil, "", locked, "a b c"},
	} {
		t.Run(name, func(t *testing.T) {
			c := refused(&cluster.State{Unread: map[string]string{"Pod": tc.unread}, Pods: tc.pods}, asking("p"), tc.said)
			c.Cluster.Refusals = tc.others
			r := c.Refuses()
			var shown []string
			for _, e := range r.evidence {
				shown = append(shown, strings.TrimPrefix(e.Ref, "ReplicaSet/ops/"))
				if e.Fact != "has none of its pods: that webhook refuses them, too" || len(e.Claims) == 0 {
					t.Errorf("%+v", e)
				}
			}
			if got := toldRefusal(r); got != tc.want || strings.Join(shown, " ") != tc.shown {
				t.Errorf("%q, shown by %q; want %q by %q", got, shown, tc.want, tc.shown)
			}
		})
	}
}
