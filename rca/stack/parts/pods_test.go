package parts

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/view"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// What a pod's status says of it: the first container that is not done or not ready is what the
// others wait for. One that is started again and again does not pass by itself.
func TestWhatAPodSays(t *testing.T) {
	ago := func(minutes int) metav1.Time { return metav1.NewTime(noon.Add(-time.Duration(minutes) * time.Minute)) }
	runs := func(minutes int) corev1.ContainerState {
		return corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: ago(minutes)}}
	}
	ends := func(code int32, message string, minutes int) corev1.ContainerState {
		return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Message: message, FinishedAt: ago(minutes)}}
	}
	waits := func(reason, message string) corev1.ContainerState {
		return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
	}
	is := func(name string, state corev1.ContainerState, edits ...func(*corev1.ContainerStatus)) corev1.ContainerStatus {
		c := corev1.ContainerStatus{Name: name, State: state}
		for _, edit := range edits {
			edit(&c)
		}
		return c
	}
	again := func(count int32, last corev1.ContainerState) func(*corev1.ContainerStatus) {
		return func(c *corev1.ContainerStatus) { c.RestartCount, c.LastTerminationState = count, last }
	}
	ready := func(c *corev1.ContainerStatus) { c.Ready = true }
	started := func(is bool) func(*corev1.ContainerStatus) {
		return func(c *corev1.ContainerStatus) { c.Started = &is }
	}
	always := corev1.ContainerRestartPolicyAlways
	sidecars := []corev1.Container{{Name: "side", RestartPolicy: &always}, {Name: "plain"}}
	conditions := func(all ...corev1.PodCondition) corev1.PodStatus { return corev1.PodStatus{Conditions: all} }
	type statuses = []corev1.ContainerStatus
	for name, k := range map[string]struct {
		node   string
		init   []corev1.Container
		status corev1.PodStatus
		event  string // the kubelet said 10 min ago
		want   string
	}{
		"ready":                                  {"n", nil, corev1.PodStatus{ContainerStatuses: statuses{is("c", runs(9), ready)}}, "", `"" "" "" since 60`},
		"ready since then":                       {"n", nil, corev1.PodStatus{ContainerStatuses: statuses{is("c", runs(9), ready)}, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: ago(7)}}}, "", `"" "" "" since 7`},
		"ready since nobody knows":               {"n", nil, corev1.PodStatus{ContainerStatuses: statuses{is("c", runs(9), ready)}, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}, "", `"" "" "" since 60`},
		"not scheduled":                          {"", nil, conditions(corev1.PodCondition{Type: corev1.PodReady, Message: "x"}, corev1.PodCondition{Type: corev1.PodScheduled, Message: "Too  many pods"}), "", `"failed" "" "not scheduled: Too many pods" since 60`},
		"of which nobody has spoken":             {"", nil, conditions(corev1.PodCondition{Type: corev1.PodScheduled}), "", `"failed" "" "not scheduled: the scheduler has not spoken" since 60`},
		"an init container runs":                 {"n", nil, corev1.PodStatus{InitContainerStatuses: statuses{is("i", runs(9)), is("j", waits("PodInitializing", ""))}, ContainerStatuses: statuses{is("c", waits("PodInitializing", ""))}}, "", `"waiting" "i" "running" since 9`},
		"an init container is done":              {"n", nil, corev1.PodStatus{InitContainerStatuses: statuses{is("i", ends(0, "", 9)), is("j", runs(8))}}, "", `"waiting" "j" "running" since 8`},
		"an init container failed":               {"n", nil, corev1.PodStatus{InitContainerStatuses: statuses{is("i", ends(1, "no  card", 9))}}, "", `"failed" "i" "exit 1: no card" since 50`},
		"a sidecar has started":                  {"n", sidecars, corev1.PodStatus{InitContainerStatuses: statuses{is("side", runs(9), started(true))}, ContainerStatuses: statuses{is("c", runs(8))}}, "", `"starting" "c" "running and not ready" since 8`},
		"a sidecar has not yet":                  {"n", sidecars, corev1.PodStatus{InitContainerStatuses: statuses{is("side", runs(9), started(false))}, ContainerStatuses: statuses{is("c", runs(8))}}, "", `"waiting" "side" "running" since 9`},
		"of a sidecar nobody knows":              {"n", sidecars, corev1.PodStatus{InitContainerStatuses: statuses{is("side", runs(9))}, ContainerStatuses: statuses{is("c", runs(8))}}, "", `"waiting" "side" "running" since 9`},
		"no sidecar, though started":             {"n", sidecars, corev1.PodStatus{InitContainerStatuses: statuses{is("plain", runs(9), started(true))}}, "", `"waiting" "plain" "running" since 9`},
		"the second is not ready":                {"n", nil, corev1.PodStatus{ContainerStatuses: statuses{is("c", runs(9), ready), is("d", runs(8))}}, "", `"starting" "d" "running and not ready" since 8`},
		"an image is not there":                  {"n", nil, corev1.PodStatus{ContainerStatuses: statuses{is("c", waits("ImagePullBackOff", "no  such"))}}, "", `"failed" "c" "ImagePullBackOff: no such" since 50`},
		"it crashes":                             {"n", nil, corev1.PodStatus{ContainerStatuses: statuses{is("c", waits("CrashLoopBackOff", "back-off 5m"), again(1, ends(2, "no card", 9)))}}, "", `"failed" "c" "CrashLoopBackOff (1 restarts; last exit 2: no card)" since 50 loops`},
		"it crashed thrice, and waits":           {"n", nil, corev1.PodStatus{ContainerStatuses: statuses{is("c", waits("ErrImagePull", ""), again(9, ends(2, "", 9)))}}, "", `"failed" "c" "ErrImagePull (9 restarts; last exit 2)" since 50`},
		"it crashed twice, and runs":             {"n", nil, corev1.PodStatus{ContainerStatuses: statuses{is("c", runs(8), again(2, ends(2, "", 9)))}}, "", `"starting" "c" "running and not ready" since 8`},
		"it crashed thrice, and runs":            {"n", nil, corev1.PodStatus{ContainerStatuses: statuses{is("c", runs(8), again(3, ends(2, "", 9)))}}, "", `"starting" "c" "running and not ready (3 restarts; last exit 2)" since 8 loops`},
		"it waits":                               {"n", nil, corev1.PodStatus{ContainerStatuses: statuses{is("c", waits("ContainerCreating", ""))}}, "", `"starting" "c" "ContainerCreating" since 50`},
		"it waits for nothing said":              {"n", nil, corev1.PodStatus{ContainerStatuses: statuses{is("c", waits("", ""))}}, "", `"starting" "c" "waiting" since 50`},
		"it waits, and the kubelet spoke":        {"n", nil, corev1.PodStatus{ContainerStatuses: statuses{is("c", waits("ContainerCreating", ""))}}, "rpc error: desc = no runtime", `"failed" "" "FailedCreatePodSandBox: no runtime" since 50 told`},
		"the kubelet spoke before it ran":        {"n", nil, corev1.PodStatus{ContainerStatuses: statuses{is("c", waits("ContainerCreating", ""), again(0, ends(0, "", 9)))}}, "no runtime", `"starting" "c" "ContainerCreating" since 50`},
		"the kubelet spoke when it ended":        {"n", nil, corev1.PodStatus{ContainerStatuses: statuses{is("c", waits("ContainerCreating", ""), again(0, ends(0, "", 10)))}}, "no runtime", `"failed" "" "FailedCreatePodSandBox: no runtime (0 restarts; last exit 0)" since 50 told`},
		"the kubelet spoke after it ran":         {"n", nil, corev1.PodStatus{InitContainerStatuses: statuses{is("i", ends(0, "", 11))}, ContainerStatuses: statuses{is("c", waits("ContainerCreating", ""))}}, "no runtime", `"failed" "" "FailedCreatePodSandBox: no runtime" since 50 told`},
		"nothing was made":                       {"n", nil, corev1.PodStatus{Phase: corev1.PodPending}, "", `"starting" "" "its containers are not created yet" since 50`},
		"nothing was made, and the kubelet says": {"n", nil, corev1.PodStatus{Phase: corev1.PodPending}, "no runtime", `"failed" "" "FailedCreatePodSandBox: no runtime" since 50 told`},
		"its kubelet refused it":                 {"n", nil, corev1.PodStatus{Phase: corev1.PodFailed, Reason: "OutOfcpu", Message: "no room"}, "", `"failed" "" "OutOfcpu: no room" since 50`},
		"nothing is told, and it runs":           {"n", nil, corev1.PodStatus{Phase: corev1.PodRunning}, "", `"" "" "" since 60`},
		"nothing is told, and it is ready":       {"n", nil, corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: ago(7)}}}, "", `"" "" "" since 7`},
		"nothing is told, and it is not ready":   {"n", nil, corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}}}, "", `"starting" "" "its containers are not created yet" since 50`},
	} {
		t.Run(name, func(t *testing.T) {
			st := &cluster.State{Now: noon}
			p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "g", Name: "p", CreationTimestamp: ago(60)}, Spec: corev1.PodSpec{NodeName: k.node, InitContainers: k.init}, Status: k.status}
			began := ago(50)
			p.Status.StartTime = &began
			if k.event != "" {
				st.Events = []*corev1.Event{{InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: "g", Name: "p"}, Reason: "FailedCreatePodSandBox", Message: k.event, LastTimestamp: ago(10)}}
			}
			got := Of(view.New(st)).Look(p)
			text := fmt.Sprintf("%q %q %q since %d", got.State, got.Where, got.Words, int(noon.Sub(got.Since).Minutes()))
			if got.Loops {
				text += " loops"
			}
			if got.Told {
				text += " told"
			}
			if text != k.want {
				t.Errorf("%s, want %s", text, k.want)
			}
		})
	}
}

// What a runtime's hook said last is what a container's end was about.
func TestWhatAHookSaid(t *testing.T) {
	const runtime = "OCI runtime create failed: runc create failed: error running hook: exit status 1, stdout: , "
	for message, want := range map[string]string{
		runtime + "stderr: Auto-detected mode as 'legacy'\nnvidia-container-cli: initialization error: no device: unknown\n":   "nvidia-container-cli: initialization error: no device: unknown",
		runtime + "stderr: nvidia-container-cli: mount error: failed to add device rules\n0: (b7) r0 = 1\nprocessed 0 insns\n": "nvidia-container-cli: mount error: failed to add device rules",
		runtime + "stderr: a\nb\n": "b",
		runtime:                    runtime,
		"no luck, stderr: a\nb":    "no luck, stderr: a\nb",
	} {
		if got := inner(message); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
