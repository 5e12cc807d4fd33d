package slack

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"time"

	api "github.com/slack-go/slack"

	"github.com/unpend/unpend/knowledge"
)

// fresh is how young a thread is that is read again whether its first message tells of news or
// not: that does not say when an answer was edited.
const fresh = 24 * time.Hour

// progress is how far a channel has been read; it is kept with what was read.
type progress struct {
	Name  string `json:"name"`            // what people called it
	Kind  string `json:"kind,omitempty"`  // public or private
	Until string `json:"until,omitempty"` // all up to that message was read, once
	Pass  *pass  `json:"pass,omitempty"`  // one that has not ended
}

// pass goes through the history from the newest message to the oldest, as Slack gives it.
type pass struct {
	Began  string `json:"began"`  // what is newer is for the next one
	Oldest string `json:"oldest"` // what is older was read before
	Below  string `json:"below"`  // what is older than that is left to read
}

// reader reads one channel.
type reader struct {
	*API
	channel channel
	to      *knowledge.Intake
	known   []string // ids of the documents that were there
	watch   func(read int, share float64)
	read    int
}

// run reads what is left of a pass that was stopped, and then what is new.
func (r *reader) run(ctx context.Context) error {
	name := "slack/" + r.channel.ID
	var p progress
	if _, err := r.to.Marked(name, &p); err != nil {
		return err
	}
	if p.Name != "" && (p.Name != r.channel.Name || p.Kind != r.channel.kind()) {
		if err := r.to.Rename(ctx, "slack", r.channel.ID, "#"+r.channel.Name, r.channel.private); err != nil {
			return err
		}
	}
	p.Name, p.Kind = r.channel.Name, r.channel.kind()
	var err error
	if r.known, err = r.to.Known(ctx, "slack", r.channel.ID); err != nil {
		return err
	}
	recent := r.opts.Recent
	for again := true; again; {
		again = p.Pass != nil
		if !again {
			p.Pass = r.begin(p.Until, recent)
		}
		recent = 0 // of what one that was stopped goes through, only what is newer is left
		if err := r.pass(ctx, name, &p); err != nil {
			return err
		}
		p.Until, p.Pass = p.Pass.Began, nil
		if err := r.to.Mark(ctx, name, p); err != nil {
			return err
		}
	}
	return nil
}

// begin is a pass over all, or over what is newer than what was read, and what is recent.
func (r *reader) begin(until string, recent time.Duration) *pass {
	now := r.opts.Clock.Now()
	p := &pass{Began: stamp(now), Below: stamp(now), Oldest: "0"}
	if until != "" {
		p.Oldest = until
		if from := stamp(now.Add(-recent)); before(from, until) {
			p.Oldest = from
		}
	}
	return p
}

// stamp is a moment as Slack writes it.
func stamp(t time.Time) string { return fmt.Sprintf("%d.%06d", t.Unix(), t.Nanosecond()/1000) }

// pass reads page after page; each is kept with a mark of how far it goes.
func (r *reader) pass(ctx context.Context, name string, p *progress) error {
	cursor, latest := "", p.Pass.Below
	for more := true; more; {
		got, err := r.page(ctx, p.Pass.Oldest, latest, cursor)
		if errorOf(err) == "invalid_cursor" && cursor != "" {
			cursor, latest = "", p.Pass.Below
			continue
		}
		if err != nil {
			return err
		}
		if more = got.more; more && len(got.all) == 0 {
			return errors.New("there is more, says Slack, and gives nothing")
		}
		if err := r.take(ctx, got.all); err != nil {
			return err
		}
		below := p.Pass.Oldest
		if more {
			below = got.all[len(got.all)-1].Timestamp
		}
		if err := r.remove(ctx, below, p.Pass.Below); err != nil {
			return err
		}
		p.Pass.Below = below
		if cursor = got.next; cursor == "" {
			latest = below
		}
		if err := r.to.Mark(ctx, name, p); err != nil {
			return err
		}
		r.watch(r.read, r.share(below))
	}
	return nil
}

func (r *reader) page(ctx context.Context, oldest, latest, cursor string) (pageOf[api.Message], error) {
	return call(ctx, r.client, histories, func() (out pageOf[api.Message], err error) {
		got, err := r.api.GetConversationHistoryContext(ctx, &api.GetConversationHistoryParameters{ChannelID: r.channel.ID, Cursor: cursor, Latest: latest, Oldest: oldest, Limit: page})
		if err != nil {
			return out, err
		}
		r.probed(len(got.Messages), got.HasMore)
		return pageOf[api.Message]{got.Messages, got.ResponseMetaData.NextCursor, got.HasMore}, nil
	})
}

