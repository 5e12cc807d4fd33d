package deploy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/unpend/unpend/testdata/controlplane"
)

const itself = "system:serviceaccount:unpend:unpend-executor"

// S12: what somebody can do who has taken the executor's token.
func executorCompromised(t *testing.T, cp *controlplane.ControlPlane) tally {
	var n tally
	its := asExecutor(t, cp)
	client := kubernetes.NewForConfigOrDie(its)
	for _, ns := range []string{"unpend", "gpu-operator"} {
		golden(t, "executor-can-i-"+ns+".yaml", canI(t, client, ns))
		n.check(t, "what it can in "+ns, fmt.Sprint("differs ", t.Failed()), "differs false")
	}
	nodeWrites(t, &n, cp, its)
	victims(t, cp)
	ownHands(t, &n, client)
	ownObjects(t, &n, cp, client)
	othersHands(t, &n, cp, its)
	return n
}

// canI is `kubectl auth can-i --list`.
func canI(t *testing.T, client kubernetes.Interface, namespace string) []byte {
	t.Helper()
	review := &authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: namespace}}
	got, err := client.AuthorizationV1().SelfSubjectRulesReviews().Create(t.Context(), review, metav1.CreateOptions{})
	if err != nil || got.Status.Incomplete {
		t.Fatal(got, err)
	}
	rules := got.Status.ResourceRules
	slices.SortFunc(rules, func(a, b authorizationv1.ResourceRule) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	data, err := yaml.Marshal(rules)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// victims makes pods, and people with rights on them: ada by name in team-a, the
// group gpu-admins in team-b, mallory everywhere, who is not listed.
func victims(t *testing.T, cp *controlplane.ControlPlane) {
	t.Helper()
	evict := rule("", []string{"create"}, "pods/eviction")
	for _, ns := range []string{"team-a", "team-b"} {
		makeNamespace(t, cp.Client(), ns, nil)
		cp.WaitForServiceAccount(t, ns)
		for _, name := range []string{"one", "two", "three"} {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{
				NodeSelector: map[string]string{"nowhere": "true"}, Containers: []corev1.Container{{Name: "c", Image: "x"}}}}
			if _, err := cp.Client().CoreV1().Pods(ns).Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		grant(t, cp, ns, "mallorys", toUser("mallory"), evict)
	}
	grant(t, cp, "team-a", "adas", toUser("ada"), evict, rule("", []string{"get", "delete", "patch", "create"}, "pods", "pods/status", "pods/exec", "secrets"))
	grant(t, cp, "team-b", "admins", toGroup("gpu-admins"), evict)
	grant(t, cp, "", "nodes-too", toUser("ada"), rule("", []string{"patch"}, "nodes"))
	waitForEviction(t, cp, "ada", "", "team-a")
	waitForEviction(t, cp, "mia", "gpu-admins", "team-b")
	waitForEviction(t, cp, "mallory", "", "team-b")
}

func waitForEviction(t *testing.T, cp *controlplane.ControlPlane, user, group, ns string) {
	t.Helper()
	controlplane.Eventually(t, 10*time.Second, user+" may evict in "+ns, func() (bool, string) {
		got, err := cp.Client().AuthorizationV1().SubjectAccessReviews().Create(t.Context(), &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: user, Groups: []string{group}, ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: ns, Verb: "create", Resource: "pods", Subresource: "eviction"}}}, metav1.CreateOptions{})
		return err == nil && got.Status.Allowed, fmt.Sprint(err)
	})
}

func evict(t *testing.T, client kubernetes.Interface, ns, pod string) string {
	t.Helper()
	return answer(client.PolicyV1().Evictions(ns).Evict(t.Context(), &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: pod}}))
}

