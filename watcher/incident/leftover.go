package incident

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// replacement is how long who makes pods takes at most to make one in the place of another that was refused: a Job waits no
// longer than ten minutes before (pkg/controller/job), others no time.
const replacement = 15 * time.Minute

// skew is how far the clocks of a node and of the API server may be apart.
const skew = time.Minute

// latterly is the pods in an order in which those that tell since when their workload waits come first, and how many these
// are. Behind them is who was refused once, and is no beginning of that: another pod of its owner waits, and none was made
// soon after. What the workload had in between was no wait, whatever became of it.
func latterly(pods []*corev1.Pod) ([]*corev1.Pod, int) {
	var made map[Ref][]time.Time
	var waits map[Ref]bool
	former := func(p *corev1.Pod) bool {
		owner := metav1.GetControllerOfNoCopy(p)
		if owner == nil || p.Status.Phase != corev1.PodFailed {
			return false
		}
		if made == nil { // few clusters have refused pods
			made, waits = byMaker(pods)
		}
		ref := ownerRef(owner, p.Namespace)
		return waits[ref] && !replaced(p, made[ref])
	}
	if !slices.ContainsFunc(pods, former) {
		return pods, len(pods)
	}
	first, behind := make([]*corev1.Pod, 0, len(pods)), []*corev1.Pod(nil)
	for _, p := range pods {
		if former(p) {
			behind = append(behind, p)
		} else {
			first = append(first, p)
		}
	}
	return append(first, behind...), len(first)
}

// replaced says whether another pod was made soon after one was refused, where some were made at these times, which are sorted.
func replaced(p *corev1.Pod, made []time.Time) bool {
	refused := p.CreationTimestamp.Time
	if p.Status.StartTime != nil { // which the kubelet notes as it refuses one, or when it began with one that it refused later
		refused = p.Status.StartTime.Time
	}
	from := refused.Add(-skew)
	others := -1 // it is among them itself
	if from.Before(p.CreationTimestamp.Time) {
		from = p.CreationTimestamp.Time
	} else if from.After(p.CreationTimestamp.Time) {
		others = 0
	}
	first, _ := slices.BinarySearchFunc(made, from, time.Time.Compare)
	end, _ := slices.BinarySearchFunc(made, refused.Add(replacement), time.Time.Compare)
	return end-first+others > 0
}

// byMaker is when each maker's pods were made, in order, and whether one of them waits that nobody has refused.
func byMaker(pods []*corev1.Pod) (made map[Ref][]time.Time, waits map[Ref]bool) {
	made, waits = map[Ref][]time.Time{}, map[Ref]bool{}
	for _, p := range pods {
		owner := metav1.GetControllerOfNoCopy(p)
		if owner == nil {
			continue
		}
		ref := ownerRef(owner, p.Namespace)
		made[ref] = append(made[ref], p.CreationTimestamp.Time)
		if _, _, ok := Waiting(p); ok && p.Status.Phase != corev1.PodFailed {
			waits[ref] = true
		}
	}
	for _, times := range made {
		slices.SortFunc(times, time.Time.Compare)
	}
	return made, waits
}
