package mend

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/rca/edit/edittest"
)

// A ConfigMap that ClusterPolicy names, and that has no entries, is written as MIG manager reads it; one that has
// some, and where none is named, is left as it is.
func TestAConfigMapIsWrittenAsMIGManagerReadsIt(t *testing.T) {
	for name, tc := range map[string]struct {
		named string
		data  string
		want  string
	}{
		"no entries": {"own", "all-1g.5gb: []", "by hand, low risk: write ConfigMap gpu-operator/own as MIG manager reads it, then have it try again on n: it has no mig-configs in its config.yaml (what MIG manager makes of it no copy can show)"},
		"entries":    {"own", "version: v1\nmig-configs: {mine: [{devices: all, mig-enabled: false}]}", ""},
		"not named":  {"", "all-1g.5gb: []", ""},
	} {
		w := newWorld()
		w.Laid("all-1g.5gb", "failed")
		if tc.named != "" {
			w.ClusterPolicies = []*unstructured.Unstructured{{Object: map[string]any{"spec": map[string]any{"migManager": map[string]any{"config": map[string]any{"name": tc.named}}}}}}
		}
		w.ConfigMaps = append(w.ConfigMaps, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "gpu-operator", Name: "own"}, Data: map[string]string{"config.yaml": tc.data}})
		c := w.bench(t)
		all := RewriteConfig(c, c.Node("n"))
		if got := edittest.ToldAll(all); got != tc.want || len(all) > 0 && !strings.HasPrefix(all[0].Commands[0], "kubectl -n gpu-operator edit configmap own") {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}
