package slack

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	api "github.com/slack-go/slack"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/notice"
)

const (
	// stormOf incidents that begin within stormIn are a storm: the next are told of in one
	// message, without buttons, until none has joined it for stormEnds.
	stormOf   = 10
	stormIn   = 5 * time.Minute
	stormEnds = 10 * time.Minute
	// lines of it are shown; the others are counted.
	lines = 20
	// members are kept one by one; a storm that has more begins another message.
	members = 500
)

// weather is what is kept to tell a storm by.
type weather struct {
	Begun  []time.Time `json:"begun"` // messages of incidents, of late
	Digest string      `json:"digest,omitempty"`
	Joined time.Time   `json:"joined,omitzero"` // when somebody joined it last
	Count  int         `json:"count"`           // of its members
}

// The keys under which they are kept. No incident is called so.
const (
	weatherKey   = "storm"
	digestPrefix = "digest-"
	linesSuffix  = "-lines"
)

// resolved is the state of an incident that is over.
const resolved = "resolved"

// line is what a digest says of an incident.
type line struct {
	Cause    diagnosis.CauseID `json:"cause"`
	Headline string            `json:"headline"`
	State    string            `json:"state,omitempty"`
}

// join decides, once, whether an incident has a message of its own or is told of with
// others.
func (s *Slack) join(ctx context.Context, r *record, p notice.Proposal) error {
	if r.Parts != nil || r.Digest != "" {
		return nil
	}
	var w weather
	if err := s.get(ctx, weatherKey, &w); err != nil {
		return err
	}
	now := s.clock.Now().UTC()
	w.Begun = slices.DeleteFunc(w.Begun, func(t time.Time) bool { return now.Sub(t) > stormIn })
	if w.Digest != "" && (now.Sub(w.Joined) > stormEnds || w.Count >= members) {
		w.Digest = ""
	}
	if w.Digest == "" && len(w.Begun) >= stormOf {
		w.Digest, w.Count = fmt.Sprintf("%s%d-%s", digestPrefix, now.Unix(), p.Incident), 0
	}
	if w.Digest != "" {
		r.Digest, w.Joined = w.Digest, now
		w.Count++
	} else {
		w.Begun = append(w.Begun, now)
	}
	if err := s.put(ctx, weatherKey, w); err != nil || r.Digest == "" {
		return err
	}
	return s.save(ctx, r)
}

// digest has a storm's message say what is known of one of its incidents.
func (s *Slack) digest(ctx context.Context, key string, p notice.Proposal) error {
	all := map[string]line{}
	if err := s.get(ctx, key+linesSuffix, &all); err != nil {
		return err
	}
	is := all[p.Incident]
	if d := p.Finding; d != nil {
		is.Headline = fit(clean(d.Headline), maxHeader)
		if len(d.Causes) > 0 {
			is.Cause = d.Causes[0].ID
		}
	}
	if n := p.Plan(); n != nil {
		is.State = n.What
	}
	if !p.Resolved.IsZero() {
		is.State = resolved
	}
	all[p.Incident] = is
	if err := s.put(ctx, key+linesSuffix, all); err != nil {
		return err
	}
	r, err := s.load(ctx, key)
	if err != nil {
		return err
	}
	return s.show(ctx, r, "", s.storm(all))
}

// storm is the message: how many of which cause, and the first of them.
func (s *Slack) storm(all map[string]line) message {
	waiting, by := 0, map[diagnosis.CauseID]int{}
	for _, l := range all {
		if l.State != resolved {
			waiting++
			by[l.Cause]++
		}
	}
	title := fmt.Sprintf("Storm: %d of %d workloads wait", waiting, len(all))
	if waiting == 0 {
		title = fmt.Sprintf("✔ Resolved: a storm of %d workloads is over", len(all))
	}
	causes := &rich{most: maxHeader}
	for _, id := range slices.SortedFunc(maps.Keys(by), func(a, b diagnosis.CauseID) int { return cmp.Or(by[b]-by[a], cmp.Compare(a, b)) }) {
		causes.br().plain("• ").bold(fmt.Sprint(by[id])).plain(" × " + string(id))
	}
	list := &rich{most: maxHeader}
	ids := slices.SortedFunc(maps.Keys(all), func(a, b string) int {
		over := func(id string) int {
			if all[id].State == resolved {
				return 1
			}
			return 0
		}
		return cmp.Or(over(a)-over(b), cmp.Compare(a, b))
	})
	for _, id := range ids[:min(lines, len(ids))] {
		list.br().code(id).plain("  " + all[id].Headline)
		if state := all[id].State; state != "" {
			list.bold(" " + state)
		}
	}
	if rest := len(ids) - lines; rest > 0 {
		list.br().plain(fmt.Sprintf("and %d more: ", rest)).code("kubectl unpend incidents -A")
	}
	blocks := []api.Block{header(title)}
	if causes.n > 0 {
		blocks = append(blocks, causes.block())
	}
	blocks = append(blocks, list.block(), api.NewContextBlock("", plainly("In a storm nothing disruptive is offered here · kubectl unpend why INCIDENT", maxHeader)))
	return message{text: escape.Replace(title), blocks: blocks}
}

func (s *Slack) get(ctx context.Context, key string, into any) error {
	body, err := s.opts.Load(ctx, key)
	if err != nil {
		return fmt.Errorf("read what Slack was told in a storm: %w", err)
	}
	if body != nil && json.Unmarshal(body, into) != nil {
		s.opts.Logger.WarnContext(ctx, "what was kept of a storm cannot be read, and is left out", "key", key)
	}
	return nil
}

func (s *Slack) put(ctx context.Context, key string, value any) error {
	body, err := json.Marshal(value)
	if err == nil {
		err = s.opts.Save(ctx, key, body)
	}
	if err != nil {
		return fmt.Errorf("keep what Slack was told in a storm: %w", err)
	}
	return nil
}
