package growth

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/rcatest"
)

// controller adds a Deployment of an autoscaler's controller, a day old, and its pods.
func controller(w *rcatest.World, name, image string, replicas int32, pods ...corev1.PodStatus) {
	on := map[string]string{"app": name}
	old := metav1.NewTime(rcatest.Noon.Add(-24 * time.Hour))
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: name, CreationTimestamp: old}}
	d.Spec.Replicas, d.Spec.Selector = new(replicas), &metav1.LabelSelector{MatchLabels: on}
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "c", Image: image}}
	w.Deployments = append(w.Deployments, d)
	for _, status := range pods {
		w.Pods = append(w.Pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: name + "-x", UID: "k", Labels: on, CreationTimestamp: old},
			Spec: d.Spec.Template.Spec, Status: status})
	}
}

func ready(status corev1.ConditionStatus, ago time.Duration) []corev1.PodCondition {
	return []corev1.PodCondition{{Type: corev1.PodReady, Status: status, LastTransitionTime: metav1.NewTime(rcatest.Noon.Add(-ago))}}
}

// crashing is a container that ends again and again with those words.
func crashing(words string) corev1.PodStatus {
	s := corev1.ContainerStatus{Name: "c", RestartCount: 7, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off 5m0s"}}}
	s.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 1, Message: words}
	return corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{s}}
}

// A controller that is there and does not run is told of, with its words; one that is not seen, may yet run, or of which
// another pod runs is not.
func TestControllersThatDoNotRun(t *testing.T) {
	const image = "public.ecr.aws/karpenter/controller:1.8.2"
	runs := corev1.PodStatus{Phase: corev1.PodRunning, Conditions: ready(corev1.ConditionTrue, time.Hour)}
	karpenter := func(replicas int32, pods ...corev1.PodStatus) func(*rcatest.World) {
		return func(w *rcatest.World) {
			pool(w, "8", "0", condition("Ready", "True", "", "", 0))
			w.Wait.CreationTimestamp = metav1.NewTime(rcatest.Noon.Add(-time.Hour))
			controller(w, "karpenter", image, replicas, pods...)
		}
	}
	but := func(fill func(*rcatest.World), edit func(*rcatest.World)) func(*rcatest.World) {
		return func(w *rcatest.World) { fill(w); edit(w) }
	}
	const says = "AutoscalerCannotHelp likely: Karpenter, which is to make machines of NodePool gpu, does not run, so no node is brought: Deployment/infra/karpenter, "
	const ca = "AutoscalerCannotHelp likely: the cluster autoscaler does not run, so no node is brought: Deployment/infra/x-aws-cluster-autoscaler, container c of x-aws-cluster-autoscaler-x CrashLoopBackOff: no credentials"
	own := func(w *rcatest.World) { controller(w, "x-aws-cluster-autoscaler", "x", 1, crashing("no credentials")) }
	unscheduled := corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "no room", LastTransitionTime: metav1.NewTime(rcatest.Noon.Add(-time.Hour))}}}
	run(t, map[string]row{
		"it crashes":                {karpenter(1, crashing("no role")), says + "container c of karpenter-x CrashLoopBackOff: no role"},
		"it is scaled down":         {karpenter(0), says + "it is scaled to 0 replicas"},
		"it has no pod":             {karpenter(1), says + "it has no pod"},
		"its pod has no node":       {karpenter(1, unscheduled), says + "karpenter-x has no node: no room"},
		"it is not ready for long":  {karpenter(1, corev1.PodStatus{Phase: corev1.PodRunning, Conditions: ready(corev1.ConditionFalse, silentAfter)}), says + "karpenter-x is not ready"},
		"it may become ready":       {karpenter(1, corev1.PodStatus{Phase: corev1.PodRunning, Conditions: ready(corev1.ConditionFalse, silentAfter-time.Second)}), ""},
		"it runs":                   {karpenter(1, runs), ""},
		"one of two runs":           {karpenter(2, crashing("x"), runs), ""},
		"no controller is seen":     {but(karpenter(0), func(w *rcatest.World) { w.Deployments = nil }), ""},
		"pods were not read":        {but(karpenter(1), func(w *rcatest.World) { w.Unread["Pod"] = "x" }), ""},
		"another's controller":      {but(karpenter(0), func(w *rcatest.World) { w.Deployments[0].Spec.Template.Spec.Containers[0].Image = "x/controller:1" }), ""},
		"the pod has just come":     {but(karpenter(1), func(w *rcatest.World) { w.Wait.CreationTimestamp = metav1.NewTime(rcatest.Noon) }), ""},
		"the cluster autoscaler":    {own, ca},
		"another of its pods wrote": {but(own, func(w *rcatest.World) { status(w, time.Minute, "") }), ""},
		"and none for long":         {but(own, func(w *rcatest.World) { status(w, time.Hour, "") }), ca},
	})
	if g := of(t, karpenter(1, crashing("no role"))); !g.Suits || !g.PassedOver() || g.Down == nil || !g.Down.Crashes {
		t.Errorf("suits %v, passed over %v, down %+v", g.Suits, g.PassedOver(), g.Down)
	}
}
