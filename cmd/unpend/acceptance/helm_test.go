package acceptance

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"helm.sh/helm/v3/pkg/action"
	helm "helm.sh/helm/v3/pkg/chart"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"

	"github.com/unpend/unpend/remediate/slack/fakeslack"
	"github.com/unpend/unpend/testdata/chart"
	"github.com/unpend/unpend/testdata/controlplane"
)

// helmed is a release that helm manages, as its command does, and the machine that its pods run
// on: the real program, a process each, with what their pods have, but at addresses of this machine.
type helmed struct {
	*lane
	ns     string
	config *action.Configuration
	// env is what pods find, by the name of what runs them.
	env map[string][]string
	// kubeconfigs are used in place of those that a pod finds, by the same names.
	kubeconfigs map[string]string

	volumes, bus string
	running      map[string]*process

	mu    sync.Mutex
	hooks []string // what Jobs of helm's have said
}

func (l *lane) helm(t *testing.T, ns string, bus string) *helmed {
	t.Helper()
	flags := genericclioptions.NewConfigFlags(true)
	kubeconfig := l.Kubeconfig()
	flags.KubeConfig, flags.Namespace = &kubeconfig, &ns
	flags.WrapConfigFn = func(c *rest.Config) *rest.Config {
		c.QPS, c.Burst = 500, 1000
		return c
	}
	h := &helmed{lane: l, ns: ns, config: &action.Configuration{}, volumes: t.TempDir(), bus: bus, env: map[string][]string{}, kubeconfigs: map[string]string{}, running: map[string]*process{}}
	must(t, h.config.Init(flags, ns, "secret", func(string, ...any) {}))
	return h
}

const (
	releaseName = "unpend"
	// someChannel is one as a real Slack has them.
	someChannel = "C0123456789"
)

func (h *helmed) install(t *testing.T, c *helm.Chart, values chart.Values) {
	t.Helper()
	i := action.NewInstall(h.config)
	i.ReleaseName, i.Namespace = releaseName, h.ns
	_, err := i.RunWithContext(t.Context(), c, values)
	must(t, err)
}

func (h *helmed) upgrade(t *testing.T, c *helm.Chart, values chart.Values) {
	t.Helper()
	u := action.NewUpgrade(h.config)
	u.Namespace = h.ns
	_, err := u.RunWithContext(t.Context(), releaseName, c, values)
	must(t, err)
}

// stays takes a refused uninstall back: to helm the release is half gone.
func (h *helmed) stays(t *testing.T) {
	t.Helper()
	r := action.NewRollback(h.config)
	r.Version = 1
	must(t, r.Run(releaseName))
}

// uninstall has the kubelet's part of helm's Jobs done meanwhile.
func (h *helmed) uninstall(t *testing.T) error {
	t.Helper()
	u := action.NewUninstall(h.config)
	u.Timeout = time.Minute
	ended := make(chan struct{})
	var jobs sync.WaitGroup
	jobs.Go(func() { h.runJobs(t, ended) })
	_, err := u.Run(releaseName)
	close(ended)
	jobs.Wait()
	return err
}

// runJobs runs the pods of the release's Jobs until it ends.
func (h *helmed) runJobs(t *testing.T, ended <-chan struct{}) {
	done := map[string]bool{}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ended:
			return
		case <-tick.C:
		}
		pods, err := h.Client().CoreV1().Pods(h.ns).List(t.Context(), metav1.ListOptions{LabelSelector: batchv1.JobNameLabel})
		if err != nil {
			t.Error(err)
			return
		}
		for i := range pods.Items {
			p := &pods.Items[i]
			over := p.DeletionTimestamp != nil || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed // of a Job that helm has tried before
			if !over && !done[p.Name] {
				done[p.Name] = true
				h.runJob(t, p)
			}
		}
	}
}

func (h *helmed) runJob(t *testing.T, p *corev1.Pod) {
	c := p.Spec.Containers[0]
	code, out, errs := call(t, append(append([]string{}, c.Args...), "--kubeconfig", h.asServiceAccount(t, h.ns, p.Spec.ServiceAccountName))...)
	h.mu.Lock()
	h.hooks = append(h.hooks, fmt.Sprintf("%d %s%s", code, out, errs))
	h.mu.Unlock()
	now, err := h.Client().CoreV1().Pods(h.ns).Get(t.Context(), p.Name, metav1.GetOptions{})
	if err == nil {
		now.Status.Phase = corev1.PodSucceeded
		if code != 0 {
			now.Status.Phase = corev1.PodFailed
		}
		now.Status.Conditions = nil
		now.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: c.Name, Image: c.Image, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: int32(code), FinishedAt: metav1.Now()}}}}
		_, err = h.Client().CoreV1().Pods(h.ns).UpdateStatus(t.Context(), now, metav1.UpdateOptions{})
	}
	if err != nil {
		t.Error(err)
	}
}

