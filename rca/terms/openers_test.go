package terms

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/rcatest"
)

// Who takes a startup taint off is the agent of that node, or the cloud's own controller manager wherever it runs.
func TestWhoOpensANode(t *testing.T) {
	const cilium, cloud = "node.cilium.io/agent-not-ready", "node.cloudprovider.kubernetes.io/uninitialized"
	for name, tc := range map[string]struct{ taint, pod, node, want string }{
		"its agent":                  {cilium, "cilium", "n", "cilium-x"},
		"the agent of another node":  {cilium, "cilium", "o", ""},
		"another agent":              {cilium, "calico", "n", ""},
		"the cloud's manager":        {cloud, "openstack-cloud-controller-manager", "o", "openstack-cloud-controller-manager-x"},
		"one that is nowhere yet":    {cloud, "aws-cloud-controller-manager", "", "aws-cloud-controller-manager-x"},
		"another controller manager": {cloud, "kube-controller-manager", "o", ""},
	} {
		w := rcatest.NewWorld()
		for _, node := range []string{"n", "o"} {
			w.AddNode(sim.Node{Name: node, Taints: []corev1.Taint{{Key: tc.taint, Effect: corev1.TaintEffectNoSchedule}}})
		}
		yes := true
		w.Pods = append(w.Pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: tc.pod + "-x", UID: "x", OwnerReferences: []metav1.OwnerReference{{Kind: "DaemonSet", Name: tc.pod, Controller: &yes}}}, Spec: corev1.PodSpec{NodeName: tc.node}})
		s, _ := subject(t, w)
		n := s.Cluster.Nodes["n"]
		got := ""
		shut := ShutFor(s, n)
		for _, p := range shut.Openers(s, n) {
			got += p.Name
		}
		if got != tc.want || shut.Taint() != tc.taint {
			t.Errorf("%s: %q of %s, want %q", name, got, shut.Taint(), tc.want)
		}
	}
}
