package acceptance

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/guard"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

// What is contradictory, stopped, under way already, or not permitted is refused in a
// sentence that says which, before anything is written.
func TestApproveRefusesBeforeItWrites(t *testing.T) {
	needsControlPlane(t)
	l := newLane(t)
	c := l.newCell(t)
	l.readsAll(t, "vera")
	root, vera, nora := c.KubeconfigFor(t, "root", "system:masters"), c.KubeconfigFor(t, "vera"), c.KubeconfigFor(t, "nora")
	d := why(t, "-n", c.ns, "job/training", "--kubeconfig", root)
	at := slices.IndexFunc(d.Fixes, func(f diagnosis.Fix) bool { return f.Kind == diagnosis.RepartitionGPU })
	if at < 0 {
		t.Fatalf("no repartition in %+v", d.Fixes)
	}
	layout, other := d.Fixes[at], d.Fixes[at].ID%len(d.Fixes)+1
	began := time.Now()
	for _, tc := range []struct {
		name string
		set  func()
		as   string
		fix  int
		plan string
		code int
		says string
	}{
		{"the plan of another fix", func() {}, root, other, layout.Plan, exitStale, fmt.Sprintf("plan is stale: that is not the plan of fix %d, but of fix %d: approve %s#%d", other, layout.ID, d.Incident, layout.ID)},
		{"who may not see pods", func() {}, nora, layout.ID, layout.Plan, exitRefused, "refused: whether a pod of incident " + d.Incident + " waits cannot be told: the right to list pods is missing"},
		{"who may not cordon", func() {}, vera, layout.ID, layout.Plan, exitRefused, "refused: nothing was written: vera may not patch nodes " + c.node},
		{"the kill switch, no executor", func() { c.paused(t, true) }, root, layout.ID, layout.Plan, exitRefused, "refused: unpend is paused by a person: nothing is written until paused is false in ConfigMap " + guard.ConfigMap},
		{"a dry run of who may not cordon, where an executor leads", func() { c.paused(t, false); c.standsIn(t) }, vera, layout.ID, "dry", exitRefused, "The executor in namespace " + c.ns + " would write the nodes itself: that you may not does not keep you from approving.\n"},
		{"under way", func() { c.pretend(t) }, root, layout.ID, "", exitRefused, "refused: plan " + c.rem.Name[:12] + " for this incident is under way already (step 4/11): follow it by 'unpend remediations " + c.rem.Name[:12] + " -w'"},
		{"under way, by its plan", func() {}, root, layout.ID, layout.Plan, exitStale, "plan is stale: plan " + c.rem.Name[:12] + " for this incident is under way already"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.set()
			args := []string{"approve", fmt.Sprintf("%s#%d", d.Incident, tc.fix), "--yes", "--executor-namespace", c.ns, "--kubeconfig", tc.as}
			switch tc.plan {
			case "":
			case "dry":
				args = append(args, "--dry-run")
			default:
				args = append(args, "--plan", tc.plan)
			}
			if code, out, errs := call(t, args...); code != tc.code || out != "" || !strings.Contains(errs, "unpend: ") || !strings.Contains(errs, tc.says) {
				t.Errorf("%d %s%s, want %d %q", code, out, errs, tc.code, tc.says)
			}
		})
	}
	for _, e := range c.AuditEvents(t) {
		who := e.User.Username == "root" || e.User.Username == "vera" || e.User.Username == "nora"
		if strings.HasSuffix(e.ObjectRef.Resource, "reviews") { // they only ask
			continue
		}
		if who && e.Received.After(began) && e.ResponseStatus.Code < 300 && e.Verb != "get" && e.Verb != "list" && e.Verb != "watch" {
			t.Errorf("%s wrote: %s %s", e.User.Username, e.Verb, e.RequestURI)
		}
	}
}

// pretend has the plan be under way by nobody.
func (c *cell) pretend(t *testing.T) {
	t.Helper()
	now, err := c.store().Get(t.Context(), c.rem.Name)
	must(t, err)
	now.Status.Phase, now.Status.Progress = v1alpha1.Running, "4/11"
	must(t, c.store().Save(t.Context(), now))
}
