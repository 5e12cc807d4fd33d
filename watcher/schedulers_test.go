package watcher

import (
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/watcher/incident/incidenttest"
)

// A pod waits by its own status, no matter which scheduler it has: none has to have said
// FailedScheduling, nor anything at all.
func TestPodsOfEverySchedulerAreTold(t *testing.T) {
	says := map[string]corev1.PodCondition{ // by scheduler; KAI is silent while a gang lacks members
		"default-scheduler": {Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable"},
		"volcano":           {Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Undetermined", Message: "pod group is not ready, 4 Pending, 4 minAvailable"},
		"kai-scheduler":     {Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "BindingError"},
		"hami-scheduler":    {Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "no available node, 2 nodes do not meet"},
		"silent-scheduler":  {},
	}
	a := newAPI()
	for name, condition := range says {
		p := incidenttest.WaitingPod("by-"+name, "nvidia.com/gpu", nil)
		p.Spec.SchedulerName, p.Status.Conditions = name, nil
		if condition.Type != "" {
			p.Status.Conditions = []corev1.PodCondition{condition}
		}
		a.set(p)
	}
	watching(t, a, nil, func(t *testing.T, p *taken) {
		got := map[string]string{}
		for _, i := range p.news(t) {
			for _, pod := range i.Pods {
				got[pod.Name] = pod.Reason
			}
		}
		want := map[string]string{"by-default-scheduler": "Unschedulable", "by-volcano": "Undetermined", "by-kai-scheduler": "BindingError", "by-hami-scheduler": "Unschedulable", "by-silent-scheduler": "NoCondition"}
		if !maps.Equal(got, want) {
			t.Errorf("told of %v, want %v", got, want)
		}
		p.none(t, "five pods are five incidents")
	})
}
