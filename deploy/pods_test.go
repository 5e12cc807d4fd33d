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
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/unpend/unpend/testdata/chart"
)

func TestDeployment(t *testing.T) {
	plain := one[appsv1.Deployment](t, objects(t, nil), "Deployment")
	if *plain.Spec.Replicas != 1 || plain.Spec.Strategy.Type != appsv1.RecreateDeploymentStrategyType {
		t.Error("two pods may meet on one store")
	}
	pod := plain.Spec.Template.Spec
	if diff := cmp.Diff([]string{"run", "--config", "/etc/unpend/config.yaml", "--roles", "watch,diagnose,notify"}, pod.Containers[0].Args); diff != "" {
		t.Error(diff)
	}
	if want := "ghcr.io/unpend/unpend:" + chart.Load(t, "unpend").Metadata.AppVersion; pod.Containers[0].Image != want {
		t.Errorf("image %s", pod.Containers[0].Image)
	}
	full := one[appsv1.Deployment](t, objects(t, everything()), "Deployment").Spec.Template.Spec
	if want := "registry.example.com:5000/unpend@sha256:" + strings.Repeat("0", 64); full.Containers[0].Image != want {
		t.Errorf("image %s", full.Containers[0].Image)
	}
	if diff := cmp.Diff([]string{"--roles", "watch,diagnose,notify", "--log-level=debug"}, full.Containers[0].Args[3:]); diff != "" {
		t.Error(diff)
	}
	token := volume(t, full, "slack")
	if token.Secret == nil || token.Secret.SecretName != "unpend-slack" || len(token.Secret.Items) != 1 || token.Secret.Items[0] != (corev1.KeyToPath{Key: "bot", Path: "bot"}) ||
		!slices.ContainsFunc(full.Containers[0].VolumeMounts, func(m corev1.VolumeMount) bool {
			return m.Name == "slack" && m.MountPath == "/etc/unpend-slack" && m.ReadOnly
		}) {
		t.Errorf("the bot's token: %+v, mounts %+v", token, full.Containers[0].VolumeMounts)
	}
	if keys := volume(t, full, "paging"); keys.Secret == nil || keys.Secret.SecretName != "unpend-paging" || !slices.ContainsFunc(full.Containers[0].VolumeMounts, func(m corev1.VolumeMount) bool {
		return m.Name == "paging" && m.MountPath == "/etc/unpend-paging" && m.ReadOnly
	}) {
		t.Errorf("the pagers' keys: %+v", keys)
	}
	token = volume(t, full, "knowledge")
	if token.Secret == nil || token.Secret.SecretName != "unpend-knowledge" || !slices.Equal(token.Secret.Items, []corev1.KeyToPath{{Key: "slack", Path: "slack"}, {Key: "app", Path: "app"}, {Key: "jira", Path: "jira"}, {Key: "embeddings", Path: "embeddings"}}) {
		t.Errorf("what is read by is mounted as %+v", token)
	}
	token = volume(t, full, "jira")
	if token.Secret == nil || token.Secret.SecretName != "unpend-jira" || len(token.Secret.Items) != 1 || token.Secret.Items[0] != (corev1.KeyToPath{Key: "api", Path: "api"}) ||
		!slices.ContainsFunc(full.Containers[0].VolumeMounts, func(m corev1.VolumeMount) bool {
			return m.Name == "jira" && m.MountPath == "/etc/unpend-jira" && m.ReadOnly
		}) {
		t.Errorf("the account's token: %+v, mounts %+v", token, full.Containers[0].VolumeMounts)
	}
	if key := volume(t, full, "narrate"); key.Secret == nil || key.Secret.SecretName != "unpend-narrate" || len(key.Secret.Items) != 1 || key.Secret.Items[0] != (corev1.KeyToPath{Key: "api", Path: "api"}) ||
		!slices.ContainsFunc(full.Containers[0].VolumeMounts, func(m corev1.VolumeMount) bool {
			return m.Name == "narrate" && m.MountPath == "/etc/unpend-narrate" && m.ReadOnly
		}) {
		t.Errorf("the model's key: %+v, mounts %+v", key, full.Containers[0].VolumeMounts)
	}
	if slices.ContainsFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Secret != nil }) {
		t.Error("a Secret is mounted that nobody asked for")
	}
	least := one[appsv1.Deployment](t, objects(t, variants()["least"]), "Deployment").Spec.Template.Spec
	if v := volume(t, least, "store"); v.EmptyDir == nil || v.EmptyDir.SizeLimit.String() != "1Gi" {
		t.Errorf("store %+v", v)
	}
	claim := one[appsv1.Deployment](t, objects(t, variants()["claim"]), "Deployment").Spec.Template.Spec
	if v := volume(t, claim, "store"); v.PersistentVolumeClaim == nil || v.PersistentVolumeClaim.ClaimName != "mine" {
		t.Errorf("store %+v", v)
	}
}

