package growth

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/rcatest"
	"github.com/unpend/unpend/rca/scaling"
)

// What the cluster autoscaler says of its groups alone is told where it has said nothing to the pod, as far as a group could
// hold it and the word is fresh.
func TestGroupsOfWhichThePodIsToldNothing(t *testing.T) {
	const idle = "- name: gpu\n  health: {status: Healthy, cloudProviderTarget: 0, maxSize: 4}\n"
	const backoff = idle + "  scaleUp: {status: Backoff, backoffInfo: {errorCode: QUOTA_EXCEEDED, errorMessage: no more}}\n"
	at := func(ago time.Duration, groups string, edits ...func(*rcatest.World)) func(*rcatest.World) {
		return func(w *rcatest.World) {
			w.Wait.CreationTimestamp = metav1.NewTime(rcatest.Noon.Add(-lookedAt))
			status(w, ago, groups)
			for _, edit := range edits {
				edit(w)
			}
		}
	}
	said := func(reason, text string, ago time.Duration) func(*rcatest.World) {
		return func(w *rcatest.World) {
			w.Events = append(w.Events, &corev1.Event{InvolvedObject: corev1.ObjectReference{Kind: "ConfigMap", Namespace: "kube-system", Name: "cluster-autoscaler-status"}, Reason: reason, Message: text,
				ReportingController: scaling.ClusterAutoscaler, LastTimestamp: metav1.NewTime(rcatest.Noon.Add(-ago))})
		}
	}
	const unsure = "; whether that group could hold the pod nobody knows"
	const refused = "CloudCapacityRefused possible: the cloud refuses node group gpu a machine with QUOTA_EXCEEDED: the account's quota is used up" + unsure
	lost := func(n string) string {
		return "- name: gpu\n  health: {status: Healthy, cloudProviderTarget: 1, maxSize: 4, nodeCounts: {longUnregistered: " + n + "}}\n"
	}
	run(t, map[string]row{
		"backoff":               {at(0, backoff), refused},
		"of long ago":           {at(time.Hour, backoff), "AutoscalerCannotHelp likely: the cluster autoscaler has not written its status for 1 h: it does not run"},
		"it has not looked yet": {at(0, backoff, func(w *rcatest.World) { w.Wait.CreationTimestamp = metav1.NewTime(rcatest.Noon) }), ""},
		"events unread":         {at(0, backoff, func(w *rcatest.World) { w.Unread["Event"] = "x" }), ""},
		"failed":                {at(0, idle, said("FailedToScaleUpGroup", "Scale-up failed for group gpu: denied", time.Minute)), "CloudCapacityRefused possible: the cloud refuses a node: Scale-up failed for group gpu: denied" + unsure},
		"failed long ago":       {at(0, idle, said("FailedToScaleUpGroup", "Scale-up failed for group gpu: denied", time.Hour)), ""},
		"another group failed":  {at(0, idle, said("FailedToScaleUpGroup", "Scale-up failed for group other: denied", time.Minute)), ""},
		"timed out":             {at(0, idle, said("ScaleUpTimedOut", "Nodes added to group gpu failed to register", time.Minute)), "ScaleUpStuck possible: a node was asked for and never joined: Nodes added to group gpu failed to register" + unsure},
		"never joined":          {at(0, lost("1")), "ScaleUpStuck possible: 1 machine of node group gpu was asked of the cloud and never joined" + unsure},
		"all joined":            {at(0, lost("0")), ""},
		"without GPUs": {at(0, "- name: gpu\n  health: {status: Healthy, cloudProviderTarget: 1, maxSize: 4, nodeCounts: {registered: {total: 9, unready: {total: 1, resourceUnready: 1}}}}\n"),
			"ScaleUpStuck possible: 1 node of node group gpu came without GPUs" + unsure},
	})
	if g := of(t, at(0, backoff)); len(g.Groups) != 1 || g.Groups[0].Name != "gpu" {
		t.Errorf("groups %v", g.Groups)
	}
}

// Words of the autoscaler's own rules are not taken for what a template lacks.
func TestGroupsThatItLeavesOut(t *testing.T) {
	at := func(text string) func(*rcatest.World) {
		return func(w *rcatest.World) {
			status(w, 0, "- name: gpu\n  health: {status: Healthy, cloudProviderTarget: 0, maxSize: 4}\n")
			says(w, scaling.ClusterAutoscaler, "NotTriggerScaleUp", "pod didn't trigger scale-up: "+text, 0)
		}
	}
	full := func(read bool) func(*rcatest.World) {
		return func(w *rcatest.World) {
			w.Nodes = []*corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "plain"}}}
			if !read {
				w.Unread["Node"] = "x"
			}
			says(w, scaling.ClusterAutoscaler, "NotTriggerScaleUp", "pod didn't trigger scale-up: 1 max node group size reached, 2 node(s) had untolerated taint {gpu: true}", 0)
		}
	}
	run(t, map[string]row{
		"by its expander":     {at("2 expansion options filtered out and no longer considered"), "AutoscalerCannotHelp likely: the cluster autoscaler considered a node group for the pod and left it out; why is in its log alone: expansion options filtered out and no longer considered"},
		"in vain":             {at("2 scale-up execution failed"), "CloudCapacityRefused possible: the cluster autoscaler asked for a machine for the pod in vain; with what code the cloud refused was not read"},
		"the full is others":  {full(true), "of the template UntoleratedTaint: it does not tolerate the taint of what a node group makes: node(s) had untolerated taint {gpu: true}"},
		"nodes were not read": {full(false), "AutoscalerLimit likely: the cluster autoscaler may not grow: max node group size reached"},
	})
}
