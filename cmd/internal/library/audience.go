package library

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/unpend/unpend/knowledge"
)

// TellRule says where some of what the team has said may be told.
type TellRule struct {
	// Of are channels, projects and folders, by id or by what people call them.
	Of []string `json:"of"`
	// To are the places that may be told of these, and no others: slack, jira and the others that
	// people are told in, or one channel or project of theirs (slack/C0123456789, jira/OPS); web
	// for readers of the page, mcp for agents.
	To []string `json:"to"`
}

// Everywhere is the place of what goes to all: only what everybody may be told is found there.
const Everywhere = ""

// Audience is who may be told of what.
func (c Config) Audience() knowledge.Audience {
	a := knowledge.Audience{Private: c.Slack.PrivateChannels}
	for _, r := range c.Tell {
		a.Rules = append(a.Rules, knowledge.Rule{Of: r.Of, To: r.To})
	}
	return a
}

// check says what of a rule cannot be meant, where those are the places.
func (r TellRule) check(places []string) error {
	if len(r.Of) == 0 || len(r.To) == 0 {
		return errors.New("it names nothing: of has to list channels, projects or folders, and to the places that may be told")
	}
	for _, to := range r.To {
		kind, at, one := strings.Cut(to, "/")
		if !slices.Contains(places, kind) || one && (at == "" || kind != "slack" && kind != "jira") {
			return fmt.Errorf("to has %q: it has to be a place, such as slack, slack/C0123456789, jira/OPS, web or mcp", to)
		}
	}
	return nil
}
