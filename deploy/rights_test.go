package deploy_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"

	"github.com/unpend/unpend/testdata/chart"
	"github.com/unpend/unpend/testdata/controlplane"
)

// S11-S13: each ServiceAccount of each installation has the rights that its file in
// testdata/rights says, a line each, no wildcard, no Secret and no ConfigMap of the cluster among
// them: as the chart renders them, and as the API server lists them.
func TestRightsOfEachServiceAccount(t *testing.T) {
	t.Parallel() // it waits for a control plane of its own
	cp := controlplane.StartWith(t, controlplane.Extras{Alone: true})
	send := chart.To(cp)
	everywhere := listed(t, cp, "default", "default") // what anybody may who is let in
	clicked := separate()
	clicked["slack"] = values{"channel": "C0123456789", "existingSecret": "slack", "appKey": "app"}
	for name, v := range map[string]values{"observe": nil, "approve": approve(), "separate": separate(), "separate-clicks": clicked,
		"kubectl": {"kubectl": values{"events": true, "annotations": true}, "probe": values{"enabled": false}}} {
		v = maps.Clone(v)
		if v == nil {
			v = values{}
		}
		v["gpuOperator"] = values{"namespace": "gpu-operator-" + name} // the roles there have one name
		objs := chart.Release{Namespace: name, Values: v}.Objects(t)
		makeNamespace(t, cp.Client(), name, nil)
		makeNamespace(t, cp.Client(), "gpu-operator-"+name, nil)
		for _, o := range objs {
			if o.GetKind() == "Namespace" || o.GetKind() == "ServiceAccount" || strings.Contains(o.GetKind(), "Role") {
				if err := send.Create(t, o); err != nil && !apierrors.IsAlreadyExists(err) {
					t.Fatalf("%s: %s %s: %v", name, o.GetKind(), o.GetName(), err)
				}
			}
		}
		for _, o := range objs {
			if o.GetKind() != "ServiceAccount" {
				continue
			}
			account := rbacv1.Subject{Kind: "ServiceAccount", Name: o.GetName(), Namespace: o.GetNamespace()}
			want := renderedRights(t, objs, account)
			golden(t, "rights/"+name+"-"+strings.TrimPrefix(account.Name, "unpend-")+".txt", []byte(byResource(want)))
			var got []string
			controlplane.Eventually(t, 20*time.Second, "the rights of "+account.Name, func() (bool, string) {
				got = withoutThose(rightsIn(t, cp, account, name), everywhere)
				return slices.Equal(got, want), fmt.Sprintf("as listed, not rendered: %q; the other way round: %q", withoutThose(got, set(want)), withoutThose(want, set(got)))
			})
			for _, line := range want {
				if strings.Contains(line, "*") || strings.Contains(line, "secrets") || strings.Contains(line, "configmaps:") {
					t.Errorf("%s, %s: %s", name, account.Name, line)
				}
			}
		}
	}
}

// rightsIn are the lines of an account: what it may anywhere, and what more in a namespace.
func rightsIn(t *testing.T, cp *controlplane.ControlPlane, account rbacv1.Subject, release string) []string {
	t.Helper()
	anywhere := listed(t, cp, account.Namespace, account.Name, "nowhere")
	out := slices.Collect(maps.Keys(anywhere))
	for _, ns := range []string{release, "gpu-operator-" + release, "kube-system"} {
		for line := range listed(t, cp, account.Namespace, account.Name, ns) {
			if !anywhere[line] {
				out = append(out, "in "+placeOf(ns, release)+": "+line)
			}
		}
	}
	slices.Sort(out)
	return out
}

// placeOf is the name of a namespace, which for the release's own is no matter.
func placeOf(ns, release string) string {
	switch ns {
	case release:
		return "its namespace"
	case "gpu-operator-" + release:
		return "the GPU Operator's namespace"
	}
	return ns
}

// listed is `kubectl auth can-i --list` in a namespace.
func listed(t *testing.T, cp *controlplane.ControlPlane, namespace, name string, in ...string) map[string]bool {
	t.Helper()
	makeAccount(t, cp, namespace, name)
	client := kubernetes.NewForConfigOrDie(accountConfig(t, cp, namespace, name))
	review := &authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: append(in, "nowhere")[0]}}
	got, err := client.AuthorizationV1().SelfSubjectRulesReviews().Create(t.Context(), review, metav1.CreateOptions{})
	if err != nil || got.Status.Incomplete {
		t.Fatal(got, err)
	}
	out := map[string]bool{}
	for _, r := range got.Status.ResourceRules {
		for _, line := range lines(rbacv1.PolicyRule{APIGroups: r.APIGroups, Resources: r.Resources, ResourceNames: r.ResourceNames, Verbs: r.Verbs}) {
			out[line] = true
		}
	}
	return out
}

// makeAccount has it there where no controller makes it.
func makeAccount(t *testing.T, cp *controlplane.ControlPlane, namespace, name string) {
	t.Helper()
	account := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": map[string]any{"name": name, "namespace": namespace}}}
	if err := chart.To(cp).Create(t, account); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
}

// lines of a rule: a resource each.
func lines(r rbacv1.PolicyRule) []string {
	var out []string
	for _, group := range r.APIGroups {
		for _, resource := range r.Resources {
			what := strings.TrimSuffix(resource+"."+group, ".")
			names := append(slices.Clone(r.ResourceNames), "")[:max(1, len(r.ResourceNames))]
			for _, name := range names {
				if name != "" {
					name = " " + name
				}
				for _, verb := range r.Verbs {
					out = append(out, what+name+": "+verb)
				}
			}
		}
	}
	return out
}

// renderedRights are the lines that the roles give that an account is bound to.
func renderedRights(t *testing.T, objs []*unstructured.Unstructured, account rbacv1.Subject) []string {
	t.Helper()
	roles := rolesOf(t, objs)
	release := objs[slices.IndexFunc(objs, func(o *unstructured.Unstructured) bool { return o.GetKind() == "ConfigMap" })].GetNamespace()
	all := map[string]bool{}
	for _, o := range objs {
		if !strings.HasSuffix(o.GetKind(), "RoleBinding") {
			continue
		}
		b := one[rbacv1.ClusterRoleBinding](t, []*unstructured.Unstructured{o}, o.GetKind())
		if !slices.Contains(b.Subjects, account) {
			continue
		}
		name, in := b.RoleRef.Name, ""
		if b.Namespace != "" {
			name, in = b.Namespace+"/"+name, "in "+placeOf(b.Namespace, release)+": "
		}
		for _, r := range roles[name] {
			for _, line := range lines(r) {
				all[in+line] = true
			}
		}
	}
	maps.DeleteFunc(all, func(line string, _ bool) bool { // what it may anywhere it may there
		_, anywhere, is := strings.Cut(line, "namespace: ")
		return is && all[anywhere]
	})
	return slices.Sorted(maps.Keys(all))
}

// byResource has the verbs of a resource in a line.
func byResource(all []string) string {
	var out strings.Builder
	last := ""
	for _, line := range all {
		i := strings.LastIndex(line, ": ")
		if line[:i] != last {
			out.WriteString("\n" + line[:i+1])
			last = line[:i]
		}
		out.WriteString(line[i+1:])
	}
	return strings.TrimPrefix(out.String(), "\n") + "\n"
}

func set(all []string) map[string]bool {
	out := map[string]bool{}
	for _, a := range all {
		out[a] = true
	}
	return out
}

func withoutThose(all []string, those map[string]bool) []string {
	return slices.DeleteFunc(slices.Clone(all), func(line string) bool { return those[line] })
}
