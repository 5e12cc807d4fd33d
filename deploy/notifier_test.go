package deploy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/testdata/chart"
)

const notifier = "unpend-notifier" // the name of all that is the notifier's

func isNotifiers(o *unstructured.Unstructured) bool {
	return o.GetLabels()["app.kubernetes.io/name"] == notifier
}

func notifierOnly(t testing.TB, v values) []*unstructured.Unstructured {
	t.Helper()
	return slices.DeleteFunc(objects(t, v), func(o *unstructured.Unstructured) bool { return !isNotifiers(o) })
}

// told is everywhere that people are told, and that is read of what they said.
func told() values {
	return values{"slack": values{"channel": "C0123456789", "existingSecret": "slack"}, "paging": values{"existingSecret": "paging"},
		"jira":      values{"url": "https://example.atlassian.net", "user": "bot@example.com", "project": "OPS", "existingSecret": "jira"},
		"narrate":   values{"url": "https://models.example.com/v1", "model": "small", "existingSecret": "narrate"},
		"knowledge": values{"existingSecret": "knowledge", "slack": values{"channels": []any{"gpu-help"}, "appKey": "app"}, "jira": values{"url": "https://example.atlassian.net", "user": "bot@example.com", "projects": []any{"OPS"}}},
		"config":    values{"pagerduty": values{"when": values{"waiting": "30m"}}}}
}

// separate has a pod for each, by the service's own NATS.
func separate() values {
	v := told()
	v["layout"], v["mode"], v["remediate"], v["probe"] = "separate", "approve", approve()["remediate"], values{"enabled": false}
	v["nats"] = values{"existingSecret": "nats", "tokenKey": "token"}
	return v
}

// sharedBus has two of each, by a NATS of somebody's own.
func sharedBus() values {
	v := separate()
	v["nats"] = values{"url": "tls://nats.nats.svc:4222", "existingSecret": "nats", "credsKey": "unpend.creds", "caKey": "ca.crt"}
	v["replicas"], v["notifier"] = 2, values{"replicas": 2}
	return v
}

// secretsOf are the Secrets that each pod mounts.
func secretsOf(t *testing.T, v values) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	for _, o := range objects(t, v) {
		if !runsPods(o) {
			continue
		}
		var d appsv1.Deployment
		convert(t, o, &d)
		out[d.Name] = []string{}
		for _, v := range d.Spec.Template.Spec.Volumes {
			if v.Secret == nil {
				continue
			}
			out[d.Name] = append(out[d.Name], v.Secret.SecretName)
			// Without the token of the bus a pod is of no use; without any other a place is off.
			if needed := v.Secret.SecretName == "nats"; needed != (v.Secret.Optional == nil || !*v.Secret.Optional) {
				t.Errorf("%s: Secret %s is optional: %v", d.Name, v.Secret.SecretName, !needed)
			}
			if !slices.ContainsFunc(d.Spec.Template.Spec.Containers[0].VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == v.Name && m.ReadOnly }) {
				t.Errorf("%s does not mount %s", d.Name, v.Name)
			}
		}
		slices.Sort(out[d.Name])
	}
	return out
}

