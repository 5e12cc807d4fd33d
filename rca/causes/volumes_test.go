package causes

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/rcatest"
)

// What is said of volumes, and how sure that is.
func TestVolumes(t *testing.T) {
	uses := func(claim string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{{Name: "scratch"}, {Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}}}
		}
	}
	claim := func(name, namespace, volume string) *corev1.PersistentVolumeClaim {
		return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: corev1.PersistentVolumeClaimSpec{VolumeName: volume}, Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound}}
	}
	rows{
		"a claim that does not exist": {func(w *world) {
			w.gpuNode(l4("n1", 1))
			w.PVCs = append(w.PVCs, claim("data", "other", ""), claim("else", "ml", ""))
			w.pod("w", "", "nvidia.com/gpu", 1, uses("data"))
		}, `
VolumeConflict proven n1: PersistentVolumeClaim data does not exist in ml; other has one of that name, and a pod has claims of its own namespace alone
  Node/n1: persistentvolumeclaim "data" not found
  PersistentVolumeClaim/ml/data: does not exist
  PersistentVolumeClaim/other/data: has that name, in another namespace
  Node/n1: looking up PVC ml/data: persistentvolumeclaim "data" not found
`},
		"claims that were not read": {func(w *world) {
			w.gpuNode(l4("n1", 1))
			w.Unread["PersistentVolumeClaim"] = "forbidden"
			w.pod("w", "", "nvidia.com/gpu", 1, uses("data"))
		}, `
VolumeConflict possible n1: its volume cannot be had there: persistentvolumeclaim "data" not found
  Node/n1: persistentvolumeclaim "data" not found
  Node/n1: looking up PVC ml/data: persistentvolumeclaim "data" not found
`},
		"a volume that is lost, and who uses the claim": {func(w *world) {
			w.gpuNode(l4("n1", 1))
			w.PVCs = append(w.PVCs, claim("data", "ml", "pv-1"))
			w.pod("h", "n1", "", 0, uses("data"))
			w.pod("x", "n1", "", 0, uses("else"))
			w.pod("o", "n1", "", 0, uses("data"), of("other"))
			w.pod("v", "", "", 0, uses("data"))
			w.pod("w", "", "nvidia.com/gpu", 1, uses("data"))
		}, `
VolumeConflict proven n1: its volume cannot be had there: pod has unbound immediate PersistentVolumeClaims
  Node/n1: pod has unbound immediate PersistentVolumeClaims
  PersistentVolumeClaim/ml/data: is Bound, volume pv-1
  Pod/ml/h: uses PersistentVolumeClaim data on n1
  Node/n1: persistentvolume "pv-1" not found
`},
		"volumes that were not read": {func(w *world) {
			w.gpuNode(l4("n1", 1))
			w.PVCs = append(w.PVCs, claim("data", "ml", "pv-1"))
			w.Unread["PersistentVolume"] = "forbidden"
			w.pod("w", "", "nvidia.com/gpu", 1, uses("data"))
		}, `
VolumeConflict possible n1: its volume cannot be had there: pod has unbound immediate PersistentVolumeClaims
  Node/n1: pod has unbound immediate PersistentVolumeClaims
  PersistentVolumeClaim/ml/data: is Bound, volume pv-1
  Node/n1: persistentvolume "pv-1" not found
`},
	}.run(t)
}

