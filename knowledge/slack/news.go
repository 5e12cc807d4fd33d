package slack

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/slack-go/slack/slackevents"

	"github.com/unpend/unpend/knowledge"
)

// News is what an event tells of: it says what is to be read again, not what is there.
type News struct {
	Channel string `json:"channel"`          // its id
	Thread  string `json:"thread,omitempty"` // of the first message; empty: the channel itself has changed
}

// Key tells news of one thing from all others: letters, digits and "-".
func (n News) Key() string {
	return strings.ReplaceAll(strings.Trim(n.Channel+"-"+n.Thread, "-"), ".", "-")
}

// Heard is what an event tells; false when it is none of a channel's history. Events may come
// twice, late and in any order.
func Heard(e slackevents.EventsAPIEvent) (News, bool) {
	var n News
	switch data := e.InnerEvent.Data.(type) {
	case *slackevents.MessageEvent:
		n = said(data)
	case *slackevents.ChannelRenameEvent:
		n.Channel = data.Channel.ID
	case *slackevents.GroupRenameEvent:
		n.Channel = data.Channel.ID
	case *slackevents.ChannelArchiveEvent:
		n.Channel = data.Channel
	case *slackevents.ChannelUnarchiveEvent:
		n.Channel = data.Channel
	case *slackevents.ChannelDeletedEvent:
		n.Channel = data.Channel
	case *slackevents.ChannelLeftEvent:
		n.Channel = data.Channel
	case *slackevents.GroupArchiveEvent:
		n.Channel = data.Channel
	case *slackevents.GroupDeletedEvent:
		n.Channel = data.Channel
	case *slackevents.GroupLeftEvent:
		n.Channel = data.Channel
	}
	// Direct messages are never read: https://docs.slack.dev/reference/objects/conversation-object
	return n, n.Channel != "" && n.Channel[0] != 'D' && plainWord(n.Channel) && (n.Thread == "" || isStamp(n.Thread))
}

func isStamp(ts string) bool {
	_, err := timeOf(ts)
	return err == nil
}

func plainWord(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') })
}

// said is the thread of a message that was written, edited or deleted.
func said(m *slackevents.MessageEvent) News {
	n := News{Channel: m.Channel}
	switch {
	case m.ChannelType == slackevents.ChannelTypeIM || m.ChannelType == slackevents.ChannelTypeMPIM:
		return News{}
	case m.SubType == "message_changed" && m.Message != nil:
		n.Thread = cmp.Or(m.Message.ThreadTimestamp, m.Message.Timestamp)
	case m.SubType == "message_deleted":
		n.Thread = m.DeletedTimeStamp
		if m.PreviousMessage != nil {
			n.Thread = cmp.Or(m.PreviousMessage.ThreadTimestamp, m.PreviousMessage.Timestamp, n.Thread)
		}
	case slices.Contains(spoken, m.SubType):
		n.Thread = cmp.Or(m.ThreadTimeStamp, m.TimeStamp)
	}
	if n.Thread == "" {
		return News{} // a join, a topic, a pin
	}
	return n
}

// Of reads again what news are about, and nothing else.
func (a *API) Of(n News) knowledge.Source { return about{a, n} }

type about struct {
	*API
	news News
}

// Read implements knowledge.Source.
func (a about) Read(ctx context.Context, to *knowledge.Intake) ([]knowledge.Whole, error) {
	all, err := a.ask(ctx, a.news.Thread == "", to)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(all, func(c channel) bool { return c.ID == a.news.Channel })
	switch {
	case at < 0 && a.news.Thread == "":
		return nil, to.Leave(ctx, "slack", a.news.Channel) // it is not there for us any more
	case at < 0:
		to.Skip(a.news.Channel, "a message of a channel that is not read")
		return nil, nil
	case a.news.Thread == "":
		return nil, to.Rename(ctx, "slack", a.news.Channel, "#"+all[at].Name, all[at].private)
	}
	return nil, a.again(ctx, to, all[at])
}

// again reads a thread; what is not there any more, or says nothing, is taken out.
func (a about) again(ctx context.Context, to *knowledge.Intake, c channel) error {
	root := a.news.Thread
	all, err := a.thread(ctx, c.ID, root)
	if err != nil && !refused(err) {
		return err
	}
	h := newHistory(a.site, c, to)
	h.own = a.own
	for _, m := range all {
		h.take(ours(m))
	}
	if len(all) > 0 && all[0].Timestamp == root {
		h.version(root, versionOf(all[0]))
	}
	if err := h.give(ctx); err != nil {
		return err
	}
	if id := idOf(c.ID, root); !to.Taken(id) {
		return to.Remove(ctx, id)
	}
	return nil
}
