package acceptance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/cmd/internal/program"
	"github.com/unpend/unpend/remediate/executor"
	"github.com/unpend/unpend/remediate/guard"
	"github.com/unpend/unpend/remediate/v1alpha1"
	"github.com/unpend/unpend/testdata/controlplane"
)

// An incident from end to end as those see it who look on: what waits is completed, watched
// and waited for; a kill switch that somebody deletes is one that is on, and says so; put back,
// the plan that was held is carried out, and all who waited end by themselves.
func TestLookingOn(t *testing.T) {
	needsControlPlane(t)
	l := newLane(t)
	c := l.newCell(t)
	id, config := c.rem.Spec.Incident, l.Kubeconfig()
	c.completed(t, id)
	if code, out, errs := call(t, "wait", id, "--timeout", "1s", "--kubeconfig", config); code != exitError || out != "" || errs != "unpend: not within 1s: 1 pod of incident "+id+" still wait\n" {
		t.Errorf("%d %s%s", code, out, errs)
	}
	watching := func(args ...string) *process {
		p := newProcess(t, nil, "unpend", append(args, "--kubeconfig", config)...)
		p.start(t)
		return p
	}
	watchers := []*process{watching("why", "-w", "-o", "name", "-n", c.ns), watching("incidents", "-w", "-n", c.ns), watching("remediations", "-w")}
	decided, running := watching("wait", id, "--for=decided", "--timeout", "5m"), watching("wait", id, "--timeout", "5m")
	seen := func(what string, p *process, all ...string) {
		t.Helper()
		controlplane.Eventually(t, time.Minute, what, func() (bool, string) {
			text := strings.Join(strings.Fields(strings.Join(p.out.all(), "\n")), " ")
			return !slices.ContainsFunc(all, func(s string) bool { return !strings.Contains(text, s) }), text
		})
	}
	seen("why shows it", watchers[0], "incident.unpend.dev/"+id+".")
	seen("incidents show it with its plan", watchers[1], "STOPS", fmt.Sprintf("%s %s/training #%d recorded (somebody)", id, c.ns, c.rem.Spec.Fix))
	seen("remediations show the plan", watchers[2], c.rem.Name[:12])

	x := c.withoutGuards(t)
	for _, p := range []*process{decided, running} {
		if code := p.exits(t, time.Minute); code != exitDone {
			t.Errorf("%s: exit %d", p.cmd, code)
		}
	}
	if says := strings.Join(decided.out.all(), "\n"); !strings.HasPrefix(says, fmt.Sprintf("plan %.12s of incident %s is ", c.rem.Name, id)) {
		t.Errorf("decided: %s", says)
	}
	if says := strings.Join(running.out.all(), "\n"); says != "no pod of incident "+id+" waits any more" {
		t.Errorf("running: %s", says)
	}
	gone := func(what string, p *process) { // one of those who stopped may wait now
		t.Helper()
		controlplane.Eventually(t, time.Minute, what, func() (bool, string) {
			screens := strings.Split(strings.Join(p.out.all(), "\n"), "\n\n")
			last := screens[len(screens)-1]
			return !strings.Contains(last, id), last
		})
	}
	gone("why shows its end", watchers[0])
	gone("incidents show its end", watchers[1])
	seen("remediations show its end", watchers[2], string(v1alpha1.Succeeded))
	for _, p := range append(watchers, x) {
		p.signal(syscall.SIGINT)
	}
	for _, p := range watchers {
		if code := p.exits(t, time.Minute); code != exitDone {
			t.Errorf("%s: exit %d", p.cmd, code)
		}
	}
	if code, _, errs := call(t, "wait", id, "--timeout", "1s", "--kubeconfig", config); code != exitDone {
		t.Errorf("of one that is over: %d %s", code, errs)
	}
	if code, out, errs := call(t, "wait", "gpu-0000000000", "--timeout", "1s", "--kubeconfig", config); code != exitError || out != "" || !strings.Contains(errs, "no incident gpu-0000000000 is known") {
		t.Errorf("of one that never was: %d %s%s", code, out, errs)
	}
}

