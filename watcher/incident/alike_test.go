package incident

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What of a pod is only its own, and what others wait for, too.
func TestAlike(t *testing.T) {
	made := func(edit func(*corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "x", UID: "1", Labels: map[string]string{"app": "x", "job-name": "x"}},
			Spec: corev1.PodSpec{Volumes: []corev1.Volume{{Name: "kube-api-access-abcde"}}, Containers: []corev1.Container{{Name: "c",
				Env: []corev1.EnvVar{{Name: "RANK", Value: "0"}}, VolumeMounts: []corev1.VolumeMount{{Name: "kube-api-access-abcde"}}}}},
			Status: corev1.PodStatus{Phase: corev1.PodPending}}
		edit(p)
		return p
	}
	spread := func(p *corev1.Pod) {
		p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1}}
	}
	neverBegun := func(p *corev1.Pod) {
		p.Spec.NodeName, p.Spec.Containers[0].Resources.Limits = "gpu-1", corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CreateContainerError"}}}}
	}
	for name, c := range map[string]struct {
		edit, both func(*corev1.Pod)
		alike      bool
	}{
		"name and uid":        {edit: func(p *corev1.Pod) { p.Name, p.UID = "y", "2" }, alike: true},
		"job":                 {edit: func(p *corev1.Pod) { p.Labels["job-name"] = "y" }, alike: true},
		"job, and it spreads": {edit: func(p *corev1.Pod) { p.Labels["job-name"] = "y" }, both: spread},
		"token": {edit: func(p *corev1.Pod) {
			p.Spec.Volumes[0].Name, p.Spec.Containers[0].VolumeMounts[0].Name = "kube-api-access-fghij", "kube-api-access-fghij"
		}, alike: true},
		"rank":                     {edit: func(p *corev1.Pod) { p.Spec.Containers[0].Env[0].Value = "1" }, alike: true},
		"applied":                  {edit: func(p *corev1.Pod) { p.Annotations = map[string]string{corev1.LastAppliedConfigAnnotation: "{}"} }, alike: true},
		"label":                    {edit: func(p *corev1.Pod) { p.Labels["app"] = "y" }},
		"annotation":               {edit: func(p *corev1.Pod) { p.Annotations = map[string]string{"scheduling.k8s.io/group-name": "g"} }},
		"namespace":                {edit: func(p *corev1.Pod) { p.Namespace = "b" }},
		"volume":                   {edit: func(p *corev1.Pod) { p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "data"}) }},
		"priority":                 {edit: func(p *corev1.Pod) { one := int32(1); p.Spec.Priority = &one }},
		"refused":                  {edit: func(p *corev1.Pod) { p.Status.Phase, p.Status.Reason = corev1.PodFailed, "UnexpectedAdmissionError" }},
		"begun":                    {edit: func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning }},
		"not begun, for the phase": {edit: func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning }, both: neverBegun, alike: true},
	} {
		if c.both == nil {
			c.both = func(*corev1.Pod) {}
		}
		a, b := made(c.both), made(func(p *corev1.Pod) { c.both(p); c.edit(p) })
		before := b.DeepCopy()
		if got := Alike(a) == Alike(b); got != c.alike {
			t.Errorf("another %s: alike %t, want %t", name, got, c.alike)
		}
		if !equalPods(before, b) {
			t.Errorf("another %s: the pod was changed", name)
		}
	}
}

func equalPods(a, b *corev1.Pod) bool { return a.String() == b.String() }
