// Package chart renders the Helm chart for tests, as `helm install` would, and creates
// what it renders.
package chart

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	helm "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/yaml"

	"github.com/unpend/unpend/testdata/controlplane"
)

// Values are what `helm install --values` takes.
type Values = map[string]any

// Release is one installation, under the name of the chart.
type Release struct {
	Chart      string // default: unpend
	Namespace  string
	Kubernetes string   // the version it is rendered for; default: the control plane's
	APIs       []string // group/version of kinds that the cluster knows beside its own
	Values     Values
}

// Load reads the chart of that name.
func Load(tb testing.TB, name string) *helm.Chart {
	tb.Helper()
	_, file, _, ok := runtime.Caller(0)
	if !ok || !filepath.IsAbs(file) {
		tb.Fatal("find the chart: build tests without -trimpath")
	}
	c, err := loader.Load(filepath.Join(filepath.Dir(file), "../../deploy/charts", name))
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

// Render gives the rendered files by their names; the error is a refusal by the
// schema or by a template.
func (r Release) Render(tb testing.TB) (map[string]string, error) {
	tb.Helper()
	name := cmp.Or(r.Chart, "unpend")
	c := Load(tb, name)
	if err := chartutil.ProcessDependencies(c, r.Values); err != nil {
		tb.Fatal(err)
	}
	caps := chartutil.DefaultCapabilities.Copy()
	caps.KubeVersion = chartutil.KubeVersion{Version: controlplane.Version}
	if r.Kubernetes != "" {
		caps.KubeVersion.Version = r.Kubernetes
	}
	caps.APIVersions = append(caps.APIVersions, r.APIs...)
	all, err := chartutil.ToRenderValues(c, r.Values, chartutil.ReleaseOptions{Name: name, Namespace: r.Namespace, IsInstall: true}, caps)
	if err != nil {
		return nil, err
	}
	return engine.Engine{Strict: true}.Render(c, all)
}

// Objects are the rendered objects, in the order of the templates' names, but
// namespaces first: the order in which helm installs, as far as it matters. What only
// `helm test` makes is not among them.
func (r Release) Objects(tb testing.TB) []*unstructured.Unstructured {
	tb.Helper()
	files, err := r.Render(tb)
	if err != nil {
		tb.Fatal(err)
	}
	out := slices.DeleteFunc(Parse(tb, files), func(o *unstructured.Unstructured) bool { return o.GetAnnotations()["helm.sh/hook"] == "test" })
	slices.SortStableFunc(out, func(a, b *unstructured.Unstructured) int {
		first := func(o *unstructured.Unstructured) int {
			if o.GetKind() == "Namespace" {
				return 0
			}
			return 1
		}
		return first(a) - first(b)
	})
	return out
}

// Parse reads the objects of rendered files.
func Parse(tb testing.TB, files map[string]string) []*unstructured.Unstructured {
	tb.Helper()
	var out []*unstructured.Unstructured
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if !strings.HasSuffix(name, ".yaml") {
			continue
		}
		for doc := range strings.SplitSeq(files[name], "\n---\n") {
			var o map[string]any
			if err := yaml.UnmarshalStrict([]byte(doc), &o); err != nil {
				tb.Fatalf("%s: %v\n%s", name, err, doc)
			}
			if len(o) > 0 {
				out = append(out, &unstructured.Unstructured{Object: o})
			}
		}
	}
	return out
}

// Sender sends objects to an API server.
type Sender struct {
	client dynamic.Interface
	mapper *restmapper.DeferredDiscoveryRESTMapper
}

// To is a sender to a control plane, as a cluster admin.
func To(cp *controlplane.ControlPlane) Sender {
	return Sender{cp.Dynamic(), restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(cp.Client().Discovery()))}
}

// Resource is where an object is written.
func (s Sender) Resource(o *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	gvk := o.GroupVersionKind()
	m, err := s.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return nil, fmt.Errorf("find the resource of %s: %w", gvk, err)
	}
	if ns := o.GetNamespace(); ns != "" {
		return s.client.Resource(m.Resource).Namespace(ns), nil
	}
	return s.client.Resource(m.Resource), nil
}

// Create is strict: a field that the server does not know is an error. With
// metav1.DryRunAll nothing is written.
func (s Sender) Create(tb testing.TB, o *unstructured.Unstructured, dryRun ...string) error {
	tb.Helper()
	to, err := s.Resource(o)
	if err != nil {
		return err
	}
	_, err = to.Create(tb.Context(), o, metav1.CreateOptions{DryRun: dryRun, FieldValidation: metav1.FieldValidationStrict})
	return err
}
