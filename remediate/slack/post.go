package slack

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	api "github.com/slack-go/slack"

	"github.com/unpend/unpend/remediate/notice"
)

// record is what is known of an incident's messages; it is saved before a message is
// posted and after.
type record struct {
	key   string
	since time.Time // before which there can be none of its messages
	// Parts are its messages: "" is the first, the others are in its thread.
	Parts map[string]part `json:"parts"`
	// Digest is the message of a storm that it is told of in, with others.
	Digest string `json:"digest,omitempty"`
	// Over is since when it is, as people were told.
	Over time.Time `json:"over,omitzero"`
	// Snoozed is what its message says of that.
	Snoozed notice.Snoozed `json:"snoozed,omitzero"`
}

// part is one message.
type part struct {
	TS    string    `json:"ts,omitempty"` // Slack's name of it; empty until Slack has said it
	Sum   string    `json:"sum,omitempty"`
	Tried time.Time `json:"tried,omitzero"` // since when it may be there
}

// message is what people are to see.
type message struct {
	text   string // where blocks cannot be shown; escaped
	blocks []api.Block
}

func (m message) sum() string {
	body, err := json.Marshal(m.blocks)
	if err != nil {
		panic(err) // they are ours
	}
	sum := sha256.Sum256(append(body, m.text...))
	return hex.EncodeToString(sum[:8])
}

// eventType marks our messages; what they are of is in the payload:
// https://docs.slack.dev/messaging/message-metadata
const eventType = "unpend_incident"

func (s *Slack) load(ctx context.Context, key string) (*record, error) {
	r := &record{key: key}
	body, err := s.opts.Load(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("read what Slack was told of %s: %w", key, err)
	}
	if body != nil && json.Unmarshal(body, r) != nil {
		*r = record{key: key} // unreadable is unknown: the channel says what is there
	}
	return r, nil
}

func (s *Slack) save(ctx context.Context, r *record) error {
	body, err := json.Marshal(r)
	if err == nil {
		err = s.opts.Save(ctx, r.key, body)
	}
	if err != nil {
		return fmt.Errorf("keep what Slack was told of %s: %w", r.key, err)
	}
	return nil
}

// show has people see a message: it is edited where it is there and says something else,
// and posted where it is not. Of one that somebody has deleted the error isGone.
func (s *Slack) show(ctx context.Context, r *record, name string, m message) error {
	is, sum := r.Parts[name], m.sum()
	if is.TS != "" && is.Sum == sum {
		return nil
	}
	if is.TS == "" && is.Tried.IsZero() {
		is.Tried = s.clock.Now().UTC()
		if name == "" && !r.since.IsZero() {
			is.Tried = r.since // the record may have been lost
		}
		if err := s.know(ctx, r, name, is); err != nil {
			return err
		}
	}
	if is.TS == "" {
		var err error
		if is.TS, is.Sum, err = s.post(ctx, r, name, is.Tried, m); err != nil {
			return err
		}
	}
	if is.Sum != sum {
		if err := s.edit(ctx, r, name, is.TS, m); err != nil {
			return err
		}
	}
	return s.know(ctx, r, name, part{TS: is.TS, Sum: sum})
}

func (s *Slack) know(ctx context.Context, r *record, name string, p part) error {
	if r.Parts == nil {
		r.Parts = map[string]part{}
	}
	r.Parts[name] = p
	return s.save(ctx, r)
}

// post posts a message, unless it is there: Slack has no key against posting twice, so
// before every try it is asked for ours. What it says there is posted.
func (s *Slack) post(ctx context.Context, r *record, name string, since time.Time, m message) (ts, posted string, err error) {
	err = notice.Retry(ctx, s.clock, func(ctx context.Context) error {
		if err := s.known(ctx); err != nil {
			return err
		}
		if ts, posted, err = s.find(ctx, r, name, since); err != nil || ts != "" {
			return err
		}
		if err := s.wait(ctx); err != nil {
			return err
		}
		options := append(s.content(r, name, m), api.MsgOptionPost(), api.MsgOptionDisableLinkUnfurl(), api.MsgOptionDisableMediaUnfurl())
		if parent := r.Parts[""].TS; name != "" && parent != "" {
			options = append(options, api.MsgOptionTS(parent))
		}
		_, ts, err = s.api.PostMessageContext(ctx, s.opts.Channel, options...)
		s.last, posted = s.clock.Now(), m.sum()
		return s.told("post a message", err)
	})
	return ts, posted, err
}