// completed wants incidents, namespaces and plans for a tab, also as kubectl asks for them.
func (c *cell) completed(t *testing.T, id string) {
	t.Helper()
	complete := func(name string, words ...string) string {
		var out, errs bytes.Buffer
		program.Run(t.Context(), append([]string{name}, words...), program.Stdio{In: strings.NewReader(""), Out: &out, Err: &errs})
		return out.String()
	}
	fix := fmt.Sprintf("%s#%d", id, c.rem.Spec.Fix)
	for _, tc := range []struct {
		words []string
		want  string
	}{
		{[]string{"show", "--kubeconfig", c.Kubeconfig(), ""}, id + "\t" + c.ns + "/training (Job)\n"},
		{[]string{"wait", "--kubeconfig", c.Kubeconfig(), "gpu-"}, id + "\t" + c.ns + "/training (Job)\n"},
		{[]string{"why", "--kubeconfig", c.Kubeconfig(), "-n", ""}, c.ns + "\n"},
		{[]string{"reject", "--kubeconfig", c.Kubeconfig(), c.rem.Name[:4]}, c.rem.Name[:12] + "\t" + fix + " recorded\n"},
		{[]string{"remediations", "--kubeconfig", c.Kubeconfig(), ""}, c.rem.Name[:12] + "\t" + fix + " recorded\n"},
	} {
		controlplane.Eventually(t, time.Minute, tc.words[0]+" is completed", func() (bool, string) { // within 3 s, or not at all
			by := complete("unpend", append([]string{"__complete"}, tc.words...)...)
			plugin := complete("/usr/local/bin/kubectl_complete-unpend", tc.words...)
			return strings.Contains(by, tc.want) && strings.Contains(plugin, tc.want), by + plugin
		})
	}
}

// withoutGuards deletes the ConfigMap of the guard-rails under an executor that has seen it:
// what is approved then is not begun until it is there again.
func (c *cell) withoutGuards(t *testing.T) *process {
	t.Helper()
	maps := c.Client().CoreV1().ConfigMaps(c.ns)
	was, err := maps.Get(t.Context(), guard.ConfigMap, metav1.GetOptions{})
	must(t, err)
	x := startExecutor(t, "executor-0", executorConfig(t, c.ns, ""), newFaultProxy(t, c.lane, c.ns, "executor-"+c.ns))
	controlplane.Eventually(t, time.Minute, "the executor has seen the guard-rails", func() (bool, string) {
		lease, err := c.Client().CoordinationV1().Leases(c.ns).Get(t.Context(), executor.LeaderLease, metav1.GetOptions{})
		return err == nil && len(lease.Annotations) > 0, fmt.Sprint(err)
	})
	must(t, maps.Delete(t.Context(), guard.ConfigMap, metav1.DeleteOptions{}))
	c.approve(t)
	status := c.reaches(t, time.Minute, "is held", func(s v1alpha1.RemediationStatus) bool { return strings.Contains(s.Message, "deleted") })
	if status.Phase != v1alpha1.Queued || len(status.Journal) > 0 {
		t.Errorf("%s, %d steps: %s", status.Phase, len(status.Journal), status.Message)
	}
	code, out, errs := call(t, "status", "-o", "json", "--executor-namespace", c.ns, "--kubeconfig", c.Kubeconfig())
	var is struct{ Paused, GuardsGone bool }
	if err := json.Unmarshal([]byte(out), &is); code != exitDone || err != nil || !is.Paused || !is.GuardsGone {
		t.Errorf("%d %v %s%s", code, err, out, errs)
	}
	if code, out, _ := call(t, "status", "--executor-namespace", c.ns, "--kubeconfig", c.Kubeconfig()); code != exitDone || !strings.Contains(strings.Join(strings.Fields(out), " "), "deleted") {
		t.Errorf("%d %s", code, out)
	}
	if n := c.nodeOf(t); n.Spec.Unschedulable {
		t.Error("the node is cordoned")
	}
	_, err = maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: was.Name, Labels: was.Labels}, Data: was.Data}, metav1.CreateOptions{})
	must(t, err)
	if status := c.ends(t, time.Minute); status.Phase != v1alpha1.Succeeded {
		t.Errorf("%s: %s", status.Phase, status.Message)
	}
	return x
}
