package growth

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/rcatest"
)

// A Karpenter that runs and has no NodePool brings no node: told where its controller is seen to be Ready, NodePools and pods
// were read, and no node would take the pod. By its image it is known, of any registry; of before NodePools none is told.
func TestKarpenterWithoutANodePool(t *testing.T) {
	controller := func(image string, ready corev1.ConditionStatus, edits ...func(*rcatest.World, *corev1.Pod)) func(*rcatest.World) {
		return func(w *rcatest.World) {
			p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "karpenter", Name: "karpenter-x", UID: "k", OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "karpenter", UID: "r", Controller: new(true)}}},
				Spec:   corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: image}}},
				Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}}}
			w.Pods = append(w.Pods, p)
			for _, edit := range edits {
				edit(w, p)
			}
		}
	}
	const aws, none = "public.ecr.aws/karpenter/controller:1.8.2@sha256:ab", "AutoscalerCannotHelp likely: Karpenter runs and has no NodePool, so it brings no node, and says so in its log alone"
	run(t, map[string]row{
		"it runs":                   {controller(aws, corev1.ConditionTrue), none},
		"Azure's":                   {controller("mcr.microsoft.com/aks/karpenter/controller:v1.6.3-aks", corev1.ConditionTrue), none},
		"without a tag":             {controller("registry:5000/karpenter-gcp/controller", corev1.ConditionTrue), none},
		"of before NodePools":       {controller("public.ecr.aws/karpenter/controller:v0.31.4", corev1.ConditionTrue), ""},
		"another's controller":      {controller("registry.k8s.io/ingress-nginx/controller:v1", corev1.ConditionTrue), ""},
		"another image of its":      {controller("public.ecr.aws/karpenter/webhook:v1", corev1.ConditionTrue), ""},
		"it is not Ready":           {controller(aws, corev1.ConditionFalse), ""},
		"a pod that nobody owns":    {controller(aws, corev1.ConditionTrue, func(_ *rcatest.World, p *corev1.Pod) { p.OwnerReferences = nil }), ""},
		"NodePools were not read":   {controller(aws, corev1.ConditionTrue, func(w *rcatest.World, _ *corev1.Pod) { w.Unread["NodePool"] = "x" }), ""},
		"pods were not read":        {controller(aws, corev1.ConditionTrue, func(w *rcatest.World, _ *corev1.Pod) { w.Unread["Pod"] = "x" }), ""},
		"there is one, not read on": {controller(aws, corev1.ConditionTrue, func(w *rcatest.World, _ *corev1.Pod) { pool(w, "8", "0", condition("Ready", "True", "", "", 0)) }), ""},
	})
	g := of(t, controller(aws, corev1.ConditionTrue))
	if g.Suits || !g.PassedOver() || !g.Karpenter {
		t.Errorf("suits %v, passed over %v, Karpenter's %v", g.Suits, g.PassedOver(), g.Karpenter)
	}
	g = of(t, controller(aws, corev1.ConditionTrue, func(w *rcatest.World, _ *corev1.Pod) {
		w.Wait.Spec.NodeSelector = map[string]string{"karpenter.k8s.aws/instance-gpu-manufacturer": "nvidia"}
	}))
	if !g.Suits {
		t.Error("the pod selects what Karpenter alone writes, and was not meant for its nodes")
	}
}
