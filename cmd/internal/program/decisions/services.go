package decisions

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// process is what a pod of the service says of itself.
type process struct {
	Pod   string `json:"pod"`
	Ready bool   `json:"ready"`
	// Says is why it is not ready, or else which places are not told, since when and why.
	Says []string `json:"says,omitempty"`
}

const (
	// ofTheService are the labels that the chart gives the pods of the service, the executor and the notifier.
	ofTheService = "app.kubernetes.io/name in (unpend, unpend-executor, unpend-notifier)"
	// metricsPort is the name of the port that /readyz is served on.
	metricsPort = "metrics"
	// soonAnswers is how long one pod is waited for.
	soonAnswers = 5 * time.Second
)

// processes asks the pods of the service how they are, through the API server. The error
// says what could not be asked.
func processes(ctx context.Context, client kubernetes.Interface, namespace string) ([]process, error) {
	pods, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: ofTheService})
	if err != nil {
		return nil, fmt.Errorf("the service's pods in namespace %s: %w", namespace, err)
	}
	var out []process
	for i := range pods.Items {
		p := &pods.Items[i]
		port := portOf(p)
		if port == 0 || p.Status.Phase != corev1.PodRunning {
			out = append(out, process{Pod: p.Name, Says: []string{"the pod is " + string(p.Status.Phase)}})
			continue
		}
		is, err := ask(ctx, client, p, port)
		if err != nil {
			return out, fmt.Errorf("what pod %s/%s says: %w", namespace, p.Name, err)
		}
		out = append(out, is)
	}
	return out, nil
}

func portOf(p *corev1.Pod) int32 {
	for _, c := range p.Spec.Containers {
		if i := slices.IndexFunc(c.Ports, func(port corev1.ContainerPort) bool { return port.Name == metricsPort }); i >= 0 {
			return c.Ports[i].ContainerPort
		}
	}
	return 0
}

// ask has a pod say how it is. That it is not ready is an answer.
func ask(ctx context.Context, client kubernetes.Interface, p *corev1.Pod, port int32) (process, error) {
	ctx, cancel := context.WithTimeout(ctx, soonAnswers)
	defer cancel()
	body, err := client.CoreV1().Pods(p.Namespace).ProxyGet("http", p.Name, strconv.Itoa(int(port)), "/readyz", nil).DoRaw(ctx)
	if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
		return process{}, errors.New("you may not get pods/proxy there")
	}
	first, rest, _ := strings.Cut(strings.TrimSpace(string(body)), "\n")
	is := process{Pod: p.Name, Ready: err == nil}
	if err != nil && first == "" {
		first = err.Error()
	}
	if !is.Ready {
		is.Says = append(is.Says, first)
	}
	if rest != "" {
		is.Says = append(is.Says, strings.Split(rest, "\n")...)
	}
	return is, nil
}

// tellProcesses has a line for each pod, and one for each place that is not told.
func (s *standing) tellProcesses(all []process) {
	for _, p := range all {
		switch {
		case !p.Ready:
			s.add(true, "service", "%s is not ready: %s", p.Pod, strings.Join(p.Says, "; "))
		case len(p.Says) == 0:
			s.add(false, "service", "%s does its work", p.Pod)
		}
		for _, says := range p.Says {
			if p.Ready {
				s.add(true, "not told", "%s: %s", p.Pod, says)
			}
		}
	}
}