// hooked is what the last Job of helm's said.
func (h *helmed) hooked() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.hooks) == 0 {
		return "no Job has run"
	}
	return h.hooks[len(h.hooks)-1]
}

// pods are the templates of what runs, by their names.
func (h *helmed) pods(t *testing.T) map[string]corev1.PodTemplateSpec {
	t.Helper()
	out := map[string]corev1.PodTemplateSpec{}
	deployments, err := h.Client().AppsV1().Deployments(h.ns).List(t.Context(), metav1.ListOptions{})
	must(t, err)
	sets, err := h.Client().AppsV1().StatefulSets(h.ns).List(t.Context(), metav1.ListOptions{})
	must(t, err)
	for _, d := range deployments.Items {
		out[d.Name] = d.Spec.Template
	}
	for _, s := range sets.Items {
		out[s.Name] = s.Spec.Template
	}
	return out
}

// stop ends all that runs, as a kubelet does, and wants it to end in order.
func (h *helmed) stop(t *testing.T) {
	t.Helper()
	for name, p := range h.running {
		p.signal(syscall.SIGTERM)
		if code := p.exits(t, 20*time.Second); code != 0 {
			t.Errorf("%s ended with %d", name, code)
		}
	}
	clear(h.running)
}

// start starts what the release has run, and gives where each is asked how it is.
func (h *helmed) start(t *testing.T) map[string]string {
	t.Helper()
	at := map[string]string{}
	for name, pod := range h.pods(t) {
		at[name] = h.startPod(t, name, pod.Spec)
	}
	return at
}

func (h *helmed) startPod(t *testing.T, name string, spec corev1.PodSpec) (metrics string) {
	t.Helper()
	c, dir := spec.Containers[0], t.TempDir()
	metrics = controlplane.FreeAddress(t)
	volume := filepath.Join(h.volumes, name) // outlives the pod
	must(t, os.MkdirAll(filepath.Join(volume, "audit"), 0o700))
	replace := []string{"/var/lib/unpend", volume, "metrics: :9090", fmt.Sprintf("metrics: %q", metrics), "listen: :4222", fmt.Sprintf("listen: %q", h.bus),
		fmt.Sprintf("%s-bus.%s.svc:4222", releaseName, h.ns), h.bus, someChannel, fakeslack.Channel}
	var config string
	for _, v := range spec.Volumes {
		i := mountOf(c, v.Name)
		switch {
		case v.ConfigMap != nil:
			m, err := h.Client().CoreV1().ConfigMaps(h.ns).Get(t.Context(), v.ConfigMap.Name, metav1.GetOptions{})
			must(t, err)
			config = m.Data["config.yaml"]
		case v.Secret != nil:
			s, err := h.Client().CoreV1().Secrets(h.ns).Get(t.Context(), v.Secret.SecretName, metav1.GetOptions{})
			must(t, err)
			for _, item := range v.Secret.Items {
				must(t, os.WriteFile(filepath.Join(dir, v.Name+"-"+item.Path), s.Data[item.Key], 0o600))
				replace = append(replace, c.VolumeMounts[i].MountPath+"/"+item.Path, filepath.Join(dir, v.Name+"-"+item.Path))
			}
		}
	}
	text := strings.NewReplacer(replace...)
	file := filepath.Join(dir, "config.yaml")
	must(t, os.WriteFile(file, []byte(text.Replace(config)), 0o600))
	args := []string{}
	for _, a := range c.Args {
		args = append(args, strings.ReplaceAll(text.Replace(a), "/etc/unpend/config.yaml", file))
	}
	kubeconfig := h.kubeconfigs[name]
	if kubeconfig == "" {
		kubeconfig = h.asServiceAccount(t, h.ns, spec.ServiceAccountName)
	}
	env := append([]string{"POD_NAMESPACE=" + h.ns, "POD_NAME=" + name + "-0"}, h.env[name]...)
	p := newProcess(t, env, "unpend", append(args, "--kubeconfig", kubeconfig)...)
	p.start(t)
	h.running[name] = p
	return metrics
}

func mountOf(c corev1.Container, volume string) int {
	for i, m := range c.VolumeMounts {
		if m.Name == volume {
			return i
		}
	}
	return -1
}
