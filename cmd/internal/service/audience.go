package service

import (
	"context"
	"slices"

	"github.com/unpend/unpend/cmd/internal/library"
	"github.com/unpend/unpend/knowledge"
	"github.com/unpend/unpend/remediate/notice"
	"github.com/unpend/unpend/remediate/plan"
)

// openLibrary is what this process has of what the team has said; nil where nothing is
// configured.
func (s *Service) openLibrary(ctx context.Context) (*library.Library, error) {
	return library.Open(ctx, library.Options{Config: s.config.Knowledge, Allow: s.config.Outbound.Allow, Bus: s.bus, Lead: s.lead.Wait, Outcomes: plan.Store{Dynamic: s.custom}.Outcomes,
		Quotes: s.does("diagnose"), Reads: s.does("notify"), Off: s.ready.off, Now: s.now, Logger: s.logger, Registerer: s.registry})
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
	audience, place := k.config.Knowledge.Audience(), k.where()
	known := audience.Quotes(place, p.Finding.Knowledge)
	if k.library != nil && audience.Opens(place) {
		hits, err := k.library.Quote(ctx, place, p.Finding.Words(), 2*mostQuoted)
		if err != nil {
			k.logger.WarnContext(ctx, "a finding is told with what may be quoted everywhere", "sink", k.name, "error", err)
		} else {
			known = slices.DeleteFunc(known, func(h knowledge.Hit) bool { return h.Source != library.Outcome })
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