// ownHands: in its own name it touches no pod, no workload, no Secret.
func ownHands(t *testing.T, n *tally, client kubernetes.Interface) {
	t.Helper()
	ctx, core := t.Context(), client.CoreV1()
	merge := []byte(`{"metadata":{"labels":{"a":"b"}}}`)
	for want, try := range map[string]func() error{
		"create pods/eviction": func() error {
			return client.PolicyV1().Evictions("team-a").Evict(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "one"}})
		},
		"delete pods": func() error { return core.Pods("team-a").Delete(ctx, "one", metav1.DeleteOptions{}) },
		"deletecollection pods": func() error {
			return core.Pods("team-a").DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
		},
		"patch pods": func() error {
			_, err := core.Pods("team-a").Patch(ctx, "one", types.MergePatchType, merge, metav1.PatchOptions{})
			return err
		},
		"patch pods/status": func() error {
			_, err := core.Pods("team-a").Patch(ctx, "one", types.MergePatchType, merge, metav1.PatchOptions{}, "status")
			return err
		},
		"create pods": func() error {
			_, err := core.Pods("unpend").Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "x"}}, metav1.CreateOptions{})
			return err
		},
		"create pods/exec": func() error {
			return core.RESTClient().Post().Namespace("team-a").Resource("pods").Name("one").SubResource("exec").Do(ctx).Error()
		},
		"get pods/log": func() error { return core.Pods("team-a").GetLogs("one", &corev1.PodLogOptions{}).Do(ctx).Error() },
		"create serviceaccounts/token": func() error {
			return core.RESTClient().Post().Namespace("unpend").Resource("serviceaccounts").Name("unpend").SubResource("token").Do(ctx).Error()
		},
		"list secrets": func() error { return core.RESTClient().Get().Resource("secrets").Do(ctx).Error() },
		"get secrets": func() error {
			return core.RESTClient().Get().Namespace("unpend").Resource("secrets").Name("x").Do(ctx).Error()
		},
		"list configmaps": func() error {
			_, err := core.ConfigMaps("unpend").List(ctx, metav1.ListOptions{})
			return err
		},
		"patch deployments.apps": func() error {
			_, err := client.AppsV1().Deployments("unpend").Patch(ctx, "unpend", types.MergePatchType, merge, metav1.PatchOptions{})
			return err
		},
		"patch resourcequotas": func() error {
			_, err := core.ResourceQuotas("team-a").Patch(ctx, "q", types.MergePatchType, merge, metav1.PatchOptions{})
			return err
		},
		"delete validatingadmissionpolicies.admissionregistration.k8s.io": func() error {
			return client.AdmissionregistrationV1().ValidatingAdmissionPolicies().Delete(ctx, "unpend.unpend-executor-nodes", metav1.DeleteOptions{})
		},
		"patch clusterroles.rbac.authorization.k8s.io": func() error {
			_, err := client.RbacV1().ClusterRoles().Patch(ctx, "unpend:unpend-executor", types.MergePatchType, merge, metav1.PatchOptions{})
			return err
		},
	} {
		n.check(t, want, answer(try()), "RBAC: "+itself+" cannot "+want)
	}
}

