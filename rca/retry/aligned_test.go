package retry

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/kubelet"
	"github.com/unpend/unpend/rca/rcatest"
	"github.com/unpend/unpend/rca/view"
)

// Another pod is in the way of a NUMA node that is to be free where it holds GPUs, or CPUs of its own.
func TestWhoIsInTheWayOfASocket(t *testing.T) {
	for name, tc := range map[string]struct {
		asks  string
		class corev1.PodQOSClass
		want  bool
	}{
		"GPUs":                {"nvidia.com/gpu", corev1.PodQOSBurstable, true},
		"CPUs of its own":     {"cpu", corev1.PodQOSGuaranteed, true},
		"both":                {"nvidia.com/gpu", corev1.PodQOSGuaranteed, true},
		"CPUs of all the pod": {"cpu", corev1.PodQOSBurstable, false},
	} {
		two := rcatest.List("cpu", "2")
		p := &corev1.Pod{Status: corev1.PodStatus{QOSClass: tc.class}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: two, Limits: two}}}}}
		n := &view.Node{Pods: []*corev1.Pod{p}, Requests: map[*corev1.Pod]corev1.ResourceList{p: rcatest.List(tc.asks, "1")}}
		if got := (&kubelet.Turned{Node: n}).Occupied(); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// For a socket to be free those are named who hold GPUs of its node; that somebody stops is unknown
// only where somebody does.
func TestASocketIsFreed(t *testing.T) {
	const look = "see which GPUs and CPUs of n lie on one NUMA node, and who holds them"
	for name, tc := range map[string]struct {
		asks string
		want string
	}{
		"one holds GPUs": {"nvidia.com/gpu", "true: " + look + "; a/h holds GPUs there"},
		"one holds CPUs": {"cpu", "false: " + look},
	} {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "h"}}
		n := &view.Node{Pods: []*corev1.Pod{p}, Requests: map[*corev1.Pod]corev1.ResourceList{p: rcatest.List(tc.asks, "1")}}
		ch := freeSocket(nil, &kubelet.Turned{On: "n", Node: n})
		if got := fmt.Sprintf("%v: %s", ch.StopsUnknown, strings.Join(ch.Steps, "; ")); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

// An init container that asks for whole CPUs takes them of one NUMA node before the others; one that
// shares CPUs, or runs on as a sidecar, does not.
func TestInitContainersThatTakeWholeCPUs(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	for name, tc := range map[string]struct {
		request, limit string
		policy         *corev1.ContainerRestartPolicy
		want           bool
	}{
		"whole ones": {"2", "2", nil, true}, "parts": {"1500m", "1500m", nil, false}, "up to more": {"2", "4", nil, false}, "none": {"0", "0", nil, false}, "a sidecar": {"2", "2", &always, false},
	} {
		w := newWorld()
		halves(w)
		w.Wait.Spec.InitContainers = []corev1.Container{{Name: "i", RestartPolicy: tc.policy, Resources: corev1.ResourceRequirements{Requests: rcatest.List("cpu", tc.request), Limits: rcatest.List("cpu", tc.limit)}}}
		c := refused(t, w, "Deployment", few)
		ch, got := leaveOutInit(c, c.Kubelet.Turned())
		if got != tc.want || got && ch.Title != "have init container i of deployment/w ask for no whole CPUs: the kubelet gives it those of one NUMA node first" {
			t.Errorf("%s: %v, %q", name, got, ch.Title)
		}
	}
}
