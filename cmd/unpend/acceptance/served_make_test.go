package acceptance

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"

	"github.com/unpend/unpend/testdata/controlplane"
)

// shelf serves objects as they are given, and nobody is there who would change them.
type shelf struct {
	*controlplane.ControlPlane
	client dynamic.Interface
	mapper *restmapper.DeferredDiscoveryRESTMapper
	reader string // the kubeconfig of who may what the chart lets read
	bare   []byte // the dump of this cluster, with nothing in it
}

func newShelf(c *controlplane.ControlPlane) *shelf {
	return &shelf{ControlPlane: c, client: c.Dynamic(), mapper: restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(c.Client().Discovery()))}
}

// name tells an object from all others of a cluster.
type name struct {
	kind            schema.GroupKind
	namespace, name string
}

func nameOf(o *unstructured.Unstructured) name {
	return name{o.GroupVersionKind().GroupKind(), o.GetNamespace(), o.GetName()}
}

// serve makes a dump's objects: each as the API server takes it, with its status, and then as
// old as it is there, with the uid that others know it by. What is made is gone with the test.
func (s *shelf) serve(t *testing.T, d *dumped) {
	t.Helper()
	before := s.Revision(t)
	resources := map[schema.GroupVersionResource]bool{}
	t.Cleanup(func() { s.clear(t, before, slices.Collect(maps.Keys(resources))) })
	made := map[name]*unstructured.Unstructured{}
	for _, o := range slices.Concat(s.missing(d), d.objects) {
		m, err := s.mapper.RESTMapping(o.GroupVersionKind().GroupKind(), o.GroupVersionKind().Version)
		must(t, err)
		resources[m.Resource] = true
		got, err := s.create(t, m.Resource, o)
		if err != nil {
			t.Errorf("%s %s: %v", o.GetKind(), o.GetName(), err)
			continue
		}
		made[nameOf(o)] = got
	}
	if t.Failed() {
		t.FailNow()
	}
	s.age(t, d, before, made)
	s.AwaitRevision(t, s.Revision(t), slices.Collect(maps.Keys(resources))...)
}

// missing are the namespaces that a dump says nothing of, and that its objects are in.
func (s *shelf) missing(d *dumped) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, ns := range d.namespaces() {
		if !slices.ContainsFunc(d.objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == "Namespace" && o.GetName() == ns }) {
			out = append(out, &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": ns}}})
		}
	}
	return out
}

// serverSets are the fields of metadata that the API server sets itself, whatever it is sent.
var serverSets = []string{"uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"}

// create makes an object and its status. One that every cluster has stays, or is changed to
// what it is in the dump.
func (s *shelf) create(t *testing.T, resource schema.GroupVersionResource, from *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	t.Helper()
	to := dynamic.ResourceInterface(s.client.Resource(resource))
	if ns := from.GetNamespace(); ns != "" {
		to = s.client.Resource(resource).Namespace(ns)
	}
	o := from.DeepCopy()
	for _, field := range serverSets {
		unstructured.RemoveNestedField(o.Object, "metadata", field)
	}
	if spec, is := o.Object["spec"].(map[string]any); is {
		forget(spec, string(from.GetUID()))
	}
	got, err := to.Create(t.Context(), o, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	if apierrors.IsAlreadyExists(err) {
		if got, err = to.Get(t.Context(), o.GetName(), metav1.GetOptions{}); err != nil {
			return nil, err
		}
		o.SetResourceVersion(got.GetResourceVersion())
		got, err = to.Update(t.Context(), o, metav1.UpdateOptions{FieldValidation: metav1.FieldValidationStrict})
	}
	if status, has := o.Object["status"]; err == nil && has && lacks(got.Object["status"], status, "status") != "" {
		got.Object["status"] = status
		if got, err = to.UpdateStatus(t.Context(), got, metav1.UpdateOptions{FieldValidation: metav1.FieldValidationStrict}); err != nil {
			return nil, fmt.Errorf("its status: %w", err)
		}
	}
	if err != nil {
		return nil, err
	}
	if what := lacks(got.Object, o.Object, ""); what != "" {
		return nil, fmt.Errorf("it is served without %s", what)
	}
	return got, nil
}

// forget takes out what names an object by its own uid, as a Job's selector does: the API server
// puts it in again.
func forget(in map[string]any, uid string) {
	for key, v := range in {
		switch v := v.(type) {
		case string:
			if v == uid && strings.HasSuffix(key, "-uid") {
				delete(in, key)
			}
		case map[string]any:
			forget(v, uid)
		}
	}
}

// age gives what was made the metadata that it has in the dump.
func (s *shelf) age(t *testing.T, d *dumped, before int64, made map[name]*unstructured.Unstructured) {
	t.Helper()
	uids := d.uids()
	var known []string // uids here, and in the dump
	for _, o := range d.objects {
		if uid := o.GetUID(); uid != "" && uids[uid] == 1 {
			known = append(known, string(made[nameOf(o)].GetUID()), string(uid))
		}
	}
	renamed := strings.NewReplacer(known...)
	in := map[name]controlplane.Kept{}
	for _, k := range s.KeptSince(t, before) {
		in[nameOf(k.Object)] = k
	}
	var put []controlplane.Kept
	for _, o := range d.objects {
		k, is := in[nameOf(o)]
		if !is {
			continue // every cluster has it, as it is
		}
		text, err := k.Object.MarshalJSON()
		must(t, err)
		must(t, k.Object.UnmarshalJSON([]byte(renamed.Replace(string(text)))))
		for _, field := range serverSets {
			if value, has, _ := unstructured.NestedFieldCopy(o.Object, "metadata", field); has && field != "resourceVersion" && field != "uid" {
				must(t, unstructured.SetNestedField(k.Object.Object, value, "metadata", field))
			}
		}
		if o.GetManagedFields() == nil {
			k.Object.SetManagedFields(nil) // who wrote what when is not known of it
		}
		put = append(put, k)
	}
	s.Keep(t, put, nil)
}

// uids counts of how many objects of the dump each is: where one is of several it was written
// by hand, and tells nobody apart.
func (d *dumped) uids() map[types.UID]int {
	of := map[types.UID]int{}
	for _, o := range d.objects {
		of[o.GetUID()]++
	}
	return of
}

// clear makes everything as it was.
func (s *shelf) clear(t *testing.T, before int64, resources []schema.GroupVersionResource) {
	t.Helper()
	var back, gone []controlplane.Kept
	for _, k := range s.KeptSince(t, before) {
		switch kind := k.Object.GetKind(); {
		case kind == "Lease": // the API server's own, and it writes it meanwhile
		case k.Made > before:
			gone = append(gone, k)
		default:
			back = append(back, s.KeptAt(t, k.Key, before))
		}
	}
	s.AwaitRevision(t, s.Keep(t, back, gone), resources...)
}
