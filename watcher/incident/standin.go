package incident

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
)

// standInLabel marks YuniKorn's placeholders: pods of its own that hold room for a gang until its members take it over
// (yunikorn-k8shim, pkg/common/constants).
const standInLabel = "yunikorn.apache.org/placeholder"

// StandIn says whether a pod holds room for others of its application, and does nothing itself.
func StandIn(p *corev1.Pod) bool {
	return p.Labels[standInLabel] == "true" || p.Annotations[standInLabel] == "true"
}

// Application is the application of YuniKorn's that a pod is of, with its namespace; empty for none.
func Application(p *corev1.Pod) string {
	const key, old = "yunikorn.apache.org/app-id", "applicationId"
	id := cmp.Or(p.Labels[key], p.Annotations[key], p.Labels[old])
	if id == "" {
		return ""
	}
	return p.Namespace + "/" + id
}

// stoodFor says of stand-ins whether a member of their application waits itself: then nobody waits for them.
func stoodFor(pods []*corev1.Pod) func(*corev1.Pod) bool {
	waits := map[string]bool{}
	for _, p := range pods {
		if _, _, ok := Waiting(p); ok && !StandIn(p) {
			waits[Application(p)] = true
		}
	}
	return func(p *corev1.Pod) bool { return StandIn(p) && Application(p) != "" && waits[Application(p)] }
}
