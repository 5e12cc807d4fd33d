package kubelet

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
)

// untaken: the pod has its node, and the kubelet there has not so much as noted that it has seen it. One that is not Ready tells why
// by that; one that is Ready still renews its lease while its loop over pods hangs, in a call of a device plugin's or of the driver, say
// (kubernetes/kubernetes issue 130855). No pod can be begun there to look: also none of kubectl debug.
func (s stopped) untaken() *Stop {
	node := s.pod.Spec.NodeName
	stop := &Stop{Cause: diagnosis.Unknown, Kind: diagnosis.RestartKubelet, Certainty: diagnosis.Likely, Words: "its kubelet does not begin it", Hindrance: Hindrance{
		Says:  "the kubelet of " + node + " has not begun with the pod that it was given: no word of it, and no start time; its loop hangs, or it does not hear",
		Title: "restart the kubelet of " + node + ", on the machine: it begins with no pod", Risk: diagnosis.LowRisk, Minutes: 3, Unproven: "why a kubelet hangs only its log and the machine tell; running pods keep running",
		Commands: []string{"kubectl cordon " + node + "  # until it begins pods again: others would wait there as well", "# on the machine, for no pod of kubectl debug would begin there:", "journalctl -u kubelet --since -2h | tail -200",
			"timeout 20 nvidia-smi  # one that hangs has the device plugin, and the kubelet with it, hang: then the machine is to be rebooted", "systemctl restart kubelet", "kubectl uncordon " + node}}}
	n := s.w.Nodes[node]
	if n == nil {
		return stop
	}
	for _, k := range n.Status.Conditions {
		if k.Type != corev1.NodeReady {
			continue
		}
		stop.Evidence = append(stop.Evidence, diagnosis.Fact(n.Ref(), "Ready is "+string(k.Status), diagnosis.That("status.conditions[type=Ready].status", "", diagnosis.Is, string(k.Status))))
		if k.Status != corev1.ConditionTrue {
			stop.Cause, stop.Certainty, stop.Words = diagnosis.NodeNotReady, diagnosis.Proven, "its node is not ready"
			stop.Says = fmt.Sprintf("%s, which has the pod, is not ready: its kubelet has not begun with it", node)
			stop.Title = "see on the machine of " + node + " why its kubelet is not ready, and restart it"
		}
	}
	return stop
}
