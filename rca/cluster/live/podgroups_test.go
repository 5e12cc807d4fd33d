package live

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"

	"github.com/unpend/unpend/rca/cluster"
)

func group(apiVersion string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": "PodGroup", "metadata": map[string]any{"namespace": "ml", "name": "train"}}}
}

// held lists the groups of a state with the field each is in.
func held(s *cluster.State) []string {
	var out []string
	for field, list := range map[string][]*unstructured.Unstructured{"Kubernetes": s.PodGroups.Kubernetes, "Plugins": s.PodGroups.Plugins, "Volcano": s.PodGroups.Volcano, "KAI": s.PodGroups.KAI} {
		for _, g := range list {
			out = append(out, field+" "+g.GetAPIVersion()+" "+g.GetKind()+" "+g.GetNamespace()+"/"+g.GetName())
		}
	}
	slices.Sort(out)
	return out
}

// A kind is followed where discovery has it, in the version that it has: one of
// another version, or of another kind's group, is not asked for.
func TestPodGroupsAreDiscovered(t *testing.T) {
	c := smallCluster()
	c.Resources = []*metav1.APIResourceList{
		{GroupVersion: "scheduling.k8s.io/v1", APIResources: []metav1.APIResource{{Name: "priorityclasses", Kind: "PriorityClass"}}},
		{GroupVersion: "scheduling.k8s.io/v1alpha3", APIResources: []metav1.APIResource{{Name: "podgroups", Kind: "PodGroup", Namespaced: true}}},
		{GroupVersion: "scheduling.volcano.sh/v1beta1", APIResources: []metav1.APIResource{{Name: "jobflows", Kind: "JobFlow"}}},
		{GroupVersion: "scheduling.run.ai/v2alpha2", APIResources: []metav1.APIResource{{Name: "podgroups", Kind: "PodGroup", Namespaced: true}}},
	}
	lists := map[schema.GroupVersionResource]string{policies: "ClusterPolicyList"}
	lists[schema.GroupVersionResource{Group: "unpend.dev", Version: "v1alpha1", Resource: "nodegeometries"}] = "NodeGeometryList"
	for group, version := range map[string]string{"scheduling.k8s.io": "v1alpha3", "scheduling.run.ai": "v2alpha2"} { // any other list panics
		lists[schema.GroupVersionResource{Group: group, Version: version, Resource: "podgroups"}] = "PodGroupList"
	}
	d := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), lists, group("scheduling.k8s.io/v1alpha3"), group("scheduling.run.ai/v2alpha2"))
	s, err := ReadFor(t.Context(), c, d, time.Now, "")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"KAI scheduling.run.ai/v2alpha2 PodGroup ml/train", "Kubernetes scheduling.k8s.io/v1alpha3 PodGroup ml/train"}
	if got := held(s); !slices.Equal(got, want) || len(s.Unread) != 0 {
		t.Errorf("got %q, unread %v; want %q", got, s.Unread, want)
	}
}
