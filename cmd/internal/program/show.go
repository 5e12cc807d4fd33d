package program

import (
	"context"
	"log/slog"
	"slices"

	"github.com/spf13/cobra"

	"github.com/unpend/unpend/cmd/internal/terminal"
	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/watcher/incident"
)

func showCommand(kube *kubeFlags, std Stdio) *cobra.Command {
	o := &whyOptions{source: source{kube: kube, all: true}}
	c := &cobra.Command{
		Use:   "show INCIDENT[#N]",
		Short: "Show everything behind a finding, or behind one of its fixes",
		Long: `Show everything behind a finding: all evidence, why each node is out, who holds its GPUs
(owner, age, priority, what they do with them), every fix with who is stopped and the
commands that a person would type, what was tried and refuted, and what could not be read.`,
		Example: "  unpend show gpu-7f3a01c9be\n  unpend show gpu-7f3a01c9be#1\n  unpend show gpu-cf3482cc7b -f testdata/scenarios/all-1g",
		Args:    arguments(cobra.ExactArgs(1)),
		RunE:    func(c *cobra.Command, args []string) error { return o.show(c.Context(), args[0], std) },
	}
	o.addFlags(c)
	return c
}

func (o *whyOptions) show(ctx context.Context, arg string, std Stdio) error {
	if !slices.Contains([]string{"", "json", "yaml"}, o.output) {
		return usage("output %q is not known: use json or yaml", o.output)
	}
	ref, err := parseIncident(arg)
	if err != nil {
		return err
	}
	st, err := o.state(ctx, "", std)
	if err != nil {
		return err
	}
	if err := o.kube.checkMark(ref, clusterMark(st)); err != nil {
		return err
	}
	d, err := o.detail(ctx, st, ref, std)
	if err != nil {
		return err
	}
	if o.output != "" {
		return printList(std.Out, o.output, detailList(d))
	}
	style := o.style(std, st)
	style.Again.Shown = true
	return terminal.Show(std.Out, d, style)
}

func detailList(d terminal.Detail) listOf[terminal.Detail] {
	return listOf[terminal.Detail]{diagnosis.APIVersion, diagnosis.ListKind, []terminal.Detail{d}}
}

// detail is everything behind an incident or, where one is named, a fix of it.
func (o *whyOptions) detail(ctx context.Context, st *cluster.State, ref incidentRef, std Stdio) (terminal.Detail, error) {
	tried := &triedFixes{}
	found, err := o.diagnoseOnly(ctx, st, func(i incident.Incident) bool { return i.ID == ref.id }, slog.New(tried), std)
	if err != nil {
		return terminal.Detail{}, err
	}
	if len(found) == 0 {
		return terminal.Detail{}, o.gone(ctx, st, ref.id)
	}
	measure, err := o.measure()
	if err != nil {
		return terminal.Detail{}, &codedError{exitUsage, err}
	}
	facts := newPodFacts(ctx, st, measure)
	d := terminal.Detail{Diagnosis: found[0], Refuted: tried.refuted(), Stops: map[int][]terminal.Pod{}}
	d.Holders = facts.holders(concerned(d.Diagnosis))
	if ref.fix > 0 {
		at := slices.IndexFunc(d.Fixes, func(f diagnosis.Fix) bool { return f.ID == ref.fix })
		if at < 0 {
			return d, usage("incident %s has %s, and no fix %d", ref.id, plural(len(d.Fixes), "fix", "fixes"), ref.fix)
		}
		d.Fixes, d.Refuted = d.Fixes[at:at+1], []diagnosis.Fix{}
	}
	for _, f := range d.Fixes {
		d.Stops[f.ID] = facts.stops(f)
	}
	return d, nil
}

// gone says why nobody of an incident waits.
func (o *whyOptions) gone(ctx context.Context, st *cluster.State, id string) error {
	if !st.Live {
		return o.absent(ctx, st, nil, id)
	}
	d, err := o.deps()
	if err != nil {
		return err
	}
	return o.absent(ctx, st, &d, id)
}

// concerned are the nodes whose GPUs decide: those that lack what was asked, and those that
// fixes change.
func concerned(d diagnosis.Diagnosis) []string {
	var out []string
	for _, n := range d.Nodes {
		if n.Shortage() != "" {
			out = append(out, n.Name)
		}
	}
	for _, f := range d.Fixes {
		out = append(out, f.Cost.Nodes...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// triedFixes keeps the fixes that a diagnosis says it has tried.
type triedFixes struct {
	slog.Handler
	fixes []diagnosis.Fix
}

// Enabled implements slog.Handler.
func (*triedFixes) Enabled(context.Context, slog.Level) bool { return true }

// Handle implements slog.Handler.
func (t *triedFixes) Handle(_ context.Context, r slog.Record) error {
	r.Attrs(func(a slog.Attr) bool {
		if f, ok := a.Value.Any().(diagnosis.Fix); ok {
			t.fixes = append(t.fixes, f)
		}
		return true
	})
	return nil
}

// refuted are those that were rejected, each title once.
func (t *triedFixes) refuted() []diagnosis.Fix {
	out := []diagnosis.Fix{}
	for _, f := range t.fixes {
		if f.Proof.Verdict == diagnosis.Refuted && !slices.ContainsFunc(out, func(o diagnosis.Fix) bool { return o.Title == f.Title }) {
			out = append(out, f)
		}
	}
	return out
}
