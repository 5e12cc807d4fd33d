package deploy_test

import (
	"bytes"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/unpend/unpend/testdata/chart"
)

var update = flag.Bool("update", false, "rewrite the golden files")

const namespace = "unpend"

type values = chart.Values

// render renders the chart as `helm install` would; the error is a refusal by
// the schema.
func render(t testing.TB, v values) (map[string]string, error) {
	t.Helper()
	return chart.Release{Namespace: namespace, Values: v}.Render(t)
}

func objects(t testing.TB, v values) []*unstructured.Unstructured {
	t.Helper()
	return chart.Release{Namespace: namespace, Values: v}.Objects(t)
}

func one[T any](t testing.TB, objs []*unstructured.Unstructured, kind string) T {
	t.Helper()
	var out T
	for _, o := range objs {
		if o.GetKind() == kind {
			if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(o.Object, &out, true); err != nil {
				t.Fatalf("%s: %v", kind, err)
			}
			return out
		}
	}
	t.Fatalf("no %s was rendered", kind)
	return out
}

// everything turns every option on, so that no line of a template is unseen.
func everything() values {
	return values{
		"mode":             "approve",
		"image":            values{"repository": "registry.example.com:5000/unpend", "digest": "sha256:" + strings.Repeat("0", 64)},
		"imagePullSecrets": []any{values{"name": "pull"}},
		"nameOverride":     "other",
		"commonLabels":     values{"team": "gpu"},
		"config": values{"watcher": values{"sweep": "30s"}, "bus": values{"maxBytes": "512Mi"}, "pagerduty": values{"when": values{"waiting": "30m"}},
			"alertmanager": values{"url": "http://alertmanager.monitoring.svc:9093"}, "outbound": values{"allow": []any{"alertmanager.monitoring.svc"}}, "routes": []any{values{"namespaces": []any{"ml"}, "minPriority": 1000, "to": []any{"pagerduty"}, "at": values{"pagerduty": "/etc/unpend-paging/urgent"}}}},
		"web":            values{"enabled": true, "port": 8081},
		"paging":         values{"existingSecret": "unpend-paging"},
		"serviceAccount": values{"annotations": values{"a": "b"}, "name": "own"},
		"persistence":    values{"enabled": true, "storageClass": "fast", "size": "5Gi"},
		"slack":          values{"channel": "C0123456789", "cluster": "prod", "existingSecret": "unpend-slack", "key": "bot", "appKey": "app"},
		"jira": values{"url": "https://example.atlassian.net", "user": "bot@example.com", "project": "OPS", "priority": "High", "components": []any{"gpu"}, "labels": []any{"oncall"}, "fields": values{"customfield_10042": values{"value": "7"}},
			"doneStatus": "Done", "reopen": "24h", "link": "https://unpend.example.com/incidents/{incident}", "cluster": "prod", "existingSecret": "unpend-jira", "key": "api"},
		"narrate":        values{"url": "https://models.example.com/v1", "model": "small", "perHour": 30, "tokenLimitField": "max_tokens", "existingSecret": "unpend-narrate", "key": "api"},
		"knowledge":      values{"existingSecret": "unpend-knowledge", "slack": values{"channels": []any{"gpu-help"}, "privateChannels": []any{"G0123456789"}, "appKey": "app"}, "jira": values{"url": "https://example.atlassian.net", "user": "bot@example.com", "projects": []any{"OPS"}}, "embeddings": values{"url": "https://models.example.com/v1", "model": "tiny", "key": "embeddings"}},
		"kubectl":        values{"events": true, "annotations": true},
		"hooks":          values{"existingSecret": "unpend-hooks", "tokenKey": "alertmanager", "secretKey": "standard", "pagerDutyKey": "pagerduty", "port": 9099, "from": []any{values{"podSelector": values{"matchLabels": values{"app": "alertmanager"}}}}},
		"networkPolicy":  values{"metricsFrom": []any{values{"namespaceSelector": values{"matchLabels": values{"kubernetes.io/metadata.name": "monitoring"}}}}},
		"podAnnotations": values{"x": "y"}, "priorityClassName": "system-cluster-critical",
		"nodeSelector": values{"kubernetes.io/os": "linux"},
		"tolerations":  []any{values{"operator": "Exists"}},
		"affinity":     values{"nodeAffinity": values{"requiredDuringSchedulingIgnoredDuringExecution": values{"nodeSelectorTerms": []any{values{"matchExpressions": []any{values{"key": "a", "operator": "Exists"}}}}}}},
		"extraArgs":    []any{"--log-level=debug"}, "extraEnv": []any{values{"name": "A", "value": "b"}},
		"extraVolumes":      []any{values{"name": "runbooks", "configMap": values{"name": "runbooks"}}},
		"extraVolumeMounts": []any{values{"name": "runbooks", "mountPath": "/runbooks", "readOnly": true}},
		"probe":             everyProbe(),
		"remediate":         everyExecutor(),
	}
}

