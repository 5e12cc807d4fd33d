package incident

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// unbegun are the reasons of a container that waits for what does not come by itself: its image
// (pkg/kubelet/images/types.go), its configuration, or the runtime (pkg/kubelet/kuberuntime), 1.30 to 1.37.
var unbegun = []string{"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError", "CreateContainerConfigError", FailedContainer, FailedRun}

// refusedByRuntime is how an end is told of a container that the runtime never began: containerd's word
// (internal/cri/server/container_start.go) and Docker's (cri-dockerd core/container_start.go). It has no time of a start.
var refusedByRuntime = []string{"StartError", "ContainerCannotRun"}

const (
	crashLoop = "CrashLoopBackOff"
	// crashes is after how many ends a container is taken to go on so, and shortLife how long a run of it may
	// have taken at most: a program that fails at its start ends in seconds.
	crashes   = 5
	shortLife = time.Minute
)

// Stall is why a pod that has its node does no work there.
type Stall struct {
	Container string // that does not begin; empty where the pod's sandbox or volumes do not come
	Init      bool
	Reason    string // the kubelet's word
	Says      string // what it says more
	Restarts  int32
	Since     time.Time // when the pod was given its node
}

// Crashes says whether it is one that begins, and ends again within a minute.
func (s *Stall) Crashes() bool { return s.Reason == crashLoop }

// Text is that for people.
func (s *Stall) Text() string {
	says := s.Reason
	if s.Container != "" {
		says = s.Container + ": " + says
	}
	switch {
	case s.Crashes():
		return fmt.Sprintf("%s, %d restarts", says, s.Restarts)
	case s.Says != "":
		return says + ": " + s.Says
	}
	return says
}

// Stalled is why none of a pod's containers of a kind runs, though it has its node; nil where one runs, may be
// about to, or has ended.
func Stalled(p *corev1.Pod, of func(corev1.Container) bool) *Stall {
	if p.Spec.NodeName == "" || p.DeletionTimestamp != nil || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
		return nil
	}
	if reason, says := Hindrance(p); Hinders(reason) {
		return &Stall{Reason: reason, Says: says, Since: placed(p)}
	}
	for _, c := range p.Status.InitContainerStatuses {
		if s := stall(p, c); s != nil {
			s.Init = true
			return s
		}
	}
	var first *Stall
	for _, k := range p.Spec.Containers {
		if !of(k) {
			continue
		}
		at := slices.IndexFunc(p.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool { return c.Name == k.Name })
		if at < 0 {
			return nil
		}
		s := stall(p, p.Status.ContainerStatuses[at])
		if s == nil {
			return nil
		}
		first = cmp.Or(first, s)
	}
	return first
}

// Standing is what a pod that has its node does, for people: its phase, and why it does not run.
func Standing(p *corev1.Pod) string {
	says := string(p.Status.Phase)
	if p.Spec.NodeName != "" {
		says += " on " + p.Spec.NodeName
	}
	if s := Stalled(p, func(corev1.Container) bool { return true }); s != nil {
		says += ": " + s.Text()
	} else if c := initializing(p); c != nil {
		says += ": init container " + c.Name + " has not ended, begun at " + c.State.Running.StartedAt.UTC().Format(time.RFC3339)
	}
	return says
}

// initializing is the init container, no sidecar, that a Pending pod waits for; nil for none.
func initializing(p *corev1.Pod) *corev1.ContainerStatus {
	for i, c := range p.Status.InitContainerStatuses {
		sidecar := slices.ContainsFunc(p.Spec.InitContainers, func(k corev1.Container) bool { return k.Name == c.Name && k.RestartPolicy != nil })
		if c.State.Running != nil && p.Status.Phase == corev1.PodPending && !sidecar {
			return &p.Status.InitContainerStatuses[i]
		}
	}
	return nil
}

// stall is why a container does not begin; nil where it runs, has ended, or may be about to.
func stall(p *corev1.Pod, c corev1.ContainerStatus) *Stall {
	w := c.State.Waiting
	if w == nil {
		return nil
	}
	s := &Stall{Container: c.Name, Reason: w.Reason, Says: w.Message, Restarts: c.RestartCount, Since: placed(p)}
	last := c.LastTerminationState.Terminated
	switch {
	case slices.Contains(unbegun, w.Reason) && (last == nil || w.Reason == FailedRun || w.Reason == FailedContainer):
		return s
	case w.Reason == crashLoop && c.RestartCount >= crashes && last != nil && slices.Contains(refusedByRuntime, last.Reason):
		s.Reason, s.Says = last.Reason, last.Message
		return s
	case w.Reason == crashLoop && c.RestartCount >= crashes && last != nil && !last.StartedAt.IsZero() && last.FinishedAt.Sub(last.StartedAt.Time) < shortLife:
		return s
	}
	return nil
}

// RunningSince is the last start of a pod or of one of its containers of a kind; zero where one of these does
// not run.
func RunningSince(p *corev1.Pod, of func(corev1.Container) bool) time.Time {
	if p.Status.StartTime == nil {
		return time.Time{}
	}
	since := p.Status.StartTime.Time
	for _, s := range p.Status.ContainerStatuses {
		if !slices.ContainsFunc(p.Spec.Containers, func(k corev1.Container) bool { return k.Name == s.Name && of(k) }) {
			continue
		}
		if s.State.Running == nil {
			return time.Time{}
		}
		if s.State.Running.StartedAt.After(since) {
			since = s.State.Running.StartedAt.Time
		}
	}
	return since
}
