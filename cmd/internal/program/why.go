package program

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	"github.com/spf13/cobra"

	"github.com/unpend/unpend/cmd/internal/program/console"
	"github.com/unpend/unpend/cmd/internal/program/decisions"
	"github.com/unpend/unpend/cmd/internal/program/recall"
	"github.com/unpend/unpend/cmd/internal/program/sources"
	"github.com/unpend/unpend/cmd/internal/terminal"
	"github.com/unpend/unpend/rca"
	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/executor"
	"github.com/unpend/unpend/remediate/plan"
	"github.com/unpend/unpend/watcher/incident"
)

// whyOptions are the flags of `why` and `incidents`.
type whyOptions struct {
	sources.Source
	sources.GPUWork
	output string
	recall.Past
	exitCode bool
	watch    bool
	cause    string // of the incidents that are shown
	selector string // of their pods
	plans    bool   // tell of each incident what is done about it
	// executorNamespace has the guard-rails.
	executorNamespace string
}

func (o *whyOptions) addFlags(c *cobra.Command) {
	o.Source.Flags(c)
	o.GPUWork.Flags(c)
	decisions.ExecutorFlag(c, &o.executorNamespace)
	c.Flags().StringVarP(&o.output, "output", "o", "", "json, yaml, name or wide")
	o.Past.Flags(c)
	c.Flags().BoolVar(&o.exitCode, "exit-code", false, "exit 3 when something waits")
}

// choiceFlags choose among what waits.
func (o *whyOptions) choiceFlags(c *cobra.Command) {
	console.WatchFlag(c, &o.watch)
	c.Flags().StringVar(&o.cause, "filter", "", "only what waits for this cause, such as MIGFragmented")
	c.Flags().StringVarP(&o.selector, "selector", "l", "", "only incidents of pods with these labels, as kubectl has it")
}

// whyOrWatch explains once or, with -w, whenever something has changed.
func (o *whyOptions) whyOrWatch(ctx context.Context, args []string, std console.Stdio) error {
	if !o.watch {
		return o.why(ctx, args, std)
	}
	if len(o.Files) > 0 {
		return console.Usage("-w watches a cluster: a dump does not change")
	}
	return console.Again(ctx, std, func(ctx context.Context, std console.Stdio) error { return o.why(ctx, args, std) })
}

func whyCommand(kube *sources.KubeFlags, std console.Stdio) *cobra.Command {
	o := &whyOptions{Source: sources.Source{Kube: kube}}
	c := &cobra.Command{
		Use:   "why [pod/NAME | KIND/NAME | NAME]",
		Short: "Say why pods wait and what would help, on the cluster or from dumps",
		Example: `  unpend why -A
  unpend why pod/trainer -n ml --prometheus http://prometheus.monitoring:9090
  unpend why -f testdata/scenarios/layout-mismatch -o json`,
		Args: console.Arguments(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			return o.whyOrWatch(c.Context(), args, std)
		},
	}
	o.addFlags(c)
	o.choiceFlags(c)
	return c
}

