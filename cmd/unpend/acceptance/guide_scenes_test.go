package acceptance

import (
	"archive/zip"
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/unpend/unpend/testdata/controlplane"
)

// scene is what is around a command of a guide; a command without one has to succeed.
type scene struct {
	before func(*testing.T, *typist)                // what the guide takes for granted
	means  func(*testing.T, *typist, string) string // with words of the guide's in place of which people put theirs
	until  func(*testing.T, *typist) string         // it is typed again until it says so
	after  func(*testing.T, *typist, string)        // what has to have come of it, given what it said
	// unnoted: what helm's notes name has another answer there: positions are unknown.
	unnoted bool
}

const (
	installs = "helm install unpend deploy/charts/unpend --namespace unpend "
	demos    = "helm install mig-demo deploy/charts/mig-demo --namespace mig-demo --create-namespace"
)

var scenes = map[string]scene{
	// The story: six pods and one that waits, then two.
	installs + "--create-namespace":                    {before: empties, after: observes},
	"helm test unpend --namespace unpend":              {before: testsPods, after: says("Succeeded")},
	installs + "--create-namespace --set probe.tier=3": {before: empties, after: observes},
	demos: {after: demo(6)},
	"helm upgrade mig-demo deploy/charts/mig-demo --namespace mig-demo --set fragmenter.replicas=0,inference.replicas=2": {after: demo(2)},
	"kubectl unpend why -n mig-demo": {until: func(t *testing.T, p *typist) string {
		if p.runningIn(t, "mig-demo") == 2 {
			return "MIGLayoutMismatch"
		}
		return "MIGFragmented"
	}},
	"kubectl unpend approve INCIDENT#1": {means: func(t *testing.T, p *typist, cmd string) string {
		return strings.ReplaceAll(cmd, "INCIDENT", why(t, "-n", "mig-demo", "--kubeconfig", p.Kubeconfig()).Incident) + " --yes" // nobody can be asked
	}, after: says("runs (")},
	"kubectl get pods -n mig-demo": {after: func(t *testing.T, _ *typist, out string) {
		if n := strings.Count(out, "Running"); n != 3 {
			t.Errorf("%d pods run:\n%s", n, out)
		}
	}},
	demos + " --set kwok.nodes=1": {before: func(t *testing.T, p *typist) {
		p.typed(t, "helm uninstall mig-demo -n mig-demo && kubectl wait --for=delete pod --all -n mig-demo --timeout=60s")
	}, unnoted: true, after: func(t *testing.T, p *typist, _ string) {
		if out := p.typed(t, "kubectl get nodes -o name"); strings.Count(out, "node/") != 2 {
			t.Errorf("nodes: %s", out)
		}
		p.typed(t, "kubectl unpend why -n mig-demo")
	}},

	// A pod for each; the bus in it is a StatefulSet.
	"kubectl create namespace unpend": {before: empties},
	installs + "--set layout=separate,nats.existingSecret=unpend-nats,nats.tokenKey=token":      {after: says("statefulset/unpend")},
	"kubectl apply --server-side --force-conflicts -f deploy/charts/unpend/crds":                {before: olderKinds, after: todaysKinds},
	"helm upgrade unpend deploy/charts/unpend --namespace unpend":                               {after: says("statefulset/unpend")},
	"helm uninstall unpend --namespace unpend":                                                  {after: leavesOnly},
	"kubectl delete crd nodegeometries.unpend.dev remediations.unpend.dev approvals.unpend.dev": {before: func(_ *testing.T, p *typist) { p.stop() }},
	"helm upgrade unpend deploy/charts/unpend --namespace unpend --reuse-values --set monitoring.serviceMonitor.enabled=true --set monitoring.rules.enabled=true --set monitoring.dashboard.enabled=true": {
		before: func(t *testing.T, p *typist) {
			empties(t, p)
			p.typed(t, installs+"--create-namespace")
		}, after: func(t *testing.T, p *typist, out string) {
			says("which this cluster has not")(t, p, out)
			p.typed(t, "kubectl -n unpend get configmap unpend-dashboard")
		}},

	// In the README.
	"helm upgrade unpend deploy/charts/unpend --namespace unpend --set mode=approve --set 'remediate.approvers.users={ada@example.com}'": {after: says("in mode approve")},
	`unpend search "2g.10gb pending a100"`:                          {after: says("GPU-118")},
	"kubectl annotate pod/trainer-0 unpend.dev/why=now --overwrite": {before: func(t *testing.T, p *typist) { p.typed(t, "kubectl run trainer-0 --image=registry.example/x") }},
	"kubectl create token NAME":                                     {means: puts("NAME", "default")},
	"helm rollback unpend REVISION --namespace unpend":              {means: puts("REVISION", "1")},
}

func puts(word, mine string) func(*testing.T, *typist, string) string {
	return func(_ *testing.T, _ *typist, cmd string) string { return strings.ReplaceAll(cmd, word, mine) }
}

