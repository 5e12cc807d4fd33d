package cluster

import (
	"slices"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// Lost is what an eviction ends for good.
type Lost struct {
	// Pods are those of the evicted that nobody makes again.
	Pods []*corev1.Pod
	// With are the other pods of Jobs that fail by it: the Job controller ends them, too.
	With []*corev1.Pod
	// Jobs are those Jobs.
	Jobs []*batchv1.Job
}

// DefaultBackoff is how many failures a Job stands that does not say (pkg/apis/batch/v1/defaults.go).
const DefaultBackoff = 6

// LostBy tells what ends for good when pods are evicted at a time: a pod without a controller, and those of a Job that
// then has more failures than its backoffLimit. The Job controller counts a pod that is deleted before it has succeeded
// as failed, unless its podFailurePolicy ignores what is disrupted (pkg/controller/job/job_controller.go, isPodFailed, and
// pod_failure_policy.go in Kubernetes 1.37). Of a Job that was not read nothing is known, and nothing is told.
func (s *State) LostBy(evicted []*corev1.Pod) Lost {
	var lost Lost
	var counted map[types.UID][]*corev1.Pod
	for _, p := range evicted {
		by := metav1.GetControllerOfNoCopy(p)
		switch {
		case by == nil || by.Kind == "Node":
			lost.Pods = append(lost.Pods, p)
		case by.Kind == "Job":
			if counted == nil {
				counted = map[types.UID][]*corev1.Pod{}
			}
			counted[by.UID] = append(counted[by.UID], p)
		}
	}
	for _, p := range evicted {
		by := metav1.GetControllerOfNoCopy(p)
		if by == nil || len(counted[by.UID]) == 0 {
			continue
		}
		pods := counted[by.UID]
		delete(counted, by.UID)
		if j := s.jobOf(p); j != nil {
			lost.add(s, j, pods)
		}
	}
	return lost
}

// add are the pods of one Job.
func (l *Lost) add(s *State, j *batchv1.Job, evicted []*corev1.Pod) {
	action := onDisruption(j)
	if action == batchv1.PodFailurePolicyActionIgnore {
		return
	}
	limit := ptr.Deref(j.Spec.BackoffLimit, DefaultBackoff)
	if perIndex := j.Spec.BackoffLimitPerIndex; perIndex != nil && action != batchv1.PodFailurePolicyActionFailJob {
		for _, p := range evicted {
			before, err := strconv.Atoi(p.Annotations[batchv1.JobIndexFailureCountAnnotation]) // absent of the first
			if err != nil {
				before = 0
			}
			if before >= int(*perIndex) || action == batchv1.PodFailurePolicyActionFailIndex {
				l.Pods = append(l.Pods, p)
			}
		}
		if j.Spec.BackoffLimit == nil {
			return
		}
	}
	if action != batchv1.PodFailurePolicyActionFailJob && int(j.Status.Failed)+len(evicted) <= int(limit) {
		return
	}
	l.Jobs = append(l.Jobs, j)
	for _, p := range evicted {
		if !slices.Contains(l.Pods, p) {
			l.Pods = append(l.Pods, p)
		}
	}
	for _, p := range s.indexed().ofJob[j.UID] {
		if p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed && p.Spec.NodeName != "" && !slices.Contains(evicted, p) {
			l.With = append(l.With, p)
		}
	}
}

// jobOf is the Job that makes a pod; nil where it was not read, or is another of its name.
func (s *State) jobOf(p *corev1.Pod) *batchv1.Job {
	by := metav1.GetControllerOfNoCopy(p)
	o, known := s.Owner(by.Kind, p.Namespace, by.Name)
	if !known {
		return nil
	}
	if j, is := o.(*batchv1.Job); is && j.UID == by.UID {
		return j
	}
	return nil
}

// onDisruption is what a Job's podFailurePolicy has done of a pod that is evicted: the first rule that it meets, by the
// condition that the eviction writes or by the code that a process ends with which is told to; Count where none is met.
func onDisruption(j *batchv1.Job) batchv1.PodFailurePolicyAction {
	if j.Spec.PodFailurePolicy == nil {
		return batchv1.PodFailurePolicyActionCount
	}
	for i := range j.Spec.PodFailurePolicy.Rules {
		r := &j.Spec.PodFailurePolicy.Rules[i]
		if slices.ContainsFunc(r.OnPodConditions, func(c batchv1.PodFailurePolicyOnPodConditionsPattern) bool {
			return c.Type == corev1.DisruptionTarget && (c.Status == corev1.ConditionTrue || c.Status == "")
		}) {
			return r.Action
		}
		if on := r.OnExitCodes; on != nil && r.Action == batchv1.PodFailurePolicyActionFailJob {
			told := slices.Contains(on.Values, 143) || slices.Contains(on.Values, 137) // by SIGTERM, and by SIGKILL
			if told == (on.Operator == batchv1.PodFailurePolicyOnExitCodesOpIn) {
				return r.Action
			}
		}
	}
	return batchv1.PodFailurePolicyActionCount
}
