package dump

import (
	"maps"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/rca/cluster"
)

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

// Four APIs have a PodGroup: none is taken for another's, and a dump keeps them apart.
func TestPodGroupsOfFourAPIs(t *testing.T) {
	const meta = "\nkind: PodGroup\nmetadata: {namespace: ml, name: train}\n---\n"
	s := fromText(t, "apiVersion: scheduling.k8s.io/v1alpha2"+meta+"apiVersion: scheduling.x-k8s.io/v1alpha1"+meta+"apiVersion: scheduling.volcano.sh/v1beta1"+meta+
		"apiVersion: scheduling.run.ai/v2alpha2"+meta+"apiVersion: example.com/v1"+meta)
	want := []string{"KAI scheduling.run.ai/v2alpha2 PodGroup ml/train", "Kubernetes scheduling.k8s.io/v1beta1 PodGroup ml/train",
		"Plugins scheduling.x-k8s.io/v1alpha1 PodGroup ml/train", "Volcano scheduling.volcano.sh/v1beta1 PodGroup ml/train"}
	if got := held(s); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	again := fromText(t, written(t, s, "yaml"))
	if got := held(again); !slices.Equal(got, want) || !maps.Equal(again.Unread, s.Unread) {
		t.Errorf("read again: %q, unread %v; want %q, %v", got, again.Unread, want, s.Unread)
	}
	if s.Unread["PodGroup.scheduling.volcano.sh"] != "" || s.Unread["Node"] == "" {
		t.Errorf("unread %v", s.Unread)
	}
}
