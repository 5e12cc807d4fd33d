package decisions

import (
	"context"
	"fmt"
	"strings"

	"github.com/unpend/unpend/cmd/internal/terminal"
	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/executor"
	"github.com/unpend/unpend/remediate/plan"
)

// railsSeen remembers what became of reading the guard-rails for a diagnosis.
type railsSeen struct {
	none bool
	err  error
}

// watch is the guard, with what came of it noted.
func (s *railsSeen) watch(guard func(context.Context, *cluster.State) (diagnosis.Guard, error)) func(context.Context, *cluster.State) (diagnosis.Guard, error) {
	return func(ctx context.Context, st *cluster.State) (diagnosis.Guard, error) {
		g, err := guard(ctx, st)
		s.none, s.err = g == nil, err
		return g, err
	}
}

// says is what they say of a fix now.
func (s *railsSeen) says(f diagnosis.Fix, leads bool) string {
	switch {
	case s.err != nil:
		return "what they say is not known: " + s.err.Error()
	case f.Held != "":
		return "hold it back now: " + f.Held
	case s.none:
		return "none: unpend is not installed here"
	case !leads:
		return "nothing stops it: no executor leads, so the kill switch, the breaker and freeze windows alone are gone by"
	}
	return "nothing holds it back now"
}

// consent is what a person reads before saying yes.
func (o *approveOptions) consent(ctx context.Context, d executor.Deps, found plan.Found, leads bool, rails *railsSeen) (terminal.Consent, error) {
	facts := NewPodFacts(ctx, found.State, d.Measure)
	out := terminal.Consent{Cluster: o.Kube.Where(found.State), Incident: found.Diagnosis.Incident, Headline: found.Diagnosis.Headline, Fix: found.Fix,
		Stops: facts.Stops(found.Fix), Steps: executor.Steps(d, found), Rails: rails.says(found.Fix, leads), Back: takenBack(found.Fix, leads)}
	for _, a := range found.Fix.Actions {
		if command := undone(found.State, a); command != "" {
			out.Undo = append(out.Undo, command)
		}
	}
	if len(out.Undo) == 0 {
		out.Back = out.Back[:len(out.Back)-1]
	}
	if leads {
		persons, why, err := executor.Persons(ctx, d, o.namespace, plan.Propose(found, "", d.Now()))
		if err != nil {
			return out, err
		}
		if persons > 1 {
			out.Rails += fmt.Sprintf("; %d persons have to approve it: %s", persons, why)
		}
	}
	return out, nil
}

// takenBack says how a fix is stopped while it goes on, and what stays as it then is.
func takenBack(f diagnosis.Fix, leads bool) []string {
	out := []string{"while it goes on, Ctrl-C: what was begun is taken back"}
	if leads {
		out[0] = fmt.Sprintf("while it goes on, 'unpend reject %.12s': what was begun is taken back", f.Plan)
	}
	if n := len(f.Cost.Evictions) + len(f.Cost.Restarts); n > 0 {
		out = append(out, "no pod that was stopped comes back by that: its owner makes another, and nobody does where it has none")
	}
	return append(out, "once it is done:")
}

// undone are the commands that undo by hand what an action has done; none for an eviction.
func undone(st *cluster.State, a diagnosis.Action) string {
	name := a.Target.Name
	switch a.Verb {
	case diagnosis.VerbRelayout:
		label := labelOf(st, name)
		if label == "" || label == a.Relayout.Config {
			return ""
		}
		return fmt.Sprintf("kubectl label node %s %s=%s --overwrite   # once nobody holds its GPUs", name, nodeprobe.LabelMIGConfig, label)
	case diagnosis.VerbCordon:
		return "kubectl uncordon " + name
	case diagnosis.VerbUncordon:
		return "kubectl cordon " + name
	case diagnosis.VerbPatch, diagnosis.VerbRecreate:
		how := map[string]string{diagnosis.VerbPatch: "apply", diagnosis.VerbRecreate: "replace --force"}[a.Verb]
		return fmt.Sprintf("kubectl %s -f YOUR-MANIFEST   # of %s/%s in namespace %s, as it was", how, strings.ToLower(a.Target.Kind), name, a.Target.Namespace)
	}
	return ""
}

func labelOf(st *cluster.State, node string) string {
	for _, n := range st.Nodes {
		if n.Name == node {
			return n.Labels[nodeprobe.LabelMIGConfig]
		}
	}
	return ""
}
