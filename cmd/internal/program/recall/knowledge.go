// Package recall is `unpend knowledge` and `unpend search`, and what the other commands quote:
// the library of who calls them, on their own disk. The library of the service is
// cmd/internal/library; how documents are kept and found is knowledge.
package recall

import (
	"context"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/unpend/unpend/cmd/internal/program/console"
	"github.com/unpend/unpend/cmd/internal/terminal"
	"github.com/unpend/unpend/knowledge"
	"github.com/unpend/unpend/rca/diagnosis"
)

// Command is `unpend knowledge`; plans reads what became of those of the cluster.
func Command(plans func(context.Context) ([]knowledge.Outcome, error), std console.Stdio) *cobra.Command {
	c := &cobra.Command{
		Use:     "knowledge",
		Short:   "Keep what the team has said before: Slack threads, Jira tickets, runbooks",
		Example: "  unpend knowledge import --slack-export export.zip --slack-workspace acme\n  unpend knowledge status",
		Args:    console.KnownCommand,
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },

		SuggestionsMinimumDistance: 2,
	}
	c.AddCommand(importCommand(plans, std), knowledgeStatusCommand(std), forgetCommand(std))
	return c
}

func knowledgeStatusCommand(std console.Stdio) *cobra.Command {
	library, output := "", ""
	c := &cobra.Command{
		Use:     "status",
		Short:   "Say what the library holds, and what the last imports left out",
		Example: "  unpend knowledge status\n  unpend knowledge status -o json",
		Args:    console.Arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if output != "" && output != "json" && output != "yaml" {
				return console.Usage("output %q is not known: use json or yaml", output)
			}
			l, err := openLibrary(library)
			if err != nil {
				return err
			}
			defer l.Close()
			s, err := readLibrary(c.Context(), l, library)
			if err != nil {
				return err
			}
			if output != "" {
				return console.PrintList(std.Out, output, s)
			}
			return s.print(std)
		},
	}
	libraryFlag(c, &library)
	c.Flags().StringVarP(&output, "output", "o", "", "json or yaml")
	return c
}

// libraryStatus is what a library holds.
type libraryStatus struct {
	APIVersion string             `json:"apiVersion"`
	Kind       string             `json:"kind"`
	Library    string             `json:"library"`
	Documents  int                `json:"documents"`
	Bytes      int64              `json:"bytes"`
	Parts      []knowledge.Part   `json:"parts"`
	Imports    []knowledge.Import `json:"imports"`
}

func readLibrary(ctx context.Context, l *knowledge.Library, asked string) (s libraryStatus, err error) {
	s = libraryStatus{APIVersion: diagnosis.APIVersion, Kind: "KnowledgeStatus", Documents: l.Len()}
	if s.Library, err = libraryAt(asked); err != nil {
		return s, err
	}
	if s.Bytes, err = l.Bytes(); err != nil {
		return s, fmt.Errorf("measure the library: %w", err)
	}
	if s.Parts, err = l.Parts(ctx); err != nil {
		return s, err
	}
	s.Imports, err = l.Imports()
	if s.Imports == nil {
		s.Imports = []knowledge.Import{}
	}
	return s, err
}

func (s libraryStatus) print(std console.Stdio) error {
	fmt.Fprintf(std.Out, "%s: %s, %.1f MiB\n", terminal.Clean(s.Library), console.Plural(s.Documents, "document", "documents"), float64(s.Bytes)/(1<<20))
	w := tabwriter.NewWriter(std.Out, 0, 0, 2, ' ', 0)
	for _, p := range s.Parts {
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\n", p.Source, terminal.Clean(p.Part), terminal.Clean(p.Name), p.Documents)
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("write the status: %w", err)
	}
	for _, i := range s.Imports {
		fmt.Fprintf(std.Out, "%s from %s: %s\n", i.At.Format(time.DateTime), terminal.Clean(i.From), importText(i))
	}
	return nil
}

// forgotten is what `unpend knowledge forget -o json` prints.
type forgotten struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Name       string `json:"name"` // as it was asked for
	Documents  int    `json:"documents"`
}

func forgetCommand(std console.Stdio) *cobra.Command {
	library, output := "", ""
	c := &cobra.Command{
		Use:   "forget SOURCE|CHANNEL|PROJECT|ID|URL",
		Short: "Take documents out of the library",
		Long: `Take documents out of the library: all of a source (slack, jira, doc), of a channel, a
project or a folder by id or name, or one by its id or address. What is imported again
later is there again.`,
		Example: "  unpend knowledge forget GPU-118\n  unpend knowledge forget '#gpu-help'",
		Args:    console.Arguments(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			if output != "" && output != "json" && output != "yaml" {
				return console.Usage("output %q is not known: use json or yaml", output)
			}
			l, err := openLibrary(library)
			if err != nil {
				return err
			}
			if err := l.Close(); err != nil {
				return err
			}
			dir, err := libraryAt(library)
			if err != nil {
				return err
			}
			if l, err = knowledge.EditLibrary(dir); err != nil {
				return err
			}
			defer l.Close()
			n, err := l.Forget(c.Context(), args[0])
			if err != nil {
				return err
			}
			if n == 0 {
				return fmt.Errorf("nothing of the library is called %s: see 'unpend knowledge status'", args[0])
			}
			if output != "" {
				return console.PrintList(std.Out, output, forgotten{diagnosis.APIVersion, "KnowledgeForgotten", args[0], n})
			}
			fmt.Fprintf(std.Out, "forgot %s\n", console.Plural(n, "document", "documents"))
			return nil
		},
	}
	libraryFlag(c, &library)
	c.Flags().StringVarP(&output, "output", "o", "", "json or yaml")
	return c
}
