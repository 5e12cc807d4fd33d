package program

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/unpend/unpend/cmd/internal/program/console"
	"github.com/unpend/unpend/cmd/internal/program/decisions"
	"github.com/unpend/unpend/cmd/internal/program/sources"
	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/cluster/dump"
	"github.com/unpend/unpend/rca/cluster/live"
	"github.com/unpend/unpend/remediate/plan"
)

// pluginCompletion is the name under which kubectl asks a plugin for completions, and
// pluginName that of the plugin (kubectl, pkg/cmd/plugin.go).
const (
	pluginCompletion = "kubectl_complete-unpend"
	pluginPrefix     = "kubectl-"
)

// completeWithin bounds what a person waits for after a tab.
const completeWithin = 3 * time.Second

// completer knows what commands are about.
type completer struct{ sources.Source }

// completes gives the commands what they are about: incidents and plans from the cluster or
// from dumps, namespaces from the cluster.
func completes(root *cobra.Command, kube *sources.KubeFlags) error {
	s := &completer{sources.Source{Kube: kube}}
	about := map[string]func(context.Context, *cobra.Command) []string{
		"why": s.incidents, "show": s.incidents, "approve": s.incidents, "wait": s.incidents, "reject": s.planNames, "remediations": s.planNames,
	}
	for _, c := range root.Commands() {
		names := about[c.Name()]
		if names == nil {
			continue
		}
		c.ValidArgsFunction = func(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return completed(c, begun, names)
		}
	}
	return root.RegisterFlagCompletionFunc("namespace", func(c *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
		return completed(c, begun, s.namespaceNames)
	})
}

func completed(c *cobra.Command, begun string, names func(context.Context, *cobra.Command) []string) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(c.Context(), completeWithin)
	defer cancel()
	out := slices.DeleteFunc(names(ctx, c), func(n string) bool { return !strings.HasPrefix(n, begun) })
	slices.Sort(out)
	return slices.Compact(out), cobra.ShellCompDirectiveNoFileComp
}

// incidents that wait, with what they are of; nothing where they cannot be read.
func (s *completer) incidents(ctx context.Context, c *cobra.Command) []string {
	st := s.glance(ctx, c)
	if st == nil {
		return nil
	}
	var out []string
	for id, i := range sources.Waits(st) {
		out = append(out, fmt.Sprintf("%s\t%s/%s (%s)", id, i.Workload.Namespace, i.Workload.Name, i.Workload.Kind))
	}
	return out
}

func (s *completer) namespaceNames(ctx context.Context, c *cobra.Command) []string {
	if st := s.glance(ctx, c); st != nil {
		return namespacesOf(st)
	}
	return nil
}

func (s *completer) planNames(ctx context.Context, _ *cobra.Command) []string {
	d, err := s.Deps()
	if err != nil {
		return nil
	}
	plans, err := plan.Store{Dynamic: d.Dynamic}.List(ctx)
	if err != nil {
		return nil
	}
	var out []string
	for i := range plans {
		out = append(out, fmt.Sprintf("%.12s\t%s#%d %s", plans[i].Name, plans[i].Spec.Incident, plans[i].Spec.Fix, decisions.StandingOf(&plans[i]).State))
	}
	return out
}

// glance reads what the command line says so far; nil where that cannot be read.
func (s *completer) glance(ctx context.Context, c *cobra.Command) *cluster.State {
	files, err := c.Flags().GetStringArray("filename")
	if err == nil && len(files) > 0 {
		st, err := dump.Read(files, strings.NewReader(""))
		if err != nil {
			return nil
		}
		return st
	}
	d, err := s.Deps()
	if err != nil {
		return nil
	}
	st, err := live.Read(ctx, d.Client, d.Dynamic, time.Now, d.Owners)
	if err != nil {
		return nil
	}
	return st
}

// pluginCompletionHelp stands in for cobra's scripts, which would register themselves for
// kubectl and replace its own completion.
func pluginCompletionHelp() *cobra.Command {
	return &cobra.Command{
		Use:     "completion",
		Short:   "Say how kubectl completes this plugin",
		Example: "  ln -s \"$(command -v kubectl-unpend)\" ~/.local/bin/" + pluginCompletion + "   # kubectl unpend why <tab>\n  unpend completion bash   # of the program by its own name",
		Args:    console.Arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(c.OutOrStdout(), "kubectl completes its plugins itself: have this program in PATH under the name %s, too.\n", pluginCompletion)
			return err
		},
	}
}
