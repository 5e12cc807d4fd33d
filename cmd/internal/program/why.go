package program

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"

	"github.com/spf13/cobra"

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
	source
	gpuWork
	output string
	past
	exitCode bool
	watch    bool
	cause    string // of the incidents that are shown
	selector string // of their pods
	plans    bool   // tell of each incident what is done about it
	// executorNamespace has the guard-rails.
	executorNamespace string
}

func (o *whyOptions) addFlags(c *cobra.Command) {
	o.source.flags(c)
	o.gpuWork.flags(c)
	executorFlag(c, &o.executorNamespace)
	c.Flags().StringVarP(&o.output, "output", "o", "", "json, yaml, name or wide")
	o.past.flags(c)
	c.Flags().BoolVar(&o.exitCode, "exit-code", false, "exit 3 when something waits")
}

// choiceFlags choose among what waits.
func (o *whyOptions) choiceFlags(c *cobra.Command) {
	watchFlag(c, &o.watch)
	c.Flags().StringVar(&o.cause, "filter", "", "only what waits for this cause, such as MIGFragmented")
	c.Flags().StringVarP(&o.selector, "selector", "l", "", "only incidents of pods with these labels, as kubectl has it")
}

// whyOrWatch explains once or, with -w, whenever something has changed.
func (o *whyOptions) whyOrWatch(ctx context.Context, args []string, std Stdio) error {
	if !o.watch {
		return o.why(ctx, args, std)
	}
	if len(o.files) > 0 {
		return usage("-w watches a cluster: a dump does not change")
	}
	return again(ctx, std, func(ctx context.Context, std Stdio) error { return o.why(ctx, args, std) })
}

func whyCommand(kube *kubeFlags, std Stdio) *cobra.Command {
	o := &whyOptions{source: source{kube: kube}}
	c := &cobra.Command{
		Use:   "why [pod/NAME | KIND/NAME | NAME]",
		Short: "Say why pods wait and what would help, on the cluster or from dumps",
		Example: `  unpend why -A
  unpend why pod/trainer -n ml --prometheus http://prometheus.monitoring:9090
  unpend why -f testdata/scenarios/layout-mismatch -o json`,
		Args: arguments(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			return o.whyOrWatch(c.Context(), args, std)
		},
	}
	o.addFlags(c)
	o.choiceFlags(c)
	return c
}

var outputs = []string{"", "json", "yaml", "name", "wide"}

func (o *whyOptions) why(ctx context.Context, args []string, std Stdio) error {
	if !slices.Contains(outputs, o.output) {
		return usage("output %q is not known: use json, yaml, name or wide", o.output)
	}
	if o.cause != "" && diagnosis.CauseID(o.cause).Words() == "" {
		return usage("--filter %q is no cause: take one that 'unpend why' shows, such as %s", o.cause, diagnosis.MIGFragmented)
	}
	ns, err := o.namespace()
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
	st, err := o.state(ctx, ns, std)
	if err != nil {
		return err
	}
	if asked.mark != "" {
		if err := o.kube.checkMark(incidentRef{id: asked.name, mark: asked.mark}, clusterMark(st)); err != nil {
			return err
		}
	}
	found, err := o.diagnose(ctx, st, asked, std)
	if err != nil {
		return err
	}
	show := o.print
	if o.plans {
		show = func(std Stdio, found []diagnosis.Diagnosis, st *cluster.State) error {
			return o.printIncidents(ctx, std, found, st)
		}
	}
	if all := len(found); o.cause != "" {
		found = slices.DeleteFunc(found, func(d diagnosis.Diagnosis) bool {
			return !slices.ContainsFunc(d.Causes, func(c diagnosis.Cause) bool { return string(c.ID) == o.cause })
		})
		if len(found) == 0 && all > 0 {
			fmt.Fprintf(std.Err, "Nothing waits for %s; of other causes %s.\n", o.cause, plural(all, "incident does", "incidents do"))
			return show(std, found, st)
		}
	}
	if len(found) == 0 && asked.kind == "" && incidentID.MatchString(asked.name) {
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
		return &codedError{code: exitFindings}
	}
	return nil
}

func (o *whyOptions) diagnose(ctx context.Context, st *cluster.State, asked target, std Stdio) ([]diagnosis.Diagnosis, error) {
	return o.diagnoseOnly(ctx, st, asked.selects(st), nil, std)
}

// diagnoseOnly explains some incidents; a logger is told of the fixes that were tried.
func (o *whyOptions) diagnoseOnly(ctx context.Context, st *cluster.State, only func(incident.Incident) bool, logger *slog.Logger, std Stdio) ([]diagnosis.Diagnosis, error) {
	measure, err := o.measure()
	if err != nil {
		return nil, &codedError{exitUsage, err}
	}
	opts := rca.Options{Only: only, Measure: measure, Logger: logger}
	if st.Live {
		d, err := o.deps()
		if err != nil {
			return nil, err
		}
		opts.Outcomes = plan.Store{Dynamic: d.Dynamic}.Outcomes
		opts.Guard = executor.GuardOf(d, o.executorNamespace, 0)
	}
	search, done, err := o.open(ctx, std)
	if err != nil {
		return nil, err
	}
	defer done()
	opts.Search = search
	return rca.Diagnose(ctx, st, opts)
}

func (o *whyOptions) print(std Stdio, found []diagnosis.Diagnosis, st *cluster.State) error {
	style := o.style(std, st)
	switch o.output {
	case "json", "yaml":
		if found == nil {
			found = []diagnosis.Diagnosis{}
		}
		return printList(std.Out, o.output, diagnosis.List{APIVersion: diagnosis.APIVersion, Kind: diagnosis.ListKind, Items: found})
	case "name":
		for _, d := range found {
			fmt.Fprintln(std.Out, namePrefix+style.Again.ID(d.Incident))
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
func (o *whyOptions) style(std Stdio, st *cluster.State) terminal.Options {
	style := terminalOptions(std.Out)
	style.Now, style.Again = st.Now, o.source.again(st, o.gpuWork.again(), executorAt(o.executorNamespace))
	return style
}

func terminalOptions(w io.Writer) terminal.Options {
	if s, ok := w.(*screenful); ok {
		return terminalOptions(s.of)
	}
	if f, ok := w.(*os.File); ok {
		return terminal.Detect(f, os.Getenv)
	}
	return terminal.Sized(80)
}
