package acceptance

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"

	"github.com/unpend/unpend/testdata/controlplane"
)

// described are the Events that `kubectl describe` shows of an object whose reason is ours.
func described(t *testing.T, c *controlplane.ControlPlane, uid types.UID) []corev1.Event {
	t.Helper()
	list, err := c.Client().CoreV1().Events("default").List(t.Context(), metav1.ListOptions{FieldSelector: fields.Set{"involvedObject.uid": string(uid), "reason": "Diagnosed"}.String()})
	must(t, err)
	slices.SortFunc(list.Items, func(a, b corev1.Event) int { return a.EventTime.Compare(b.EventTime.Time) })
	return list.Items
}

// The built service shows a diagnosis where kubectl describe does, once, and answers who asks
// by an annotation, once a value, whether the object waits or not; none of that is a signal
// to itself.
func TestKubectlShowsTheDiagnosis(t *testing.T) {
	needsControlPlane(t)
	c := start(t, controlplane.Extras{})
	c.AddNode(t, all1g("gpu-1"))
	c.WaitForServiceAccount(t, "default")
	metrics, config := controlplane.FreeAddress(t), filepath.Join(t.TempDir(), "unpend.yaml")
	must(t, os.WriteFile(config, fmt.Appendf(nil, "remediate: {namespace: default}\nbus: {storeDir: %s}\nweb: {metrics: %q}\nkubectl: {events: true, annotations: true}\n", t.TempDir(), metrics), 0o600))
	p := newProcess(t, nil, "unpend", "run", "--config", config, "--kubeconfig", c.Kubeconfig())
	p.start(t)
	controlplane.Eventually(t, time.Minute, "the service is ready", func() (bool, string) { return answers(metrics, "/readyz", "ok") })

	job("2g.10gb", "")(t, c)
	var pod corev1.Pod
	var first corev1.Event
	controlplane.Eventually(t, time.Minute, "the pod's description tells the diagnosis", func() (bool, string) {
		pods, err := c.Client().CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{LabelSelector: "job-name=training"})
		if err != nil || len(pods.Items) != 1 {
			return false, fmt.Sprint(err)
		}
		pod = pods.Items[0]
		all := described(t, c, pod.UID)
		if len(all) == 1 {
			first = all[0]
		}
		return len(all) == 1 && strings.Contains(first.Message, "Next: kubectl unpend approve gpu-"), fmt.Sprint(all)
	})
	for _, part := range []string{"default/training waits", "needs 1×2g.10gb", "MIGLayoutMismatch (proven)", "repartition gpu-1/GPU 0"} {
		if !strings.Contains(first.Message, part) {
			t.Errorf("it lacks %q: %s", part, first.Message)
		}
	}
	if first.InvolvedObject.Name != pod.Name || first.ReportingController != "unpend.dev/diagnosis" || first.Type != corev1.EventTypeNormal {
		t.Errorf("%+v", first)
	}

	idle := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "idle", Annotations: map[string]string{"unpend.dev/why": "1"}}, Spec: appsv1.DeploymentSpec{Replicas: new(int32(0)),
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "idle"}}, Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "idle"}}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "x"}}}}}}
	idle, err := c.Client().AppsV1().Deployments("default").Create(t.Context(), idle, metav1.CreateOptions{})
	must(t, err)
	ask := func(value string) {
		t.Helper()
		_, err := c.Client().BatchV1().Jobs("default").Patch(t.Context(), "training", types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{"unpend.dev/why":%q}}}`, value), metav1.PatchOptions{})
		must(t, err)
		controlplane.Eventually(t, time.Minute, "the Job is answered", func() (bool, string) {
			j, err := c.Client().BatchV1().Jobs("default").Get(t.Context(), "training", metav1.GetOptions{})
			must(t, err)
			a := j.Annotations
			return a["unpend.dev/answered"] == value && strings.HasPrefix(a["unpend.dev/diagnosis"], "default/training waits") && a["unpend.dev/why"] == value, fmt.Sprint(a)
		})
	}
	ask("now")
	ask("again")
	j, err := c.Client().BatchV1().Jobs("default").Get(t.Context(), "training", metav1.GetOptions{})
	must(t, err)
	_, says, _ := strings.Cut(first.Message, ": ") // before it is how long it has waited
	if all := described(t, c, j.UID); len(all) != 2 || !strings.HasSuffix(all[0].Message, ": "+says) || !strings.HasSuffix(all[1].Message, ": "+says) {
		t.Errorf("the Job's description has %+v, want twice %q", all, says)
	}
	controlplane.Eventually(t, time.Minute, "the Deployment that waits for nothing is answered", func() (bool, string) {
		d, err := c.Client().AppsV1().Deployments("default").Get(t.Context(), "idle", metav1.GetOptions{})
		must(t, err)
		return d.Annotations["unpend.dev/diagnosis"] == "deployment/idle does not wait: it has no pods", fmt.Sprint(d.Annotations)
	})
	if all := described(t, c, idle.UID); len(all) != 1 {
		t.Errorf("the Deployment's description has %+v", all)
	}
	if all := described(t, c, pod.UID); len(all) != 1 || all[0].Series != nil {
		t.Errorf("the pod's description has %+v", all)
	}
	diagnoses := 0
	for _, line := range p.out.all() {
		if strings.HasPrefix(line, `{"incident":`) {
			diagnoses++
		}
	}
	if diagnoses != 1 {
		t.Errorf("%d diagnoses, want 1: its own Events and answers are no news", diagnoses)
	}
}
