package recall

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

	"github.com/unpend/unpend/cmd/internal/program/console"
	"github.com/unpend/unpend/cmd/internal/terminal"
	"github.com/unpend/unpend/knowledge"
	"github.com/unpend/unpend/knowledge/jira"
	"github.com/unpend/unpend/knowledge/slack"
	"github.com/unpend/unpend/rca/diagnosis"
)

// importOptions are the flags of `knowledge import`.
type importOptions struct {
	library string
	output  string

	slack          bool
	slackToken     string // the file that holds it
	slackURL       string // of its API, in tests
	slackExport    string
	slackWorkspace string
	channels       []string
	private        []string

	jiraURL      string
	jiraUser     string
	jiraToken    string // the file that holds it
	jiraProjects []string
	jiraExport   string
	jiraSite     string
	jiraComplete bool

	allow []string

	folder string

	plans    func(context.Context) ([]knowledge.Outcome, error) // what became of those of the cluster
	outcomes bool

	embeddings embeddings
}

func importCommand(plans func(context.Context) ([]knowledge.Outcome, error), std console.Stdio) *cobra.Command {
	o := &importOptions{plans: plans}
	c := &cobra.Command{
		Use:   "import",
		Short: "Read Slack threads, Jira tickets or runbooks into the library",
		Long: `Read Slack threads, Jira tickets or runbooks into the library. People are kept by their
ids. What is there as it is stays, what was edited is replaced, and what is gone is taken
out: from a channel, of the days that the export has; from a folder; from a Jira project
with --jira-complete. An import that was stopped goes on when it is called again.

With --slack and --jira-url Slack and Jira are asked: for all at first, and then for what is
new. Of Slack threads of the last 30 days are looked at again, and of Jira what was deleted
is found once a day. Slack lets an internal app of your own organisation read 50 pages a
minute, and any other one 15 messages a minute.`,
		Example: `  unpend knowledge import --slack --slack-token-file token --channel gpu-help
  unpend knowledge import --jira-url https://acme.atlassian.net --jira-user bot@acme.com --jira-token-file token --jira-project OPS
  unpend knowledge import --slack-export export.zip --slack-workspace acme
  unpend knowledge import --jira-export gpu.json
  unpend knowledge import --folder runbooks-of-the-team
  unpend knowledge import --outcomes -o json`,
		Args: console.Arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error { return o.run(c.Context(), std) },
	}
	libraryFlag(c, &o.library)
	f := c.Flags()
	f.StringVarP(&o.output, "output", "o", "", "json or yaml")
	f.BoolVar(&o.slack, "slack", false, "ask Slack: of the channels that are named, or of all public ones that the app is in")
	f.StringVar(&o.slackToken, "slack-token-file", "", "file that holds the token of a Slack app of your own (xoxb-…)")
	f.StringVar(&o.slackURL, "slack-api", "", "address of Slack's API")
	f.MarkHidden("slack-api") //nolint:errcheck // it is there
	f.StringVar(&o.jiraURL, "jira-url", "", "ask Jira: the address of its site, or for a token with scopes https://api.atlassian.com/ex/jira/<cloud id>")
	f.StringVar(&o.jiraUser, "jira-user", "", "e-mail address of the account, on Cloud; on Data Center none")
	f.StringVar(&o.jiraToken, "jira-token-file", "", "file that holds the API token, on Data Center a personal access token")
	f.StringSliceVar(&o.jiraProjects, "jira-project", nil, "the projects to read, by key")
	f.StringSliceVar(&o.allow, "outbound-allow", nil, "names, addresses and networks that are not public and may be asked, such as jira.example.internal")
	f.StringVar(&o.slackExport, "slack-export", "", "zip of a Slack workspace export")
	f.StringVar(&o.slackWorkspace, "slack-workspace", "", "first part of the workspace's address, for links: WORKSPACE.slack.com")
	f.StringSliceVar(&o.channels, "channel", nil, "only these public channels, by name or id")
	f.StringSliceVar(&o.private, "private-channel", nil, "these private channels, too, by name or id")
	f.StringVar(&o.jiraExport, "jira-export", "", "file of what Jira's REST search answered (issues with their fields)")
	f.StringVar(&o.jiraSite, "jira-site", "", "address that people browse, for links, such as https://acme.atlassian.net")
	f.BoolVar(&o.jiraComplete, "jira-complete", false, "the file has every ticket of its projects: others were deleted")
	f.StringVar(&o.folder, "folder", "", "folder of Markdown runbooks and past incidents")
	f.BoolVar(&o.outcomes, "outcomes", false, "what became of the plans of the cluster: they stay when it forgets the plans")
	o.embeddings.flags(c)
	return c
}

// job is one source to import.
type job struct {
	source knowledge.Source
	name   string // slack, jira, doc or outcome
	from   string
	bytes  int64
	watch  func(func(io.Reader) io.Reader)     // of a file; nil: it is none
	count  func(func(done int, share float64)) // of what is asked for; nil: it is a file
	unit   string                              // that is counted then
	close  func() error
}

