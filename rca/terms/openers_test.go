package terms

import (
	"testing"
	"time"

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

// A node that its kubelet does not call Ready for want of a network is opened by the pod there that gives it one;
// one that is not ready for another reason, or whose reason is not told, by nobody that is known.
func TestWhoGivesANodeItsNetwork(t *testing.T) {
	const without = "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:cni plugin not initialized"
	for name, tc := range map[string]struct{ message, kind, owner, node, want string }{
		"its maker's":           {without, "DaemonSet", "aws-node", "n", "aws-node-x gives it its network"},
		"a distribution's":      {without, "DaemonSet", "rke2-canal", "n", "rke2-canal-x gives it its network"},
		"of another node":       {without, "DaemonSet", "aws-node", "o", ""},
		"another agent":         {without, "DaemonSet", "kube-proxy", "n", ""},
		"one that is so called": {without, "ReplicaSet", "cilium", "n", ""},
		"another reason":        {"PLEG is not healthy", "DaemonSet", "aws-node", "n", ""},
	} {
		w := rcatest.NewWorld()
		for _, node := range []string{"n", "o"} {
			w.AddNode(sim.Node{Name: node, Taints: []corev1.Taint{{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}}})
		}
		w.Nodes[0].Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse, Message: tc.message}}
		w.Pods = append(w.Pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: tc.owner + "-x", UID: "x", OwnerReferences: []metav1.OwnerReference{{Kind: tc.kind, Name: tc.owner, Controller: new(true)}}}, Spec: corev1.PodSpec{NodeName: tc.node}})
		s, _ := subject(t, w)
		n := s.Cluster.Nodes["n"]
		got, shut := "", ShutFor(s, n)
		for _, p := range shut.Openers(s, n) {
			got += p.Name + " " + shut.Opening()
		}
		if got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// A kubelet that has no container runtime says so, and what it says of its node is told; another's words are its own.
func TestANodeWhoseRuntimeIsDown(t *testing.T) {
	for message, want := range map[string]string{"[container runtime is down, PLEG is not healthy]": "not ready: its container runtime is down", "PLEG is not healthy": "not ready",
		"container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:Network plugin returns error: cni plugin not initialized": "not ready: its network plugin is not"} {
		w := rcatest.NewWorld()
		w.AddNode(sim.Node{Name: "n", Taints: []corev1.Taint{{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}}})
		w.Nodes[0].Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse, Message: message}}
		s, _ := subject(t, w)
		f := NotReady(s, s.Cluster.Nodes["n"])
		if f.Says != want || len(f.Evidence) != 2 || f.Evidence[1].Fact != "is not Ready: "+message {
			t.Errorf("%s: %+v", message, f)
		}
	}
}

// A startup taint that stands on a node for longer than that takes is told as one that nobody has taken off.
func TestStartupTaintsThatStandForLong(t *testing.T) {
	for after, want := range map[time.Duration]bool{opens: false, opens + time.Second: true} {
		w := rcatest.NewWorld()
		w.AddNode(sim.Node{Name: "n", Taints: []corev1.Taint{{Key: "karpenter.sh/unregistered", Effect: corev1.TaintEffectNoExecute}}})
		w.Nodes[0].Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(rcatest.Noon.Add(-after))}}
		s, _ := subject(t, w)
		if shut := ShutFor(s, s.Cluster.Nodes["n"]); !shut.Overdue.IsZero() != want || shut.Opener() != "Karpenter" {
			t.Errorf("after %s: %+v", after, shut)
		}
	}
}
