package rca

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// refusedBy says why the kubelet turned the pod away, as its status has it: phase
// Failed with one of these reasons, never Pending (kubelet.go rejectPod, 1.36.3).
func (c *Case) refusedBy() (reason string, evidence []Evidence, ok bool) {
	s := c.refusal
	if s.Phase != corev1.PodFailed || s.Reason == "" {
		return "", nil, false
	}
	return s.Reason, []Evidence{{c.ref(), s.Reason + ": " + s.Message}}, true
}

func (c *Case) ref() string { return podRef(c.Pod) }

const (
	unexpectedAdmission = "UnexpectedAdmissionError"
	topologyAffinity    = "TopologyAffinityError"
)

// tooManyShares is what NVIDIA's device plugin answers to a request of more than
// one share (k8s-device-plugin internal/rm/rm.go), and its older text.
func tooManyShares(message string) bool {
	return strings.Contains(message, "maximum request size for shared resources") || strings.Contains(message, "too large: maximum request size")
}