// check says which flags do not go together.
func (o *importOptions) check() error {
	switch {
	case o.output != "" && o.output != "json" && o.output != "yaml":
		return console.Usage("output %q is not known: use json or yaml", o.output)
	case o.slackExport+o.jiraExport+o.folder+o.jiraURL == "" && !o.slack && !o.outcomes:
		return console.Usage("name what to import: --slack, --jira-url URL, --slack-export FILE.zip, --jira-export FILE, --folder DIR or --outcomes")
	case o.slack && o.slackExport != "" || o.jiraURL != "" && o.jiraExport != "":
		return console.Usage("import an export and what Slack or Jira answers one after the other")
	case o.slack != (o.slackToken != ""):
		return console.Usage("--slack and --slack-token-file go together")
	case o.jiraURL != "" && (o.jiraToken == "" || len(o.jiraProjects) == 0):
		return console.Usage("--jira-url needs --jira-token-file and --jira-project")
	case o.jiraURL == "" && (o.jiraToken+o.jiraUser != "" || len(o.jiraProjects) > 0):
		return console.Usage("--jira-token-file, --jira-user and --jira-project are of a --jira-url")
	case o.slackExport == "" && o.slackWorkspace != "", o.slackExport == "" && !o.slack && len(o.channels)+len(o.private) > 0:
		return console.Usage("--slack-workspace, --channel and --private-channel are of a --slack-export, the latter two also of --slack")
	case o.jiraExport == "" && o.jiraComplete, o.jiraExport+o.jiraURL == "" && o.jiraSite != "":
		return console.Usage("--jira-site and --jira-complete are of a --jira-export, the former also of --jira-url")
	}
	return nil
}

func (o *importOptions) run(ctx context.Context, std console.Stdio) (err error) {
	if err := o.check(); err != nil {
		return err
	}
	if _, err := o.embeddings.client(); err != nil { // before anything is changed
		return err
	}
	jobs, err := o.jobs(ctx, std)
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
	done, err := o.read(ctx, l, jobs, std)
	if o.output != "" {
		if printed := console.PrintList(std.Out, o.output, done); err == nil {
			err = printed
		}
	}
	return err
}

// importList is what `unpend knowledge import -o json` prints: what was read, also where it ends
// with an error.
type importList struct {
	APIVersion string             `json:"apiVersion"`
	Kind       string             `json:"kind"`
	Items      []knowledge.Import `json:"items"`
	Vectors    *learned           `json:"vectors,omitempty"` // where an endpoint was asked what texts mean
}

// read reads one job after the other, and says of each what came of it.
func (o *importOptions) read(ctx context.Context, l *knowledge.Library, jobs []job, std console.Stdio) (importList, error) {
	all := importList{APIVersion: diagnosis.APIVersion, Kind: "KnowledgeImport", Items: []knowledge.Import{}}
	say := func(format string, of ...any) {
		if o.output == "" {
			fmt.Fprintf(std.Out, format, of...)
		}
	}
	for _, j := range jobs {
		done, err := j.run(ctx, l, std)
		if err != nil {
			return all, err
		}
		all.Items = append(all.Items, done)
		say("%s: %s\n", terminal.Clean(j.from), importText(done))
	}
	var err error
	if all.Vectors, err = o.embeddings.learn(ctx, l); all.Vectors != nil {
		say("%s", all.Vectors.text())
	}
	return all, err
}

// jobs opens what is to be imported, before anything is changed.
func (o *importOptions) jobs(ctx context.Context, std console.Stdio) ([]job, error) {
	var out []job
	nothing := func() error { return nil }
	for _, asked := range []struct {
		is   bool
		open func(console.Stdio) (job, error)
	}{{o.slack, o.askSlack}, {o.jiraURL != "", o.askJira}, {o.outcomes, func(console.Stdio) (job, error) { return o.askOutcomes(ctx) }}} {
		if !asked.is {
			continue
		}
		j, err := asked.open(std)
		if err != nil {
			return out, err
		}
		out = append(out, j)
	}
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
		out = append(out, job{source: knowledge.Folder{Dir: o.folder}, name: "doc", from: o.folder, close: nothing})
	}
	return out, nil
}

func (j job) run(ctx context.Context, l *knowledge.Library, std console.Stdio) (knowledge.Import, error) {
	if console.IsTerminal(std.Err) && j.watch != nil {
		bar := terminal.NewProgress(std.Err, nil, "import "+filepath.Base(j.from), j.bytes, time.Now)
		defer bar.Close()
		j.watch(bar.From)
	}
	if console.IsTerminal(std.Err) && j.count != nil {
		bar := terminal.NewCount(std.Err, j.from, j.unit, time.Now)
		defer bar.Close()
		j.count(bar.Set)
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
