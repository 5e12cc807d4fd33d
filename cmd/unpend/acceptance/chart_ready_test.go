package acceptance

import (
	"encoding/base64"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
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
// it at the address of its pod. What others may come to listens there, and refuses who does
// not show what the Secret holds.
func TestChartBecomesReady(t *testing.T) {
	l := &lane{ControlPlane: start(t, controlplane.Extras{})}
	ns := l.Namespace(t)
	l.install(t, ns, "ada@example.com")
	_, port, err := net.SplitHostPort(controlplane.FreeAddress(t))
	must(t, err)
	_, other, err := net.SplitHostPort(controlplane.FreeAddress(t))
	must(t, err)
	_, hooks, err := net.SplitHostPort(controlplane.FreeAddress(t))
	must(t, err)
	_, clicks, err := net.SplitHostPort(controlplane.FreeAddress(t))
	must(t, err)
	for name, tc := range map[string]struct {
		listens string
		more    chart.Values
		come    string // a port and a path that others come to
	}{
		"unpend":          {port, chart.Values{"hooks": chart.Values{"existingSecret": "callers", "tokenKey": "alertmanager", "secretKey": "standard", "port": number(t, hooks)}}, hooks + "/hooks/alertmanager"},
		"unpend-executor": {other, chart.Values{"slack": chart.Values{"channel": "C0123456789", "cluster": "prod", "existingSecret": "slack", "signingKey": "signing", "port": number(t, clicks)}}, clicks + "/slack"},
	} {
		t.Run(name, func(t *testing.T) {
			values := chart.Values{"mode": "approve", "config": chart.Values{"web": chart.Values{"metrics": ":" + tc.listens}}}
			maps.Copy(values, tc.more)
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
			text := strings.ReplaceAll(config.Data["config.yaml"], "/var/lib/unpend", dir)
			for _, v := range spec.Volumes { // the kubelet mounts Secrets with what they hold
				if v.Secret == nil {
					continue
				}
				for _, item := range v.Secret.Items {
					must(t, os.WriteFile(filepath.Join(dir, item.Path), []byte("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"), 0o600))
				}
				at := container.VolumeMounts[slices.IndexFunc(container.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == v.Name })]
				text = strings.ReplaceAll(text, at.MountPath+"/", dir+"/")
			}
			must(t, os.WriteFile(file, []byte(text), 0o600))
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
			if !slices.ContainsFunc(container.Ports, func(p corev1.ContainerPort) bool { return strings.HasPrefix(tc.come, fmt.Sprint(p.ContainerPort)+"/") }) {
				t.Errorf("no port leads to %s: %+v", tc.come, container.Ports)
			}
			controlplane.Eventually(t, time.Minute, "a stranger is refused at "+tc.come, func() (bool, string) {
				r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+podAddress+":"+tc.come, strings.NewReader("{}"))
				must(t, err)
				a, err := http.DefaultClient.Do(r)
				if err != nil {
					return false, err.Error()
				}
				defer a.Body.Close()
				return a.StatusCode == http.StatusUnauthorized, a.Status
			})
		})
	}
}

func number(t *testing.T, port string) int {
	t.Helper()
	n, err := strconv.Atoi(port)
	must(t, err)
	return n
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
