package incident

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Who has a node and does no work there is told from what the kubelet says of its containers; who may be about
// to, works between its ends, or has nobody who says anything, is not.
func TestStalled(t *testing.T) {
	at := metav1.NewTime(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC))
	waits := func(name, reason, says string) corev1.ContainerStatus {
		return corev1.ContainerStatus{Name: name, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: says}}}
	}
	ended := func(restarts int32, lived time.Duration) corev1.ContainerStatus {
		s := waits("main", "CrashLoopBackOff", "back-off 5m0s")
		s.RestartCount, s.LastTerminationState.Terminated = restarts, &corev1.ContainerStateTerminated{StartedAt: at, FinishedAt: metav1.NewTime(at.Add(lived))}
		return s
	}
	refused := func(reason string, restarts int32) corev1.ContainerStatus {
		s := waits("main", "CrashLoopBackOff", "back-off 5m0s")
		s.RestartCount, s.LastTerminationState.Terminated = restarts, &corev1.ContainerStateTerminated{Reason: reason, Message: "no such device", ExitCode: 128, StartedAt: metav1.Unix(0, 0), FinishedAt: at}
		return s
	}
	runs := corev1.ContainerStatus{Name: "main", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at}}}
	pulledBefore := waits("main", "ImagePullBackOff", "")
	pulledBefore.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{}
	of := func(list ...corev1.ContainerStatus) corev1.PodStatus {
		return corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: list}
	}
	for name, k := range map[string]struct {
		status corev1.PodStatus
		gone   bool
		want   string
	}{
		"no image":                 {of(waits("main", "ImagePullBackOff", "not found")), false, "main: ImagePullBackOff: not found"},
		"no secret":                {of(waits("main", "CreateContainerConfigError", `secret "hf" not found`)), false, `main: CreateContainerConfigError: secret "hf" not found`},
		"not made":                 {of(waits("main", "ContainerCreating", "")), false, ""},
		"runs":                     {of(runs), false, ""},
		"nothing said":             {of(), false, ""},
		"beside one that runs":     {of(waits("side", "ImagePullBackOff", ""), runs), false, ""},
		"in deletion":              {of(waits("main", "ImagePullBackOff", "")), true, ""},
		"worked before":            {of(pulledBefore), false, ""},
		"ends at once":             {of(ended(5, time.Second)), false, "main: CrashLoopBackOff, 5 restarts"},
		"never begun":              {corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{refused("StartError", 5)}}, false, "main: StartError: no such device"},
		"never begun, in Docker":   {of(refused("ContainerCannotRun", 5)), false, "main: ContainerCannotRun: no such device"},
		"may begin yet":            {of(refused("StartError", 4)), false, ""},
		"ended by itself":          {of(refused("Error", 5)), false, ""},
		"ended four times":         {of(ended(4, time.Second)), false, ""},
		"works for a minute":       {of(ended(40, time.Minute)), false, ""},
		"its init container":       {corev1.PodStatus{Phase: corev1.PodPending, InitContainerStatuses: []corev1.ContainerStatus{waits("get", "InvalidImageName", "")}, ContainerStatuses: []corev1.ContainerStatus{waits("main", "PodInitializing", "")}}, false, "get: InvalidImageName"},
		"has ended":                {corev1.PodStatus{Phase: corev1.PodFailed, ContainerStatuses: []corev1.ContainerStatus{waits("main", "ImagePullBackOff", "")}}, false, ""},
		"volumes that do not come": {corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{Type: corev1.PodReadyToStartContainers, Reason: FailedMount, Message: "no disk"}}}, false, "FailedMount: no disk"},
	} {
		gpu := corev1.ResourceRequirements{Limits: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}}
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: at}, Spec: corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{{Name: "side"}, {Name: "main", Resources: gpu}}}, Status: k.status}
		if k.gone {
			p.DeletionTimestamp = &at
		}
		got := ""
		if s := Stalled(p, func(c corev1.Container) bool { return len(c.Resources.Limits) > 0 }); s != nil {
			got = s.Text()
			if !s.Since.Equal(at.Time) {
				t.Errorf("%s: since %s", name, s.Since)
			}
		}
		if got != k.want {
			t.Errorf("%s: %q, not %q", name, got, k.want)
		}
		p.Spec.NodeName = ""
		if s := Stalled(p, func(corev1.Container) bool { return true }); s != nil {
			t.Errorf("%s without a node: %s", name, s.Text())
		}
	}
}
