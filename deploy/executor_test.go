package deploy_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"

	"github.com/unpend/unpend/testdata/chart"
)

const executor = "unpend-executor" // the name of all that is the executor's

// approve is an installation with approvers by name and by group.
func approve() values {
	return values{"mode": "approve", "remediate": values{"approvers": values{
		"users": []any{"ada", "grace", "oidc:hedy@example.com"}, "groups": []any{"gpu-admins", "on call"}}}}
}

func approvers(users ...any) values {
	return values{"remediate": values{"approvers": values{"users": users}}}
}

func limits(key string, value any) values {
	return values{"remediate": values{"limits": values{key: value}}}
}

// everyExecutor turns every option of the executor on.
func everyExecutor() values {
	return values{
		"approvers": values{"users": []any{"ada"}, "groups": []any{"gpu-admins"}, "bind": false},
		"kinds":     values{"nominate": true, "changeWorkload": true, "raiseQuota": true, "recreate": true},
		"paused":    true,
		"limits":    values{"freeze": []any{values{"cron": "0 18 * * 5", "duration": "62h", "timezone": "Europe/Berlin"}}, "evictionsPerHour": 7},
		"audit":     values{"storageClass": "fast", "size": "5Gi"},
		"resources": values{"limits": values{"memory": "2Gi"}},
	}
}

func isExecutors(o *unstructured.Unstructured) bool {
	return o.GetLabels()["app.kubernetes.io/name"] == executor
}

func executorOnly(t testing.TB, v values) []*unstructured.Unstructured {
	t.Helper()
	return slices.DeleteFunc(objects(t, v), func(o *unstructured.Unstructured) bool { return !isExecutors(o) })
}

// rolesOf are the rules of the rendered roles by their names.
func rolesOf(t testing.TB, objs []*unstructured.Unstructured) map[string][]rbacv1.PolicyRule {
	t.Helper()
	out := map[string][]rbacv1.PolicyRule{}
	for _, o := range objs {
		if o.GetKind() != "Role" && o.GetKind() != "ClusterRole" {
			continue
		}
		role := one[rbacv1.ClusterRole](t, []*unstructured.Unstructured{o}, o.GetKind())
		name := strings.TrimPrefix(o.GetNamespace()+"/"+o.GetName(), "/")
		if role.AggregationRule != nil || len(role.Rules) == 0 {
			t.Errorf("%s aggregates, or has no rules", name)
		}
		out[name] = role.Rules
	}
	return out
}

// By default there is neither an executor nor a right of it.
func TestObserveHasNoExecutor(t *testing.T) {
	for name, v := range variants() {
		if v["mode"] == "approve" {
			continue
		}
		for _, o := range objects(t, v) {
			if isExecutors(o) || strings.Contains(o.GetName(), "executor") {
				t.Errorf("%s: %s %s", name, o.GetKind(), o.GetName())
			}
		}
	}
}

