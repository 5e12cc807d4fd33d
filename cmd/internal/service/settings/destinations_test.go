package settings

import (
	"slices"
	"strings"
	"testing"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/notice"
	"github.com/unpend/unpend/watcher/incident"
)

// A route is for what is of one of its namespaces, of one of its causes and of its priority,
// or of one that nobody can tell; nothing is known of an incident without a finding.
func TestWhatARouteIsFor(t *testing.T) {
	of := func(namespace, cause string, priority *int32) notice.Proposal {
		return notice.Proposal{Finding: &diagnosis.Summary{Workload: incident.Ref{Namespace: namespace}, Causes: []diagnosis.CauseSummary{{ID: diagnosis.CauseID(cause)}}, Pods: diagnosis.WaitingPods{Priority: priority}}}
	}
	low, high, least := int32(999), int32(1000), int32(1000)
	r := Route{Namespaces: []string{"team-*", "ml"}, Causes: []string{"MIGFull"}, MinPriority: &least}
	for name, c := range map[string]struct {
		p    notice.Proposal
		want bool
	}{
		"all of it":         {of("team-a", "MIGFull", &high), true},
		"another pattern":   {of("ml", "MIGFull", &high), true},
		"another namespace": {of("mlx", "MIGFull", &high), false},
		"another cause":     {of("ml", "NoNodes", &high), false},
		"one below":         {of("ml", "MIGFull", &low), false},
		"nobody can tell":   {of("ml", "MIGFull", nil), true},
		"nothing is known":  {notice.Proposal{}, false},
	} {
		if r.Fits(c.p) != c.want {
			t.Errorf("%s: %t", name, !c.want)
		}
	}
	if !(Route{}).Fits(notice.Proposal{}) || (Route{MinPriority: &least}).Fits(notice.Proposal{}) {
		t.Error("a route of anything, or one of a priority, for nothing that is known")
	}
}

// Destinations are told by their names: they are words of a NATS subject, and two are two.
func TestNamesOfDestinations(t *testing.T) {
	for at, want := range map[string]string{"C0123456789": "slack-C0123456789", "OPS": "slack-OPS", "/etc/a/team.a": "slack-team_a-", "/etc/b/team.a": "slack-team_a-", "https://am-0.ml:9093": "slack-am-0_ml_9093-", "": "slack-", "…": "slack-_-", strings.Repeat("x", 50): "slack-" + strings.Repeat("x", 40) + "-"} {
		if got := named("slack", at); !strings.HasPrefix(got, want) || strings.ContainsAny(got, " .*>/:") {
			t.Errorf("%q: %s", at, got)
		}
	}
	if named("pagerduty", "/etc/a/team.a") == named("pagerduty", "/etc/b/team.a") {
		t.Error("two files are one service")
	}
	var c Config
	c.PagerDuty.KeyFile = "/etc/main"
	c.Routes = []Route{{At: map[string]string{"pagerduty": "/etc/a"}}, {At: map[string]string{"pagerduty": "/etc/a", "slack": "C1"}}, {At: map[string]string{"jira": "OPS"}}}
	var got []string
	for _, p := range Places {
		for _, d := range p.Destinations(c) {
			got = append(got, p.Name+" "+d.At+" "+d.Config.PagerDuty.KeyFile)
		}
	}
	if want := []string{"pagerduty  /etc/main", "pagerduty /etc/a /etc/a"}; !slices.Equal(got, want) { // what is not configured is nowhere
		t.Errorf("%q", got)
	}
}
