// Package program is unpend: its commands. cmd/unpend gives it the process. A command is a
// file, those that only read here, the others in the rooms below: decisions (approve and what
// goes with it), recall (knowledge, search), demo. What all of them stand on is console, and
// where they have a cluster from is sources. What they show is drawn by cmd/internal/terminal,
// and what they find out or change by rca and remediate. What `unpend run` runs is
// cmd/internal/service.
package program

import (
	"context"
	"log/slog"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // the ways people log in to clusters
	"k8s.io/klog/v2"

	"github.com/unpend/unpend/cmd/internal/program/console"
	"github.com/unpend/unpend/cmd/internal/program/decisions"
	"github.com/unpend/unpend/cmd/internal/program/demo"
	"github.com/unpend/unpend/cmd/internal/program/recall"
	"github.com/unpend/unpend/cmd/internal/program/sources"
	"github.com/unpend/unpend/knowledge"
	"github.com/unpend/unpend/remediate/plan"
)

// Stdio is where a command reads and writes.
type Stdio = console.Stdio

// Run is the whole program, called as args[0], until it is done or ctx ends; it returns
// the exit code.
func Run(ctx context.Context, args []string, std Stdio) int {
	std = std.Buffered()
	klog.SetSlogLogger(slog.New(slog.DiscardHandler)) // client-go's own log, its errors too: what matters of it is in our sentences
	if filepath.Base(args[0]) == pluginCompletion {
		args = append([]string{args[0], cobra.ShellCompRequestCmd}, args[1:]...)
	}
	root := rootCommand(args[0], std)
	root.SetArgs(args[1:])
	code, says := console.CodeOf(root.ExecuteContext(ctx))
	if says != nil {
		console.Complain(std.Err, says)
	}
	return code
}

func rootCommand(name string, std console.Stdio) *cobra.Command {
	use := "unpend"
	if strings.HasPrefix(filepath.Base(name), pluginPrefix) {
		use = "kubectl unpend"
	}
	version := false
	root := &cobra.Command{
		Use:           use,
		Short:         "Explain why a GPU pod waits, with proof, and get it running",
		Example:       "  unpend demo\n  unpend why -A\n  unpend why pod/trainer -n ml",
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          console.KnownCommand,
		RunE: func(c *cobra.Command, _ []string) error {
			if version {
				return writeVersion(std)
			}
			return c.Help()
		},
		SuggestionsMinimumDistance: 2,
		Annotations:                map[string]string{cobra.CommandDisplayNameAnnotation: use},
	}
	root.SetIn(std.In)
	root.SetOut(std.Out)
	root.SetErr(std.Err)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return console.Usage("%v; see '%s --help'", err, c.CommandPath())
	})
	root.Flags().BoolVar(&version, "version", false, "say what this binary was built from")
	kube := sources.NewKubeFlags(root.PersistentFlags())
	kube.BindOwners(root.PersistentFlags())
	root.AddCommand(whyCommand(kube, std), dumpCommand(kube, std), incidentsCommand(kube, std), capacityCommand(kube, std), showCommand(kube, std), auditCommand(std), demo.Command(std), runCommand(kube, std), versionCommand(std), mcpCommand(kube, std), recall.SearchCommand(std), recall.Command(outcomesOf(kube), std), manCommand())
	root.AddCommand(decisions.Commands(kube, std)...)
	if use != "unpend" {
		root.CompletionOptions.DisableDefaultCmd = true
		root.AddCommand(pluginCompletionHelp())
	}
	if err := completes(root, kube); err != nil {
		panic(err) // a flag that is not there
	}
	return root
}

// outcomesOf reads what became of the plans of the cluster that is meant.
func outcomesOf(kube *sources.KubeFlags) func(context.Context) ([]knowledge.Outcome, error) {
	return func(ctx context.Context) ([]knowledge.Outcome, error) {
		d, err := (&sources.Source{Kube: kube}).Deps()
		if err != nil {
			return nil, err
		}
		all, err := plan.Store{Dynamic: d.Dynamic}.Outcomes(ctx)
		return all, sources.Unreachable(err)
	}
}
