package acceptance

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// tooHeavy is what the program does without, and what it would bring; a prefix that ends
// in a slash is all below it.
var tooHeavy = map[string]string{
	"k8s.io/cli-runtime/":                         "kustomize",
	"sigs.k8s.io/kustomize/":                      "the OpenAPI documents of Kubernetes",
	"k8s.io/kubectl/":                             "kustomize",
	"helm.sh/":                                    "kustomize, templates",
	"k8s.io/apiserver/pkg/server/":                "etcd's client, OpenTelemetry",
	"k8s.io/kubernetes/cmd/":                      "whole components",
	"k8s.io/kubernetes/pkg/controlplane/":         "the API server",
	"k8s.io/kubernetes/pkg/kubelet/":              "the kubelet",
	"go.etcd.io/etcd/":                            "etcd's client",
	"go.opentelemetry.io/otel/exporters/":         "exporters nobody reads",
	"google.golang.org/grpc":                      "templates, by its trace pages",
	"golang.org/x/net/trace":                      "templates",
	"cloud.google.com/":                           "a cloud",
	"github.com/aws/":                             "a cloud",
	"github.com/Azure/azure-sdk-for-go/":          "a cloud",
	"sigs.k8s.io/controller-runtime/pkg/envtest/": "a control plane for tests",
	"testing": "tests",
}

// templated are the packages that may import templates: they have them for callers that
// are none of ours, or for the escaping alone. A template that can be run calls methods by
// name, so that the linker keeps every method of every type: 37 MB more.
var templated = []string{"github.com/spf13/cobra", "github.com/google/cel-go/cel", "maragu.dev/gomponents", "html/template"}

func TestNothingIsLinkedForNothing(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "../../unpend").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		imports := strings.Fields(line)
		dep := imports[0]
		for heavy, why := range tooHeavy {
			if dep == strings.TrimSuffix(heavy, "/") || strings.HasSuffix(heavy, "/") && strings.HasPrefix(dep, heavy) {
				t.Errorf("%s is linked; with it comes: %s", dep, why)
			}
		}
		templates := slices.Contains(imports[1:], "text/template") || slices.Contains(imports[1:], "html/template")
		if templates && !slices.Contains(templated, dep) {
			t.Errorf("%s imports templates: see that bin/unpend does not grow by half", dep)
		}
	}
}