// The app's token, by which clicks are heard, is mounted for the executor alone, and only where
// it carries something out.
func TestTheExecutorHearsSlack(t *testing.T) {
	socket := values{"channel": "C0123456789", "existingSecret": "unpend-slack", "key": "bot", "appKey": "app"}
	for _, tc := range []struct {
		mode  string
		heard values
		want  []string
	}{
		{"approve", socket, []string{"unpend-executor: bot app", "unpend: bot"}},
		{"observe", socket, []string{"unpend: bot"}},
		{"approve", clicks(), []string{"unpend-executor: token signing", "unpend: token"}},
		{"observe", clicks(), []string{"unpend: token"}},
	} {
		var got []string
		for _, o := range objects(t, values{"mode": tc.mode, "slack": tc.heard}) {
			if o.GetKind() != "Deployment" {
				continue
			}
			var d appsv1.Deployment
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &d); err != nil {
				t.Fatal(err)
			}
			mounted := d.Name + ":"
			for _, k := range volume(t, d.Spec.Template.Spec, "slack").Secret.Items {
				mounted += " " + k.Path
			}
			got = append(got, mounted)
		}
		slices.Sort(got)
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s, %v: %s", tc.mode, tc.heard, diff)
		}
	}
}

// Ports that others come to are there only where they are wanted: each has its Service, which
// leads to the pod that listens, and is let in by the policy from those alone who are named.
func TestWhereOthersComeTo(t *testing.T) {
	for name, want := range map[string][]string{
		"defaults":   {"service unpend-metrics 9090", "policy unpend metrics from 0"},
		"everything": {"service unpend-other-hooks 9099", "service unpend-other-metrics 9090", "policy unpend-other hooks from 1", "policy unpend-other metrics from 1", "policy unpend-other-executor metrics from 1", "service unpend-other-executor-metrics 9090"},
		"clicks":     {"service unpend-executor-slack 9095", "service unpend-metrics 9090", "policy unpend metrics from 0", "policy unpend-executor slack from 1"},
	} {
		var got []string
		open := map[string][]string{} // ports of containers by their Deployment
		objs := objects(t, variants()[name])
		for _, o := range objs {
			if o.GetKind() == "Deployment" {
				var d appsv1.Deployment
				convert(t, o, &d)
				for _, p := range d.Spec.Template.Spec.Containers[0].Ports {
					open[fmt.Sprint(d.Spec.Selector.MatchLabels)] = append(open[fmt.Sprint(d.Spec.Selector.MatchLabels)], fmt.Sprintf("%s %d", p.Name, p.ContainerPort))
				}
			}
		}
		for _, o := range objs {
			switch o.GetKind() {
			case "Service":
				var s corev1.Service
				convert(t, o, &s)
				p := s.Spec.Ports[0]
				if got = append(got, fmt.Sprintf("service %s %d", s.Name, p.Port)); !slices.Contains(open[fmt.Sprint(s.Spec.Selector)], fmt.Sprintf("%s %d", p.TargetPort.String(), p.Port)) {
					t.Errorf("%s: %s leads to %s %d of %v, and there are %v", name, s.Name, p.TargetPort.String(), p.Port, s.Spec.Selector, open)
				}
			case "NetworkPolicy":
				var p networkingv1.NetworkPolicy
				convert(t, o, &p)
				for _, in := range p.Spec.Ingress {
					got = append(got, fmt.Sprintf("policy %s %s from %d", p.Name, in.Ports[0].Port.String(), len(in.From)))
				}
			}
		}
		slices.Sort(got)
		slices.Sort(want)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	for want, v := range map[string]values{
		"hooks.tokenKey, hooks.secretKey and hooks.pagerDutyKey are not: anybody could call": {"hooks": values{"existingSecret": "a"}},
		"slack.appKey and slack.signingKey are two ways for clicks to come":                  {"mode": "approve", "slack": values{"channel": "C0123456789", "existingSecret": "a", "appKey": "b", "signingKey": "c"}},
	} {
		if _, err := render(t, v); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v", err)
		}
	}
}

