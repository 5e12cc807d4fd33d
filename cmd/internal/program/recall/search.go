package recall

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"

	"github.com/unpend/unpend/cmd/internal/program/console"
	"github.com/unpend/unpend/cmd/internal/terminal"
	"github.com/unpend/unpend/knowledge"
	"github.com/unpend/unpend/rca/diagnosis"
)

// searchOptions are the flags of `search`.
type searchOptions struct {
	library string
	output  string
	limit   int

	embeddings embeddings
}

// SearchCommand is `unpend search`.
func SearchCommand(std console.Stdio) *cobra.Command {
	o := &searchOptions{}
	c := &cobra.Command{
		Use:   "search TEXT...",
		Short: "Find what the team has said before, in what was imported",
		Long: `Find what the team has said before, in what 'unpend knowledge import' has read. The
words are free text, names and error strings in any mixture, never query syntax. Nothing
is told when nothing is like it.`,
		Example: `  unpend search "2g.10gb pending a100"
  unpend search Xid 79 fell off the bus -o json`,
		Args: console.Arguments(cobra.MinimumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error { return o.run(c.Context(), args, std) },
	}
	libraryFlag(c, &o.library)
	c.Flags().StringVarP(&o.output, "output", "o", "", "json or yaml")
	c.Flags().IntVar(&o.limit, "limit", 5, "how many to show at most")
	o.embeddings.flags(c)
	return c
}

func (o *searchOptions) run(ctx context.Context, words []string, std console.Stdio) error {
	switch {
	case o.output != "" && o.output != "json" && o.output != "yaml":
		return console.Usage("output %q is not known: use json or yaml", o.output)
	case o.limit < 1:
		return console.Usage("--limit %d: one at least", o.limit)
	}
	library, err := openLibrary(o.library)
	if err != nil {
		return err
	}
	defer library.Close()
	// One phrase: a shell parts what a person typed.
	hits, err := o.embeddings.search(ctx, library, []string{strings.Join(words, " ")}, o.limit, std)
	if err != nil {
		return err
	}
	if o.output != "" {
		return console.PrintList(std.Out, o.output, List(hits))
	}
	if len(hits) == 0 {
		fmt.Fprintf(std.Err, "Nothing like it among %s.\n", console.Plural(library.Len(), "document", "documents"))
	}
	for n, h := range hits {
		if n > 0 {
			fmt.Fprintln(std.Out)
		}
		if _, err := fmt.Fprint(std.Out, hitText(h)); err != nil {
			return fmt.Errorf("write what was found: %w", err)
		}
	}
	return nil
}

// hitList is what `unpend search -o json` prints.
type hitList struct {
	APIVersion string          `json:"apiVersion"`
	Kind       string          `json:"kind"`
	Items      []knowledge.Hit `json:"items"`
}

// List is what was found, for machines.
func List(hits []knowledge.Hit) hitList {
	if hits == nil {
		hits = []knowledge.Hit{}
	}
	return hitList{diagnosis.APIVersion, "KnowledgeList", hits}
}

// hitText is a hit for people: what, where from, the passage, the address.
func hitText(h knowledge.Hit) string {
	lines := []string{h.Title, "  " + h.From(), "  " + strings.Join(strings.Fields(h.Quote), " ")}
	if h.URL != "" {
		lines = append(lines, "  "+h.URL)
	}
	for i, l := range lines {
		lines[i] = terminal.Clean(l)
	}
	return strings.Join(lines, "\n") + "\n"
}

// openLibrary opens the library to be read; where none is, it says what makes one.
func openLibrary(asked string) (*knowledge.Library, error) {
	dir, err := libraryAt(asked)
	if err != nil {
		return nil, err
	}
	l, err := knowledge.OpenLibrary(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("no knowledge library is in %s: make one with 'unpend knowledge import'", dir)
	}
	return l, err
}