// take makes documents of a page: of its messages that begin a thread, with their answers.
func (r *reader) take(ctx context.Context, all []api.Message) error {
	h := newHistory(r.site, r.channel, r.to)
	h.own = r.own
	for _, m := range all {
		first := ours(m)
		if first.ThreadTS != "" && first.ThreadTS != first.TS {
			continue // an answer that was also sent to the channel: it comes with its thread
		}
		r.read++
		version := versionOf(m)
		if at, err := timeOf(first.TS); err == nil && m.ReplyCount > 0 && r.opts.Clock.Now().Sub(at) > fresh {
			if has, err := r.to.Has(idOf(r.channel.ID, first.TS), version); has || err != nil {
				if err != nil {
					return err
				}
				continue
			}
		}
		h.take(first)
		if m.ReplyCount > 0 && !h.own(first) {
			if err := r.answers(ctx, h, first.TS); err != nil {
				return err
			}
		}
		h.version(first.TS, version)
	}
	return h.give(ctx)
}

// answers reads a thread without its first message. One that is gone meanwhile has none.
func (r *reader) answers(ctx context.Context, h *history, root string) error {
	all, err := r.thread(ctx, r.channel.ID, root)
	if err != nil {
		return err
	}
	for _, m := range all {
		if m.Timestamp != root {
			h.take(ours(m))
		}
	}
	return nil
}

// thread are a message and its answers; none where it is gone.
func (a *API) thread(ctx context.Context, channel, root string) (all []api.Message, err error) {
	for cursor, first := "", true; first || cursor != ""; first = false {
		got, err := call(ctx, a.client, threads, func() (out pageOf[api.Message], err error) {
			out.all, out.more, out.next, err = a.api.GetConversationRepliesContext(ctx, &api.GetConversationRepliesParameters{ChannelID: channel, Timestamp: root, Cursor: cursor, Limit: page})
			return out, err
		})
		if e := errorOf(err); e == "thread_not_found" || e == "message_not_found" {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		all = append(all, got.all...)
		if cursor = got.next; !got.more {
			break
		}
	}
	return all, nil
}

// remove takes out what was there of a time, and was not handed over.
func (r *reader) remove(ctx context.Context, from, until string) error {
	for _, id := range r.known {
		root := id[strings.LastIndexByte(id, '/')+1:]
		if !before(root, from) && before(root, until) && !r.to.Taken(id) {
			if err := r.to.Remove(ctx, id); err != nil {
				return err
			}
		}
	}
	return nil
}

// before compares two time stamps.
func before(a, b string) bool {
	secondsA, restA, _ := strings.Cut(a, ".")
	secondsB, restB, _ := strings.Cut(b, ".")
	if len(secondsA) != len(secondsB) {
		return len(secondsA) < len(secondsB)
	}
	return secondsA+"."+restA < secondsB+"."+restB
}

// share is how much of the channel's life lies above a time stamp.
func (r *reader) share(below string) float64 {
	at, err := timeOf(below)
	now := r.opts.Clock.Now()
	if err != nil || r.channel.created.Unix() <= 0 || !now.After(r.channel.created) {
		return 1
	}
	return min(1, now.Sub(at).Seconds()/now.Sub(r.channel.created).Seconds())
}

// ours is a message as the export has it.
func ours(m api.Message) message {
	out := message{Type: m.Type, Subtype: m.SubType, User: m.User, BotID: m.BotID, Text: m.Text, TS: m.Timestamp, ThreadTS: m.ThreadTimestamp}
	for _, e := range m.Reactions {
		out.Reactions = append(out.Reactions, reaction{e.Name})
	}
	return out
}

// versionOf is what the first message of a thread tells of all of it.
func versionOf(m api.Message) string {
	edited := ""
	if m.Edited != nil {
		edited = m.Edited.Timestamp
	}
	sum := sha256.New()
	fmt.Fprintf(sum, "%q %q %d %q", m.Text, edited, m.ReplyCount, m.LatestReply)
	for _, e := range m.Reactions {
		fmt.Fprintf(sum, " %q", e.Name)
	}
	return fmt.Sprintf("%x", sum.Sum(nil)[:8])
}
