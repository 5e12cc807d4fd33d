package deploy_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/unpend/unpend/testdata/chart"
	"github.com/unpend/unpend/testdata/controlplane"
)

var (
	remediationsAPI = schema.GroupVersionResource{Group: "unpend.dev", Version: "v1alpha1", Resource: "remediations"}
	approvalsAPI    = schema.GroupVersionResource{Group: "unpend.dev", Version: "v1alpha1", Resource: "approvals"}
)

// The promises that the chart's permissions keep, on a real control plane with the
// whole chart installed in mode approve. Each prints its figure.
func TestPromise(t *testing.T) {
	t.Parallel() // it waits for a control plane of its own
	cp := controlplane.Start(t)
	installAll(t, cp, objects(t, approve()))
	for _, p := range []struct {
		name, says string
		run        func(*testing.T, *controlplane.ControlPlane) tally
	}{
		{"S05", "S5", whoMayDecide},
		{"S06", "S6", approvalsAreTrue},
		{"S12", "S12", executorCompromised},
		{"S19", "S19", allRestricted},
	} {
		t.Run(p.name, func(t *testing.T) {
			n := p.run(t, cp)
			fmt.Printf("%s %d/%d\n", p.says, n.held, n.held+n.broken)
		})
	}
}

// tally counts what was held to a promise.
type tally struct{ held, broken int }

func (n *tally) check(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		n.broken++
		t.Errorf("%s: %s; want %s", what, got, want)
		return
	}
	n.held++
}

// same is check for whole values.
func (n *tally) same(t *testing.T, what string, got, want any) {
	t.Helper()
	n.check(t, what, cmp.Diff(want, got), "")
}

// rbacSays: who cannot do what with which resource of which API group.
var rbacSays = regexp.MustCompile(`User "([^"]*)" cannot (\S+) resource "([^"]+)" in API group "([^"]*)"`)

// answer is how the API server took a request: by a policy means that RBAC allowed it.
func answer(err error) string {
	switch {
	case err == nil:
		return "yes"
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "ValidatingAdmissionPolicy"):
		_, because, _ := strings.Cut(err.Error(), "denied request: ")
		return "policy: " + because
	case apierrors.IsForbidden(err) && rbacSays.MatchString(err.Error()):
		said := rbacSays.FindStringSubmatch(err.Error())
		return "RBAC: " + said[1] + " cannot " + said[2] + " " + strings.TrimSuffix(said[3]+"."+said[4], ".")
	case apierrors.IsInvalid(err):
		return "invalid"
	case apierrors.IsAlreadyExists(err):
		return "there already"
	}
	return err.Error()
}

// kind leaves of an answer who said it.
func kind(answer string) string {
	says, _, _ := strings.Cut(answer, ": ")
	return says
}

// installAll installs everything of the chart, in namespaces as it asks for them.
func installAll(t *testing.T, cp *controlplane.ControlPlane, objs []*unstructured.Unstructured) {
	t.Helper()
	makeNamespace(t, cp.Client(), namespace, map[string]string{"pod-security.kubernetes.io/enforce": "restricted"})
	makeNamespace(t, cp.Client(), "gpu-operator", nil)
	makeRuntimeClass(t, cp.Client())
	send := chart.To(cp)
	for _, o := range objs {
		if err := send.Create(t, o); err != nil {
			t.Fatalf("%s %s: %v", o.GetKind(), o.GetName(), err)
		}
	}
	waitForPolicies(t, cp)
}