func convert(t *testing.T, o *unstructured.Unstructured, into any) {
	t.Helper()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, into); err != nil {
		t.Fatal(err)
	}
}

// A channel without the token to post there is refused by name, and so is a project.
func TestPlacesNeedTheirSecret(t *testing.T) {
	if _, err := render(t, values{"jira": values{"url": "https://example.atlassian.net"}}); err == nil || !strings.Contains(err.Error(), "jira.existingSecret is not: name the Secret") {
		t.Errorf("%v", err)
	}
	if _, err := render(t, values{"knowledge": values{"slack": values{"channels": []any{"gpu-help"}}}}); err == nil || !strings.Contains(err.Error(), "knowledge.existingSecret is not: name the Secret") {
		t.Errorf("%v", err)
	}
	if _, err := render(t, values{"slack": values{"channel": "C0123456789"}}); err == nil || !strings.Contains(err.Error(), "slack.existingSecret is not: name the Secret") {
		t.Errorf("%v", err)
	}
}

// So is a pager without its key.
func TestPagersNeedTheirSecret(t *testing.T) {
	for _, place := range []string{"pagerduty", "opsgenie", "webhook"} {
		_, err := render(t, values{"config": values{place: values{"url": "https://x.example"}}})
		if want := "config." + place + " is set, paging.existingSecret is not: name the Secret that holds what it is told with under the key " + place; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v", err)
		}
	}
}

func volume(t *testing.T, pod corev1.PodSpec, name string) corev1.Volume {
	t.Helper()
	i := slices.IndexFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == name })
	if i < 0 {
		t.Fatalf("no volume %s", name)
	}
	return pod.Volumes[i]
}

// The page is served where it is wanted, and on loopback.
func TestThePageIsOnLoopbackAndOff(t *testing.T) {
	for want, v := range map[string]values{"": nil, "listen: 127.0.0.1:8080": {"web": values{"enabled": true}}, "listen: 127.0.0.1:9000": {"web": values{"enabled": true, "port": 9000}}} {
		config := one[corev1.ConfigMap](t, objects(t, v), "ConfigMap").Data["config.yaml"]
		if strings.Contains(config, "listen:") != (want != "") || !strings.Contains(config, want) {
			t.Errorf("%v: %s", v, config)
		}
	}
}

// A changed configuration must reach the pod.
func TestConfigChangeRollsThePod(t *testing.T) {
	sum := func(v values) string {
		return one[appsv1.Deployment](t, objects(t, v), "Deployment").Spec.Template.Annotations["checksum/config"]
	}
	if a, b := sum(nil), sum(values{"config": values{"rca": values{"a": "b"}}}); a == b || a == "" {
		t.Errorf("%q, %q", a, b)
	}
}

// An address that no probe of the pod could reach is refused, and a port is read from it.
func TestProbesAskWhereTheProgramListens(t *testing.T) {
	for metrics, want := range map[string]string{
		"127.0.0.1:9090": "would never find it", "localhost:9090": "would never find it", "[::1]:9090": "would never find it",
		":0": "has to end in the port", "0.0.0.0": "has to end in the port",
	} {
		_, err := chart.Release{Namespace: "unpend", Values: values{"config": values{"web": values{"metrics": metrics}}}}.Render(t)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", metrics, err, want)
		}
	}
	d := one[appsv1.Deployment](t, objects(t, values{"config": values{"web": values{"metrics": "0.0.0.0:9191"}}}), "Deployment")
	if got := d.Spec.Template.Spec.Containers[0].Ports[0].ContainerPort; got != 9191 {
		t.Errorf("the probes ask port %d", got)
	}
}
