package incident

import (
	"cmp"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Makers are the objects that make pods, and what tells that the API server
// refused some of them.
type Makers struct {
	ReplicaSets  []*appsv1.ReplicaSet
	Deployments  []*appsv1.Deployment // asked only where their ReplicaSets are not known
	StatefulSets []*appsv1.StatefulSet
	DaemonSets   []*appsv1.DaemonSet
	Jobs         []*batchv1.Job
	Events       []*corev1.Event // those with reason FailedCreate are looked at
	LimitRanges  []*corev1.LimitRange
	Held         []*Held // what queues hold of other kinds
	// AllPods: all pods are known, so that who has none there has none. AllJobs: so are all Jobs.
	AllPods, AllJobs bool
	// Now is when they were read; zero: nothing is told by how long ago something was made.
	Now time.Time
}

// maker is one of them: what it wants, and what its status says there is.
type maker struct {
	metav1.Object
	kind              string
	group             string // API group and version
	template          *corev1.PodTemplateSpec
	Wants, Has, ready int
	failing           time.Time // since when it says itself that it gets no pods; zero: it does not
	says              string    // what that status says of it
	failed            bool      // of a Job: it gave up
	queue             string    // of a Job that is suspended: the queue that may let it begin
	aside             int       // of a Job that is suspended and names no queue: how many it would want
}

// QueueLabel names, on an object, Kueue's LocalQueue that admits it: until then the Job is
// suspended and has no pods (pkg/controller/constants in kubernetes-sigs/kueue).
const QueueLabel = "kueue.x-k8s.io/queue-name"

// MakerOf reads an object that makes pods; false for every other.
func MakerOf(o metav1.Object) (maker, bool) {
	const apps = "apps/v1"
	switch t := o.(type) {
	case *appsv1.ReplicaSet:
		m := maker{Object: o, kind: "ReplicaSet", group: apps, template: &t.Spec.Template, Wants: orOne(t.Spec.Replicas), Has: int(t.Status.Replicas), ready: int(t.Status.ReadyReplicas)}
		for _, c := range t.Status.Conditions {
			if c.Type == appsv1.ReplicaSetReplicaFailure && c.Status == corev1.ConditionTrue && c.Reason == FailedCreate {
				m.failing, m.says = c.LastTransitionTime.Time, c.Message
			}
		}
		return m, true
	case *appsv1.Deployment:
		m := maker{Object: o, kind: "Deployment", group: apps, template: &t.Spec.Template, Wants: orOne(t.Spec.Replicas), Has: int(t.Status.Replicas), ready: int(t.Status.ReadyReplicas)}
		for _, c := range t.Status.Conditions {
			if c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue && c.Reason == FailedCreate {
				m.failing, m.says = c.LastTransitionTime.Time, c.Message
			}
		}
		return m, true
	case *appsv1.StatefulSet:
		return maker{Object: o, kind: "StatefulSet", group: apps, template: &t.Spec.Template, Wants: orOne(t.Spec.Replicas), Has: int(t.Status.Replicas), ready: int(t.Status.ReadyReplicas)}, true
	case *appsv1.DaemonSet:
		s := t.Status
		return maker{Object: o, kind: "DaemonSet", group: apps, template: &t.Spec.Template, Wants: int(s.DesiredNumberScheduled), Has: int(s.CurrentNumberScheduled), ready: int(s.NumberReady)}, true
	case *batchv1.Job:
		return jobMaker(t), true
	}
	return maker{}, false
}

// FailedCreate is the reason of the condition and of the event that tell of a
// refused pod (controller_utils.go and replica_set_utils.go, 1.30 to 1.37).
const FailedCreate = "FailedCreate"

func jobMaker(j *batchv1.Job) maker {
	m := maker{Object: j, kind: "Job", group: "batch/v1", template: &j.Spec.Template, Wants: orOne(j.Spec.Parallelism), Has: int(j.Status.Active)}
	if j.Status.Ready != nil {
		m.ready = int(*j.Status.Ready)
	}
	if n := j.Spec.Completions; n != nil {
		m.Wants = min(m.Wants, int(*n-j.Status.Succeeded))
	} else if j.Status.Succeeded > 0 {
		m.Wants = m.Has // of a work queue that has begun to end no new pod is made
	}
	if p := j.Spec.PodReplacementPolicy; p != nil && *p == batchv1.Failed && j.Status.Terminating != nil {
		m.Wants -= int(*j.Status.Terminating)
	}
	for _, c := range j.Status.Conditions {
		if c.Status != corev1.ConditionTrue {
			continue
		}
		switch c.Type {
		case batchv1.JobComplete, batchv1.JobSuccessCriteriaMet:
			m.Wants = 0
		case batchv1.JobFailed, batchv1.JobFailureTarget:
			m.failed, m.Wants = true, 0
		}
	}
	if j.Spec.Suspend == nil || !*j.Spec.Suspend {
		return m
	}
	if m.queue = j.Labels[QueueLabel]; m.queue == "" {
		m.aside, m.Wants = max(0, m.Wants), 0 // somebody's will, where no queue holds it unnamed
	}
	m.failing = j.CreationTimestamp.Time
	for _, c := range j.Status.Conditions {
		if c.Type == batchv1.JobSuspended && c.Status == corev1.ConditionTrue && c.LastTransitionTime.After(m.failing) {
			m.failing = c.LastTransitionTime.Time
		}
	}
	return m
}

func orOne(n *int32) int {
	if n == nil {
		return 1
	}
	return int(*n)
}

// settled says that the maker has what it wants, whatever lies around of former
// pods. A Job that gave up never will have.
func (m maker) settled(running int) bool {
	return !m.failed && max(m.ready, running) >= m.Wants
}

// missing is how many pods are wanted and do not exist.
func (m maker) missing() int {
	if m.GetDeletionTimestamp() != nil {
		return 0
	}
	return max(0, m.Wants-m.Has)
}

func (m maker) ref() Ref { return Ref{m.kind, m.GetNamespace(), m.GetName()} }

// All lists the makers by kind, namespace and name. A Deployment whose ReplicaSets
// are known makes no pods itself.
func (m Makers) All() []maker {
	var out []maker
	made := map[Ref]bool{}
	for _, o := range m.ReplicaSets {
		k, _ := MakerOf(o)
		out = append(out, k)
		if owner := metav1.GetControllerOf(o); owner != nil {
			made[ownerRef(owner, o.Namespace)] = true
		}
	}
	for _, o := range m.Deployments {
		if k, _ := MakerOf(o); !made[k.ref()] {
			out = append(out, k)
		}
	}
	for _, o := range m.StatefulSets {
		k, _ := MakerOf(o)
		out = append(out, k)
	}
	for _, o := range m.DaemonSets {
		k, _ := MakerOf(o)
		out = append(out, k)
	}
	for _, o := range m.Jobs {
		k, _ := MakerOf(o)
		out = append(out, k)
	}
	slices.SortFunc(out, func(a, b maker) int { return compareRefs(a.ref(), b.ref()) })
	return out
}

func compareRefs(a, b Ref) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}