func says(want string) func(*testing.T, *typist, string) {
	return func(t *testing.T, _ *typist, out string) {
		t.Helper()
		if !strings.Contains(out, want) {
			t.Errorf("it does not say %q:\n%s", want, out)
		}
	}
}

// empties takes away what an earlier part of a guide has installed.
func empties(t *testing.T, p *typist) {
	t.Helper()
	p.typed(t, `helm uninstall unpend --namespace unpend --no-hooks --ignore-not-found
for ns in unpend unpend-probe; do kubectl delete namespace $ns --ignore-not-found --timeout=60s; done`)
}

// observes wants what is installed by default, and nothing that writes.
func observes(t *testing.T, p *typist, out string) {
	t.Helper()
	says("It reads only.")(t, p, out)
	if got := p.typed(t, "kubectl -n unpend get deployments -o name"); got != "deployment.apps/unpend\n" {
		t.Errorf("there are %s", got)
	}
}

// demo waits until that many of the demo's pods run, and one waits.
func demo(running int) func(*testing.T, *typist, string) {
	return func(t *testing.T, p *typist, _ string) {
		controlplane.Eventually(t, time.Minute, "the demo's pods are there", func() (bool, string) {
			waits, err := p.Client().CoreV1().Pods("mig-demo").List(t.Context(), metav1.ListOptions{FieldSelector: "status.phase=" + string(corev1.PodPending)})
			must(t, err)
			return p.runningIn(t, "mig-demo") == running && len(waits.Items) == 1, "not yet"
		})
	}
}

func (l *lane) runningIn(t *testing.T, ns string) int {
	t.Helper()
	pods, err := l.Client().CoreV1().Pods(ns).List(t.Context(), metav1.ListOptions{FieldSelector: "status.phase=" + string(corev1.PodRunning)})
	must(t, err)
	return len(pods.Items)
}

// testsPods runs the pod that helm test makes, once it is there, as a kubelet does.
func testsPods(t *testing.T, p *typist) {
	t.Helper()
	h := p.helm(t, "unpend", "")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	done := make(chan struct{})
	go func() {
		defer close(done)
		var pod *corev1.Pod
		err := wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (_ bool, err error) {
			pod, err = p.Client().CoreV1().Pods("unpend").Get(ctx, "unpend-test", metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				return false, nil
			}
			return err == nil && pod.Status.Phase == corev1.PodRunning, err
		})
		if err != nil {
			t.Errorf("helm test makes no pod that runs: %v", err)
			return
		}
		h.runJob(t, pod)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
}

// olderKinds has helm's kinds be those of an older chart: in a word that today's has otherwise.
func olderKinds(t *testing.T, p *typist) {
	t.Helper()
	p.typed(t, `kubectl patch crd remediations.unpend.dev --field-manager=helm --type=json -p '[{"op":"replace","path":"/spec/versions/0/schema/openAPIV3Schema/description","value":"of old"}]'`)
	if out, err := p.types(t, "kubectl apply --server-side -f deploy/charts/unpend/crds"); err == nil || !strings.Contains(out, "conflict") {
		t.Errorf("nothing has to be forced: %v\n%s", err, out)
	}
}

func todaysKinds(t *testing.T, p *typist, _ string) {
	t.Helper()
	if out := p.typed(t, "kubectl get crd remediations.unpend.dev -o jsonpath='{.spec.versions[0].schema.openAPIV3Schema.description}'"); out == "of old" || out == "" {
		t.Errorf("its description is %q", out)
	}
}

// leavesOnly wants of the release nothing but what people have made.
func leavesOnly(t *testing.T, p *typist, _ string) {
	t.Helper()
	controlplane.Eventually(t, time.Minute, "nothing of the release is left", func() (bool, string) {
		out := p.typed(t, `kubectl get deployments,statefulsets,services,configmaps,serviceaccounts,secrets,leases,roles,rolebindings,persistentvolumeclaims -n unpend -o name
kubectl get clusterroles,clusterrolebindings,validatingadmissionpolicies,validatingadmissionpolicybindings,namespaces -o name | grep -E 'unpend' || true`)
		var left []string
		for name := range strings.FieldsSeq(out) {
			if name != "configmap/kube-root-ca.crt" && name != "serviceaccount/default" && name != "secret/unpend-nats" && name != "namespace/unpend" {
				left = append(left, name)
			}
		}
		return len(left) == 0, strings.Join(left, " ")
	})
}

func zipped(t *testing.T, path string, files map[string]string) {
	t.Helper()
	f, err := os.Create(path)
	must(t, err)
	z := zip.NewWriter(f)
	for name, text := range files {
		w, err := z.Create(name)
		must(t, err)
		_, err = w.Write([]byte(text))
		must(t, err)
	}
	must(t, errors.Join(z.Close(), f.Close()))
}
