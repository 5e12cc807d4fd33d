// Command unpend explains why a GPU pod waits and gets it running. The same
// binary under the name kubectl-unpend is a kubectl plugin.
package main

import (
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
	code := run(ctx, os.Args, stdio{os.Stdin, os.Stdout, os.Stderr})
	stop()
	os.Exit(code)
}

// stdio is where a command reads and writes: data goes to out, progress and
// complaints to err.
type stdio struct {
	in  io.Reader
	out io.Writer
	err io.Writer
}

// run is the whole program; it returns the exit code.
func run(ctx context.Context, args []string, std stdio) int {
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

func complain(w io.Writer, err error) {
	fmt.Fprintf(w, "unpend: %v\n", err)
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

func rootCommand(name string, std stdio) *cobra.Command {
	kube := genericclioptions.NewConfigFlags(true)
	use := "unpend"
	if strings.HasPrefix(filepath.Base(name), "kubectl-") {
		use = "kubectl unpend"
	}
	root := &cobra.Command{
		Use:           use,
		Short:         "Explain why a GPU pod waits, with proof, and get it running",
		Example:       "  unpend demo\n  unpend why -A\n  unpend why pod/trainer -n ml",
		SilenceUsage:  true,
		SilenceErrors: true,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: use},
	}
	root.SetIn(std.in)
	root.SetOut(std.out)
	root.SetErr(std.err)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usage("%v; see '%s --help'", err, c.CommandPath())
	})
	kube.AddFlags(root.PersistentFlags())
	root.AddCommand(whyCommand(kube, std), dumpCommand(kube, std), incidentsCommand(kube, std), approveCommand(kube, std), demoCommand(std), runCommand(kube, std))
	return root
}
