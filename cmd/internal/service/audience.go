package service

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/unpend/unpend/knowledge"
	"github.com/unpend/unpend/remediate/notice"
)

// tellRule says where some of what the team has said may be told.
type tellRule struct {
	// Of are channels, projects and folders, by id or by what people call them.
	Of []string `json:"of"`
	// To are the places that may be told of these, and no others: slack, jira and the others that
	// people are told in, or one channel or project of theirs (slack/C0123456789, jira/OPS); web
	// for readers of the page, mcp for agents.
	To []string `json:"to"`
}

// What asks for what the team has said, besides the places that people are told in: a finding
// that goes everywhere, and agents.
const (
	everywhere = ""
	onMCP      = "mcp"
)

// audience is who may be told of what.
func (c knowledgeConfig) audience() knowledge.Audience {
	a := knowledge.Audience{Private: c.Slack.PrivateChannels}
	for _, r := range c.Tell {
		a.Rules = append(a.Rules, knowledge.Rule{Of: r.Of, To: r.To})
	}
	return a
}

// check says what of a rule cannot be meant.
func (r tellRule) check() error {
	if len(r.Of) == 0 || len(r.To) == 0 {
		return errors.New("it names nothing: of has to list channels, projects or folders, and to the places that may be told")
	}
	for _, to := range r.To {
		kind, at, one := strings.Cut(to, "/")
		known := kind == onPage || kind == onMCP || slices.ContainsFunc(places, func(p place) bool { return p.name == kind })
		if !known || one && (at == "" || kind != "slack" && kind != "jira") {
			return fmt.Errorf("to has %q: it has to be a place, such as slack, slack/C0123456789, jira/OPS, web or mcp", to)
		}
	}
	return nil
}

// where is this destination among those that may be told.
func (k *sink) where() string {
	at := k.at
	if at == "" {
		at = map[string]string{"slack": k.config.Slack.Channel, "jira": k.config.Jira.Project}[k.place]
	}
	if at == "" || k.place != "slack" && k.place != "jira" {
		return k.place
	}
	return k.place + "/" + at
}

// quote leaves beside a finding what may be told here. It travels with what may be told
// everywhere; where more may, it is looked for.
func (k *sink) quote(ctx context.Context, p *notice.Proposal) {
	if p.Finding == nil {
		return
	}
	audience, place := k.config.Knowledge.audience(), k.where()
	known := audience.Quotes(place, p.Finding.Knowledge)
	if k.shelf.searched() != nil && audience.Opens(place) {
		hits, err := k.onShelf(ctx, place, p.Finding.Words(), 2*mostQuoted)
		if err != nil {
			k.logger.WarnContext(ctx, "a finding is told with what may be quoted everywhere", "sink", k.name, "error", err)
		} else {
			known = slices.DeleteFunc(known, func(h knowledge.Hit) bool { return h.Source != outcome })
			hits = slices.DeleteFunc(hits, func(h knowledge.Hit) bool {
				return slices.ContainsFunc(known, func(k knowledge.Hit) bool { return k.Source == h.Source && k.Title == h.Title && k.At.Equal(h.At) })
			})
			known = append(known, hits[:min(mostQuoted, len(hits))]...)
		}
	}
	finding := *p.Finding
	finding.Knowledge = known
	p.Finding = &finding
}

// mostQuoted stand beside a finding.
const mostQuoted = 3
