package deploy_test

import (
	"encoding/json"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"

	"github.com/unpend/unpend/testdata/chart"
	"github.com/unpend/unpend/testdata/prometheus"
)

const (
	rulesFile     = "charts/unpend/files/rules.yaml"
	dashboardFile = "charts/unpend/files/dashboard.json"
)

func watched() values {
	on := values{"enabled": true, "labels": values{"release": "prometheus"}}
	return values{"mode": "approve", "remediate": approve()["remediate"], "monitoring": values{"serviceMonitor": on, "rules": on, "dashboard": values{"enabled": true}},
		"networkPolicy": values{"metricsFrom": []any{values{"podSelector": values{}}}}}
}

// Where the operator's kinds are not there, what needs them is left out, and the notes say so.
func TestMonitoringGoesByWhatTheClusterKnows(t *testing.T) {
	missing := "monitoring.coreos.com/v1), which this cluster has not"
	for _, tc := range []struct {
		apis  []string
		want  []string
		noted bool
	}{
		{nil, []string{"unpend-dashboard"}, true},
		{[]string{"monitoring.coreos.com/v1"}, []string{"PrometheusRule unpend", "ServiceMonitor unpend", "unpend-dashboard"}, false},
	} {
		r := chart.Release{Namespace: namespace, APIs: tc.apis, Values: watched()}
		files, err := r.Render(t)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(files["unpend/templates/NOTES.txt"], missing); got != tc.noted {
			t.Errorf("%v: the notes say %q", tc.apis, files["unpend/templates/NOTES.txt"])
		}
		var got []string
		for _, o := range chart.Parse(t, files) {
			switch {
			case o.GroupVersionKind().Group == "monitoring.coreos.com":
				got = append(got, o.GetKind()+" "+o.GetName())
				if o.GetLabels()["release"] != "prometheus" {
					t.Errorf("%s has the labels %v", o.GetKind(), o.GetLabels())
				}
			case o.GetLabels()["grafana_dashboard"] == "1":
				got = append(got, o.GetName())
			}
		}
		slices.Sort(got)
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%v: %s", tc.apis, diff)
		}
	}
	for _, o := range objects(t, nil) {
		if strings.Contains(o.GetName(), "dashboard") {
			t.Error("nobody asked for a dashboard")
		}
	}
}

// The monitor finds the metrics of every process, by the names of their ports.
func TestTheMonitorFindsAll(t *testing.T) {
	apart := watched()
	apart["layout"], apart["nats"] = "separate", values{"existingSecret": "nats", "tokenKey": "token"}
	finds(t, watched(), "unpend-executor-metrics", "unpend-metrics")
	finds(t, apart, "unpend-executor-metrics", "unpend-metrics", "unpend-notifier-metrics")
}

func finds(t *testing.T, v values, want ...string) {
	t.Helper()
	objs := chart.Release{Namespace: namespace, APIs: []string{"monitoring.coreos.com/v1"}, Values: v}.Objects(t)
	i := slices.IndexFunc(objs, func(o *unstructured.Unstructured) bool { return o.GetKind() == "ServiceMonitor" })
	var monitor struct {
		Spec struct {
			Selector  metav1.LabelSelector
			Endpoints []struct{ Port string }
		}
	}
	text, err := yaml.Marshal(objs[i].Object)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, &monitor); err != nil {
		t.Fatal(err)
	}
	selects, err := metav1.LabelSelectorAsSelector(&monitor.Spec.Selector)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, o := range objs {
		if o.GetKind() == "Service" && selects.Matches(labels.Set(o.GetLabels())) {
			var s corev1.Service
			convert(t, o, &s)
			for _, p := range s.Spec.Ports {
				if p.Name == monitor.Spec.Endpoints[0].Port {
					got = append(got, s.Name)
				}
			}
		}
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// expressions are those of the dashboard, as Grafana would send them, and of the alerts.
func expressions(t *testing.T) []string {
	t.Helper()
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	text, err := os.ReadFile(dashboardFile)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &board); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, p := range board.Panels {
		for _, target := range p.Targets {
			out = append(out, strings.ReplaceAll(target.Expr, "$__rate_interval", "5m"))
		}
	}
	var rules struct {
		Groups []struct {
			Rules []struct{ Alert, Expr string }
		}
	}
	if text, err = os.ReadFile(rulesFile); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, &rules); err != nil {
		t.Fatal(err)
	}
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			out = append(out, r.Expr)
		}
	}
	return out
}

var ofUnpend = regexp.MustCompile(`\bunpend_[a-z_]+`)

// No panel and no alert goes by a metric that the program has not, and each of its metrics is on
// the dashboard or in an alert.
func TestMonitoringGoesByMetricsThatAre(t *testing.T) {
	named := regexp.MustCompile(`(?:Name: |NewDesc\(|vec\()"(unpend_[a-z_]+)"`)
	has := map[string]bool{}
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range named.FindAllSubmatch(text, -1) {
			has[string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]bool{}
	for _, e := range expressions(t) {
		for _, name := range ofUnpend.FindAllString(e, -1) {
			for _, of := range []string{"_bucket", "_count", "_sum"} {
				if base, ok := strings.CutSuffix(name, of); ok && has[base] {
					name = base
				}
			}
			if shown[name] = true; !has[name] {
				t.Errorf("%s: there is no %s", e, name)
			}
		}
	}
	// What a person looks for in the log, in the same words.
	for _, kept := range []string{"unpend_incidents_published_total", "unpend_bus_publish_failures_total", "unpend_event_failures_total", "unpend_untold", "unpend_mig_unusable_slices", "unpend_mig_free_slices"} {
		shown[kept] = true
	}
	for name := range has {
		if !shown[name] {
			t.Errorf("%s is on no panel, and in no alert", name)
		}
	}
}

// A real Prometheus takes every rule and every panel's expression, and promtool holds each alert
// to a course of events in which it fires, and one in which it does not.
func TestAlerts(t *testing.T) {
	prometheus.TestRules(t, "testdata/rules_test.yaml")
	file, err := filepath.Abs(rulesFile)
	if err != nil {
		t.Fatal(err)
	}
	at := prometheus.Obey(t, file)
	var loaded struct {
		Data struct {
			Groups []struct {
				Rules []struct{ Name, Health, LastError string }
			}
		}
	}
	ask(t, at+"/api/v1/rules", &loaded)
	var names []string
	for _, g := range loaded.Data.Groups {
		for _, r := range g.Rules {
			if names = append(names, r.Name); r.LastError != "" {
				t.Errorf("%s: %s", r.Name, r.LastError)
			}
		}
	}
	if len(names) < 8 {
		t.Errorf("alerts: %v", names)
	}
	tests, err := os.ReadFile("testdata/rules_test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if n := strings.Count(string(tests), "alertname: "+name+"\n"); n < 2 {
			t.Errorf("%s is tested %d times", name, n)
		}
	}
	for _, e := range expressions(t) {
		var answer struct{ Status, Error string }
		if ask(t, at+"/api/v1/query?query="+url.QueryEscape(e), &answer); answer.Status != "success" {
			t.Errorf("%s: %s", e, answer.Error)
		}
	}
}

func ask(t *testing.T, address string, into any) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(into); err != nil {
		t.Fatal(err)
	}
}