// ownObjects: in its namespace the Leases and two ConfigMaps, in the operator's the
// layouts, by name.
func ownObjects(t *testing.T, n *tally, cp *controlplane.ControlPlane, client kubernetes.Interface) {
	t.Helper()
	ctx, maps := t.Context(), client.CoreV1().ConfigMaps("unpend")
	for _, name := range []string{"default-mig-parted-config", "other"} {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if _, err := cp.Client().CoreV1().ConfigMaps("gpu-operator").Create(ctx, cm, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	patch := func(ns, name, data string) error {
		_, err := client.CoreV1().ConfigMaps(ns).Patch(ctx, name, types.MergePatchType, []byte(data), metav1.PatchOptions{})
		return err
	}
	get := func(ns, name string) error {
		_, err := client.CoreV1().ConfigMaps(ns).Get(ctx, name, metav1.GetOptions{})
		return err
	}
	apply := func(name string) error {
		_, err := maps.Apply(ctx, corev1apply.ConfigMap(name, "unpend").WithData(map[string]string{"open": "true"}), metav1.ApplyOptions{FieldManager: "unpend", Force: true})
		return err
	}
	cannot := func(what string) string { return "RBAC: " + itself + " cannot " + what + " configmaps" }
	n.check(t, "read the guards", answer(get("unpend", "unpend-guards")), "yes")
	n.check(t, "turn the kill switch off", answer(patch("unpend", "unpend-guards", `{"data":{"paused":"false"}}`)), cannot("patch"))
	n.check(t, "read the configuration", answer(get("unpend", "unpend")), cannot("get"))
	n.check(t, "open the breaker", answer(patch("unpend", "unpend-breaker", `{"data":{"open":"true"}}`)), "yes")
	if err := cp.Client().CoreV1().ConfigMaps("unpend").Delete(ctx, "unpend-breaker", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	_, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "unpend-breaker"}}, metav1.CreateOptions{})
	n.check(t, "make the breaker by a POST", answer(err), cannot("create"))
	n.check(t, "make the breaker by an apply", answer(apply("unpend-breaker")), "yes")
	n.check(t, "make another ConfigMap", answer(apply("mine")), cannot("patch"))
	n.check(t, "add a layout", answer(patch("gpu-operator", "default-mig-parted-config", `{"data":{"config.yaml":"x"}}`)), "yes")
	n.check(t, "change another ConfigMap there", answer(patch("gpu-operator", "other", `{"data":{"a":"b"}}`)), cannot("patch"))
	w, err := maps.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=unpend-guards"})
	n.check(t, "watch the kill switch", answer(err), "yes")
	if err == nil {
		w.Stop()
	}
	_, err = maps.Watch(ctx, metav1.ListOptions{})
	n.check(t, "watch all ConfigMaps", answer(err), cannot("watch"))
	_, err = client.CoordinationV1().Leases("kube-system").List(ctx, metav1.ListOptions{})
	n.check(t, "read leases elsewhere", answer(err), "yes")
	n.check(t, "take a lease elsewhere", answer(client.CoordinationV1().Leases("kube-system").Delete(ctx, "x", metav1.DeleteOptions{})), "RBAC: "+itself+" cannot delete leases.coordination.k8s.io")
}

// othersHands: as a listed approver it evicts what that one may evict, and does
// nothing else; as anybody else nothing.
func othersHands(t *testing.T, n *tally, cp *controlplane.ControlPlane, its *rest.Config) {
	t.Helper()
	cannot := func(who, what string) string { return "RBAC: " + who + " cannot " + what }
	actAs := func(what string) string {
		return cannot(itself, "impersonate:user-info "+what+".authentication.k8s.io")
	}
	for _, c := range []struct {
		what   string
		user   string
		groups []string
		ns     string
		want   string
	}{
		{"as one who has the right", "ada", nil, "team-a", "yes"},
		{"as one without the right there", "ada", nil, "team-b", cannot("ada", "create pods/eviction")},
		{"by name alone, whose right is the group's", "grace", nil, "team-b", cannot("grace", "create pods/eviction")},
		{"by name and group", "grace", []string{"gpu-admins"}, "team-b", "yes"},
		{"as one who is not listed", "mallory", nil, "team-a", actAs("users")},
		{"as a member of the group who is not listed", "mia", []string{"gpu-admins"}, "team-b", actAs("users")},
		{"with a group that is not listed", "ada", []string{"developers"}, "team-a", actAs("groups")},
		{"with many groups, one of them not listed", "ada", []string{"gpu-admins", "on call", "gpu-admins", "on call", "developers"}, "team-a", actAs("groups")},
		{"with the masters", "ada", []string{"system:masters"}, "team-a", actAs("groups")},
		{"as an admin", "admin", nil, "team-a", actAs("users")},
		{"as a ServiceAccount", "system:serviceaccount:kube-system:job-controller", nil, "team-a", cannot(itself, "impersonate-on:serviceaccount:create pods/eviction")},
		{"as itself, once more", itself, nil, "team-a", cannot(itself, "impersonate-on:serviceaccount:create pods/eviction")},
		{"as a node", "system:node:gpu-1", nil, "team-a", cannot(itself, "impersonate-on:arbitrary-node:create pods/eviction")},
	} {
		n.check(t, "evicts "+c.what, evict(t, as(its, c.user, c.groups...), c.ns, "one"), c.want)
	}
	nothingElse(t, n, as(its, "ada"))
	n.same(t, "pods that are left", podsIn(t, cp), "team-a/three team-a/two team-b/three team-b/two ")
	bothNames(t, n, cp)
}

