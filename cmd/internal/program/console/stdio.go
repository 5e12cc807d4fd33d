// Package console is what every command stands on: where it reads and writes, the exit codes,
// complaints, questions to a person, and lists for machines. It knows nothing of clusters; what
// is drawn for people is drawn by cmd/internal/terminal.
package console

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/unpend/unpend/cmd/internal/terminal"
)

// Exit codes, as README lists them.
const (
	exitDone     = 0
	ExitError    = 1
	ExitUsage    = 2
	ExitFindings = 3
	ExitRefused  = 4
	ExitStale    = 5
	ExitUnknown  = 6
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

// Buffered is the same, and can ask questions.
func (s Stdio) Buffered() Stdio {
	s.answers = bufio.NewReader(s.In)
	return s
}

// Complain writes one line: an error may hold names from the cluster, and what a server
// said.
func Complain(w io.Writer, err error) {
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

// Exit is an error with which the program ends by a code; without an error there is nothing
// left to say.
func Exit(code int, err error) error { return &codedError{code, err} }

// CodeOf is the exit code that an error stands for, and what is left to say of it.
func CodeOf(err error) (code int, says error) {
	var coded *codedError
	switch {
	case err == nil:
		return exitDone, nil
	case errors.As(err, &coded):
		return coded.code, coded.err
	}
	return ExitError, err
}

// Usage is a complaint about how a command was called.
func Usage(format string, args ...any) error {
	return Exit(ExitUsage, fmt.Errorf(format, args...))
}

// Arguments makes a complaint about arguments one about usage.
func Arguments(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if err := check(c, args); err != nil {
			return Usage("%v; see '%s --help'", err, c.CommandPath())
		}
		return nil
	}
}

// KnownCommand is asked when no command has the name of the first argument.
func KnownCommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if near := c.SuggestionsFor(args[0]); len(near) > 0 {
		return Usage("command %q is not known; did you mean %s?", args[0], strings.Join(near, " or "))
	}
	return Usage("command %q is not known; see '%s --help'", args[0], c.CommandPath())
}
