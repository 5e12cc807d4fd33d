package jira

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/unpend/unpend/knowledge"
)

// ticket is an issue as Jira's REST API gives it.
type ticket struct {
	Key    string  `json:"key"`
	Self   string  `json:"self"`
	Fields *fields `json:"fields"`
}

type fields struct {
	Summary     string          `json:"summary"`
	Description json.RawMessage `json:"description"`
	Created     string          `json:"created"`
	Updated     string          `json:"updated"`
	Reporter    person          `json:"reporter"`
	Project     struct {
		Key  string `json:"key"`
		Name string `json:"name"`
	} `json:"project"`
	Resolution struct {
		Name string `json:"name"`
	} `json:"resolution"`
	Status struct {
		Category struct {
			Key string `json:"key"`
		} `json:"statusCategory"`
	} `json:"status"`
	Security json.RawMessage `json:"security"`
	Comment  struct {
		Comments []comment `json:"comments"`
		Total    int       `json:"total"`
	} `json:"comment"`
}

// person is told by what identifies them: on Cloud an account id, on Data Center a key.
type person struct {
	AccountID string `json:"accountId"`
	Key       string `json:"key"`
}

type comment struct {
	Body       json.RawMessage `json:"body"`
	Visibility json.RawMessage `json:"visibility"`
}

// unresolved are resolutions that say that nothing was found or done.
var unresolved = []string{"won't fix", "won't do", "won’t do", "duplicate", "cannot reproduce", "incomplete", "declined", "abandoned", "rejected"}

// createdLayout is how Jira writes a time.
const createdLayout = "2006-01-02T15:04:05.000-0700"

// document makes a document of a ticket, or says why it cannot. site is what people browse;
// empty: what the ticket says.
func document(site string, t ticket, to *knowledge.Intake) (d knowledge.Document, why string) {
	switch {
	case t.Key == "":
		return d, "a ticket without a key"
	case t.Fields == nil:
		return d, "a ticket without fields: Cloud's search gives ids alone unless it is asked for fields=*all"
	case restricted(t.Fields.Security):
		return d, "a ticket with a security level: not everybody may read it"
	}
	f := t.Fields
	project, _, _ := strings.Cut(t.Key, "-")
	d = knowledge.Document{ID: "jira/" + t.Key, Source: "jira", Part: cmp.Or(f.Project.Key, project), PartName: cmp.Or(f.Project.Name, f.Project.Key, project),
		Title: strings.TrimSpace(t.Key + " " + f.Summary), URL: browse(site, t), Who: cmp.Or(f.Reporter.AccountID, f.Reporter.Key)}
	if at, err := time.Parse(createdLayout, f.Created); err == nil {
		d.At = at.UTC().Truncate(time.Second)
	}
	var said []string
	say := func(body json.RawMessage) {
		text := plain(body)
		if len(text) > knowledge.MaxBody {
			to.Skip(t.Key, fmt.Sprintf("a description or comment of more than %d KiB", knowledge.MaxBody>>10))
			return
		}
		if text != "" && !slices.Contains(said, text) { // a bot that says the same every night
			said = append(said, text)
		}
	}
	say(f.Description)
	for _, c := range f.Comment.Comments {
		if restricted(c.Visibility) {
			to.Skip(t.Key, "a comment that not everybody may read")
			continue
		}
		say(c.Body)
	}
	name := f.Resolution.Name
	if name != "" {
		said = append(said, "Resolution: "+name)
	}
	d.Resolved = (name != "" || f.Status.Category.Key == "done") && !slices.Contains(unresolved, strings.ToLower(name))
	if d.Text = strings.Join(said, "\n\n"); d.Text == "" {
		d.Text = f.Summary
	}
	return d, ""
}

// restricted is whether a field says who may read.
func restricted(raw json.RawMessage) bool {
	s := string(raw)
	return s != "" && s != "null" && s != "{}"
}
