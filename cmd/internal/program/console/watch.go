package console

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"regexp"
	"time"

	"github.com/spf13/cobra"
)

// watchEvery is how often a command with -w looks again.
const watchEvery = 2 * time.Second

// screenful is what a command shows at one look, to be shown by another writer.
type screenful struct {
	bytes.Buffer
	of io.Writer
}

// WatchFlag is -w, of a command that reads the cluster.
func WatchFlag(c *cobra.Command, watch *bool) {
	c.Flags().BoolVarP(watch, "watch", "w", false, "look again every 2 s, and show what has changed")
}

// aged are ages and the room that columns leave for them: all that differs where nothing
// has happened.
var aged = regexp.MustCompile(`(\b(\d+(ms|[smhd]))+\b)|\s+`)

// steady is a screen without what time alone changes.
func steady(screen string) string { return aged.ReplaceAllString(screen, " ") }

// Again shows what a command shows, again each time that it has changed, until ctx ends:
// in place on a terminal, else one after the other, and not because time passes. Its exit code is that of the last look.
func Again(ctx context.Context, std Stdio, show func(ctx context.Context, std Stdio) error) error {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	last, first := "", true
	for {
		out, errs := &screenful{of: std.Out}, &screenful{of: std.Err}
		err := show(ctx, Stdio{In: std.In, Out: out, Err: errs, answers: std.answers})
		if ctx.Err() != nil {
			return nil
		}
		if code, _ := CodeOf(err); err != nil && (first || code == ExitError) {
			return err
		}
		now := errs.String() + out.String()
		if !IsTerminal(std.Out) {
			now = steady(now)
		}
		if now != last {
			if !first && IsTerminal(std.Out) {
				fmt.Fprint(std.Out, "\x1b[H\x1b[2J")
			} else if !first {
				fmt.Fprintln(std.Out)
			}
			fmt.Fprint(std.Err, errs.String())
			fmt.Fprint(std.Out, out.String())
			last = now
		}
		first = false
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}
