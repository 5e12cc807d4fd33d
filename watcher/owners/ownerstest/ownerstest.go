// Package ownerstest is kinds of owners that an API server in memory serves, for tests: trials,
// which own Jobs, and experiments, which own trials.
package ownerstest

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	metadatafake "k8s.io/client-go/metadata/fake"

	"github.com/unpend/unpend/watcher/owners"
)

const group = "kubeflow.org"

// Resources of the two kinds.
var (
	Trials      = schema.GroupVersionResource{Group: group, Version: "v1beta1", Resource: "trials"}
	Experiments = schema.GroupVersionResource{Group: group, Version: "v1beta1", Resource: "experiments"}
)

// Serve has the API server in memory say that it serves both.
func Serve(c *fake.Clientset) {
	c.Resources = append(c.Resources, &metav1.APIResourceList{GroupVersion: Trials.GroupVersion().String(), APIResources: []metav1.APIResource{
		{Name: Trials.Resource, Kind: "Trial", Namespaced: true}, {Name: Experiments.Resource, Kind: "Experiment", Namespaced: true}}})
}

// Client has the objects.
func Client(objects ...runtime.Object) *metadatafake.FakeMetadataClient {
	scheme := metadatafake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		panic(err) // the scheme is new
	}
	return metadatafake.NewSimpleMetadataClient(scheme, objects...)
}

// Reader reads both kinds.
func Reader(objects ...runtime.Object) owners.Reader {
	return owners.Reader{Names: []schema.GroupResource{Trials.GroupResource(), Experiments.GroupResource()}, Client: Client(objects...)}
}

// By is the reference to an object's controller.
func By(apiVersion, kind, name string) []metav1.OwnerReference {
	yes := true
	return []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: name, UID: types.UID("uid-" + name), Controller: &yes}}
}

// Object is a Trial or an Experiment in namespace ml.
func Object(kind, name string, owner ...metav1.OwnerReference) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: Trials.GroupVersion().String(), Kind: kind},
		ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: name, UID: types.UID("uid-" + name), Labels: map[string]string{"team": "a"}, OwnerReferences: owner}}
}
