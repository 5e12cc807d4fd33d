package recall

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/unpend/unpend/cmd/internal/program/console"
	"github.com/unpend/unpend/cmd/internal/terminal"
	"github.com/unpend/unpend/knowledge"
)

// maxPast is how many documents are told beside a finding.
const maxPast = 3

// Past are the flags of who looks into what the team has said before.
type Past struct {
	folder  string
	library string
}

// Flags say where to look.
func (p *Past) Flags(c *cobra.Command) {
	c.Flags().StringVar(&p.folder, "knowledge", "", "folder of Markdown runbooks and past incidents")
	libraryFlag(c, &p.library)
}

func libraryFlag(c *cobra.Command, dir *string) {
	c.Flags().StringVar(dir, "library", "", "folder of what 'unpend knowledge import' has read; by default unpend/knowledge in the user's data folder ($XDG_DATA_HOME)")
}

// libraryAt is the folder of the library: the one that was asked for, or the user's.
func libraryAt(asked string) (string, error) {
	if asked != "" {
		return asked, nil
	}
	data := os.Getenv("XDG_DATA_HOME")
	if !filepath.IsAbs(data) { // as the XDG base directory specification has it
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("find the knowledge library: %w; name its folder with --library", err)
		}
		data = filepath.Join(home, ".local", "share")
	}
	return filepath.Join(data, "unpend", "knowledge"), nil
}

// finder finds what the team has said about some words.
type finder func(ctx context.Context, words []string) ([]knowledge.Hit, error)

// Open opens what there is; no finder where there is nothing. The library that nobody
// asked for is no reason to hold a diagnosis back.
func (p *Past) Open(ctx context.Context, std console.Stdio) (find finder, done func(), err error) {
	var shelves []*knowledge.Index
	done = func() {
		for _, s := range shelves {
			s.Close() //nolint:errcheck // it was only read
		}
	}
	if p.folder != "" {
		index, err := knowledge.OpenFolder(ctx, p.folder)
		if err != nil {
			return nil, done, fmt.Errorf("read knowledge: %w", err)
		}
		for _, s := range index.Skipped() {
			fmt.Fprintf(std.Err, "unpend: knowledge: %s\n", terminal.Clean(s))
		}
		shelves = append(shelves, index)
	}
	dir, err := libraryAt(p.library)
	var library *knowledge.Library
	if err == nil {
		library, err = knowledge.OpenLibrary(dir)
	}
	switch {
	case err == nil:
		shelves = append(shelves, library.Index)
	case p.library != "":
		done()
		return nil, func() {}, err
	case !errors.Is(err, fs.ErrNotExist):
		console.Complain(std.Err, fmt.Errorf("%w; what it holds is not told", err))
	}
	if len(shelves) == 0 {
		return nil, done, nil
	}
	return func(ctx context.Context, words []string) ([]knowledge.Hit, error) {
		return knowledge.SearchAll(ctx, shelves, words, 2*maxPast) // of outcomes some stand there already
	}, done, nil
}

// Search searches what the user has imported.
func (p *Past) Search(ctx context.Context, query string, n int) ([]knowledge.Hit, error) {
	library, err := openLibrary(p.library)
	if err != nil {
		return nil, err
	}
	defer library.Close() //nolint:errcheck // it was only read
	return library.Search(ctx, []string{query}, n)
}
