package stack

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/rca/stack/parts"
	"github.com/unpend/unpend/rca/view"
)

// The GPU Operator's policy is called by its name in what a person types; where none was read, by
// the one that its chart gives it.
func TestThePolicyIsCalledByItsName(t *testing.T) {
	for _, tc := range []struct {
		names []string
		want  string
	}{{nil, "cluster-policy"}, {[]string{"gpus"}, "gpus"}} {
		l := newLab()
		n := l.gpuNode("n")
		n.CreationTimestamp = metav1.NewTime(noon.Add(-time.Hour))
		delete(n.Labels, deployPlugin)
		for _, name := range tc.names {
			l.ClusterPolicies = append(l.ClusterPolicies, &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": name}}})
		}
		w := view.New(l.State)
		f := Of(w).On(w.Nodes["n"])
		if f == nil || len(f.Mends) != 1 || !strings.Contains(strings.Join(f.Mends[0].Commands, "\n")+"\n", "kubectl describe clusterpolicy "+tc.want+"\n") {
			t.Errorf("%v: got %+v", tc.names, f)
		}
	}
}

// The log that is looked at is the device plugin's, whatever stands before it in its pod.
func TestWhichContainerIsLookedAt(t *testing.T) {
	for want, names := range map[string][]string{
		view.PluginName:          nil,
		"first":                  {"first", "second"},
		view.PluginName + "-ctr": {"config-manager", view.PluginName + "-ctr"},
	} {
		p := &corev1.Pod{}
		for _, name := range names {
			p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: name})
		}
		if got := parts.PluginContainer(p); got != want {
			t.Errorf("%s of %s", got, fmt.Sprint(names))
		}
	}
}
