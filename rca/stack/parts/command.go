package parts

import (
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// noCommand are the words of a container runtime for a command that the image does not have (Go's os/exec in runc).
var noCommand = regexp.MustCompile(`exec: "([^"]+)": (?:executable file not found in \$PATH|stat [^:]+: no such file or directory|permission denied)`)

// NoCommand is what a container was to run, by words that say its image has no such program; empty where they say that of
// none, or of a program of NVIDIA's that the machine itself lacks.
func NoCommand(words string) string {
	m := noCommand.FindStringSubmatch(words)
	if m == nil || strings.HasPrefix(m[1], "nvidia-container-") {
		return ""
	}
	return m[1]
}

// EditSet is the command that edits the DaemonSet of a pod.
func EditSet(p *corev1.Pod) string {
	name := "NAME"
	if by := metav1.GetControllerOfNoCopy(p); by != nil {
		name = by.Name
	}
	return "kubectl -n " + p.Namespace + " edit daemonset " + name
}
