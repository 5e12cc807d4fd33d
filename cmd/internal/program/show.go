package program

import (
	"context"
	"log/slog"
	"slices"

	"github.com/spf13/cobra"

	"github.com/unpend/unpend/cmd/internal/program/console"
	"github.com/unpend/unpend/cmd/internal/program/decisions"
	"github.com/unpend/unpend/cmd/internal/program/sources"
	"github.com/unpend/unpend/cmd/internal/terminal"
	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/watcher/incident"
)

func showCommand(kube *sources.KubeFlags, std console.Stdio) *cobra.Command {
	o := &whyOptions{Source: sources.Source{Kube: kube, All: true}}
	c := &cobra.Command{
		Use:   "show INCIDENT[#N]",
		Short: "Show everything behind a finding, or behind one of its fixes",
		Long: `Show everything behind a finding: all evidence, why each node is out, who holds its GPUs
(owner, age, priority, what they do with them), every fix with who is stopped and the
commands that a person would type, what was tried and refuted, and what could not be read.`,
		Example: "  unpend show gpu-7f3a01c9be\n  unpend show gpu-7f3a01c9be#1\n  unpend show gpu-cf3482cc7b -f testdata/scenarios/all-1g",
		Args:    console.Arguments(cobra.ExactArgs(1)),
		RunE:    func(c *cobra.Command, args []string) error { return o.show(c.Context(), args[0], std) },
	}
	o.addFlags(c)
	return c
}

func (o *whyOptions) show(ctx context.Context, arg string, std console.Stdio) error {
	if !slices.Contains([]string{"", "json", "yaml"}, o.output) {
		return console.Usage("output %q is not known: use json or yaml", o.output)
	}
	ref, err := sources.ParseIncident(arg)
	if err != nil {
		return err
	}
	st, err := o.State(ctx, "", std)
	if err != nil {
		return err
	}
	if err := o.Kube.CheckMark(ref, sources.ClusterMark(st)); err != nil {
		return err
	}
	d, err := o.detail(ctx, st, ref, std)
	if err != nil {
		return err
	}
	if o.output != "" {
		return console.PrintList(std.Out, o.output, detailList(d))
	}
	style := o.style(std, st)
	style.Again.Shown = true
	return terminal.Show(std.Out, d, style)
}

func detailList(d terminal.Detail) console.ListOf[terminal.Detail] {
	return console.ListOf[terminal.Detail]{APIVersion: diagnosis.APIVersion, Kind: diagnosis.ListKind, Items: []terminal.Detail{d}}
}

// detail is everything behind an incident or, where one is named, a fix of it.
func (o *whyOptions) detail(ctx context.Context, st *cluster.State, ref sources.Ref, std console.Stdio) (terminal.Detail, error) {
	tried := &triedFixes{}
	found, err := o.diagnoseOnly(ctx, st, func(i incident.Incident) bool { return i.ID == ref.ID }, slog.New(tried), std)
	if err != nil {
		return terminal.Detail{}, err
	}
	if len(found) == 0 {
		return terminal.Detail{}, o.gone(ctx, st, ref.ID)
	}
	measure, err := o.Measure()
	if err != nil {
		return terminal.Detail{}, console.Exit(console.ExitUsage, err)
	}
	facts := decisions.NewPodFacts(ctx, st, measure)
	d := terminal.Detail{Diagnosis: found[0], Refuted: tried.refuted(), Stops: map[int][]terminal.Pod{}}
	d.Holders = facts.Holders(concerned(d.Diagnosis))
	if ref.Fix > 0 {
		at := slices.IndexFunc(d.Fixes, func(f diagnosis.Fix) bool { return f.ID == ref.Fix })
		if at < 0 {
			return d, console.Usage("incident %s has %s, and no fix %d", ref.ID, console.Plural(len(d.Fixes), "fix", "fixes"), ref.Fix)
		}
		d.Fixes, d.Refuted = d.Fixes[at:at+1], []diagnosis.Fix{}
	}
	for _, f := range d.Fixes {
		d.Stops[f.ID] = facts.Stops(f)
	}
	return d, nil
}

// gone says why nobody of an incident waits.
func (o *whyOptions) gone(ctx context.Context, st *cluster.State, id string) error {
	if !st.Live {
		return decisions.Absent(ctx, &o.Source, st, nil, id)
	}
	d, err := o.Deps()
	if err != nil {
		return err
	}
	return decisions.Absent(ctx, &o.Source, st, &d, id)
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
