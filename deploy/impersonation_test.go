package deploy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/unpend/unpend/testdata/chart"
	"github.com/unpend/unpend/testdata/controlplane"
)

// What acting as an approver takes, rule by rule; what is left of it where the API
// server is too old for it; and the kill switch under an upgrade.
func TestImpersonation(t *testing.T) {
	t.Parallel() // it waits for a control plane of its own
	cp := controlplane.Start(t)
	objs := chart.Release{Namespace: namespace, Kubernetes: "v1.35.0", Values: approve()}.Objects(t)
	installAll(t, cp, objs)
	victims(t, cp)
	t.Run("every rule is needed", func(t *testing.T) { ruleByRule(t, cp) })
	t.Run("below 1.36", func(t *testing.T) { legacy(t, cp) })
	t.Run("an upgrade does not turn the kill switch off", func(t *testing.T) { staysPaused(t, cp) })
}

// ruleByRule gives an account one rule after another, and some that look right; the
// last makes the eviction possible. A success is remembered for 10 s by the API
// server, so rules are added, not taken away.
func ruleByRule(t *testing.T, cp *controlplane.ControlPlane) {
	const trial = "system:serviceaccount:team-a:trial"
	if _, err := cp.Client().CoreV1().ServiceAccounts("team-a").Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "trial"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	its := accountConfig(t, cp, "team-a", "trial")
	grant(t, cp, "", "trial", rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: "team-a", Name: "trial"})
	named := func(group, resource string, names ...string) rbacv1.PolicyRule {
		r := rule(group, []string{"impersonate:user-info"}, resource)
		r.ResourceNames = names
		return r
	}
	const auth = "authentication.k8s.io"
	on := []string{"impersonate-on:user-info:create"}
	var rules []rbacv1.PolicyRule
	for _, c := range []struct {
		add  rbacv1.PolicyRule
		want string // the first thing that is missing; as grace with gpu-admins
	}{
		{rule("", []string{"get"}, "pods"), "impersonate-on:user-info:create pods/eviction"},
		{rule("", on, "pods"), "impersonate-on:user-info:create pods/eviction"},
		{rule("policy", on, "evictions", "pods/eviction"), "impersonate-on:user-info:create pods/eviction"},
		{rule("", on, "pods/eviction"), "impersonate:user-info users." + auth},
		{named("", "users", "grace"), "impersonate:user-info users." + auth},
		{named(auth, "users", "ada"), "impersonate:user-info users." + auth},
		{named(auth, "users", "grace"), "impersonate:user-info groups." + auth},
		{named(auth, "groups", "system:masters"), "impersonate:user-info groups." + auth},
		{named(auth, "groups", "gpu-admins"), ""},
	} {
		rules = append(rules, c.add)
		setRules(t, cp, its.BearerToken, rules)
		want := "yes"
		if c.want != "" {
			want = "RBAC: " + trial + " cannot " + c.want
		}
		if got := evict(t, as(its, "grace", "gpu-admins"), "team-b", "three"); got != want {
			t.Errorf("after %v: %s; want %s", c.add, got, want)
		}
	}
	err := as(its, "grace", "gpu-admins", "system:masters").CoreV1().Pods("team-b").Delete(t.Context(), "two", metav1.DeleteOptions{})
	if err == nil {
		t.Error("deleted as a master")
	}
	_, err = as(its, "grace", "system:masters").CoreV1().Pods("team-b").Create(t.Context(), &corev1.Pod{}, metav1.CreateOptions{DryRun: dryRun})
	if err == nil || !strings.Contains(err.Error(), "impersonating the system:masters group is not allowed") {
		t.Errorf("a listed system:masters: %v", err)
	}
}

