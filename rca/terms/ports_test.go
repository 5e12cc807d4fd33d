package terms

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/view"
)

// Whose the port of the host is, is told by port, protocol and address.
func TestWhoHasThePort(t *testing.T) {
	pod := func(name string, ports ...corev1.ContainerPort) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Ports: ports}}}}
	}
	always := corev1.ContainerRestartPolicyAlways
	sidecar := pod("s")
	sidecar.Spec.InitContainers = []corev1.Container{{RestartPolicy: &always, Ports: []corev1.ContainerPort{{HostPort: 80}}}}
	ended := pod("e", corev1.ContainerPort{HostPort: 80})
	ended.Status.Phase = corev1.PodSucceeded
	want := pod("w", corev1.ContainerPort{HostPort: 80})
	for name, tc := range map[string]struct {
		on   *corev1.Pod
		want string
	}{
		"the same":            {pod("x", corev1.ContainerPort{HostPort: 80, Protocol: corev1.ProtocolTCP}), "80/TCP of x"},
		"another":             {pod("x", corev1.ContainerPort{HostPort: 81}), ""},
		"of no host":          {pod("x", corev1.ContainerPort{ContainerPort: 80}), ""},
		"another protocol":    {pod("x", corev1.ContainerPort{HostPort: 80, Protocol: corev1.ProtocolUDP}), ""},
		"on one address":      {pod("x", corev1.ContainerPort{HostPort: 80, HostIP: "10.0.0.1"}), "80/TCP of x"},
		"of a sidecar":        {sidecar, "80/TCP of s"},
		"of one that is done": {ended, ""},
	} {
		got := ""
		for _, taken := range PortsTaken(want, &view.Node{Pods: []*corev1.Pod{tc.on}}) {
			got += fmt.Sprintf("%d/%s of %s", taken.Port, taken.Protocol, taken.By.Name)
		}
		if got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// All the ports that are taken are told, and who holds them: one as one.
func TestAllPortsThatAreTaken(t *testing.T) {
	port := func(n int32) corev1.ContainerPort { return corev1.ContainerPort{HostPort: n} }
	pod := func(name string, ports ...corev1.ContainerPort) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Ports: ports}}}}
	}
	n := &view.Node{Node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}, Pods: []*corev1.Pod{pod("x", port(80)), pod("y", port(443))}}
	for _, tc := range []struct {
		asks []corev1.ContainerPort
		want string
	}{
		{[]corev1.ContainerPort{port(80), port(8080)}, "its host port 80/TCP is taken there: [Pod/a/x]"},
		{[]corev1.ContainerPort{port(80), port(8080), port(443)}, "its host ports 80/TCP and 443/TCP are taken there: [Pod/a/x Pod/a/y]"},
	} {
		f := TellPorts(PortsTaken(pod("w", tc.asks...), n), n)
		var by []string
		for _, e := range f.Evidence {
			by = append(by, e.Ref)
		}
		if got := fmt.Sprint(f.Says, ": ", by); got != tc.want {
			t.Errorf("%s, want %s", got, tc.want)
		}
	}
}