func TestExecutorsKinds(t *testing.T) {
	for name, want := range map[string][]string{
		"approve": {"ClusterRole", "ClusterRole", "ClusterRole", "ClusterRole", "ClusterRoleBinding", "ClusterRoleBinding", "ClusterRoleBinding", "ClusterRoleBinding",
			"ConfigMap", "ConfigMap", "Deployment", "Job", "NetworkPolicy", "PersistentVolumeClaim", "Role", "Role", "Role", "RoleBinding", "RoleBinding", "RoleBinding",
			"ServiceAccount", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"},
		"standby": {"ConfigMap", "ConfigMap", "Deployment", "Job", "NetworkPolicy", "PodDisruptionBudget", "ServiceAccount", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"},
	} {
		if diff := cmp.Diff(want, kinds(executorOnly(t, variants()[name]))); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// S12: the rights are a promise, in both ways of acting as an approver, with one
// kind of fix and with all.
func TestExecutorsRolesGolden(t *testing.T) {
	all := everything()
	delete(all, "nameOverride")
	for file, c := range map[string]struct {
		version string
		values  values
	}{
		"executor-constrained.yaml":     {"v1.36.0", approve()},
		"executor-legacy.yaml":          {"v1.35.9", approve()},
		"executor-constrained-all.yaml": {"v1.37.1-gke.100", all},
	} {
		files, err := chart.Release{Namespace: namespace, Kubernetes: c.version, Values: c.values}.Render(t)
		if err != nil {
			t.Fatal(err)
		}
		objs := slices.DeleteFunc(chart.Parse(t, files), func(o *unstructured.Unstructured) bool {
			return !strings.Contains(o.GetLabels()["app.kubernetes.io/name"], "executor")
		})
		got, err := yaml.Marshal(rolesOf(t, objs))
		if err != nil {
			t.Fatal(err)
		}
		golden(t, file, got)
	}
}

// Whatever is asked of the chart: no wildcard, no Secret, no exec, and no right to
// act as anybody that is not bound to names. A rule with an empty list of names
// would be one for all.
func TestExecutorsRulesAreBounded(t *testing.T) {
	variants := variants()
	variants["nobody"] = values{"mode": "approve"}
	variants["groups alone"] = values{"mode": "approve", "remediate": values{"approvers": values{"groups": []any{"gpu-admins"}}}}
	for _, version := range []string{"v1.30.0", "v1.35.0", "v1.36.0", "v1.37.1"} {
		for name, v := range variants {
			files, err := chart.Release{Namespace: namespace, Kubernetes: version, Values: v}.Render(t)
			if err != nil {
				t.Fatal(err)
			}
			// What the service may patch so that people are answered is fenced by a policy, and held
			// in TestRightsOfWhatKubectlShows.
			for role, rules := range rolesOf(t, slices.DeleteFunc(chart.Parse(t, files), isKubectls)) {
				for _, r := range rules {
					if why := unbounded(r, version < "v1.36"); why != "" {
						t.Errorf("%s, %s, %s: %s: %v", version, name, role, why, r)
					}
				}
				if asApprover := strings.HasSuffix(role, "as-approver"); asApprover && (name == "nobody" || name == "groups alone") {
					t.Errorf("%s, %s: %s", version, name, role)
				}
			}
		}
	}
}

func unbounded(r rbacv1.PolicyRule, legacy bool) string {
	if slices.Contains(r.ResourceNames, "*") {
		return "any name"
	}
	for _, w := range slices.Concat(r.APIGroups, r.Resources, r.Verbs, r.NonResourceURLs) {
		if strings.Contains(w, "*") || strings.Contains(w, "secret") || strings.Contains(w, "exec") || strings.Contains(w, "serviceaccount") || w == "escalate" || w == "bind" {
			return w
		}
	}
	for _, verb := range r.Verbs {
		switch {
		case verb == "impersonate" && !legacy, strings.HasPrefix(verb, "impersonate") && verb != "impersonate" && legacy:
			return verb + " in this version"
		case (verb == "impersonate" || verb == "impersonate:user-info") && len(r.ResourceNames) == 0:
			return verb + " without names"
		case strings.HasPrefix(verb, "impersonate:") && verb != "impersonate:user-info":
			return verb
		}
	}
	if slices.Contains(r.Resources, "configmaps") && len(r.ResourceNames) == 0 {
		return "configmaps without names"
	}
	for _, own := range []string{"create", "update", "patch", "delete", "deletecollection"} {
		if slices.Contains(r.Verbs, own) && slices.ContainsFunc(r.Resources, func(s string) bool {
			return slices.Contains([]string{"pods", "pods/eviction", "pods/status", "deployments", "jobs", "resourcequotas", "nodes/status"}, s)
		}) {
			return own + " in its own name"
		}
	}
	return ""
}

// Every binding leads from the executor, or from the approvers, to a role that is there.
func TestExecutorsBindings(t *testing.T) {
	objs := objects(t, approve())
	roles := rolesOf(t, objs)
	got := map[string]string{}
	for _, o := range objs {
		if !isExecutors(o) || !strings.HasSuffix(o.GetKind(), "RoleBinding") {
			continue
		}
		b := one[rbacv1.ClusterRoleBinding](t, []*unstructured.Unstructured{o}, o.GetKind())
		role := b.RoleRef.Name
		if b.RoleRef.Kind == "Role" {
			role = b.Namespace + "/" + role
		}
		if _, there := roles[role]; !there {
			t.Errorf("%s leads to %s, which is not there", b.Name, role)
		}
		for _, s := range b.Subjects {
			got[role] += strings.TrimPrefix(s.Namespace+"/", "/") + s.Name + " "
		}
	}
	want := map[string]string{
		"unpend:unpend":                            "unpend/unpend-executor ",
		"unpend:unpend-executor":                   "unpend/unpend-executor ",
		"unpend:unpend-executor-as-approver":       "unpend/unpend-executor ",
		"unpend/unpend-executor":                   "unpend/unpend-executor ",
		"gpu-operator/unpend-executor-mig-layouts": "unpend/unpend-executor ",
		"unpend/unpend-viewer":                     "ada grace oidc:hedy@example.com gpu-admins on call ",
		"unpend:unpend-approver":                   "ada grace oidc:hedy@example.com gpu-admins on call ",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, o := range objects(t, everything()) { // bind: false
		if strings.HasSuffix(o.GetKind(), "RoleBinding") && (strings.HasSuffix(o.GetName(), "-approver") && !strings.HasSuffix(o.GetName(), "-as-approver") || strings.HasSuffix(o.GetName(), "-viewer")) {
			t.Errorf("%s all the same", o.GetName())
		}
	}
}

// The limits are read by another part of the program: these keys, these defaults.
func TestGuardsConfigMap(t *testing.T) {
	cm := one[corev1.ConfigMap](t, executorOnly(t, approve()), "ConfigMap")
	const want = `
nodesInFlight: 1
poolUnavailablePercent: 10
breaker: {percent: 20, atLeast: 3, window: 10m, failures: 3, failureWindow: 1h}
evictionsPerPlan: 30
evictionsPerHour: 100
coolDown: 60m
oppositeWithin: 24h
planTTL: 15m
freeze: []
twoPersons: {modeChange: true, nodes: 1, evictions: 10, higherPriority: true}
`
	if diff := cmp.Diff(fromYAML(t, want), fromYAML(t, cm.Data["limits.yaml"])); diff != "" {
		t.Error(diff)
	}
	if keys := slices.Sorted(maps.Keys(cm.Data)); cm.Name != "unpend-guards" || cm.Data["paused"] != "false" || !slices.Equal(keys, []string{"limits.yaml", "paused"}) {
		t.Errorf("%s: %v, paused %q", cm.Name, keys, cm.Data["paused"])
	}
	full := one[corev1.ConfigMap](t, slices.DeleteFunc(objects(t, everything()), func(o *unstructured.Unstructured) bool { return o.GetName() != "unpend-guards" }), "ConfigMap")
	changed := strings.Replace(strings.Replace(want, "freeze: []", `freeze: [{cron: "0 18 * * 5", duration: 62h, timezone: Europe/Berlin}]`, 1), "evictionsPerHour: 100", "evictionsPerHour: 7", 1)
	if diff := cmp.Diff(fromYAML(t, changed), fromYAML(t, full.Data["limits.yaml"])); diff != "" || full.Data["paused"] != "true" {
		t.Error(full.Data["paused"], diff)
	}
}

func fromYAML(t *testing.T, text string) (out values) {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func executorsDeployment(t testing.TB, v values) appsv1.Deployment {
	t.Helper()
	return one[appsv1.Deployment](t, executorOnly(t, v), "Deployment")
}

func TestExecutorsDeployment(t *testing.T) {
	d := executorsDeployment(t, approve())
	pod := d.Spec.Template.Spec
	if d.Name != executor || *d.Spec.Replicas != 1 || d.Spec.Strategy.Type != appsv1.RecreateDeploymentStrategyType || pod.ServiceAccountName != executor || !*pod.AutomountServiceAccountToken {
		t.Errorf("%s: %+v, as %s", d.Name, d.Spec.Strategy, pod.ServiceAccountName)
	}
	if diff := cmp.Diff([]string{"run", "--config", "/etc/unpend/config.yaml", "--mode", "approve", "--roles", "remediate"}, pod.Containers[0].Args); diff != "" {
		t.Error(diff)
	}
	field := func(name, path string) corev1.EnvVar {
		return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}}
	}
	if diff := cmp.Diff([]corev1.EnvVar{field("POD_NAMESPACE", "metadata.namespace"), field("POD_NAME", "metadata.name")}, pod.Containers[0].Env); diff != "" {
		t.Error(diff)
	}
	service := one[appsv1.Deployment](t, serviceOnly(t, approve()), "Deployment").Spec.Template.Spec
	if diff := cmp.Diff(service.SecurityContext, pod.SecurityContext); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(service.Containers[0].SecurityContext, pod.Containers[0].SecurityContext); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]corev1.VolumeMount{{Name: "config", MountPath: "/etc/unpend", ReadOnly: true}, {Name: "audit", MountPath: "/var/lib/unpend/audit"}, {Name: "tmp", MountPath: "/tmp"}}, pod.Containers[0].VolumeMounts); diff != "" {
		t.Error(diff)
	}
	account := one[corev1.ServiceAccount](t, executorOnly(t, approve()), "ServiceAccount")
	if account.Name != executor || *account.AutomountServiceAccountToken {
		t.Errorf("%s mounts its token everywhere", account.Name)
	}
}

func TestExecutorsTrail(t *testing.T) {
	claim := one[corev1.PersistentVolumeClaim](t, executorOnly(t, approve()), "PersistentVolumeClaim")
	for _, c := range []struct {
		values values
		want   corev1.VolumeSource
	}{
		{approve(), corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim.Name}}},
		{variants()["standby"], corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "trail"}}},
		{values{"mode": "approve", "remediate": values{"replicas": 3, "audit": values{"enabled": false}}}, corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: claim.Spec.Resources.Requests.Storage()}}},
	} {
		if diff := cmp.Diff(c.want, volume(t, executorsDeployment(t, c.values).Spec.Template.Spec, "audit").VolumeSource); diff != "" {
			t.Error(diff)
		}
	}
	full := one[corev1.PersistentVolumeClaim](t, slices.DeleteFunc(objects(t, everything()), func(o *unstructured.Unstructured) bool { return !strings.HasSuffix(o.GetName(), "-audit") }), "PersistentVolumeClaim")
	if *full.Spec.StorageClassName != "fast" || full.Spec.Resources.Requests.Storage().String() != "5Gi" {
		t.Errorf("%+v", full.Spec)
	}
}

