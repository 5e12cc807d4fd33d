// Package desks are the desk as people come to it from elsewhere: from Slack, where answers are
// short texts, and from the page, where they come with tokens of their own. What is decided
// there, and by whose right, is remediate/desk's.
package desks

import (
	"context"
	"fmt"
	"strings"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/desk"
	"github.com/unpend/unpend/remediate/plan"
)

// Slack is the desk as Slack comes to it: its answers are short texts.
type Slack struct {
	At desk.Desk
	By plan.Decider
}

// Known implements the desk that Slack is given: it is who somebody is here, or why they decide nothing.
func (d Slack) Known(who plan.Caller) (string, error) {
	v, err := d.At.Known(d.By, who)
	return v.User, err
}

// Approve implements the desk that Slack is given: it approves a plan as that person.
func (d Slack) Approve(ctx context.Context, who plan.Caller, incident, name string) (string, error) {
	v, err := d.At.Known(d.By, who)
	if err != nil {
		return "", err
	}
	a, err := v.Approve(ctx, incident, name)
	switch {
	case err != nil:
		return "", err
	case a.Approval == nil:
		return fmt.Sprintf("You, %s, have asked for plan %.12s, and two others have to approve it (%s).", v.User, name, a.Why), nil
	}
	return fmt.Sprintf("You have approved plan %.12s as %s: %s.", name, v.User, a.Plan.Spec.Title), nil
}

// Reject implements the desk that Slack is given: it rejects one as that person.
func (d Slack) Reject(ctx context.Context, who plan.Caller, incident, name string) (string, error) {
	v, err := d.At.Known(d.By, who)
	if err != nil {
		return "", err
	}
	a, err := v.Reject(ctx, incident, name, "not this")
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("You have rejected plan %.12s as %s: %s.", name, v.User, a.Plan.Spec.Title), nil
}

// DryRun implements the desk that Slack is given: it says what a plan would do, and writes nothing.
func (d Slack) DryRun(ctx context.Context, who plan.Caller, incident, name string) (string, error) {
	v, err := d.At.Known(d.By, who)
	if err != nil {
		return "", err
	}
	t, err := v.DryRun(ctx, incident, name)
	if err != nil {
		return "", err
	}
	out := []string{fmt.Sprintf("Nothing is written by this. Fix %d, plan %.12s: %s", t.Fix.ID, name, t.Fix.Title)}
	for i, step := range t.Steps {
		out = append(out, fmt.Sprintf("%d. %s", i+1, step))
	}
	held := "The guard-rails would let it begin now."
	if t.Held != "" {
		held = "The guard-rails hold it back now: " + t.Held
	}
	if out = append(out, held); t.Persons > 1 {
		out = append(out, fmt.Sprintf("%d persons have to approve it: %s", t.Persons, t.Why))
	}
	return strings.Join(out, "\n"), nil
}

// Why implements the desk that Slack is given: it says why a pod waits.
func (d Slack) Why(ctx context.Context, who plan.Caller, pod, namespace string) (string, error) {
	v, err := d.At.Known(d.By, who)
	if err != nil {
		return "", err
	}
	f, err := v.Why(ctx, pod, namespace)
	if err != nil {
		return "", err
	}
	return f.Hide(strings.Join(append(whyLines(f), "", "kubectl unpend show "+f.Incident), "\n")), nil
}

// whyLines are why pods wait and what helps best, a line each.
func whyLines(f desk.Finding) []string {
	out := []string{f.Headline, ""}
	for _, c := range f.Causes {
		mark := ""
		if c.Certainty != diagnosis.Proven {
			mark = ", " + string(c.Certainty)
		}
		out = append(out, fmt.Sprintf("• %d nodes: %s (%s%s)", len(c.Nodes), c.Says, c.ID, mark))
	}
	for _, x := range f.Fixes[:min(mostFixes, len(f.Fixes))] {
		line := fmt.Sprintf("%d  %s: stops %d pods, risk %s, %s", x.ID, x.Title, len(x.Cost.Evictions)+len(x.Cost.Restarts), x.Risk, x.Proof.Verdict)
		if x.Record != nil {
			line += ", " + x.Record.String()
		}
		out = append(out, line)
	}
	return out
}

// mostFixes are told in an answer.
const mostFixes = 3