// variants are the installations that the tests look at.
func variants() map[string]values {
	return map[string]values{
		"defaults": {},
		"least": {"rbac": values{"create": false}, "serviceAccount": values{"create": false}, "gpuOperator": values{"namespace": ""},
			"persistence": values{"enabled": false}, "networkPolicy": values{"enabled": false}, "probe": values{"enabled": false}},
		"claim": {"persistence": values{"enabled": true, "existingClaim": "mine"}, "gpuOperator": values{"migConfigMaps": []any{"a", "gpu-1-mig-config"}},
			"probe": values{"namespace": values{"create": false, "name": "probes"}}},
		"tier 2":  {"probe": values{"tier": 2, "namespace": values{"name": "tier-2"}}},
		"tier 3":  {"probe": values{"tier": 3, "namespace": values{"name": "tier-3"}}},
		"approve": {"mode": "approve", "remediate": approve()["remediate"], "probe": values{"namespace": values{"name": "approve-probe"}}},
		"standby": {"mode": "approve", "remediate": values{"replicas": 2, "audit": values{"accessMode": "ReadWriteMany", "existingClaim": "trail"}},
			"rbac": values{"create": false}, "probe": values{"enabled": false}},
		"clicks":     {"mode": "approve", "probe": values{"enabled": false}, "slack": clicks()},
		"owners":     {"rca": values{"ownerKinds": []any{"workflows.argoproj.io"}}, "probe": values{"namespace": values{"name": "owners-probe"}}},
		"separate":   separate(),
		"shared bus": sharedBus(),
		"everything": everything(),
	}
}

// clicks come from Slack to a port.
func clicks() values {
	return values{"channel": "C0123456789", "existingSecret": "unpend-slack", "signingKey": "signing", "from": []any{values{"namespaceSelector": values{"matchLabels": values{"kubernetes.io/metadata.name": "ingress"}}}}}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, got) {
		t.Errorf("%s differs; got:\n%s", file, got)
	}
}

// The rights are a promise: a change of them is to be seen in review.
func TestClusterRoleGolden(t *testing.T) {
	for file, objs := range map[string][]*unstructured.Unstructured{"clusterrole-rules.yaml": serviceOnly(t, nil), "clusterrole-probe-rules.yaml": probeOnly(t, nil)} {
		role := one[rbacv1.ClusterRole](t, objs, "ClusterRole")
		got, err := yaml.Marshal(role.Rules)
		if err != nil {
			t.Fatal(err)
		}
		golden(t, file, got)
	}
}

