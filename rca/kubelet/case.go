package kubelet

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
	"github.com/unpend/unpend/watcher/incident"
)

// Case is a waiting pod with what of its incident a kubelet's refusal is told from.
type Case struct {
	view.Subject
	Workload  incident.Ref
	Refusal   corev1.PodStatus // as the pod itself has it
	On        string           // the node whose kubelet refused it; empty where none did
	Asks      []view.Ask
	Wants     corev1.ResourceList // all that the pod requests
	Scheduler string              // that the pod asks for

	// turned is what the refusal is, once asked for.
	turned *Turned
}

const (
	unexpectedAdmission = "UnexpectedAdmissionError"
	topologyAffinity    = "TopologyAffinityError"
)

// refusedBy says why the kubelet turned the pod away, as its status has it: phase
// Failed with one of these reasons, never Pending (kubelet.go rejectPod, 1.36.3).
func (c *Case) refusedBy() (reason string, evidence []diagnosis.Evidence, ok bool) {
	s := c.Refusal
	if s.Phase != corev1.PodFailed || s.Reason == "" {
		return "", nil, false
	}
	return s.Reason, []diagnosis.Evidence{diagnosis.Fact(c.Ref(), s.Reason+": "+s.Message, diagnosis.That("status.reason", "", diagnosis.Is, s.Reason), diagnosis.Says(s.Message))}, true
}

// Shares tells that the device plugin refused more than one share
// (failRequestsGreaterThanOne), which only the kubelet hears.
func (c *Case) Shares() *view.Finding {
	reason, evidence, ok := c.refusedBy()
	if !ok || reason != unexpectedAdmission || !tooManyShares(c.Refusal.Message) {
		return nil
	}
	return view.Found(diagnosis.Proven, "more than one share of a GPU was asked for, the device plugin gives one", evidence...)
}

// tooManyShares is what NVIDIA's device plugin answers to a request of more than
// one share (k8s-device-plugin internal/rm/rm.go), and its older text.
func tooManyShares(message string) bool {
	return strings.Contains(message, "maximum request size for shared resources") || strings.Contains(message, "too large: maximum request size")
}