// waitForPolicies waits until admission, which follows policies by a watch, holds all
// three of them, and RBAC the last of the bindings.
func waitForPolicies(t *testing.T, cp *controlplane.ControlPlane) {
	t.Helper()
	makeNode(t, cp, "canary")
	its := asExecutor(t, cp)
	for what, try := range map[string]func() error{
		"the policy of nodes": func() error {
			return patchNode(t, its, "canary", `{"metadata":{"labels":{"a":"b"}}}`, metav1.PatchOptions{DryRun: dryRun})
		},
		"the policy of approvals": func() error {
			_, err := cp.Dynamic().Resource(approvalsAPI).Create(t.Context(), approval(hashOf("canary"), "nobody"), metav1.CreateOptions{DryRun: dryRun})
			return err
		},
		"the policy of remediations": func() error {
			_, err := cp.Dynamic().Resource(remediationsAPI).Create(t.Context(), remediation(hashOf("canary"), "nobody"), metav1.CreateOptions{DryRun: dryRun})
			return err
		},
	} {
		controlplane.Eventually(t, 20*time.Second, what, func() (bool, string) {
			got := answer(try())
			return kind(got) == "policy", got
		})
	}
	if err := cp.Client().CoreV1().Nodes().Delete(t.Context(), "canary", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// hashOf is the 64 hex of a name: its letters as hex, so that each is another.
func hashOf(name string) string {
	return fmt.Sprintf("%064x", name)
}

func approval(plan, approver string, groups ...string) *unstructured.Unstructured {
	spec := values{"plan": strings.TrimSuffix(plan, "-2"), "remediation": "uid-of-" + plan[:8], "decision": "Approve", "approver": approver, "via": "kubectl"}
	if len(groups) > 0 {
		list := make([]any, len(groups))
		for i, g := range groups {
			list[i] = g
		}
		spec["groups"] = list
	}
	return &unstructured.Unstructured{Object: values{"apiVersion": "unpend.dev/v1alpha1", "kind": "Approval", "metadata": values{"name": plan}, "spec": spec}}
}

func remediation(plan, requester string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: values{"apiVersion": "unpend.dev/v1alpha1", "kind": "Remediation", "metadata": values{"name": plan},
		"spec": values{"incident": "gpu-0123456789", "workload": values{"kind": "Job", "namespace": "team-a", "name": "training"},
			"headline": "training waits", "cause": "MIGLayoutMismatch", "fix": int64(1), "kind": "EvictPods", "kinds": []any{"EvictPods"}, "title": "evict web-1",
			"priority": int64(0), "requester": requester, "expires": "2026-11-20T12:15:00Z",
			"actions": []any{values{"verb": "evict", "target": values{"kind": "Pod", "namespace": "team-a", "name": "web-1", "uid": "1"}}}}}}
}

// person is a user of the tests and the groups the certificate names.
type person struct {
	name   string
	groups []string
}

func (p person) config(t *testing.T, cp *controlplane.ControlPlane) *rest.Config {
	t.Helper()
	return kubeconfig(t, cp.KubeconfigFor(t, p.name, p.groups...))
}

func (p person) dynamic(t *testing.T, cp *controlplane.ControlPlane) dynamic.Interface {
	t.Helper()
	return dynamic.NewForConfigOrDie(p.config(t, cp))
}

// accountConfig speaks with a token of a ServiceAccount, as its pod does.
func accountConfig(t *testing.T, cp *controlplane.ControlPlane, namespace, name string) *rest.Config {
	t.Helper()
	got, err := cp.Client().CoreV1().ServiceAccounts(namespace).CreateToken(t.Context(), name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	config := rest.AnonymousClientConfig(cp.Config())
	config.BearerToken = got.Status.Token
	config.QPS, config.Burst = 500, 1000
	return config
}

func asExecutor(t *testing.T, cp *controlplane.ControlPlane) *rest.Config {
	t.Helper()
	return accountConfig(t, cp, namespace, executor)
}

// as is the same client, acting as somebody.
func as(config *rest.Config, user string, groups ...string) kubernetes.Interface {
	config = rest.CopyConfig(config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groups}
	return kubernetes.NewForConfigOrDie(config)
}

// grant gives rights in one namespace, or in all of them with "".
func grant(t *testing.T, cp *controlplane.ControlPlane, namespace, name string, to rbacv1.Subject, rules ...rbacv1.PolicyRule) {
	t.Helper()
	api, meta := cp.Client().RbacV1(), metav1.ObjectMeta{Name: name, Namespace: namespace}
	if _, err := api.ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}
	var err error
	if namespace == "" {
		_, err = api.ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: []rbacv1.Subject{to}}, metav1.CreateOptions{})
	} else {
		meta.Name += "-" + strings.ReplaceAll(to.Name, ":", "-")
		_, err = api.RoleBindings(namespace).Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: []rbacv1.Subject{to}}, metav1.CreateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
}

func toUser(name string) rbacv1.Subject {
	return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}
}

func toGroup(name string) rbacv1.Subject {
	return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: name}
}

func rule(group string, verbs []string, resources ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: verbs}
}

func kubeconfig(t *testing.T, path string) *rest.Config {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS, config.Burst = 500, 1000
	return config
}
