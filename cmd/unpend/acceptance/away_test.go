package acceptance

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/slack/fakeslack"
	"github.com/unpend/unpend/testdata/controlplane"
)

// R25: while Slack, Jira and the pager are away people approve at a terminal and on the page, the
// plan is carried out, and the service says which places it cannot reach.
func TestPeopleApproveWhilePlacesAreAway(t *testing.T) {
	for where, approve := range map[string]func(t *testing.T, l *lane, ns, site string, d diagnosis.Diagnosis){
		"at a terminal": func(t *testing.T, l *lane, ns, _ string, d diagnosis.Diagnosis) {
			if code, out, errs := call(t, "approve", d.Incident+"#1", "--plan", d.Fixes[0].Plan, "--yes", "--executor-namespace", ns, "--kubeconfig", l.KubeconfigFor(t, approver)); code != exitDone {
				t.Errorf("exit %d: %s%s", code, out, errs)
			}
		},
		"on the page": func(t *testing.T, _ *lane, _, site string, d diagnosis.Diagnosis) {
			fix := fmt.Sprintf("%s/incidents/%s/fixes/1?plan=%s", site, d.Incident, d.Fixes[0].Plan)
			if says := decideAs(t, fix, alicesToken); !strings.HasPrefix(says, "200 ") {
				t.Error(says)
			}
		},
	} {
		t.Run(where, func(t *testing.T) {
			needsControlPlane(t)
			l := laneOn(t, start(t, controlplane.Extras{Tokens: map[string]string{alicesToken: approver}}), sim.Options{Now: time.Now, Logger: slog.New(slog.DiscardHandler), Apply: 300 * time.Millisecond})
			ns := l.Namespace(t)
			l.install(t, ns, approver, requester)
			l.readsAll(t, approver)
			l.AddNode(t, all1g("gpu-1"))
			l.WaitForServiceAccount(t, "default")
			site, metrics := l.placesAway(t, ns)
			job("2g.10gb", "")(t, l.ControlPlane)
			d := why(t, "-n", "default", "--kubeconfig", l.Kubeconfig())
			controlplane.Eventually(t, time.Minute, "it is ready, and says that none of the places is told", func() (bool, string) {
				_, says := answers(metrics, "/readyz", "")
				return strings.HasPrefix(says, "ok\n") && strings.Count(says, " is not told since ") == 3, says
			})
			approve(t, l, ns, site, d)
			controlplane.Eventually(t, time.Minute, "the pod runs", func() (bool, string) {
				p, err := l.Client().CoreV1().Pods("default").Get(t.Context(), l.waits(t), metav1.GetOptions{})
				must(t, err)
				return p.Status.Phase == corev1.PodRunning && p.Spec.NodeName == "gpu-1", string(p.Status.Phase)
			})
			if plans, approvals := l.decided(t); plans != 1 || len(approvals) != 1 || !strings.HasPrefix(approvals[0], approver+" Approve ") {
				t.Errorf("%d plans, decided by %q", plans, approvals)
			}
			_, says := answers(metrics, "/readyz", "")
			if strings.Count(says, " is not told since ") != 3 {
				t.Errorf("none of the places is back, but: %s", says)
			}
		})
	}
}

// placesAway starts the service and an executor whose Slack, Jira and PagerDuty nobody answers
// for, and says where the page and the metrics are.
func (l *lane) placesAway(t *testing.T, ns string) (site, metrics string) {
	t.Helper()
	nobody := "http://" + controlplane.FreeAddress(t)
	dir := t.TempDir()
	for name, text := range map[string]string{"slack": fakeslack.Token, "jira": "jira-token", "pagerduty": strings.Repeat("k", 32)} {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(text+"\n"), 0o600))
	}
	places := fmt.Sprintf(`outbound: {allow: [127.0.0.1]}
slack: {tokenFile: %[1]s/slack, channel: %[2]s, cluster: prod}
jira: {url: %[3]q, deployment: datacenter, tokenFile: %[1]s/jira, project: OPS, issueType: Task, cluster: prod}
pagerduty: {keyFile: %[1]s/pagerduty, url: %[3]q, cluster: prod, when: {everything: true}}
`, dir, fakeslack.Channel, nobody)
	begin := func(env []string, kubeconfig, more string, args ...string) string {
		metrics, config := controlplane.FreeAddress(t), filepath.Join(t.TempDir(), "unpend.yaml")
		must(t, os.WriteFile(config, fmt.Appendf(nil, "remediate: {namespace: %s, poll: 200ms}\nbus: {storeDir: %s}\n%s", ns, t.TempDir(), fmt.Sprintf(more, metrics)), 0o600))
		newProcess(t, env, "unpend", append([]string{"run", "--config", config, "--kubeconfig", kubeconfig}, args...)...).start(t)
		controlplane.Eventually(t, time.Minute, "it is ready", func() (bool, string) { return answers(metrics, "/readyz", "ok") })
		return metrics
	}
	begin([]string{"POD_NAME=executor-0"}, newFaultProxy(t, l, ns, "executor-0").kubeconfig, "web: {metrics: %q}\n", "--mode", "approve", "--roles", "remediate")
	page := controlplane.FreeAddress(t)
	metrics = begin([]string{"HTTPS_PROXY=" + nobody}, l.Kubeconfig(), "web: {metrics: %q, listen: \""+page+"\", cluster: prod}\n"+places, "--roles", "watch,diagnose,notify")
	return "http://" + page, metrics
}