// A headline says of a volume what it lacks.
func TestVolumesInAHeadline(t *testing.T) {
	uses := func(p *corev1.Pod) {
		p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
	}
	of := func(phase corev1.PersistentVolumeClaimPhase, volume string) *corev1.PersistentVolumeClaim {
		return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "data"}, Spec: corev1.PersistentVolumeClaimSpec{VolumeName: volume}, Status: corev1.PersistentVolumeClaimStatus{Phase: phase}}
	}
	for want, claims := range map[string][]*corev1.PersistentVolumeClaim{
		"its volume claim is missing":    nil,
		"its volume claim is not bound":  {of(corev1.ClaimPending, "")},
		diagnosis.VolumeConflict.Words(): {of(corev1.ClaimBound, "pv-1")},
	} {
		w := newWorld()
		w.gpuNode(l4("n1", 1))
		w.PVCs = claims
		w.pod("w", "", "nvidia.com/gpu", 1, uses)
		c := w.open(t)
		c.Judge()
		if got := c.Headline(diagnosis.VolumeConflict); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// An autoscaler's last word counts, no matter which autoscaler it is.
func TestAutoscalers(t *testing.T) {
	event := func(w *world, by, reason string, ago time.Duration, edits ...func(*corev1.Event)) {
		e := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: reason}, InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: "ml", Name: "w", UID: "w"}, Reason: reason, Message: by + " said", ReportingController: by, LastTimestamp: metav1.Time{Time: rcatest.Noon.Add(-ago)}}
		for _, edit := range edits {
			edit(e)
		}
		w.Events = append(w.Events, e)
	}
	start := func(w *world) {
		w.gpuNode(l4("n1", 1))
		w.pod("h", "n1", "nvidia.com/gpu", 1)
		w.pod("w", "", "nvidia.com/gpu", 1)
	}
	rows{
		"it brings a node": {func(w *world) {
			start(w)
			event(w, "cluster-autoscaler", "NotTriggerScaleUp", 3*time.Minute)
			event(w, "cluster-autoscaler", "TriggeredScaleUp", 2*time.Minute)
			event(w, "karpenter", "NotTriggerScaleUp", time.Minute)
		}, `
GPUsInUse proven n1: all whole GPUs are held
  Node/n1: allocatable nvidia.com/gpu=1, requested 1
ScalingUp likely : an autoscaler is bringing a node
  Pod/ml/w: TriggeredScaleUp: cluster-autoscaler said
`},
		"it cannot": {func(w *world) {
			start(w)
			event(w, "cluster-autoscaler", "TriggeredScaleUp", 2*time.Minute)
			event(w, "", "NotTriggerScaleUp", 9*time.Minute, func(e *corev1.Event) {
				e.Source.Component, e.Series = "cluster-autoscaler", &corev1.EventSeries{LastObservedTime: metav1.MicroTime{Time: rcatest.Noon}}
			})
		}, `
GPUsInUse proven n1: all whole GPUs are held
  Node/n1: allocatable nvidia.com/gpu=1, requested 1
AutoscalerCannotHelp likely : the cluster autoscaler looked and cannot help
  Pod/ml/w: NotTriggerScaleUp:  said
`},
		"Karpenter brings one": {func(w *world) {
			start(w)
			event(w, "karpenter", "Nominated", time.Hour, func(e *corev1.Event) { e.EventTime = metav1.MicroTime{Time: rcatest.Noon} })
			event(w, "cluster-autoscaler", "NotTriggerScaleUp", time.Minute)
		}, `
GPUsInUse proven n1: all whole GPUs are held
  Node/n1: allocatable nvidia.com/gpu=1, requested 1
ScalingUp likely : an autoscaler is bringing a node
  Pod/ml/w: Nominated: karpenter said
AutoscalerCannotHelp likely : the cluster autoscaler looked and cannot help
  Pod/ml/w: NotTriggerScaleUp: cluster-autoscaler said
`},
		"words about others, and of others": {func(w *world) {
			start(w)
			event(w, "cluster-autoscaler", "TriggeredScaleUp", 0, func(e *corev1.Event) { e.InvolvedObject.Name = "v" })
			event(w, "cluster-autoscaler", "TriggeredScaleUp", 0, func(e *corev1.Event) { e.InvolvedObject.UID = "before" })
			event(w, "cluster-autoscaler", "TriggeredScaleUp", 0, func(e *corev1.Event) { e.InvolvedObject.Namespace = "x" })
			event(w, "cluster-autoscaler", "TriggeredScaleUp", 0, func(e *corev1.Event) { e.InvolvedObject.Kind = "Job" })
			event(w, "cluster-autoscaler", "Nominated", 0)
			event(w, "someone", "TriggeredScaleUp", 0)
		}, `
GPUsInUse proven n1: all whole GPUs are held
  Node/n1: allocatable nvidia.com/gpu=1, requested 1
`},
		"words without a uid": {func(w *world) {
			start(w)
			event(w, "cluster-autoscaler", "TriggeredScaleUp", 0, func(e *corev1.Event) { e.InvolvedObject.UID = "" })
		}, `
GPUsInUse proven n1: all whole GPUs are held
  Node/n1: allocatable nvidia.com/gpu=1, requested 1
ScalingUp likely : an autoscaler is bringing a node
  Pod/ml/w: TriggeredScaleUp: cluster-autoscaler said
`},
	}.run(t)
}
