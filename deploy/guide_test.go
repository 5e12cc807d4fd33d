package deploy_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/strvals"

	"github.com/unpend/unpend/testdata/chart"
)

// Every helm command of the guide and of the README renders what it names with what it sets, in
// a cluster as it is and in one with the Prometheus Operator's kinds; every file that a command
// names is there.
func TestCommandsOfTheGuides(t *testing.T) {
	rendered := 0
	for _, guide := range []string{"README.md", "../README.md"} {
		text, err := os.ReadFile(guide)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
			for line := range strings.Lines(strings.ReplaceAll(block[1], "\\\n", " ")) {
				words := strings.Fields(strings.ReplaceAll(line, "'", ""))
				for i, w := range words {
					if strings.HasPrefix(w, "deploy/") {
						if _, err := os.Stat(filepath.Join("..", w)); err != nil {
							t.Errorf("%s: %s: %v", guide, line, err)
						}
					}
					if w == "helm" && (words[i+1] == "install" || words[i+1] == "upgrade") && strings.HasPrefix(words[i+3], "deploy/charts/") {
						rendered++
						renders(t, guide, words[i+3:])
					}
				}
			}
		}
	}
	if rendered < 6 {
		t.Errorf("%d helm commands were rendered", rendered)
	}
}

// renders takes a command from its chart on.
func renders(t *testing.T, guide string, command []string) {
	t.Helper()
	v := values{}
	for i, word := range command {
		if word == "--set" {
			if err := strvals.ParseInto(command[i+1], v); err != nil {
				t.Errorf("%s: %v: %v", guide, command, err)
			}
		}
	}
	if _, sets := v["replicas"]; sets && v["config"] == nil {
		t.Errorf("%s: %v sets replicas without a bus", guide, command)
	}
	for _, apis := range [][]string{nil, {"monitoring.coreos.com/v1"}} {
		if _, err := (chart.Release{Chart: filepath.Base(command[0]), Namespace: namespace, APIs: apis, Values: v}).Render(t); err != nil {
			t.Errorf("%s: %v: %v", guide, command, err)
		}
	}
}

// The charts render for the oldest Kubernetes that they say they are for, and what they render it
// serves: of the versions here each was there before, but for the policies of admission, which
// came with it (https://kubernetes.io/docs/reference/access-authn-authz/validating-admission-policy/).
func TestOldestKubernetes(t *testing.T) {
	served := []string{"v1", "admissionregistration.k8s.io/v1", "apps/v1", "batch/v1", "coordination.k8s.io/v1", "networking.k8s.io/v1", "policy/v1", "rbac.authorization.k8s.io/v1"}
	for name, v := range variants() {
		files, err := (chart.Release{Namespace: namespace, Kubernetes: "v1.30.0", Values: v}).Render(t)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, o := range chart.Parse(t, files) {
			if !slices.Contains(served, o.GetAPIVersion()) {
				t.Errorf("%s: %s %s is of %s", name, o.GetKind(), o.GetName(), o.GetAPIVersion())
			}
		}
	}
	if _, err := (chart.Release{Chart: "mig-demo", Kubernetes: "v1.30.0", Values: values{"kwok": values{"nodes": 2}}}).Render(t); err != nil {
		t.Error(err)
	}
}
