package program

import (
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/unpend/unpend/cmd/internal/program/console"
)

// manCommand writes the man pages, for who packages the program.
func manCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "man DIR",
		Short:   "Write a man page of every command into a folder",
		Example: "  unpend man man1\n  unpend man /usr/local/share/man/man1",
		Args:    console.Arguments(cobra.ExactArgs(1)),
		Hidden:  true,
		RunE:    func(c *cobra.Command, args []string) error { return writeMan(c.Root(), args[0]) },
	}
}

// writeMan dates the pages as the binary: the same binary writes the same pages.
func writeMan(root *cobra.Command, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("write man pages: %w", err)
	}
	b := readBuild()
	made, err := time.Parse(time.RFC3339, b.Date)
	if err != nil {
		made = time.Unix(0, 0).UTC()
	}
	root.DisableAutoGenTag = true
	header := &doc.GenManHeader{Section: "1", Manual: "unpend", Source: "unpend " + b.Version, Date: &made}
	if err := doc.GenManTree(root, header, dir); err != nil {
		return fmt.Errorf("write man pages: %w", err)
	}
	return nil
}
