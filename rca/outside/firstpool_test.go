package outside_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/edit/edittest"
	"github.com/unpend/unpend/rca/outside"
)

// Where Karpenter has no NodePool, the first is made with what the pod selects of Karpenter's labels, by a node class that
// is there.
func TestTheFirstNodePool(t *testing.T) {
	runs := func(w *edittest.World) {
		w.Pods = append(w.Pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "karpenter", Name: "karpenter-x", UID: "k", OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "karpenter", UID: "r", Controller: new(true)}}},
			Spec:   corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "public.ecr.aws/karpenter/controller:1.8.2"}}},
			Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}})
	}
	const title = "ScaleNodePool for \"AutoscalerCannotHelp\", 0 min, by hand, low risk: make Karpenter a NodePool of machines for deployment/w: it has none (the node is not there yet)\n  kubectl get nodepools,nodeclaims\n  kubectl apply -f FILE  # a NodePool (karpenter.sh/v1): spec.template.spec.nodeClassRef names "
	const watch = "; spec.limits\n  kubectl -n a get pod w -w\n"
	run(t, map[string]row{
		"nothing is there": {outside.GrowPool, runs, title + "a node class of the cloud (EC2NodeClass, AKSNodeClass, GCENodeClass), which is to be Ready" + watch},
		"a class, and a selector": {outside.GrowPool, func(w *edittest.World) {
			runs(w)
			w.Wait.Spec.NodeSelector = map[string]string{"karpenter.k8s.aws/instance-gpu-name": "l4", "karpenter.sh/capacity-type": "on-demand", "team": "x"}
			add(t, &w.NodeClasses.AWS, `{apiVersion: karpenter.k8s.aws/v1, kind: EC2NodeClass, metadata: {name: gpu}}`)
		}, title + `EC2NodeClass gpu; requirements: {key: karpenter.k8s.aws/instance-gpu-name, operator: In, values: ["l4"]}, {key: karpenter.sh/capacity-type, operator: In, values: ["on-demand"]}` + watch},
	})
}
