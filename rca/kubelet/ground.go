package kubelet

import "strings"

// Ground is what a kubelet's reason says by itself: it is no device plugin's answer that has to be read on.
type Ground struct {
	Says string // what the reason means
	// Passes: the reason is of a moment, or the scheduler counts by it too: a pod that is made again may be taken.
	Passes bool
	words  string // says it in a headline
	// InPod is what of the pod's specification would have to be otherwise, OnNode what of the node's kubelet or
	// machine; of reasons that do not pass, for the same pod would be refused again.
	InPod, OnNode string
	Look          string // shows on the machine how it is set
}

// grounds are the reasons that a kubelet gives beside its devices' (pkg/kubelet/kubelet.go, admissionRejectionReasons;
// older ones of pkg/kubelet/lifecycle and pkg/security). What is in no row is not known.
var grounds = map[string]Ground{
	"NodeAffinity":                  {Passes: true}, // the names of predicates, which the scheduler asks again
	"NodeName":                      {Passes: true},
	"NodePorts":                     {Passes: true},
	"TaintToleration":               {Passes: true},
	"NodeShutdown":                  {Passes: true, words: "node was shutting down", Says: "its machine was about to shut down"},
	"Evicted":                       {Passes: true, words: "node was under pressure", Says: "the node was under pressure"},
	"InvalidNodeInfo":               {Passes: true, Says: "the kubelet had not read its own Node yet"},
	"VolumeAttachmentLimitExceeded": {Passes: true, words: "no volume could be attached", Says: "the machine takes no more volumes, which the scheduler counts by now"},
	"SysctlForbidden": {words: "kubelet forbids its sysctl", Says: "a kubelet sets no sysctl of a pod that is not safe, where it was not told to allow it: the same pod is refused again",
		InPod: "without the sysctl in securityContext.sysctls that is refused", OnNode: "allow that sysctl in allowedUnsafeSysctls", Look: "grep -A5 allowedUnsafeSysctls /var/lib/kubelet/config.yaml"},
	"AppArmor": {words: "no such AppArmor profile", Says: "the AppArmor profile that it names the machine cannot enforce: the same pod is refused again by a machine without it",
		InPod: "without that AppArmor profile, or with one that the machine has", OnNode: "load the AppArmor profile", Look: "cat /sys/kernel/security/apparmor/profiles"},
	"PodOSNotSupported": {words: "it is for another OS", Says: "spec.os of the pod is another operating system than its machine's: the same pod is refused again",
		InPod: "with the operating system of its image in spec.os.name, and in nodeSelector kubernetes.io/os"},
	"PodOSSelectorNodeLabelDoesNotMatch": {words: "it is for another OS", Says: "its nodeSelector kubernetes.io/os is another operating system than its machine's: the same pod is refused again",
		InPod: "with the operating system of its image in nodeSelector kubernetes.io/os"},
	"PodFeatureUnsupported": {words: "kubelet lacks a feature", Says: "it asks for a feature that its kubelet has not, or has turned off: the same pod is refused again by such a kubelet",
		InPod: "without the feature that the kubelet names", OnNode: "run a kubelet with the feature (a newer one, or with it in featureGates)", Look: "grep -A9 featureGates /var/lib/kubelet/config.yaml"},
	"PodLevelResourcesNotSupported": {words: "no pod-level resources there", Says: "it asks for resources as a whole pod, and its kubelet knows only those of containers: the same pod is refused again by such a kubelet",
		InPod: "with its resources in its containers and not in spec.resources", OnNode: "run a kubelet with PodLevelResources in featureGates", Look: "grep -A9 featureGates /var/lib/kubelet/config.yaml"},
	"SeccompNotSupported": {words: "no seccomp there", Says: "it asks for a seccomp profile, and its machine has no seccomp: the same pod is refused again by such a machine",
		InPod: "without its seccompProfile", OnNode: "run a kernel with seccomp", Look: "grep -i seccomp /proc/self/status"},
}

// groundOf is what a reason says by itself; false where it says nothing, as UnexpectedAdmissionError.
func groundOf(reason string) (Ground, bool) {
	if strings.HasPrefix(reason, "OutOf") { // by its own sum of what the node's pods ask, which the scheduler has too
		return Ground{Passes: true}, true
	}
	g, known := grounds[reason]
	return g, known
}

// Ground is what the reason of the refusal says by itself. Unknown is what no row tells: nobody can say whether making
// such a pod again helps.
func (t *Turned) Ground() Ground {
	g, _ := groundOf(t.Reason)
	return g
}

// Unknown says that neither the reason nor the kubelet's words are known.
func (t *Turned) Unknown() bool {
	_, known := groundOf(t.Reason)
	return t.Behind == OwnWords && !known
}

// Lasts says that the same pod would be refused again for what its reason says, whatever the node has left.
func (t *Turned) Lasts() bool { return t.Ground().InPod != "" }
