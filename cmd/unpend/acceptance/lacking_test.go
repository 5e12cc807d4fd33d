package acceptance

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/testdata/controlplane"
)

// What a cluster lacks is off, and nothing else: on one that serves no resource.k8s.io, as before
// it was there, with a Secret missing for each place and part that wants one, the service starts,
// says what is off, and diagnoses. With a NATS that nobody reaches it starts, and says so.
func TestStartsWithoutWhatIsNotThere(t *testing.T) {
	needsControlPlane(t)
	c := start(t, controlplane.Extras{Alone: true, Off: []string{"resource.k8s.io/v1"}})
	waitingPod(t, c)
	metrics, file := controlplane.FreeAddress(t), filepath.Join(t.TempDir(), "unpend.yaml")
	text := fmt.Sprintf(`remediate: {namespace: default}
bus: {storeDir: %s}
web: {metrics: %q}
slack: {tokenFile: /nowhere/slack, channel: C0123456789}
jira: {tokenFile: /nowhere/jira, url: "https://example.atlassian.net", deployment: cloud, user: bot@example.com, project: OPS, issueType: Task}
pagerduty: {keyFile: /nowhere/pagerduty}
narrate: {keyFile: /nowhere/model, url: "https://models.example.com/v1", model: small}
hooks: {listen: "127.0.0.1:0", tokenFile: /nowhere/hooks}
`, t.TempDir(), metrics)
	must(t, os.WriteFile(file, []byte(text), 0o600))
	o := &observer{ControlPlane: c, metrics: metrics, process: newProcess(t, nil, "unpend", "run", "--config", file, "--kubeconfig", c.Kubeconfig())}
	o.start(t)
	o.says(t, "ok\n", time.Minute)
	controlplane.Eventually(t, time.Minute, "all that is off is told", func() (bool, string) {
		_, body := answers(metrics, "/readyz", "")
		for _, off := range []string{"slack is not told since ", "jira is not told since ", "pagerduty is not told since ", "/nowhere/slack is not there: make the Secret that holds it",
			"findings are told without a model's words: /nowhere/model is not there", "hooks are not listened to: /nowhere/hooks is not there"} {
			if !strings.Contains(body, off) {
				return false, body
			}
		}
		return true, ""
	})
	controlplane.Eventually(t, time.Minute, "the pod is diagnosed", func() (bool, string) {
		o.lives(t)
		all := o.diagnoses()
		return len(all) == 1 && len(all[0].Causes) > 0, fmt.Sprint(len(all), " diagnoses")
	})

	away := controlplane.FreeAddress(t)
	must(t, os.WriteFile(file, fmt.Appendf(nil, "remediate: {namespace: default}\nweb: {metrics: %q}\n", away), 0o600))
	n := &observer{ControlPlane: c, metrics: away, process: newProcess(t, nil, "unpend", "run", "--config", file, "--roles", "notify", "--nats", "nats://127.0.0.1:1", "--kubeconfig", c.Kubeconfig())}
	n.start(t)
	controlplane.Eventually(t, time.Minute, "it says that NATS is away", func() (bool, string) {
		n.lives(t)
		r, err := http.Get("http://" + away + "/readyz") //nolint:noctx // it answers at once, or not at all
		if err != nil {
			return false, err.Error()
		}
		defer r.Body.Close()
		_, body := answers(away, "/readyz", "")
		return r.StatusCode == http.StatusServiceUnavailable && strings.HasPrefix(body, "not-connected since ") && strings.Contains(body, "NATS does not answer"), body
	})
}

// waitingPod is one that a scheduler has refused, where there is none.
func waitingPod(t *testing.T, c *controlplane.ControlPlane) {
	t.Helper()
	_, err := c.Client().CoreV1().ServiceAccounts("default").Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{})
	must(t, err)
	_, err = c.Client().CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}, metav1.CreateOptions{})
	must(t, err)
	pods := c.Client().CoreV1().Pods("default")
	p, err := pods.Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "waits"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "x",
		Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}}}}}}, metav1.CreateOptions{})
	must(t, err)
	p.Status.Phase = corev1.PodPending
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "0/1 nodes are available: 1 Insufficient nvidia.com/gpu.", LastTransitionTime: metav1.Now()}}
	_, err = pods.UpdateStatus(t.Context(), p, metav1.UpdateOptions{})
	must(t, err)
}
