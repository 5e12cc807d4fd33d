package acceptance

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/unpend/unpend/testdata/chart"
	"github.com/unpend/unpend/testdata/controlplane"
)

// prepare has the server serve every kind that some scenarios have, to a reader of the chart's:
// to the ServiceAccount of the service.
func (s *shelf) prepare(t *testing.T, names []string) {
	t.Helper()
	owners, layouts := map[string]bool{}, map[string]map[string]bool{}
	unknown := map[schema.GroupKind]*custom{}
	for _, name := range names {
		d := readDump(t, name, time.Time{}, 0)
		for _, o := range d.owners() {
			owners[o] = true
		}
		for _, o := range d.objects {
			s.meet(t, unknown, o)
			if ns := o.GetNamespace(); o.GetKind() == "ConfigMap" {
				if layouts[ns] == nil {
					layouts[ns] = map[string]bool{}
				}
				layouts[ns][o.GetName()] = true
			}
		}
	}
	s.install(t, unknown)
	s.read(t, owners, layouts)
}

// custom is a kind that the API server does not know.
type custom struct {
	namespaced bool
	versions   []any
}

// meet notes the kind of an object where the API server does not know it.
func (s *shelf) meet(t *testing.T, unknown map[schema.GroupKind]*custom, o *unstructured.Unstructured) {
	t.Helper()
	kind := o.GroupVersionKind()
	if _, err := s.mapper.RESTMapping(kind.GroupKind(), kind.Version); !meta.IsNoMatchError(err) {
		must(t, err)
		return
	}
	c := unknown[kind.GroupKind()]
	if c == nil {
		c = &custom{namespaced: o.GetNamespace() != ""}
		unknown[kind.GroupKind()] = c
	}
	if !slices.ContainsFunc(c.versions, func(v any) bool { return v.(map[string]any)["name"] == kind.Version }) {
		c.versions = append(c.versions, map[string]any{"name": kind.Version, "served": true, "storage": len(c.versions) == 0,
			"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}}})
	}
}

// install has kinds served of which unpend reads the metadata alone, or as much as any object
// has: with a schema that all are right by.
func (s *shelf) install(t *testing.T, unknown map[schema.GroupKind]*custom) {
	t.Helper()
	folder := t.TempDir()
	for kind, c := range unknown {
		resource, _ := meta.UnsafeGuessKindToResource(kind.WithVersion(""))
		scope := "Cluster"
		if c.namespaced {
			scope = "Namespaced"
		}
		crd := unstructured.Unstructured{Object: map[string]any{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
			"metadata": map[string]any{"name": resource.GroupResource().String(), "annotations": map[string]any{"api-approved.kubernetes.io": "unapproved, for tests alone"}},
			"spec":     map[string]any{"group": kind.Group, "scope": scope, "versions": c.versions, "names": map[string]any{"kind": kind.Kind, "plural": resource.Resource}}}}
		text, err := crd.MarshalJSON()
		must(t, err)
		must(t, os.WriteFile(filepath.Join(folder, crd.GetName()+".yaml"), text, 0o600))
	}
	if len(unknown) > 0 {
		s.InstallCRDs(t, folder)
	}
	s.mapper.Reset()
}

// read gives the reader the rights that the chart gives, and those to ConfigMaps that people give
// besides: the chart knows one namespace of layouts.
func (s *shelf) read(t *testing.T, owners map[string]bool, layouts map[string]map[string]bool) {
	t.Helper()
	operator := chart.Values{"namespace": operatorNamespace}
	if own := listed(layouts[operatorNamespace]); len(own) > 0 { // else the chart names the one that the operator brings
		operator["migConfigMaps"] = own
	}
	values := chart.Values{"probe": chart.Values{"enabled": false}, "rca": chart.Values{"ownerKinds": listed(owners)}, "gpuOperator": operator}
	send := chart.To(s.ControlPlane)
	for _, o := range (chart.Release{Namespace: "unpend", Values: values}).Objects(t) {
		if o.GroupVersionKind().Group == rbacv1.GroupName {
			must(t, send.Create(t, o))
		}
	}
	delete(layouts, operatorNamespace)
	for ns, names := range layouts {
		s.allow(t, ns, slices.Sorted(maps.Keys(names)))
	}
	s.reader = s.KubeconfigFor(t, "system:serviceaccount:unpend:unpend", "system:serviceaccounts", "system:serviceaccounts:unpend")
	controlplane.Eventually(t, 20*time.Second, "the reader may read", func() (bool, string) {
		code, out, errs := call(t, "dump", "-A", "-o", "json", "--kubeconfig", s.reader)
		s.bare = []byte(out)
		return code == 0 && strings.Contains(out, `"QueueList"`) && strings.Contains(out, `"ConfigMapList"`), errs
	})
}

func listed(set map[string]bool) []any {
	out := []any{}
	for _, one := range slices.Sorted(maps.Keys(set)) {
		out = append(out, one)
	}
	return out
}

// allow has the reader get some ConfigMaps of a namespace.
func (s *shelf) allow(t *testing.T, namespace string, names []string) {
	t.Helper()
	named, roles := metav1.ObjectMeta{Name: "layouts", Namespace: namespace}, s.Client().RbacV1()
	_, err := roles.Roles(namespace).Create(t.Context(), &rbacv1.Role{ObjectMeta: named, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: names, Verbs: []string{"get"}}}}, metav1.CreateOptions{})
	must(t, err)
	_, err = roles.RoleBindings(namespace).Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: named, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: named.Name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "unpend", Name: "unpend"}}}, metav1.CreateOptions{})
	must(t, err)
}

// owners are the kinds, as people name them, of what owns others in the dump and is none of
// Kubernetes' own.
func (d *dumped) owners() []string {
	var out []string
	for kind := range d.owning() {
		if d.held[kind] != "" && strings.Contains(kind.Group, ".") && !strings.HasSuffix(kind.Group, ".k8s.io") {
			resource, _ := meta.UnsafeGuessKindToResource(kind.WithVersion(""))
			out = append(out, resource.GroupResource().String())
		}
	}
	slices.Sort(out)
	return out
}
