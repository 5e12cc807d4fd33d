// Command unpend explains why a GPU pod waits and gets it running. The same
// binary under the name kubectl-unpend is a kubectl plugin.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
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
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args, stdio{in: os.Stdin, out: os.Stdout, err: os.Stderr})
	stop()
	os.Exit(code)
}

// stdio is where a command reads and writes: data goes to out, progress and
// complaints to err.
type stdio struct {
	in io.Reader
	// answers reads in line by line; what it has read ahead is not lost between two
	// questions.
	answers *bufio.Reader
	out     io.Writer
	err     io.Writer
}

// run is the whole program; it returns the exit code.
func run(ctx context.Context, args []string, std stdio) int {
	std.answers = bufio.NewReader(std.in)
	klog.SetOutput(io.Discard) // client-go's own log: what matters of it is in our sentences
	klog.LogToStderr(false)
	root := rootCommand(args[0], std)
	root.SetArgs(args[1:])
	err := root.ExecuteContext(ctx)
	var coded *codedError
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &coded):
		if coded.err != nil {
			complain(std.err, coded.err)
		}
		return coded.code
	}
	complain(std.err, err)
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

func rootCommand(name string, std stdio) *cobra.Command {
	kube := genericclioptions.NewConfigFlags(true)
	use := "unpend"
	if strings.HasPrefix(filepath.Base(name), "kubectl-") {
		use = "kubectl unpend"
	}
	root := &cobra.Command{
		Use:                        use,
		Short:                      "Explain why a GPU pod waits, with proof, and get it running",
		Example:                    "  unpend demo\n  unpend why -A\n  unpend why pod/trainer -n ml",
		SilenceUsage:               true,
		SilenceErrors:              true,
		Args:                       knownCommand,
		RunE:                       func(c *cobra.Command, _ []string) error { return c.Help() },
		SuggestionsMinimumDistance: 2,
		Annotations:                map[string]string{cobra.CommandDisplayNameAnnotation: use},
	}
	root.SetIn(std.in)
	root.SetOut(std.out)
	root.SetErr(std.err)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usage("%v; see '%s --help'", err, c.CommandPath())
	})
	kube.AddFlags(root.PersistentFlags())
	root.AddCommand(whyCommand(kube, std), dumpCommand(kube, std), incidentsCommand(kube, std), capacityCommand(kube, std), approveCommand(kube, std), rejectCommand(kube, std), remediationsCommand(kube, std), statusCommand(kube, std), auditCommand(std), demoCommand(std), runCommand(kube, std), versionCommand(std))
	return root
}