// With a pod for each, what Slack, Jira, pagers and a model are spoken to with is the notifier's
// alone; in one it is the service's.
func TestWhoHasWhichSecret(t *testing.T) {
	all := []string{"jira", "knowledge", "narrate", "paging", "slack"}
	one := separate()
	delete(one, "layout")
	for name, tc := range map[string]struct {
		values values
		want   map[string][]string
	}{
		"one, no bus":  {told(), map[string][]string{"unpend": all}},
		"one":          {one, map[string][]string{"unpend": slices.Sorted(slices.Values(append(slices.Clone(all), "nats"))), executor: {"nats"}}},
		"separate":     {separate(), map[string][]string{"unpend": {"nats"}, executor: {"nats"}, notifier: slices.Sorted(slices.Values(append(slices.Clone(all), "nats")))}},
		"a shared bus": {sharedBus(), map[string][]string{"unpend": {"nats"}, executor: {"nats"}, notifier: slices.Sorted(slices.Values(append(slices.Clone(all), "nats")))}},
	} {
		if diff := cmp.Diff(tc.want, secretsOf(t, tc.values)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// Each pod does its part, and comes to the bus that they share: the service's own, which is one and
// keeps its volume, or another, with which there may be two of each.
func TestPodsOfTheSeparateLayout(t *testing.T) {
	for name, tc := range map[string]struct {
		values values
		want   []string
		bus    values
	}{
		"separate": {separate(), []string{
			"Deployment unpend-executor 1: --mode approve --roles remediate --nats nats://unpend-bus.unpend.svc:4222",
			"Deployment unpend-notifier 1: --mode approve --roles notify --nats nats://unpend-bus.unpend.svc:4222",
			"StatefulSet unpend 1: --roles watch,diagnose, claim unpend, at unpend-bus"},
			values{"storeDir": "/var/lib/unpend", "listen": ":4222", "tokenFile": "/etc/unpend-nats/token"}},
		"a shared bus": {sharedBus(), []string{
			"Deployment unpend 2: --roles watch,diagnose", "Deployment unpend-executor 1: --mode approve --roles remediate", "Deployment unpend-notifier 2: --mode approve --roles notify"},
			values{"storeDir": "/var/lib/unpend", "url": "tls://nats.nats.svc:4222", "credsFile": "/etc/unpend-nats/unpend.creds", "caFile": "/etc/unpend-nats/ca.crt"}},
	} {
		var got []string
		for _, o := range objects(t, tc.values) {
			if !runsPods(o) {
				continue
			}
			var d appsv1.StatefulSet // what both have is in the same places
			convert(t, o, &d)
			says := fmt.Sprintf("%s %s %d: %s", o.GetKind(), d.Name, *d.Spec.Replicas, strings.Join(d.Spec.Template.Spec.Containers[0].Args[3:], " "))
			if o.GetKind() == "StatefulSet" {
				says += ", claim " + volume(t, d.Spec.Template.Spec, "store").PersistentVolumeClaim.ClaimName + ", at " + d.Spec.ServiceName
			}
			got = append(got, says)
		}
		slices.Sort(got)
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		config := fromYAML(t, one[corev1.ConfigMap](t, serviceOnly(t, tc.values), "ConfigMap").Data["config.yaml"])
		if diff := cmp.Diff(tc.bus, config["bus"]); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	for want, v := range map[string]values{
		"neither nats.url nor nats.existingSecret with nats.tokenKey is set": {"layout": "separate"},
		"nats.url is nats://a and config.bus.url is nats://b: name one":      {"nats": values{"url": "nats://a"}, "config": values{"bus": values{"url": "nats://b"}}},
	} {
		if _, err := render(t, v); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// Only the pods of this release come to the bus, and each reaches what it is there for: the
// executor no address outside.
func TestWhoReachesWhat(t *testing.T) {
	v := separate()
	v["config"] = values{"alertmanager": values{"url": "http://alertmanager.monitoring:9093"}, "rca": values{"prometheus": "http://prometheus.monitoring:9090"}, "traces": values{"url": "http://collector.monitoring:4318/v1/traces"}}
	got := map[string]string{}
	for _, o := range objects(t, v) {
		if o.GetKind() != "NetworkPolicy" {
			continue
		}
		var p networkingv1.NetworkPolicy
		convert(t, o, &p)
		says := "in"
		for _, in := range p.Spec.Ingress {
			says += " " + in.Ports[0].Port.String()
			for _, from := range in.From {
				for _, e := range from.PodSelector.MatchExpressions {
					says += fmt.Sprintf(" %s", e.Values)
				}
			}
		}
		says += "; out"
		for _, out := range p.Spec.Egress {
			for _, port := range out.Ports {
				says += " " + port.Port.String()
			}
		}
		got[p.Name] = says
	}
	want := map[string]string{
		"unpend": "in metrics nats [unpend] [unpend-notifier unpend-executor]; out 53 53 443 6443 4318 9090",
		executor: "in; out 53 53 443 6443 4318 4222",
		notifier: "in metrics; out 53 53 443 6443 4318 4222 9093",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// The notifier reads where plans stand and little else, and acts as nobody: that, and reading what
// a diagnosis is made from, comes with clicks in Slack alone, and where it can be bounded.
func TestNotifiersRights(t *testing.T) {
	lead := []rbacv1.PolicyRule{{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"create"}},
		{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, ResourceNames: []string{notifier}, Verbs: []string{"get", "update", "patch"}},
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{"unpend-breaker"}, Verbs: []string{"get"}}}
	reads := []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"namespaces"}, ResourceNames: []string{"kube-system"}, Verbs: []string{"get"}},
		rule("", []string{"get"}, "nodes"), rule("unpend.dev", []string{"get", "list"}, "remediations")}
	if diff := cmp.Diff(map[string][]rbacv1.PolicyRule{"unpend:unpend-notifier": reads, "unpend/unpend-notifier": lead}, rolesOf(t, notifierOnly(t, separate()))); diff != "" {
		t.Error(diff)
	}
	if got := boundTo(t, objects(t, separate()), notifier); !slices.Equal(got, []string{"unpend-notifier", "unpend:unpend-notifier"}) {
		t.Errorf("it has the roles %q", got)
	}
	heard := separate()
	heard["slack"] = values{"channel": "C0123456789", "existingSecret": "slack", "appKey": "app"}
	files, err := chart.Release{Namespace: namespace, Kubernetes: "v1.36.0", Values: heard}.Render(t)
	if err != nil {
		t.Fatal(err)
	}
	objs := chart.Parse(t, files)
	acts := []rbacv1.PolicyRule{{APIGroups: []string{"authentication.k8s.io"}, Resources: []string{"users"}, ResourceNames: []string{"ada", "grace", "oidc:hedy@example.com"}, Verbs: []string{"impersonate:user-info"}},
		{APIGroups: []string{"authentication.k8s.io"}, Resources: []string{"groups"}, ResourceNames: []string{"gpu-admins", "on call"}, Verbs: []string{"impersonate:user-info"}},
		rule("unpend.dev", []string{"impersonate-on:user-info:create"}, "remediations", "approvals"), rule("authorization.k8s.io", []string{"create"}, "subjectaccessreviews")}
	if diff := cmp.Diff(acts, rolesOf(t, objs)["unpend:unpend-notifier-as-approver"]); diff != "" {
		t.Error(diff)
	}
	if got, want := boundTo(t, objs, notifier), []string{"unpend-mig-layouts", "unpend-notifier", "unpend-rails", "unpend:unpend", "unpend:unpend-notifier", "unpend:unpend-notifier-as-approver", "unpend:unpend:autoscaler-status"}; !slices.Equal(got, want) {
		t.Errorf("it has the roles %q, want %q", got, want)
	}
	for _, r := range rolesOf(t, objs)["unpend:unpend-executor-as-approver"] {
		if slices.Contains(r.Resources, "approvals") {
			t.Errorf("the executor decides too: %v", r)
		}
	}
	config := fromYAML(t, one[corev1.ConfigMap](t, objs, "ConfigMap").Data["config.yaml"])
	if its, ok := config["slack"].(values); !ok || its["heardBy"] != "notify" || its["appTokenFile"] != "/etc/unpend-slack/app" {
		t.Errorf("%v", config["slack"])
	}
	_, err = chart.Release{Namespace: namespace, Kubernetes: "v1.35.9", Values: heard}.Render(t)
	if err == nil || !strings.Contains(err.Error(), "the notifier would have to act as approvers, which before 1.36 means with all their rights") {
		t.Errorf("%v", err)
	}
}

// boundTo are the roles that a ServiceAccount of the release has.
func boundTo(t *testing.T, objs []*unstructured.Unstructured, account string) []string {
	t.Helper()
	var out []string
	for _, o := range objs {
		if !strings.HasSuffix(o.GetKind(), "RoleBinding") {
			continue
		}
		b := one[rbacv1.ClusterRoleBinding](t, []*unstructured.Unstructured{o}, o.GetKind())
		if slices.Contains(b.Subjects, rbacv1.Subject{Kind: "ServiceAccount", Name: account, Namespace: namespace}) {
			out = append(out, b.RoleRef.Name)
		}
	}
	slices.Sort(out)
	return out
}
