package incident

import (
	"crypto/sha256"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// generated are labels that only tell which object made a pod.
var generated = []string{"job-name", "controller-uid", "batch.kubernetes.io/job-name", "batch.kubernetes.io/controller-uid", "pod-template-hash", "controller-revision-hash"}

// Alike is equal for pods of a namespace that differ in nothing but their names, and so
// wait for the same reasons: who a pod is, when it was made, and what admission added to
// reach the API server is left out.
func Alike(pod *corev1.Pod) [sha256.Size]byte {
	spec := *pod.Spec.DeepCopy()
	spec.Hostname = ""
	token := func(name string) bool { return strings.HasPrefix(name, "kube-api-access-") } // ServiceAccount admission
	spec.Volumes = slices.DeleteFunc(spec.Volumes, func(v corev1.Volume) bool { return token(v.Name) })
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			containers[i].VolumeMounts = slices.DeleteFunc(containers[i].VolumeMounts, func(m corev1.VolumeMount) bool { return token(m.Name) })
			containers[i].Env = nil
		}
	}
	labels := maps.Clone(pod.Labels)
	if !looksAtLabels(&spec) {
		for _, l := range generated {
			delete(labels, l)
		}
	}
	annotations := maps.Clone(pod.Annotations)
	delete(annotations, corev1.LastAppliedConfigAnnotation)
	text, err := json.Marshal(struct {
		Namespace   string
		Labels      map[string]string `json:",omitempty"`
		Annotations map[string]string `json:",omitempty"`
		Spec        corev1.PodSpec
		Reason      string
		Waits       bool
	}{Namespace: pod.Namespace, Labels: labels, Annotations: annotations, Spec: spec, Reason: pod.Status.Reason, Waits: pod.Status.Phase == corev1.PodPending || begunOnce(pod) != ""})
	if err != nil { // no such value has one: then it is like itself alone
		text = []byte(pod.UID)
	}
	return sha256.Sum256(text)
}

// looksAtLabels says whether the labels that tell who made a pod can keep it from a node.
func looksAtLabels(s *corev1.PodSpec) bool {
	return len(s.TopologySpreadConstraints) > 0 || s.Affinity != nil && (s.Affinity.PodAffinity != nil || s.Affinity.PodAntiAffinity != nil)
}
