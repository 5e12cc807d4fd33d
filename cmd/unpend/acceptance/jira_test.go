package acceptance

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/remediate/jira/fakejira"
	"github.com/unpend/unpend/testdata/controlplane"
)

// What the real scheduler refuses is a ticket: one, though the built service is killed after
// Jira has made it and before it hears so, and though Jira's search runs behind. A comment
// says what became of the plan that a person carries out, and it is done when the Job runs.
func TestIncidentIsOneTicket(t *testing.T) {
	needsControlPlane(t)
	l := newLane(t)
	ns := l.Namespace(t)
	l.install(t, ns, approver, requester)
	l.AddNode(t, all1g("gpu-1"))
	l.WaitForServiceAccount(t, "default")
	site := fakejira.New(time.Now, false)
	t.Cleanup(site.Close)
	dir, metrics := t.TempDir(), controlplane.FreeAddress(t)
	config, token := filepath.Join(dir, "unpend.yaml"), filepath.Join(dir, "token")
	must(t, os.WriteFile(token, []byte(fakejira.Token+"\n"), 0o600))
	must(t, os.WriteFile(config, fmt.Appendf(nil, "remediate: {namespace: %s}\nbus: {storeDir: %s}\nweb: {metrics: %q}\noutbound: {allow: [127.0.0.1]}\njira: {url: %q, deployment: datacenter, tokenFile: %s, project: %s, issueType: %s, cluster: prod}\n",
		ns, t.TempDir(), metrics, site.URL(), token, fakejira.Project, fakejira.Type), 0o600))
	run := func() *process {
		p := newProcess(t, nil, "unpend", "run", "--config", config, "--kubeconfig", l.Kubeconfig())
		p.start(t)
		return p
	}
	first := run()
	controlplane.Eventually(t, time.Minute, "the service is ready", func() (bool, string) { return answers(metrics, "/readyz", "ok") })

	site.Fail(fakejira.Mute)
	job("2g.10gb", "")(t, l.ControlPlane)
	controlplane.Eventually(t, time.Minute, "Jira has made a ticket", func() (bool, string) { return len(site.Issues()) == 1, "none" })
	for _, part := range []string{"default/training (Job)", "MIGLayoutMismatch", "gpu-1/GPU 0", "repartition gpu-1/GPU 0", "schedules: the scheduler's filters accept gpu-1"} {
		if made := site.Issues()[0].Shown(); !strings.Contains(made, part) {
			t.Errorf("the ticket lacks %q:\n%s", part, made)
		}
	}
	first.kill()
	leases := l.Client().CoordinationV1().Leases(ns)
	must(t, leases.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{})) // else the next one waits until its holder is thought dead
	second := run()

	d := why(t, "-n", "default", "--kubeconfig", l.Kubeconfig())
	if code, out, errs := call(t, "approve", d.Incident+"#1", "--plan", d.Fixes[0].Plan, "--yes", "--executor-namespace", ns, "--kubeconfig", l.Kubeconfig()); code != exitDone {
		t.Fatalf("exit %d: %s%s", code, out, errs)
	}
	var is fakejira.Issue
	controlplane.Eventually(t, 2*time.Minute, "the ticket is done, and its comment says by what", func() (bool, string) {
		all := site.Issues()
		is = all[0]
		return is.Status == "Done" && slices.ContainsFunc(is.Comments, func(c fakejira.Comment) bool { return strings.Contains(c.Shown(), "done in ") }), fmt.Sprintf("%d tickets, %s, %+v", len(all), is.Status, is.Comments)
	})
	if all := site.Issues(); len(all) != 1 {
		t.Errorf("%d tickets", len(all))
	}
	for _, part := range []string{"default/training (Job)", "Nobody of it waits any more", "done in ", "(MIGLayoutMismatch)"} {
		if !strings.Contains(is.Shown(), part) {
			t.Errorf("the ticket lacks %q:\n%s", part, is.Shown())
		}
	}
	if !strings.Contains(is.Summary(), "default/training") || strings.Join(is.Labels(), " ") != "unpend unpend-prod-"+d.Incident {
		t.Errorf("%s %q", is.Summary(), is.Labels())
	}
	if wrong := site.Complaints(); len(wrong) > 0 {
		t.Errorf("Jira would not have taken it: %q", wrong)
	}
	if all := strings.Join(append(first.out.all(), second.out.all()...), "\n"); strings.Contains(all, fakejira.Token) {
		t.Error("the log has the token")
	}
}