// setRules sets the trial's rules and waits until RBAC knows the last of them.
func setRules(t *testing.T, cp *controlplane.ControlPlane, token string, rules []rbacv1.PolicyRule) {
	t.Helper()
	roles := cp.Client().RbacV1().ClusterRoles()
	role, err := roles.Get(t.Context(), "trial", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	role.Rules = rules
	if _, err := roles.Update(t.Context(), role, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	last := rules[len(rules)-1]
	resource, sub, _ := strings.Cut(last.Resources[0], "/")
	ask := &authorizationv1.ResourceAttributes{Verb: last.Verbs[0], Group: last.APIGroups[0], Resource: resource, Subresource: sub}
	if len(last.ResourceNames) > 0 {
		ask.Name = last.ResourceNames[0]
	}
	config := cp.Config()
	config.CertData, config.KeyData, config.BearerToken = nil, nil, token
	reviews := kubernetes.NewForConfigOrDie(config).AuthorizationV1().SelfSubjectAccessReviews()
	controlplane.Eventually(t, 10*time.Second, fmt.Sprint(last), func() (bool, string) {
		got, err := reviews.Create(t.Context(), &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: ask}}, metav1.CreateOptions{})
		return err == nil && got.Status.Allowed, fmt.Sprint(err)
	})
}

// legacy: the names are bound all the same; what is done in them is not, and the
// values say so.
func legacy(t *testing.T, cp *controlplane.ControlPlane) {
	its := asExecutor(t, cp)
	var n tally
	for _, c := range []struct {
		user   string
		groups []string
		ns     string
		want   string
	}{
		{"ada", nil, "team-a", "yes"},
		{"ada", nil, "team-b", "RBAC: ada cannot create pods/eviction"},
		{"grace", []string{"gpu-admins"}, "team-b", "yes"},
		{"mallory", nil, "team-a", "RBAC: " + itself + " cannot impersonate users"},
		{"ada", []string{"developers"}, "team-a", "RBAC: " + itself + " cannot impersonate groups"},
		{"ada", []string{"system:masters"}, "team-a", "RBAC: " + itself + " cannot impersonate groups"},
		{"system:serviceaccount:kube-system:job-controller", nil, "team-a", "RBAC: " + itself + " cannot impersonate serviceaccounts"},
	} {
		n.check(t, fmt.Sprint(c.user, c.groups, c.ns), evict(t, as(its, c.user, c.groups...), c.ns, "one"), c.want)
	}
	if _, err := as(its, "ada").CoreV1().Secrets("team-a").Get(t.Context(), "x", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("as ada, who may read Secrets: %v; the values say it can do all that she can", err)
	}
	controlplane.Eventually(t, 5*time.Second, "both names in the audit log, without a constraint", func() (bool, string) {
		var seen []string
		for _, e := range cp.Impersonations(t) {
			if e.User.Username == itself && e.ObjectRef.Subresource == "eviction" && e.ResponseStatus.Code == 201 {
				seen = append(seen, e.As.Username+e.By.Constraint)
			}
		}
		return slices.Equal(seen, []string{"ada", "grace"}), fmt.Sprint(seen)
	})
}

// staysPaused renders as `helm upgrade` does, which can look at what is there.
func staysPaused(t *testing.T, cp *controlplane.ControlPlane) {
	paused := func(v values) string {
		t.Helper()
		c := chart.Load(t, "unpend")
		caps := chartutil.DefaultCapabilities.Copy()
		caps.KubeVersion = chartutil.KubeVersion{Version: controlplane.Version}
		all, err := chartutil.ToRenderValues(c, v, chartutil.ReleaseOptions{Name: "unpend", Namespace: namespace, IsUpgrade: true}, caps)
		if err != nil {
			t.Fatal(err)
		}
		files, err := engine.RenderWithClient(c, all, cp.Config())
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range chart.Parse(t, files) {
			if o.GetName() == "unpend-guards" {
				return fmt.Sprint(o.Object["data"].(values)["paused"])
			}
		}
		return "no ConfigMap"
	}
	if got := paused(approve()); got != "false" {
		t.Errorf("before: %s", got)
	}
	if got := paused(everything()); got != "true" {
		t.Errorf("by the values: %s", got)
	}
	if _, err := cp.Client().CoreV1().ConfigMaps(namespace).Patch(t.Context(), "unpend-guards", types.MergePatchType, []byte(`{"data":{"paused":"true"}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := paused(approve()); got != "true" {
		t.Errorf("after somebody has set it: %s", got)
	}
}