// nothingElse: as ada, who has the right to all of this.
func nothingElse(t *testing.T, n *tally, adas kubernetes.Interface) {
	t.Helper()
	ctx := t.Context()
	on := func(verb, what string) string {
		return "RBAC: " + itself + " cannot impersonate-on:user-info:" + verb + " " + what
	}
	merge := []byte(`{"metadata":{"labels":{"a":"b"}}}`)
	for want, try := range map[string]func() error{
		on("delete", "pods"): func() error { return adas.CoreV1().Pods("team-a").Delete(ctx, "two", metav1.DeleteOptions{}) },
		on("get", "pods"): func() error {
			_, err := adas.CoreV1().Pods("team-a").Get(ctx, "two", metav1.GetOptions{})
			return err
		},
		on("patch", "pods"): func() error {
			_, err := adas.CoreV1().Pods("team-a").Patch(ctx, "two", types.MergePatchType, merge, metav1.PatchOptions{})
			return err
		},
		on("patch", "pods/status"): func() error {
			_, err := adas.CoreV1().Pods("team-a").Patch(ctx, "two", types.MergePatchType, merge, metav1.PatchOptions{}, "status")
			return err
		},
		on("create", "pods/exec"): func() error {
			return adas.CoreV1().RESTClient().Post().Namespace("team-a").Resource("pods").Name("two").SubResource("exec").Do(ctx).Error()
		},
		on("get", "secrets"): func() error {
			_, err := adas.CoreV1().Secrets("team-a").Get(ctx, "x", metav1.GetOptions{})
			return err
		},
		on("patch", "nodes"): func() error {
			_, err := adas.CoreV1().Nodes().Patch(ctx, "fenced", types.MergePatchType, merge, metav1.PatchOptions{})
			return err
		},
	} {
		n.check(t, "as ada, who may", answer(try()), want)
	}
}

func podsIn(t *testing.T, cp *controlplane.ControlPlane) string {
	t.Helper()
	var out strings.Builder
	for _, ns := range []string{"team-a", "team-b"} {
		list, err := cp.Client().CoreV1().Pods(ns).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range list.Items {
			if p.DeletionTimestamp == nil && len(p.Labels) == 0 {
				out.WriteString(ns + "/" + p.Name + " ")
			}
		}
	}
	return out.String()
}

// bothNames: the API server's own log says who was evicted, who evicted it, and in whose name.
func bothNames(t *testing.T, n *tally, cp *controlplane.ControlPlane) {
	t.Helper()
	seen := map[string]bool{}
	controlplane.Eventually(t, 5*time.Second, "the audit log has both evictions", func() (bool, string) {
		for _, e := range cp.Impersonations(t) {
			if e.ObjectRef.Subresource == "eviction" && e.ResponseStatus.Code == 201 {
				seen[fmt.Sprintf("%s as %s by %s: %s/%s", e.User.Username, e.As.Username, e.By.Constraint, e.ObjectRef.Namespace, e.ObjectRef.Name)] = true
			}
		}
		return len(seen) >= 2, fmt.Sprint(seen)
	})
	n.same(t, "evictions in the audit log", seen, map[string]bool{
		itself + " as ada by impersonate:user-info: team-a/one":   true,
		itself + " as grace by impersonate:user-info: team-b/one": true,
	})
}