func TestNothingComesInToTheExecutor(t *testing.T) {
	got, d := one[networkingv1.NetworkPolicy](t, executorOnly(t, approve()), "NetworkPolicy"), executorsDeployment(t, approve())
	want := networkingv1.NetworkPolicySpec{PodSelector: *d.Spec.Selector, PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress}}
	got.Spec.Egress = nil // TestEgress
	if diff := cmp.Diff(want, got.Spec); diff != "" {
		t.Error(diff)
	}
	v := approve()
	v["networkPolicy"] = values{"metricsFrom": []any{values{"podSelector": values{}}}}
	scraped := one[networkingv1.NetworkPolicy](t, executorOnly(t, v), "NetworkPolicy").Spec.Ingress
	if len(scraped) != 1 || len(scraped[0].From) != 1 || len(scraped[0].Ports) != 1 || scraped[0].Ports[0].Port.StrVal != "metrics" {
		t.Errorf("%+v", scraped)
	}
}

// Neither the service's selectors nor the executor's take the other's pods.
func TestExecutorsSelector(t *testing.T) {
	service, its := one[appsv1.Deployment](t, serviceOnly(t, approve()), "Deployment"), executorsDeployment(t, approve())
	for _, c := range []struct {
		selector    *metav1.LabelSelector
		own, others map[string]string
	}{{service.Spec.Selector, service.Spec.Template.Labels, its.Spec.Template.Labels}, {its.Spec.Selector, its.Spec.Template.Labels, service.Spec.Template.Labels}} {
		selector, err := metav1.LabelSelectorAsSelector(c.selector)
		if err != nil {
			t.Fatal(err)
		}
		if !selector.Matches(labels.Set(c.own)) || selector.Matches(labels.Set(c.others)) {
			t.Errorf("%s", selector)
		}
	}
}

func TestNotesOfApprove(t *testing.T) {
	text, commands := notes(t, approve())
	if diff := cmp.Diff([]string{"kubectl -n unpend rollout status deployment/unpend-executor", "kubectl unpend approve INCIDENT#N"}, commands); diff != "" {
		t.Error(diff)
	}
	_, patch, _ := strings.Cut(text, "patch configmap unpend-guards -p '")
	patch, _, _ = strings.Cut(patch, "'")
	var cm corev1.ConfigMap
	if err := json.Unmarshal([]byte(patch), &cm); err != nil || cm.Data["paused"] != "true" || strings.Contains(text, "Nobody") || strings.Contains(text, "reads only") {
		t.Error(text, err)
	}
	if text, _ := notes(t, values{"mode": "approve"}); !strings.Contains(text, "\nNobody is listed in remediate.approvers.users") {
		t.Error("who installs it is not told:", text)
	}
}