// Each kind of owners that is named may be read, and nothing else of its group; the program is
// told of the same ones. By either way to name them it is the same.
func TestOwnerKinds(t *testing.T) {
	before := one[rbacv1.ClusterRole](t, serviceOnly(t, nil), "ClusterRole").Rules
	read := func(group, resource string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: []string{"get", "list", "watch"}}
	}
	const workflows, jobs = "workflows.argoproj.io", "jobs.batch.volcano.sh"
	for name, v := range map[string]values{
		"named":            {"rca": values{"ownerKinds": []any{workflows, jobs}}},
		"configured":       {"config": values{"rca": values{"ownerKinds": []any{workflows, jobs}}}},
		"by either way":    {"rca": values{"ownerKinds": []any{workflows}}, "config": values{"rca": values{"ownerKinds": []any{workflows, jobs}}}},
		"with an executor": {"mode": "approve", "rca": values{"ownerKinds": []any{workflows, jobs}}},
	} {
		objs := serviceOnly(t, v)
		if diff := cmp.Diff(append(slices.Clone(before), read("argoproj.io", "workflows"), read("batch.volcano.sh", "jobs")), one[rbacv1.ClusterRole](t, objs, "ClusterRole").Rules); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		var config struct {
			RCA values `json:"rca"`
		}
		if err := yaml.Unmarshal([]byte(one[corev1.ConfigMap](t, objs, "ConfigMap").Data["config.yaml"]), &config); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(values{"ownerKinds": []any{workflows, jobs}}, config.RCA); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestNoRightToWriteOrToReadSecrets(t *testing.T) {
	for name, v := range variants() {
		t.Run(name, func(t *testing.T) {
			for _, o := range serviceOnly(t, v) {
				switch o.GetKind() {
				case "ClusterRole":
					role := one[rbacv1.ClusterRole](t, []*unstructured.Unstructured{o}, "ClusterRole")
					checkRules(t, role.Rules, true)
					if role.AggregationRule != nil {
						t.Error("an aggregated role has rights that nobody listed")
					}
				case "Role":
					checkRules(t, one[rbacv1.Role](t, []*unstructured.Unstructured{o}, "Role").Rules, false)
				}
			}
		})
	}
}

func checkRules(t *testing.T, rules []rbacv1.PolicyRule, wholeCluster bool) {
	t.Helper()
	if len(rules) == 0 {
		t.Error("a role without rules")
	}
	for _, r := range rules {
		for _, word := range slices.Concat(r.APIGroups, r.Resources, r.Verbs, r.NonResourceURLs, r.ResourceNames) {
			if strings.Contains(word, "*") || strings.Contains(word, "secret") || strings.Contains(word, "/") {
				t.Errorf("%q in %v", word, r)
			}
		}
		ofLead := !wholeCluster && slices.Equal(r.Resources, []string{"leases"}) // its verbs and names: TestRoleOfWhoLeads, TestNotifiersRights
		for _, verb := range r.Verbs {
			if !ofLead && !slices.Contains([]string{"get", "list", "watch"}, verb) {
				t.Errorf("verb %q in %v", verb, r)
			}
		}
		if slices.Contains(r.Resources, "configmaps") {
			if wholeCluster || len(r.ResourceNames) == 0 || !slices.Equal(r.Verbs, []string{"get"}) {
				t.Errorf("ConfigMaps beyond those named: %v", r)
			}
		}
	}
}

func TestRoleNamesItsConfigMaps(t *testing.T) {
	named := func(names ...string) []rbacv1.PolicyRule {
		return []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: names, Verbs: []string{"get"}}}
	}
	want := map[string][]rbacv1.PolicyRule{"gpu-operator": named("a", "gpu-1-mig-config"), "kube-system": named("cluster-autoscaler-status"), namespace: named("unpend-guards", "unpend-breaker")}
	got := map[string][]rbacv1.PolicyRule{}
	for _, o := range serviceOnly(t, variants()["claim"]) {
		if o.GetKind() == "Role" && o.GetName() != "unpend-lead" {
			got[o.GetNamespace()] = one[rbacv1.Role](t, []*unstructured.Unstructured{o}, "Role").Rules
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// It may write one lease, in its own namespace.
func TestRoleOfWhoLeads(t *testing.T) {
	want := []rbacv1.PolicyRule{{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"create"}},
		{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, ResourceNames: []string{"unpend-analyst"}, Verbs: []string{"get", "update", "patch"}}}
	for _, o := range serviceOnly(t, nil) {
		if o.GetKind() == "Role" && o.GetName() == "unpend-lead" {
			if diff := cmp.Diff(want, one[rbacv1.Role](t, []*unstructured.Unstructured{o}, "Role").Rules); diff != "" || o.GetNamespace() != namespace {
				t.Error(o.GetNamespace(), diff)
			}
			return
		}
	}
	t.Error("there is no such role")
}

func TestKindsRendered(t *testing.T) {
	service := []string{"ClusterRole", "ClusterRoleBinding", "ConfigMap", "Deployment", "Lease", "NetworkPolicy", "PersistentVolumeClaim", "Role", "Role", "Role", "Role", "RoleBinding", "RoleBinding", "RoleBinding", "RoleBinding", "Service", "ServiceAccount",
		"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "ValidatingAdmissionPolicyBinding"}
	probe := []string{"ClusterRole", "ClusterRoleBinding", "DaemonSet", "Namespace", "NetworkPolicy", "ServiceAccount", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}
	without := func(kinds []string, kind string) []string {
		return slices.DeleteFunc(slices.Clone(kinds), func(k string) bool { return k == kind })
	}
	also := func(kinds []string, more ...string) []string {
		return slices.Sorted(slices.Values(append(slices.Clone(kinds), more...)))
	}
	for name, v := range variants() {
		wantService, wantProbe := service, probe
		switch name {
		case "least":
			wantService, wantProbe = []string{"ConfigMap", "Deployment", "Lease", "Service",
				"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "ValidatingAdmissionPolicyBinding"}, nil
		case "standby":
			wantService, wantProbe = slices.DeleteFunc(slices.Clone(service), func(k string) bool {
				return slices.Contains([]string{"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"}, k)
			}), nil
		case "everything":
			wantService = also(service, "Service") // of the hooks
		case "clicks":
			wantProbe = nil
		case "separate": // one in whose pod the bus is, which the others come to
			wantService, wantProbe = also(without(service, "Deployment"), "StatefulSet", "Service", "Lease"), nil
		case "shared bus":
			wantService, wantProbe = also(without(service, "PersistentVolumeClaim"), "PodDisruptionBudget", "Lease"), nil
		case "claim":
			wantService, wantProbe = without(service, "PersistentVolumeClaim"), without(probe, "Namespace")
		}
		if v["mode"] == "approve" {
			wantService = also(wantService, "Lease") // of the executor
		}
		if diff := cmp.Diff(wantService, kinds(serviceOnly(t, v))); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if diff := cmp.Diff(wantProbe, kinds(probeOnly(t, v))); diff != "" {
			t.Errorf("%s, probe: %s", name, diff)
		}
	}
}

func kinds(objs []*unstructured.Unstructured) []string {
	var out []string
	for _, o := range objs {
		out = append(out, o.GetKind())
	}
	slices.Sort(out)
	return out
}

func TestConfigIsThatOfTheProgram(t *testing.T) {
	for name, c := range map[string]struct {
		values values
		want   values
	}{
		"defaults": {nil, values{"watcher": values{}, "rca": values{}, "knowledge": values{}, "remediate": values{}, "web": values{"metrics": ":9090"}, "traces": values{}, "outbound": values{}, "routes": []any{}, "bus": values{"storeDir": "/var/lib/unpend"}}},
		"everything": {everything(), values{"watcher": values{"sweep": "30s"}, "rca": values{}, "remediate": values{"audit": "/var/lib/unpend/audit/trail.jsonl", "groups": []any{"gpu-admins"}}, "web": values{"metrics": ":9090", "listen": "127.0.0.1:8081"}, "traces": values{}, "bus": values{"storeDir": "/var/lib/unpend", "maxBytes": "512Mi"},
			"slack": values{"channel": "C0123456789", "cluster": "prod", "tokenFile": "/etc/unpend-slack/bot", "appTokenFile": "/etc/unpend-slack/app"},
			"jira": values{"url": "https://example.atlassian.net", "deployment": "cloud", "user": "bot@example.com", "project": "OPS", "issueType": "Task", "priority": "High", "components": []any{"gpu"}, "labels": []any{"oncall"},
				"fields": values{"customfield_10042": values{"value": "7"}}, "doneStatus": "Done", "reopen": "24h", "link": "https://unpend.example.com/incidents/{incident}", "cluster": "prod", "tokenFile": "/etc/unpend-jira/api"},
			"knowledge": values{"slack": values{"channels": []any{"gpu-help"}, "privateChannels": []any{"G0123456789"}, "tokenFile": "/etc/unpend-knowledge/slack", "appTokenFile": "/etc/unpend-knowledge/app", "every": "1h"},
				"jira":       values{"url": "https://example.atlassian.net", "deployment": "cloud", "user": "bot@example.com", "projects": []any{"OPS"}, "tokenFile": "/etc/unpend-knowledge/jira", "every": "5m", "sweep": "24h"},
				"embeddings": values{"url": "https://models.example.com/v1", "model": "tiny", "keyFile": "/etc/unpend-knowledge/embeddings"}},
			"pagerduty": values{"keyFile": "/etc/unpend-paging/pagerduty", "when": values{"waiting": "30m"}}, "alertmanager": values{"url": "http://alertmanager.monitoring.svc:9093"},
			"narrate":  values{"url": "https://models.example.com/v1", "model": "small", "deadline": "8s", "perHour": float64(30), "maxTokens": float64(2000), "tokenLimitField": "max_tokens", "keyFile": "/etc/unpend-narrate/api"},
			"kubectl":  values{"events": true, "annotations": true},
			"hooks":    values{"listen": ":9099", "tokenFile": "/etc/unpend-hooks/alertmanager", "secretFile": "/etc/unpend-hooks/standard", "pagerDutySecretFile": "/etc/unpend-hooks/pagerduty"},
			"outbound": values{"allow": []any{"alertmanager.monitoring.svc"}}, "routes": []any{values{"namespaces": []any{"ml"}, "minPriority": float64(1000), "to": []any{"pagerduty"}, "at": values{"pagerduty": "/etc/unpend-paging/urgent"}}}}},
	} {
		var got values
		cm := one[corev1.ConfigMap](t, objects(t, c.values), "ConfigMap")
		if err := yaml.UnmarshalStrict([]byte(cm.Data["config.yaml"]), &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// notes are what helm prints, and the commands in it.
func notes(t *testing.T, v values) (text string, commands []string) {
	t.Helper()
	files, err := render(t, v)
	if err != nil {
		t.Fatal(err)
	}
	text = files["unpend/templates/NOTES.txt"]
	for line := range strings.SplitSeq(text, "\n") {
		if c, ok := strings.CutPrefix(line, "  "); ok {
			commands = append(commands, c)
		}
	}
	return text, commands
}

func TestNotesNameTwoCommands(t *testing.T) {
	for kind, v := range map[string]values{"deployment": nil, "statefulset": separate()} {
		delete(v, "mode")
		_, commands := notes(t, v)
		want := []string{"kubectl -n unpend rollout status " + kind + "/unpend", "kubectl unpend why -A"}
		if diff := cmp.Diff(want, commands); diff != "" {
			t.Error(diff)
		}
	}
}

func TestSchemaRefuses(t *testing.T) {
	for name, v := range map[string]values{
		"unknown key":               {"pods": 2},
		"no service":                {"replicas": 0},
		"where it may go, by name":  {"networkPolicy": values{"egress": "slack.com"}},
		"a monitor as a word":       {"monitoring": values{"serviceMonitor": values{"enabled": "yes"}}},
		"an alert of one's own":     {"monitoring": values{"rules": values{"groups": []any{}}}},
		"unknown mode":              {"mode": "delete"},
		"mode as a boolean":         {"mode": true},
		"unknown room":              {"config": values{"notify": values{}}},
		"a room that is no object":  {"config": values{"rca": "fast"}},
		"every kind of owners":      {"rca": values{"ownerKinds": []any{"*.argoproj.io"}}},
		"every group's owners":      {"config": values{"rca": values{"ownerKinds": []any{"workflows.*"}}}},
		"owners without a group":    {"rca": values{"ownerKinds": []any{"workflows"}}},
		"owners by their kind":      {"rca": values{"ownerKinds": []any{"Workflow.argoproj.io"}}},
		"owners with a version":     {"rca": values{"ownerKinds": []any{"workflows.argoproj.io/v1alpha1"}}},
		"owners that are no list":   {"rca": values{"ownerKinds": "workflows.argoproj.io"}},
		"owners twice":              {"rca": values{"ownerKinds": []any{"a.b", "a.b"}}},
		"another key of rca":        {"rca": values{"prometheus": "http://p"}},
		"another store":             {"config": values{"bus": values{"storeDir": "/tmp"}}},
		"quantity":                  {"resources": values{"limits": values{"memory": "lots"}}},
		"unknown resource":          {"resources": values{"limits": values{"nvidia.com/gpu": "1"}}},
		"short digest":              {"image": values{"digest": "sha256:abc"}},
		"repository with a space":   {"image": values{"repository": "a b"}},
		"unknown key of the image":  {"image": values{"secret": "x"}},
		"pull policy":               {"image": values{"pullPolicy": "Sometimes"}},
		"ConfigMap wildcard":        {"gpuOperator": values{"migConfigMaps": []any{"*"}}},
		"no ConfigMap (means all)":  {"gpuOperator": values{"migConfigMaps": []any{}}},
		"empty ConfigMap":           {"gpuOperator": values{"migConfigMaps": []any{""}}},
		"namespace with a newline":  {"gpuOperator": values{"namespace": "a\nb"}},
		"persistence as a word":     {"persistence": values{"enabled": "yes"}},
		"extra argument, no flag":   {"extraArgs": []any{"sh"}},
		"label that is no string":   {"commonLabels": values{"a": 1}},
		"pull secret with password": {"imagePullSecrets": []any{values{"name": "a", "password": "b"}}},
		"another answer":            {"kubectl": values{"labels": true}},
		"channel by its name":       {"slack": values{"channel": "#gpu", "existingSecret": "a"}},
		"token in the values":       {"slack": values{"token": "xoxb-1"}},
		"app's token in the values": {"slack": values{"appToken": "xapp-1"}},
		"port of everybody's":       {"slack": values{"port": 443}},
		"token of who calls":        {"hooks": values{"token": "x"}},
		"an address of the hooks":   {"hooks": values{"listen": ":9094"}},
		"key of a pager":            {"config": values{"pagerduty": values{"keyFile": "/x"}}, "paging": values{"existingSecret": "a"}},
		"webhook to nowhere":        {"config": values{"webhook": values{}}, "paging": values{"existingSecret": "a"}},
		"secret of a pager":         {"paging": values{"pagerduty": "0123"}},
		"tickets on a server":       {"jira": values{"deployment": "server"}},
		"a password in the address": {"jira": values{"url": "https://a:b@jira.example.com", "existingSecret": "a"}},
		"a project by its name":     {"jira": values{"project": "Operations"}},
		"a label with a space":      {"jira": values{"labels": []any{"on call"}}},
		"Jira's token in values":    {"jira": values{"token": "x"}},
		"a model's key in values":   {"narrate": values{"token": "sk-1"}},
		"a password of a model":     {"narrate": values{"url": "https://a:b@models.example.com/v1", "model": "m"}},
		"a model without end":       {"narrate": values{"url": "https://models.example.com/v1", "model": "m", "perHour": 0}},
		"another limit of tokens":   {"narrate": values{"tokenLimitField": "num_predict"}},
		"a token to read by":        {"knowledge": values{"slack": values{"token": "x"}}},
		"a password of embeddings":  {"knowledge": values{"embeddings": values{"url": "https://a:b@models.example.com/v1", "model": "m"}}},
		"a project to read by name": {"knowledge": values{"jira": values{"projects": []any{"Operations"}}}},
		"another layout":            {"layout": "many"},
		"a password in NATS's URL":  {"nats": values{"url": "nats://a:b@nats:4222"}},
		"no address of NATS":        {"nats": values{"url": "nats.nats.svc"}},
		"NATS's token in values":    {"nats": values{"token": "x"}},
		"a port of NATS's":          {"nats": values{"port": 22}},
		"no notifier":               {"notifier": values{"replicas": 0}},
		"a notifier without end":    {"notifier": values{"resources": values{"limits": values{"memory": "much"}}}},
		"who listens for the bus":   {"config": values{"bus": values{"listen": ":4222"}}},
		"a token file of the bus":   {"config": values{"bus": values{"tokenFile": "/x"}}},
		"a password of a collector": {"config": values{"traces": values{"url": "http://a:b@collector:4318/v1/traces"}}},
		"a collector by its name":   {"config": values{"traces": values{"url": "collector:4318"}}},
		"another key of traces":     {"config": values{"traces": values{"token": "x"}}},
		"negative size":             {"persistence": values{"size": "-1Gi"}},
		"privileged probe":          {"probe": values{"privileged": true}},
		"tier 0":                    tier(0),
		"tier 4":                    tier(4),
		"tier as a word":            {"probe": values{"tier": "3"}},
		"probe as a word":           {"probe": values{"enabled": "yes"}},
		"the root of the node":      {"probe": values{"kubeletDir": "/"}},
		"relative kubelet folder":   {"probe": values{"kubeletDir": "var/lib/kubelet"}},
		"up from the kubelet":       {"probe": values{"kubeletDir": "/var/lib/kubelet/../.."}},
		"namespace with a dot":      {"probe": values{"namespace": values{"name": "a.b"}}},
		"namespace too long":        {"probe": values{"namespace": values{"name": strings.Repeat("a", 64)}}},
		"no label of the nodes":     {"probe": values{"deployLabel": ""}},
		"label with its value":      {"probe": values{"deployLabel": "gpu=true"}},
		"unknown key, probe image":  {"probe": values{"image": values{"secret": "x"}}},
		"everybody approves":        approvers("*"),
		"approver as a pattern":     approvers("*@example.com"),
		"approver without a name":   approvers(""),
		"approver with a space":     approvers("alice "),
		"the masters":               {"remediate": values{"approvers": values{"groups": []any{"system:masters"}}}},
		"a ServiceAccount approves": approvers("system:serviceaccount:unpend:default"),
		"a node approves":           approvers("system:node:gpu-1"),
		"an approver twice":         approvers("alice", "alice"),
		"an approver as an object":  {"remediate": values{"approvers": values{"users": []any{values{"name": "alice"}}}}},
		"unknown kind of fix":       {"remediate": values{"kinds": values{"all": true}}},
		"kind of fix as a word":     {"remediate": values{"kinds": values{"evict": "yes"}}},
		"no node in flight":         limits("nodesInFlight", 0),
		"unknown limit":             limits("forceDelete", true),
		"more than the whole pool":  limits("poolUnavailablePercent", 101),
		"half an eviction":          limits("evictionsPerPlan", 0.5),
		"duration without a unit":   limits("coolDown", "60"),
		"no duration":               limits("coolDown", ""),
		"negative duration":         limits("oppositeWithin", "-24h"),
		"breaker that never opens":  limits("breaker", values{"percent": 0}),
		"freeze of four fields":     limits("freeze", []any{values{"cron": "0 18 * *", "duration": "1h", "timezone": "UTC"}}),
		"freeze without an end":     limits("freeze", []any{values{"cron": "0 18 * * 5", "timezone": "UTC"}}),
		"freeze in no zone":         limits("freeze", []any{values{"cron": "0 18 * * 5", "duration": "1h", "timezone": "../etc"}}),
		"paused as a word":          {"remediate": values{"paused": "true"}},
		"no executor":               {"remediate": values{"replicas": 0}},
		"two pods, one claim":       {"remediate": values{"replicas": 2}},
		"access to the trail":       {"remediate": values{"audit": values{"accessMode": "ReadOnlyMany"}}},
		"probe with a GPU":          {"probe": values{"resources": values{"limits": values{"nvidia.com/gpu": "1"}}}},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := render(t, v); err == nil {
				t.Error("accepted")
			} else if !strings.Contains(err.Error(), "values don't meet the specifications") {
				t.Errorf("refused, but not by the schema: %v", err)
			} else if !slices.ContainsFunc(leavesOf(v, ""), func(l leaf) bool { return l.named(err.Error()) }) {
				t.Errorf("the value is not named: %v", err)
			}
		})
	}
	for name, v := range variants() {
		if _, err := render(t, v); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// leaf is a value by the path of the object that has it, as the schema's errors write it, and its key.
type leaf struct{ at, key string }

func leavesOf(v values, at string) []leaf {
	var out []leaf
	for key, is := range v {
		if its, more := is.(values); more && len(its) > 0 {
			out = append(out, leavesOf(its, at+"/"+key)...)
		} else {
			out = append(out, leaf{at, key})
		}
	}
	return out
}

// named says whether an error is about a value: by its path or one within, as what the object that
// has it may not have, or by another of the same object, which does not go with it.
func (l leaf) named(text string) bool {
	return strings.Contains(text, "'"+l.at+"/"+l.key+"'") || strings.Contains(text, "'"+l.at+"/"+l.key+"/") ||
		strings.Contains(text, "at '"+l.at+"'") && (strings.Contains(text, "'"+l.key+"'") || strings.Contains(text, "'not' failed")) ||
		l.at != "" && strings.Contains(text, "at '"+l.at+"/")
}

// Every value of values.yaml is named by the schema and the other way round.
func TestSchemaAndValuesAgree(t *testing.T) {
	c := chart.Load(t, "unpend")
	var schema struct {
		Properties map[string]struct {
			Properties map[string]any `json:"properties"`
		} `json:"properties"`
	}
	if err := yaml.Unmarshal(c.Schema, &schema); err != nil {
		t.Fatal(err)
	}
	delete(schema.Properties, "global") // helm's own
	got, want := slices.Sorted(maps.Keys(schema.Properties)), slices.Sorted(maps.Keys(c.Values))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, part := range []string{"probe", "remediate", "nats", "notifier", "slack", "paging", "hooks", "jira", "narrate", "knowledge", "kubectl", "rca", "monitoring", "networkPolicy"} {
		its, ok := c.Values[part].(map[string]any)
		if !ok {
			t.Fatalf("no values of %s", part)
		}
		got, want = slices.Sorted(maps.Keys(schema.Properties[part].Properties)), slices.Sorted(maps.Keys(its))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", part, diff)
		}
	}
}
