package live

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/nodeprobe"
)

// A report that is none is not the same as no report: nothing is known of its node, and
// what it said before is taken back. Others are not in its way.
func TestReportsThatAreNone(t *testing.T) {
	custom, client := customs(), smallCluster()
	f, err := Follow(t.Context(), client, custom, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	told := make(chan string, 10)
	if err := f.OnGeometry(func(g *nodeprobe.NodeGeometry) { told <- "set " + g.Name }, func(name string) { told <- "gone " + name }); err != nil {
		t.Fatal(err)
	}
	if got := <-told; got != "set gpu-1" {
		t.Error(got)
	}
	if st := f.State(t.Context()); st.Geometries["gpu-1"] == nil || len(st.Illegible) != 0 {
		t.Errorf("%v, %v", st.Geometries, st.Illegible)
	}
	bad := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "unpend.dev/v1alpha1", "kind": "NodeGeometry", "metadata": map[string]any{"name": "gpu-1"},
		"report": map[string]any{"observedAt": "2026-01-02T03:04:05Z", "gpus": "none"}}}
	if _, err := custom.Resource(nodeprobe.Resource).Update(t.Context(), bad, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := <-told; got != "gone gpu-1" {
		t.Error(got)
	}
	if st := f.State(t.Context()); st.Geometries["gpu-1"] != nil || st.Illegible["gpu-1"] == "" {
		t.Errorf("%v, %q", st.Geometries, st.Illegible)
	}
	nodes := make(chan string, 10)
	if err := f.OnNode(func(n *corev1.Node) { nodes <- "set " + n.Name }, func(name string) { nodes <- "gone " + name }); err != nil {
		t.Fatal(err)
	}
	if got := <-nodes; got != "set gpu-1" {
		t.Error(got)
	}
	if err := client.CoreV1().Nodes().Delete(t.Context(), "gpu-1", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := <-nodes; got != "gone gpu-1" {
		t.Error(got)
	}
}
