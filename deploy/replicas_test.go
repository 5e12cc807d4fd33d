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
	policyv1 "k8s.io/api/policy/v1"

	"github.com/unpend/unpend/testdata/chart"
)

// More than one pod of the service need a bus that they share; then one stands by on another
// node, an upgrade replaces them one by one, and a drain leaves one.
func TestReplicas(t *testing.T) {
	if _, err := render(t, values{"replicas": 2}); err == nil || !strings.Contains(err.Error(), "replicas is 2 and nats.url is not set") {
		t.Errorf("%v", err)
	}
	var got []string
	for _, o := range objects(t, values{"replicas": 2, "config": values{"bus": values{"url": "nats://nats.nats.svc:4222"}}}) {
		switch o.GetKind() {
		case "Deployment":
			var d appsv1.Deployment
			convert(t, o, &d)
			got = append(got, fmt.Sprintf("%s %d %s, spread over %s", d.Name, *d.Spec.Replicas, d.Spec.Strategy.RollingUpdate.MaxUnavailable, d.Spec.Template.Spec.TopologySpreadConstraints[0].TopologyKey))
			if s := volume(t, d.Spec.Template.Spec, "store"); s.EmptyDir == nil {
				t.Errorf("two pods share %+v", s)
			}
		case "PodDisruptionBudget":
			var b policyv1.PodDisruptionBudget
			convert(t, o, &b)
			got = append(got, fmt.Sprintf("budget %s %s of %s", b.Name, b.Spec.MaxUnavailable, b.Spec.Selector.MatchLabels["app.kubernetes.io/name"]))
		case "PersistentVolumeClaim":
			got = append(got, "a claim")
		}
	}
	slices.Sort(got)
	if diff := cmp.Diff([]string{"budget unpend 1 of unpend", "unpend 2 0, spread over kubernetes.io/hostname"}, got); diff != "" {
		t.Error(diff)
	}
	got = kinds(objects(t, variants()["standby"]))
	if n := len(slices.DeleteFunc(got, func(k string) bool { return k != "PodDisruptionBudget" })); n != 1 {
		t.Errorf("%d budgets for two executors", n)
	}
}

// Nothing goes out but to names, to the API server, and to the ports of what is named.
func TestEgress(t *testing.T) {
	for name, tc := range map[string]struct {
		values values
		want   map[string]string
	}{
		"defaults": {nil, map[string]string{"unpend": "53 53 443 6443", probe: "53 53 443 6443"}},
		"a model":  {values{"narrate": values{"url": "http://ollama.models:11434/v1", "model": "m"}}, map[string]string{"unpend": "53 53 443 6443 11434", probe: "53 53 443 6443"}},
		"named": {values{"mode": "approve", "remediate": approve()["remediate"], "networkPolicy": values{"egress": []any{values{"ports": []any{values{"port": 8443, "protocol": "TCP"}}}}},
			"config": values{"bus": values{"url": "nats://a:4223,nats://b"}, "rca": values{"prometheus": "http://prometheus.monitoring:9090"}, "alertmanager": values{"urls": []any{"http://one:9093", "https://two"}}}},
			map[string]string{"unpend": "53 53 443 6443 4223 4222 9090 9093 8443", "unpend-executor": "53 53 443 6443 4223 4222 8443", probe: "53 53 443 6443 8443"}},
	} {
		got := map[string]string{}
		for _, o := range objects(t, tc.values) {
			if o.GetKind() != "NetworkPolicy" {
				continue
			}
			var p networkingv1.NetworkPolicy
			convert(t, o, &p)
			if diff := cmp.Diff([]networkingv1.PolicyType{"Ingress", "Egress"}, p.Spec.PolicyTypes); diff != "" {
				t.Error(diff)
			}
			var ports []string
			for _, out := range p.Spec.Egress {
				for _, port := range out.Ports {
					ports = append(ports, port.Port.String())
				}
			}
			got[p.Name] = strings.Join(ports, " ")
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// What helm test starts reads with the service's rights, and is admitted where nothing but the
// restricted standard is.
func TestHelmTest(t *testing.T) {
	files, err := render(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	pods := chart.Parse(t, map[string]string{"test.yaml": files["unpend/templates/tests/why.yaml"]})
	var p corev1.Pod
	convert(t, pods[0], &p)
	if diff := cmp.Diff([]string{"why", "-A"}, p.Spec.Containers[0].Args); diff != "" || p.Spec.ServiceAccountName != "unpend" || p.Spec.RestartPolicy != corev1.RestartPolicyNever || p.Spec.AutomountServiceAccountToken == nil || !*p.Spec.AutomountServiceAccountToken {
		t.Error(diff, p.Spec.ServiceAccountName, p.Spec.AutomountServiceAccountToken)
	}
}
