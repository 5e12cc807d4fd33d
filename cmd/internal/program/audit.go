package program

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/unpend/unpend/cmd/internal/program/console"
	"github.com/unpend/unpend/cmd/internal/terminal"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/audit"
)

func auditCommand(std console.Stdio) *cobra.Command {
	c := &cobra.Command{
		Use:     "audit",
		Short:   "Look into the audit trail of what unpend changed",
		Example: "  unpend audit verify audit.jsonl\n  kubectl logs audit-copy | unpend audit verify -",
		Args:    console.KnownCommand,
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },

		SuggestionsMinimumDistance: 2,
	}
	c.AddCommand(auditVerifyCommand(std))
	return c
}

type verifyOptions struct {
	head   string
	output string
}

func auditVerifyCommand(std console.Stdio) *cobra.Command {
	o := &verifyOptions{}
	c := &cobra.Command{
		Use:   "verify [FILE...|-]",
		Short: "Say whether a line of an audit trail was edited, removed or reordered",
		Long: `Say whether a line of an audit trail was edited, removed or reordered, and which.
That its end was cut off shows only with --head: a hash of the trail that was posted
elsewhere (a Remediation's status.auditHead, a ticket). A trail may have gone on since.
Exit 0: every trail is intact; 1: one is not, or could not be read.`,
		Example: `  unpend audit verify audit.jsonl
  unpend audit verify audit.jsonl --head "$(kubectl get remediation NAME -o jsonpath={.status.auditHead})"
  unpend audit verify -o json - < audit.jsonl`,
		RunE: func(c *cobra.Command, args []string) error {
			return o.run(c.Context(), args, std)
		},
	}
	c.Flags().StringVar(&o.head, "head", "", "a hash of the trail, 64 hex, that was posted elsewhere: it is to be in there")
	c.Flags().StringVarP(&o.output, "output", "o", "", "json")
	return c
}

// auditReport is what machines get of one trail.
type auditReport struct {
	File   string `json:"file"`
	Intact bool   `json:"intact"`
	audit.Report
	Line  int    `json:"line,omitempty"`  // the first that is broken
	Error string `json:"error,omitempty"` // one sentence
}

func (o *verifyOptions) run(ctx context.Context, files []string, std console.Stdio) error {
	switch {
	case o.output != "" && o.output != "json":
		return console.Usage("output %q is not known: use json", o.output)
	case o.head != "" && !audit.IsHash(o.head):
		return console.Usage("head %q is not a hash: 64 hex in lower case were expected", o.head)
	case o.head != "" && len(files) > 1:
		return console.Usage("--head is of one trail: name one FILE")
	case len(files) == 0 && console.IsTerminal(std.In):
		return console.Usage("name the FILE of an audit trail, or - for stdin; see 'unpend audit verify --help'")
	case len(files) == 0:
		files = []string{"-"}
	}
	var reports []auditReport
	broken := false
	for _, file := range files {
		report, err := o.verify(ctx, file, std)
		a := auditReport{File: file, Intact: err == nil, Report: report}
		if err != nil {
			a.Error, broken = err.Error(), true
			if b, ok := errors.AsType[*audit.BrokenError](err); ok {
				a.Line = b.Line
			}
			console.Complain(std.Err, fmt.Errorf("audit trail %s: %w", nameOf(file), err))
		}
		reports = append(reports, a)
	}
	if err := o.print(std.Out, reports); err != nil {
		return err
	}
	if broken {
		return console.Exit(console.ExitError, nil) // each was said
	}
	return nil
}

func nameOf(file string) string {
	if file == "-" {
		return "stdin"
	}
	return file
}

func (o *verifyOptions) verify(ctx context.Context, file string, std console.Stdio) (audit.Report, error) {
	in, size := std.In, int64(0)
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return audit.Report{}, err
		}
		defer f.Close()
		if info, err := f.Stat(); err == nil {
			size = info.Size()
		}
		in = f
	}
	in = interruptible(ctx, in)
	if console.IsTerminal(std.Err) {
		bar := terminal.NewProgress(std.Err, in, "verify "+nameOf(file), size, time.Now)
		defer bar.Close()
		in = bar
	}
	return audit.Verify(in, o.head)
}

// print shows the trails that are intact to a person, all of them to a machine.
func (o *verifyOptions) print(w io.Writer, reports []auditReport) error {
	if o.output == "json" {
		return console.PrintList(w, o.output, struct {
			APIVersion string        `json:"apiVersion"`
			Kind       string        `json:"kind"`
			Items      []auditReport `json:"items"`
		}{diagnosis.APIVersion, "AuditReportList", reports})
	}
	for _, r := range reports {
		if !r.Intact {
			continue
		}
		lines := "1 line"
		if r.Lines != 1 {
			lines = fmt.Sprintf("%d lines", r.Lines)
		}
		fmt.Fprintf(w, "%s is intact: %s from %s to %s\n", nameOf(r.File), lines, r.From.Format(time.RFC3339), r.To.Format(time.RFC3339))
		if r.Posted > 0 {
			fmt.Fprintf(w, "posted %s: line %d\n", o.head, r.Posted)
		}
		if _, err := fmt.Fprintf(w, "head %s\n", r.Head); err != nil {
			return fmt.Errorf("write the result: %w", err)
		}
	}
	return nil
}

// reader is a function that reads.
type reader func([]byte) (int, error)

// Read implements io.Reader.
func (r reader) Read(b []byte) (int, error) { return r(b) }

// interruptible reads from r until ctx ends.
func interruptible(ctx context.Context, r io.Reader) io.Reader {
	return reader(func(b []byte) (int, error) {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		return r.Read(b)
	})
}
