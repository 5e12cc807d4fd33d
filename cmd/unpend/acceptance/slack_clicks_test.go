package acceptance

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/remediate/slack"
	"github.com/unpend/unpend/remediate/slack/fakeslack"
	"github.com/unpend/unpend/remediate/v1alpha1"
	"github.com/unpend/unpend/testdata/controlplane"
)

var (
	slackAda = fakeslack.User{ID: "U0ADA", Team: fakeslack.Team} // the approver
	slackEve = fakeslack.User{ID: "U0EVE", Team: fakeslack.Team} // nobody
)

// People decide in Slack, with the rights that the chart gives: who is nobody's user is told so,
// and nothing is written. A person who clicks four times at once, heard by two executors,
// approves once, as themselves (R13); the message says who, goes on with the plan, and ends with it.
func TestPeopleApproveInSlack(t *testing.T) {
	needsControlPlane(t)
	l := laneOn(t, start(t, controlplane.Extras{}), sim.Options{Now: time.Now, Logger: slog.New(slog.DiscardHandler), Apply: 4 * time.Second})
	l.heard = true
	ns := l.Namespace(t)
	l.install(t, ns, approver)
	l.readsAll(t, approver)
	l.AddNode(t, all1g("gpu-1"))
	l.WaitForServiceAccount(t, "default")
	channel := fakeslack.New(time.Now)
	t.Cleanup(channel.Close)
	channel.Join(slackAda, slackEve)
	l.inSlack(t, ns, channel)

	job("2g.10gb", "")(t, l.ControlPlane)
	m := tellsOf(t, channel, "[Approve #1] danger: Approve fix 1? repartition gpu-1/GPU 0", "default/training")

	must(t, channel.Click(slackEve, m, slack.ActApprove))
	whispered(t, channel, slackEve, "slack U0EVE is nobody")
	must(t, channel.Mention(slackAda, "why pod/"+l.waits(t)+" -n default", 1))
	whispered(t, channel, slackAda, "MIGLayoutMismatch")
	must(t, channel.Click(slackAda, m, slack.ActDryRun))
	whispered(t, channel, slackAda, "Nothing is written by this. Fix 1")
	if plans, approvals := l.decided(t); plans != 0 || len(approvals) != 0 {
		t.Fatalf("before anybody who may has approved: %d plans, %+v", plans, approvals)
	}

	var clicks sync.WaitGroup
	for range 4 {
		clicks.Go(func() {
			if err := channel.Click(slackAda, m, slack.ActApprove); err != nil {
				t.Error(err)
			}
		})
	}
	clicks.Wait()
	whispered(t, channel, slackAda, "You have approved plan ")
	tellsOf(t, channel, "approved by "+approver+" → step ")
	done := tellsOf(t, channel, "approved by "+approver+" → done in ")
	if strings.Contains(done.Shown(), "[Approve") || done.TS != m.TS {
		t.Errorf("what is done is offered:\n%s", done.Shown())
	}
	plans, approvals := l.decided(t)
	if plans != 1 || len(approvals) != 1 || approvals[0] != approver+" Approve slack" {
		t.Errorf("%d plans, decided by %q", plans, approvals)
	}
	for _, e := range l.AuditEvents(t) {
		if by := e.ImpersonatedUser.Username; e.Verb == "create" && (e.ObjectRef.Resource == "approvals" || e.ObjectRef.Resource == "remediations") && by != approver {
			t.Errorf("%s: %s created by %s as %q", e.RequestURI, e.ObjectRef.Name, e.User.Username, by)
		}
	}
	if wrong := channel.Complaints(); len(wrong) > 0 {
		t.Errorf("Slack would not have taken it: %q", wrong)
	}
}

