package acceptance

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/testdata/chromium"
	"github.com/unpend/unpend/testdata/controlplane"
)

const (
	alicesToken = "alice-token-canary-5a1c" // of the approver
	evesToken   = "eve-token-canary-e7e0"   // of who may read, and no more
)

// S17: a person approves in a browser, on a real control plane. Who may only read sees the
// incident and why they cannot approve, and is refused where they try nevertheless. The
// Approval is created by the reader's own token, nobody acting for them; the real executor
// carries the plan out, the page shows its steps and its end, and the pod runs.
func TestS17PeopleApproveOnThePage(t *testing.T) {
	needsControlPlane(t)
	l := laneOn(t, start(t, controlplane.Extras{Tokens: map[string]string{alicesToken: approver, evesToken: "eve"}}), sim.Options{Now: time.Now, Logger: slog.New(slog.DiscardHandler), Apply: 300 * time.Millisecond})
	ns := l.Namespace(t)
	l.install(t, ns, approver)
	l.readsAll(t, approver)
	l.readsAll(t, "eve")
	l.AddNode(t, all1g("gpu-1"))
	l.WaitForServiceAccount(t, "default")
	executor := newFaultProxy(t, l, ns, "executor-0")
	site := l.onPage(t, ns, executor)
	job("2g.10gb", "")(t, l.ControlPlane)

	b := chromium.Open(t, site)
	b.Run(t, chromedp.Navigate(site+"/"), chromium.Shows("#token"), chromedp.KeyEvent(evesToken+kb.Enter), chromium.Click("#incidents li a"), chromium.Click("article.best .button"), chromium.Shows("main .warn"))
	says, buttons, fix := chromium.Ask[string](t, b, `document.querySelector("main").innerText`), chromium.Ask[int](t, b, `document.querySelectorAll("main button").length`), chromium.Ask[string](t, b, `location.href`)
	if !strings.Contains(says, "You may not create approvals.unpend.dev") || buttons != 0 {
		t.Errorf("who may not approve sees %d buttons and\n%s", buttons, says)
	}
	if got := decideAs(t, fix, evesToken); !strings.HasPrefix(got, "403 ") || !strings.Contains(got, "Refused") {
		t.Errorf("who may not approve, and sends the form: %s", got)
	}
	if plans, approvals := l.decided(t); len(approvals) != 0 {
		t.Fatalf("before anybody who may has approved: %d plans, %q", plans, approvals)
	}
	executor.set(laterThanCordoned) // until the page has shown that
	incident, _, _ := strings.Cut(fix, "/fixes/")
	b.Run(t, chromium.Click(".out button"), chromium.Shows("#token"), chromedp.Navigate(incident), chromium.Shows("#token"), chromedp.KeyEvent(alicesToken+kb.Enter),
		chromium.Click("article.best .button"), chromium.Click("button.danger"), chromium.Shows("#plans progress"))
	executor.set(nil)
	if _, err := chromedp.Run(b, chromedp.Poll[bool](`/done in .*, approved by `+approver+`/.test(document.querySelector("#plans")?.innerText)`)); err != nil {
		t.Errorf("%v; it says %q", err, chromium.Ask[string](t, b, `document.querySelector("main").innerText`))
	}
	b.Quiet(t)
	if p, err := l.Client().CoreV1().Pods("default").Get(t.Context(), l.waits(t), metav1.GetOptions{}); err != nil || p.Status.Phase != corev1.PodRunning || p.Spec.NodeName != "gpu-1" {
		t.Errorf("the pod is %s on %q: %v", p.Status.Phase, p.Spec.NodeName, err)
	}
	l.approvedAlone(t)
}

// approvedAlone wants one plan and one decision, which the approver has created as themselves.
func (l *lane) approvedAlone(t *testing.T) {
	t.Helper()
	if plans, approvals := l.decided(t); plans != 1 || len(approvals) != 1 || approvals[0] != approver+" Approve web" {
		t.Errorf("%d plans, decided by %q", plans, approvals)
	}
	var created []string
	controlplane.Eventually(t, time.Minute, "the audit log has it", func() (bool, string) {
		created = nil
		for _, e := range l.AuditEvents(t) {
			if e.Verb == "create" && (e.ObjectRef.Resource == "approvals" || e.ObjectRef.Resource == "remediations") && e.ResponseStatus.Code < 300 {
				created = append(created, e.ObjectRef.Resource+" by "+e.User.Username+e.ImpersonatedUser.Username)
			}
		}
		return len(created) == 2, fmt.Sprint(created)
	})
	if created[0] != "remediations by "+approver || created[1] != "approvals by "+approver {
		t.Errorf("created: %q", created)
	}
}

// laterThanCordoned has a node written once, and then no more for now.
func laterThanCordoned(a *asked) http.HandlerFunc {
	if !strings.HasPrefix(a.write, "PATCH nodes #") || a.write == "PATCH nodes #1" {
		return nil
	}
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "1")
		http.Error(w, "later", http.StatusTooManyRequests)
	}
}

// onPage starts the service as the chart does, one process that watches and shows and one that
// carries out, each with its own rights, and says where the page is.
func (l *lane) onPage(t *testing.T, ns string, executor *faultProxy) string {
	t.Helper()
	page := controlplane.FreeAddress(t)
	begin := func(env []string, kubeconfig, listen string, args ...string) {
		metrics, config := controlplane.FreeAddress(t), filepath.Join(t.TempDir(), "unpend.yaml")
		must(t, os.WriteFile(config, fmt.Appendf(nil, "remediate: {namespace: %s, poll: 200ms}\nbus: {storeDir: %s}\nweb: {metrics: %q, listen: %q, cluster: prod}\n", ns, t.TempDir(), metrics, listen), 0o600))
		p := newProcess(t, env, "unpend", append([]string{"run", "--config", config, "--kubeconfig", kubeconfig}, args...)...)
		p.start(t)
		t.Cleanup(func() {
			if all := strings.Join(p.out.all(), "\n"); strings.Contains(all, alicesToken) || strings.Contains(all, evesToken) {
				t.Error("its log has a token")
			}
		})
		controlplane.Eventually(t, time.Minute, "it is ready", func() (bool, string) { return answers(metrics, "/readyz", "ok") })
	}
	begin([]string{"POD_NAME=executor-0"}, executor.kubeconfig, "", "--mode", "approve", "--roles", "remediate")
	begin(nil, l.Kubeconfig(), page, "--roles", "watch,diagnose")
	return "http://" + page
}

// decideAs sends the form of a fix, at the address of its page, with a token.
func decideAs(t *testing.T, fix, token string) string {
	t.Helper()
	to, err := url.Parse(fix)
	must(t, err)
	form := url.Values{"plan": {to.Query().Get("plan")}, "decision": {"approve"}}
	to.RawQuery = ""
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, to.String(), strings.NewReader(form.Encode()))
	must(t, err)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(r)
	must(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	must(t, err)
	return resp.Status + "\n" + string(body)
}
