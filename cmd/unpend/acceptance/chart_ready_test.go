package acceptance

import (
	"encoding/base64"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/unpend/unpend/testdata/chart"
	"github.com/unpend/unpend/testdata/controlplane"
)

// podAddress stands for the address of a pod: one of this machine that nobody reaches who
// listens on 127.0.0.1 alone.
const podAddress = "127.0.0.2"

// What the chart renders becomes ready: each container is started with its own arguments,
// its own configuration and the rights of its own ServiceAccount, and its own probes ask
// it at the address of its pod.
func TestChartBecomesReady(t *testing.T) {
	l := &lane{ControlPlane: start(t, controlplane.Extras{})}
	ns := l.Namespace(t)
	l.install(t, ns, "ada@example.com")
	_, port, err := net.SplitHostPort(controlplane.FreeAddress(t))
	must(t, err)
	_, other, err := net.SplitHostPort(controlplane.FreeAddress(t))
	must(t, err)
	for name, listens := range map[string]string{"unpend": port, "unpend-executor": other} {
		t.Run(name, func(t *testing.T) {
			values := chart.Values{"mode": "approve", "config": chart.Values{"web": chart.Values{"metrics": ":" + listens}}}
			objs := (chart.Release{Namespace: ns, Values: values}).Objects(t)
			var deployment appsv1.Deployment
			var config corev1.ConfigMap
			for _, o := range objs {
				switch {
				case o.GetKind() == "Deployment" && o.GetName() == name:
					must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &deployment))
				case o.GetKind() == "ConfigMap" && o.Object["data"] != nil && strings.Contains(fmt.Sprint(o.Object["data"]), "storeDir"):
					must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &config))
				}
			}
			spec := deployment.Spec.Template.Spec
			container := spec.Containers[0]
			dir := t.TempDir()
			file := filepath.Join(dir, "config.yaml")
			must(t, os.WriteFile(file, []byte(strings.ReplaceAll(config.Data["config.yaml"], "/var/lib/unpend", dir)), 0o600))
			args := append([]string{}, container.Args...)
			for i, a := range args {
				args[i] = strings.ReplaceAll(a, "/etc/unpend/config.yaml", file)
			}
			p := newProcess(t, []string{"POD_NAMESPACE=" + ns, "POD_NAME=" + name + "-0"}, "unpend", append(args, "--kubeconfig", l.asServiceAccount(t, ns, spec.ServiceAccountName))...)
			p.start(t)
			for _, probe := range []*corev1.Probe{container.StartupProbe, container.LivenessProbe, container.ReadinessProbe} {
				at := net.JoinHostPort(podAddress, probedPort(t, container, probe))
				controlplane.Eventually(t, time.Minute, "ok from "+at+probe.HTTPGet.Path, func() (bool, string) { return answers(at, probe.HTTPGet.Path, "ok") })
			}
		})
	}
}

// probedPort is the port that a probe names.
func probedPort(t *testing.T, c corev1.Container, probe *corev1.Probe) string {
	t.Helper()
	for _, p := range c.Ports {
		if p.Name == probe.HTTPGet.Port.String() {
			return fmt.Sprint(p.ContainerPort)
		}
	}
	t.Fatalf("%s has no port %s", c.Name, probe.HTTPGet.Port.String())
	return ""
}

// asServiceAccount is a kubeconfig with a token of a ServiceAccount.
func (l *lane) asServiceAccount(t *testing.T, ns, name string) string {
	t.Helper()
	got, err := l.Client().CoreV1().ServiceAccounts(ns).CreateToken(t.Context(), name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	must(t, err)
	config := l.Config()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	must(t, os.WriteFile(path, fmt.Appendf(nil, "apiVersion: v1\nkind: Config\nclusters: [{name: test, cluster: {server: %q, certificate-authority-data: %s}}]\nusers: [{name: sa, user: {token: %q}}]\n"+
		"contexts: [{name: test, context: {cluster: test, user: sa}}]\ncurrent-context: test\n", config.Host, base64.StdEncoding.EncodeToString(config.CAData), got.Status.Token), 0o600))
	return path
}
