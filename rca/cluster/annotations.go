package cluster

import (
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/component-helpers/storage/volume"
)

// readAnnotations are the annotations that a diagnosis or the scheduler's own code reads
// of anything but a node. Who may make a pod may write 256 KiB of others.
var readAnnotations = map[string]bool{
	corev1.MirrorPodAnnotationKey: true,
	// Gangs and queues.
	"kueue.x-k8s.io/workload":                 true,
	"kueue.x-k8s.io/pod-group-total-count":    true,
	"kueue.x-k8s.io/pod-group-fast-admission": true,
	"scheduling.k8s.io/group-name":            true,
	"scheduling.volcano.sh/group-name":        true,
	"scheduling.volcano.sh/queue-name":        true,
	"pod-group-name":                          true, // KAI
	"gang.scheduling.koordinator.sh/name":     true,
	// Groups of pods with a domain to themselves (mend.GivenRule).
	"alpha.jobset.sigs.k8s.io/exclusive-topology":    true,
	"leaderworkerset.sigs.k8s.io/exclusive-topology": true,
	// Autoscalers.
	"cluster-autoscaler.kubernetes.io/last-updated":     true,
	"autoscaling.x-k8s.io/consume-provisioning-request": true,
	noteOfRange:                   true,
	"weave.works/kured-node-lock": true, // on kured's own DaemonSet: whose turn it is to reboot
	// What part of a GPU is asked of KAI (incident.SharesGPU).
	"gpu-fraction": true,
	"gpu-memory":   true,
	// Claims that were made for a pod.
	resourcev1.ExtendedResourceClaimAnnotation: true,
	resourcev1.PodResourceClaimAnnotation:      true,
	// Helm's release (parts.Set.Upgrade).
	"meta.helm.sh/release-name":      true,
	"meta.helm.sh/release-namespace": true,
	// Volumes.
	volume.AnnSelectedNode: true, volume.AnnBindCompleted: true, volume.AnnBoundByController: true,
	volume.AnnStorageProvisioner: true, volume.AnnBetaStorageProvisioner: true, volume.AnnMigratedTo: true, volume.AnnDynamicallyProvisioned: true,
	corev1.BetaStorageClassAnnotation:             true,
	"storageclass.kubernetes.io/is-default-class": true,
	corev1.MigratedPluginsAnnotationKey:           true,
}

// maxAnnotation is the longest value that is kept, in bytes: they are names and flags.
const maxAnnotation = 512

// noteOfRange is where the API server notes what a LimitRange has written into a pod: up to two lines for each of its
// containers.
const (
	noteOfRange    = "kubernetes.io/limit-ranger"
	maxNoteOfRange = 8 * maxAnnotation
)

// trimAnnotations keeps of an object's annotations what is read. Those of nodes stay:
// only who runs the cluster writes them, and a mark of ours is one.
func trimAnnotations(o Object) {
	all := o.GetAnnotations()
	if len(all) == 0 {
		return
	}
	_, node := any(o).(*corev1.Node)
	kept := maps.Clone(all)
	maps.DeleteFunc(kept, func(key, value string) bool {
		if node {
			return key == lastApplied
		}
		longest := maxAnnotation
		if key == noteOfRange {
			longest = maxNoteOfRange
		}
		return len(value) > longest || !readAnnotations[key] && !strings.HasPrefix(key, ours)
	})
	if len(kept) == 0 {
		kept = nil
	}
	if len(kept) < len(all) {
		o.SetAnnotations(kept)
	}
}

// ours begins the annotations that people write for us.
const ours = "unpend.dev/"
