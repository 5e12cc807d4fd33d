package program

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/unpend/unpend/cmd/internal/terminal"
	"github.com/unpend/unpend/knowledge"
	"github.com/unpend/unpend/knowledge/jira"
	"github.com/unpend/unpend/knowledge/slack"
)

// importOptions are the flags of `knowledge import`.
type importOptions struct {
	library string

	slackExport    string
	slackWorkspace string
	channels       []string
	private        []string

	jiraExport   string
	jiraSite     string
	jiraComplete bool

	folder string

	embeddings embeddings
}

func importCommand(std Stdio) *cobra.Command {
	o := &importOptions{}
	c := &cobra.Command{
		Use:   "import",
		Short: "Read Slack threads, Jira tickets or runbooks into the library",
		Long: `Read Slack threads, Jira tickets or runbooks into the library. People are kept by their
ids. What is there as it is stays, what was edited is replaced, and what is gone is taken
out: from a channel, of the days that the export has; from a folder; from a Jira project
with --jira-complete. An import that was stopped goes on when it is called again.`,
		Example: `  unpend knowledge import --slack-export export.zip --slack-workspace acme
  unpend knowledge import --jira-export gpu.json
  unpend knowledge import --folder runbooks-of-the-team`,
		Args: arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error { return o.run(c.Context(), std) },
	}
	libraryFlag(c, &o.library)
	f := c.Flags()
	f.StringVar(&o.slackExport, "slack-export", "", "zip of a Slack workspace export")
	f.StringVar(&o.slackWorkspace, "slack-workspace", "", "first part of the workspace's address, for links: WORKSPACE.slack.com")
	f.StringSliceVar(&o.channels, "channel", nil, "only these public channels, by name or id")
	f.StringSliceVar(&o.private, "private-channel", nil, "these private channels, too, by name or id")
	f.StringVar(&o.jiraExport, "jira-export", "", "file of what Jira's REST search answered (issues with their fields)")
	f.StringVar(&o.jiraSite, "jira-site", "", "address that people browse, for links, such as https://acme.atlassian.net")
	f.BoolVar(&o.jiraComplete, "jira-complete", false, "the file has every ticket of its projects: others were deleted")
	f.StringVar(&o.folder, "folder", "", "folder of Markdown runbooks and past incidents")
	o.embeddings.flags(c)
	return c
}

// job is one source to import.
type job struct {
	source knowledge.Source
	name   string // slack, jira or doc
	from   string
	bytes  int64
	watch  func(func(io.Reader) io.Reader)
	close  func() error
}

func (o *importOptions) run(ctx context.Context, std Stdio) (err error) {
	if o.slackExport+o.jiraExport+o.folder == "" {
		return usage("name what to import: --slack-export FILE.zip, --jira-export FILE or --folder DIR")
	}
	if o.slackExport == "" && (o.slackWorkspace != "" || len(o.channels)+len(o.private) > 0) {
		return usage("--slack-workspace, --channel and --private-channel are of a --slack-export")
	}
	if o.jiraExport == "" && (o.jiraSite != "" || o.jiraComplete) {
		return usage("--jira-site and --jira-complete are of a --jira-export")
	}
	if _, err := o.embeddings.client(); err != nil { // before anything is changed
		return err
	}
	jobs, err := o.jobs()
	defer func() {
		for _, j := range jobs {
			j.close() //nolint:errcheck // it was only read
		}
	}()
	if err != nil {
		return err
	}
	dir, err := libraryAt(o.library)
	if err != nil {
		return err
	}
	l, err := knowledge.EditLibrary(dir)
	if err != nil {
		return err
	}
	defer func() {
		if closed := l.Close(); err == nil {
			err = closed
		}
	}()
	for _, j := range jobs {
		done, err := j.run(ctx, l, std)
		if err != nil {
			return err
		}
		fmt.Fprintf(std.Out, "%s: %s\n", terminal.Clean(j.from), importText(done))
	}
	return o.embeddings.learn(ctx, l, std)
}

// jobs opens what is to be imported, before anything is changed.
func (o *importOptions) jobs() ([]job, error) {
	var out []job
	nothing := func() error { return nil }
	if o.slackExport != "" {
		e, err := slack.Open(o.slackExport)
		if err != nil {
			return out, err
		}
		e.Workspace, e.Channels, e.Private = strings.TrimSuffix(o.slackWorkspace, ".slack.com"), o.channels, o.private
		out = append(out, job{source: e, name: "slack", from: o.slackExport, bytes: e.Bytes(), close: e.Close,
			watch: func(w func(io.Reader) io.Reader) { e.Watch = w }})
	}
	if o.jiraExport != "" {
		info, err := os.Stat(o.jiraExport)
		if err != nil {
			return out, fmt.Errorf("read Jira export: %w", err)
		}
		e := &jira.Export{File: o.jiraExport, Site: o.jiraSite, Complete: o.jiraComplete}
		out = append(out, job{source: e, name: "jira", from: o.jiraExport, bytes: 2 * info.Size(), close: nothing,
			watch: func(w func(io.Reader) io.Reader) { e.Watch = w }})
	}
	if o.folder != "" {
		if _, err := os.Stat(o.folder); err != nil {
			return out, fmt.Errorf("read knowledge folder: %w", err)
		}
		out = append(out, job{source: knowledge.Folder{Dir: o.folder}, name: "doc", from: o.folder, close: nothing,
			watch: func(func(io.Reader) io.Reader) {}})
	}
	return out, nil
}

func (j job) run(ctx context.Context, l *knowledge.Library, std Stdio) (knowledge.Import, error) {
	if isTerminal(std.Err) {
		bar := terminal.NewProgress(std.Err, nil, "import "+filepath.Base(j.from), j.bytes, time.Now)
		defer bar.Close()
		j.watch(bar.From)
	}
	return l.Import(ctx, j.source, j.name, j.from, time.Now())
}

// importText says what an import did, and what it left out.
func importText(i knowledge.Import) string {
	lines := []string{fmt.Sprintf("%d new, %d changed, %d as before, %d removed", i.Added, i.Changed, i.Same, i.Removed)}
	for _, why := range slices.Sorted(maps.Keys(i.Skipped)) {
		lines = append(lines, fmt.Sprintf("  left out: %d × %s", i.Skipped[why], terminal.Clean(why)))
	}
	return strings.Join(lines, "\n")
}