func (s *Slack) edit(ctx context.Context, r *record, name, ts string, m message) error {
	return notice.Retry(ctx, s.clock, func(ctx context.Context) error {
		if err := s.wait(ctx); err != nil {
			return err
		}
		_, _, _, err := s.api.UpdateMessageContext(ctx, s.opts.Channel, ts, s.content(r, name, m)...)
		s.last = s.clock.Now()
		return s.told("edit a message", err)
	})
}

func (s *Slack) content(r *record, name string, m message) []api.MsgOption {
	return []api.MsgOption{api.MsgOptionText(m.text, false), api.MsgOptionBlocks(m.blocks...), api.MsgOptionMetadata(api.SlackMetadata{EventType: eventType,
		EventPayload: map[string]any{"cluster": s.opts.Cluster, "incident": r.key, "part": name, "sum": m.sum()}})}
}

// find looks in the channel, or in the thread, for a message of ours that may have been
// posted since a time.
func (s *Slack) find(ctx context.Context, r *record, name string, since time.Time) (ts, sum string, err error) {
	read := s.channel
	if name != "" {
		read = func(ctx context.Context, _, cursor string) ([]api.Message, string, error) {
			return s.replies(ctx, r.Parts[""].TS, cursor)
		}
	}
	oldest, cursor := strconv.FormatInt(since.Add(-skew).Unix(), 10), ""
	for range pages {
		messages, next, err := read(ctx, oldest, cursor)
		if err != nil {
			return "", "", err
		}
		for _, m := range messages {
			about := m.Metadata.EventPayload
			if m.Metadata.EventType == eventType && m.BotID == s.bot && about["cluster"] == s.opts.Cluster && about["incident"] == r.key && about["part"] == name {
				sum, _ := about["sum"].(string)
				return m.Timestamp, sum, nil
			}
		}
		if cursor = next; cursor == "" {
			break
		}
	}
	return "", "", nil
}

// skew is how far Slack's clock may be from ours.
const skew = 5 * time.Minute

func (s *Slack) channel(ctx context.Context, oldest, cursor string) ([]api.Message, string, error) {
	h, err := s.api.GetConversationHistoryContext(ctx, &api.GetConversationHistoryParameters{ChannelID: s.opts.Channel, Oldest: oldest, Cursor: cursor, Limit: page, IncludeAllMetadata: true})
	if err != nil {
		return nil, "", s.told("look for a message in the channel", err)
	}
	return h.Messages, h.ResponseMetaData.NextCursor, nil
}

func (s *Slack) replies(ctx context.Context, parent, cursor string) ([]api.Message, string, error) {
	messages, _, next, err := s.api.GetConversationRepliesContext(ctx, &api.GetConversationRepliesParameters{ChannelID: s.opts.Channel, Timestamp: parent, Cursor: cursor, Limit: page, IncludeAllMetadata: true})
	return messages, next, s.told("look for a message in the thread", err)
}

// known asks Slack, once, who we are.
func (s *Slack) known(ctx context.Context) error {
	if s.bot != "" {
		return nil
	}
	who, err := s.api.AuthTestContext(ctx)
	if err != nil {
		return s.told("ask who we are", err)
	}
	s.bot = who.BotID
	return nil
}

// wait keeps the pace of a channel, from the last answer on: when the request got there only
// Slack knows.
func (s *Slack) wait(ctx context.Context) error {
	if left := pace - s.clock.Now().Sub(s.last); left > 0 {
		if err := s.clock.Sleep(ctx, left); err != nil {
			return err
		}
	}
	return nil
}