func (o *whyOptions) why(ctx context.Context, args []string, std console.Stdio) error {
	if !slices.Contains([]string{"", "json", "yaml", "name", "wide"}, o.output) {
		return console.Usage("output %q is not known: use json, yaml, name or wide", o.output)
	}
	if o.cause != "" && diagnosis.CauseID(o.cause).Words() == "" {
		return console.Usage("--filter %q is no cause: take one that 'unpend why' shows, such as %s", o.cause, diagnosis.MIGFragmented)
	}
	ns, err := o.Namespace()
	if err != nil {
		return err
	}
	asked, err := newTarget(args, ns)
	if err == nil {
		err = asked.label(o.selector)
	}
	if err != nil {
		return err
	}
	st, err := o.State(ctx, ns, std)
	if err != nil {
		return err
	}
	if asked.mark != "" {
		if err := o.Kube.CheckMark(sources.Ref{ID: asked.name, Mark: asked.mark}, sources.ClusterMark(st)); err != nil {
			return err
		}
	}
	found, err := o.diagnose(ctx, st, asked, std)
	if err != nil {
		return err
	}
	show := o.print
	if o.plans {
		show = func(std console.Stdio, found []diagnosis.Diagnosis, st *cluster.State) error {
			return o.printIncidents(ctx, std, found, st)
		}
	}
	if all := len(found); o.cause != "" {
		found = slices.DeleteFunc(found, func(d diagnosis.Diagnosis) bool {
			return !slices.ContainsFunc(d.Causes, func(c diagnosis.Cause) bool { return string(c.ID) == o.cause })
		})
		if len(found) == 0 && all > 0 {
			fmt.Fprintf(std.Err, "Nothing waits for %s; of other causes %s.\n", o.cause, console.Plural(all, "incident does", "incidents do"))
			return show(std, found, st)
		}
	}
	if len(found) == 0 && asked.kind == "" && sources.IncidentID.MatchString(asked.name) {
		return o.gone(ctx, st, asked.name)
	}
	if len(found) == 0 {
		if err := asked.explainNothing(st, std.Err); err != nil {
			return err
		}
	}
	if err := show(std, found, st); err != nil {
		return err
	}
	if o.exitCode && len(found) > 0 {
		return console.Exit(console.ExitFindings, nil)
	}
	return nil
}

func (o *whyOptions) diagnose(ctx context.Context, st *cluster.State, asked target, std console.Stdio) ([]diagnosis.Diagnosis, error) {
	return o.diagnoseOnly(ctx, st, asked.selects(st), nil, std)
}

// diagnoseOnly explains some incidents; a logger is told of the fixes that were tried.
func (o *whyOptions) diagnoseOnly(ctx context.Context, st *cluster.State, only func(incident.Incident) bool, logger *slog.Logger, std console.Stdio) ([]diagnosis.Diagnosis, error) {
	measure, err := o.Measure()
	if err != nil {
		return nil, console.Exit(console.ExitUsage, err)
	}
	opts := rca.Options{Only: only, Measure: measure, Logger: logger}
	if st.Live {
		d, err := o.Deps()
		if err != nil {
			return nil, err
		}
		opts.Outcomes = plan.Store{Dynamic: d.Dynamic}.Outcomes
		opts.Guard = executor.GuardOf(d, o.executorNamespace, 0)
	}
	search, done, err := o.Open(ctx, std)
	if err != nil {
		return nil, err
	}
	defer done()
	opts.Search = search
	return rca.Diagnose(ctx, st, opts)
}

func (o *whyOptions) print(std console.Stdio, found []diagnosis.Diagnosis, st *cluster.State) error {
	style := o.style(std, st)
	switch o.output {
	case "json", "yaml":
		if found == nil {
			found = []diagnosis.Diagnosis{}
		}
		return console.PrintList(std.Out, o.output, diagnosis.List{APIVersion: diagnosis.APIVersion, Kind: diagnosis.ListKind, Items: found})
	case "name":
		for _, d := range found {
			fmt.Fprintln(std.Out, sources.NamePrefix+style.Again.ID(d.Incident))
		}
		return nil
	case "wide":
		style.Wide = true
		return terminal.Table(std.Out, found, style)
	}
	for i, d := range found {
		if i > 0 {
			fmt.Fprintln(std.Out)
			style.NoLegend = style.NoLegend || found[i-1].Drawing != nil
		}
		if err := terminal.Render(std.Out, d, style); err != nil {
			return err
		}
	}
	return nil
}

// style is how findings in a state are shown, and which command comes next.
func (o *whyOptions) style(std console.Stdio, st *cluster.State) terminal.Options {
	style := console.TerminalOptions(std.Out)
	style.Now, style.Again = st.Now, o.Source.Again(st, o.GPUWork.Again(), decisions.ExecutorAt(o.executorNamespace))
	return style
}
