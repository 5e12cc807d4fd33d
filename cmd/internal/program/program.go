// Package program is unpend: its commands. cmd/unpend gives it the process. A command is a
// file; what it shows is drawn by cmd/internal/terminal, and what it finds out or changes by
// rca and remediate. What `unpend run` runs is cmd/internal/service.
package program

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // the ways people log in to clusters
	"k8s.io/klog/v2"

	"github.com/unpend/unpend/cmd/internal/terminal"
)

// Exit codes, as README lists them.
const (
	exitDone     = 0
	exitError    = 1
	exitUsage    = 2
	exitFindings = 3
	exitRefused  = 4
	exitStale    = 5
	exitUnknown  = 6
)

// Stdio is where a command reads and writes: data goes to Out, progress and
// complaints to Err.
type Stdio struct {
	In  io.Reader
	Out io.Writer
	Err io.Writer
	// answers reads In line by line; what it has read ahead is not lost between two
	// questions.
	answers *bufio.Reader
}

// Run is the whole program, called as args[0], until it is done or ctx ends; it returns
// the exit code.
func Run(ctx context.Context, args []string, std Stdio) int {
	std.answers = bufio.NewReader(std.In)
	klog.SetSlogLogger(slog.New(slog.DiscardHandler)) // client-go's own log, its errors too: what matters of it is in our sentences
	if filepath.Base(args[0]) == pluginCompletion {
		args = append([]string{args[0], cobra.ShellCompRequestCmd}, args[1:]...)
	}
	root := rootCommand(args[0], std)
	root.SetArgs(args[1:])
	err := root.ExecuteContext(ctx)
	var coded *codedError
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &coded):
		if coded.err != nil {
			complain(std.Err, coded.err)
		}
		return coded.code
	}
	complain(std.Err, err)
	return exitError
}

// complain writes one line: an error may hold names from the cluster, and what a server
// said.
func complain(w io.Writer, err error) {
	fmt.Fprintf(w, "unpend: %s\n", terminal.Clean(err.Error()))
}

// codedError carries an exit code; without err there is nothing left to say.
type codedError struct {
	code int
	err  error
}

func (e *codedError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit %d", e.code)
	}
	return e.err.Error()
}

func (e *codedError) Unwrap() error { return e.err }

func usage(format string, args ...any) error {
	return &codedError{exitUsage, fmt.Errorf(format, args...)}
}

// arguments makes a complaint about arguments one about usage.
func arguments(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if err := check(c, args); err != nil {
			return usage("%v; see '%s --help'", err, c.CommandPath())
		}
		return nil
	}
}

// knownCommand is asked when no command has the name of the first argument.
func knownCommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if near := c.SuggestionsFor(args[0]); len(near) > 0 {
		return usage("command %q is not known; did you mean %s?", args[0], strings.Join(near, " or "))
	}
	return usage("command %q is not known; see '%s --help'", args[0], c.CommandPath())
}

func rootCommand(name string, std Stdio) *cobra.Command {
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
		Args:          knownCommand,
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
		return usage("%v; see '%s --help'", err, c.CommandPath())
	})
	root.Flags().BoolVar(&version, "version", false, "say what this binary was built from")
	kube := newKubeFlags(root.PersistentFlags())
	kube.bindOwners(root.PersistentFlags())
	root.AddCommand(whyCommand(kube, std), dumpCommand(kube, std), incidentsCommand(kube, std), capacityCommand(kube, std), showCommand(kube, std), waitCommand(kube, std), approveCommand(kube, std), rejectCommand(kube, std), releaseCommand(kube, std), remediationsCommand(kube, std), statusCommand(kube, std), auditCommand(std), demoCommand(std), runCommand(kube, std), versionCommand(std), mcpCommand(kube, std), searchCommand(std), knowledgeCommand(kube, std), manCommand())
	if use != "unpend" {
		root.CompletionOptions.DisableDefaultCmd = true
		root.AddCommand(pluginCompletionHelp())
	}
	if err := completes(root, kube); err != nil {
		panic(err) // a flag that is not there
	}
	return root
}