// inSlack starts the service as the chart does: one process that watches and tells, and two
// that carry out and hear, each with its own rights.
func (l *lane) inSlack(t *testing.T, ns string, channel *fakeslack.Server) {
	t.Helper()
	way, dir := forwardTo(t, "slack.com:443", channel.URL()), t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "token"), []byte(fakeslack.Token), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "app"), []byte(fakeslack.AppToken), 0o600))
	env := []string{"HTTPS_PROXY=" + way.address, "SSL_CERT_FILE=" + way.roots}
	var all []*process
	begin := func(env []string, kubeconfig string, args ...string) {
		metrics, config := controlplane.FreeAddress(t), filepath.Join(t.TempDir(), "unpend.yaml")
		text := fmt.Sprintf("remediate: {namespace: %s, poll: 200ms, identities: [{slack: %s, user: %s}]}\nbus: {storeDir: %s}\nweb: {metrics: %q}\n"+
			"slack: {tokenFile: %s/token, appTokenFile: %s/app, channel: %s, cluster: prod}\n", ns, slackAda.ID, approver, t.TempDir(), metrics, dir, dir, fakeslack.Channel)
		must(t, os.WriteFile(config, []byte(text), 0o600))
		p := newProcess(t, env, "unpend", append([]string{"run", "--config", config, "--kubeconfig", kubeconfig}, args...)...)
		p.start(t)
		all = append(all, p)
		controlplane.Eventually(t, time.Minute, "it is ready", func() (bool, string) { return answers(metrics, "/readyz", "ok") })
	}
	begin(env, l.Kubeconfig(), "--roles", "watch,diagnose,notify")
	for _, pod := range []string{"executor-0", "executor-1"} {
		begin(append([]string{"POD_NAME=" + pod}, env...), newFaultProxy(t, l, ns, pod).kubeconfig, "--mode", "approve", "--roles", "remediate")
	}
	controlplane.Eventually(t, time.Minute, "both hear", func() (bool, string) { return channel.Lines() == 4, fmt.Sprint(channel.Lines()) })
	t.Cleanup(func() {
		for _, p := range all {
			text := strings.Join(p.out.all(), "\n")
			if strings.Contains(text, fakeslack.Token) || strings.Contains(text, fakeslack.AppToken) {
				t.Error("a log has a token")
			}
		}
		if others := way.others(); len(others) > 0 {
			t.Errorf("they asked for %q", others)
		}
	})
}

// tellsOf waits until the channel's one message says all of it.
func tellsOf(t *testing.T, channel *fakeslack.Server, parts ...string) fakeslack.Message {
	t.Helper()
	var m fakeslack.Message
	controlplane.Eventually(t, 2*time.Minute, fmt.Sprintf("the message says %q", parts), func() (bool, string) {
		all := channel.Messages("")
		if len(all) != 1 {
			return false, fmt.Sprint(len(all), " messages")
		}
		m = all[0]
		for _, part := range parts {
			if !strings.Contains(m.Shown(), part) {
				return false, m.Shown()
			}
		}
		return true, ""
	})
	return m
}

// whispered waits until somebody alone was told.
func whispered(t *testing.T, channel *fakeslack.Server, who fakeslack.User, part string) {
	t.Helper()
	controlplane.Eventually(t, time.Minute, who.ID+" is told "+part, func() (bool, string) {
		all := channel.Whispers()
		for _, w := range all {
			if w.User == who.ID && strings.Contains(w.Text, part) {
				return true, ""
			}
		}
		return false, fmt.Sprintf("%+v", all)
	})
}

// waits is the pod of the Job that waits.
func (l *lane) waits(t *testing.T) string {
	t.Helper()
	pods, err := l.Client().CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{LabelSelector: "batch.kubernetes.io/job-name=training"})
	must(t, err)
	if len(pods.Items) != 1 {
		t.Fatalf("%d pods wait", len(pods.Items))
	}
	return pods.Items[0].Name
}

// decided counts the plans, and says who decided what by which place.
func (l *lane) decided(t *testing.T) (plans int, approvals []string) {
	t.Helper()
	all, err := l.store().List(t.Context())
	must(t, err)
	list, err := l.Dynamic().Resource(v1alpha1.Approvals).List(t.Context(), metav1.ListOptions{})
	must(t, err)
	for _, a := range list.Items {
		spec, ok := a.Object["spec"].(map[string]any)
		if !ok {
			t.Fatalf("%+v", a.Object)
		}
		approvals = append(approvals, fmt.Sprintf("%v %v %v", spec["approver"], spec["decision"], spec["via"]))
	}
	return len(all), approvals
}
