package slack

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/unpend/unpend/knowledge"
)

// message is one as the export and the API have it.
type message struct {
	Type      string     `json:"type"`
	Subtype   string     `json:"subtype"`
	User      string     `json:"user"`
	BotID     string     `json:"bot_id"`
	Text      string     `json:"text"`
	TS        string     `json:"ts"`
	ThreadTS  string     `json:"thread_ts"`
	Reactions []reaction `json:"reactions"`
}

type reaction struct {
	Name string `json:"name"`
}

// spoken are the subtypes of messages that say something; the others tell of joins,
// topics and pins.
var spoken = []string{"", "bot_message", "thread_broadcast", "file_share", "me_message"}

func (m message) bot() bool {
	return m.BotID != "" || m.Subtype == "bot_message" || m.User == "USLACKBOT"
}

// thread is a message and its answers.
type thread struct {
	messages []message
	version  string
}

// history makes documents of the messages of one channel.
type history struct {
	site     string // where people read, with its slash; empty: nobody knows
	channel  channel
	to       *knowledge.Intake
	own      func(message) bool // nil: nobody knows which messages are of unpend itself
	byThread map[string]*thread
	order    []string
}

func newHistory(site string, c channel, to *knowledge.Intake) *history {
	return &history{site: site, channel: c, to: to, byThread: map[string]*thread{}}
}

// messagesOf reads an array of messages, one after the other.
func messagesOf(d *json.Decoder) ([]message, error) {
	if open, err := d.Token(); err != nil {
		return nil, err
	} else if open != json.Delim('[') {
		return nil, errors.New("it is no list of messages")
	}
	var out []message
	for d.More() {
		var m message
		if err := d.Decode(&m); err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	_, err := d.Token()
	return out, err
}

func (h *history) take(m message) {
	if m.Type != "message" || !slices.Contains(spoken, m.Subtype) {
		h.to.Skip(m.TS, "a notice of a join, a topic, a pin or a deleted message")
		return
	}
	if _, err := timeOf(m.TS); err != nil {
		h.to.Skip(m.TS, "a message without a time")
		return
	}
	if len(m.Text) > knowledge.MaxBody {
		h.to.Skip(m.TS, fmt.Sprintf("a message of more than %d KiB", knowledge.MaxBody>>10))
		return
	}
	if h.own != nil && h.own(m) {
		h.to.Skip(m.TS, "a message of unpend itself")
		return
	}
	root := cmp.Or(m.ThreadTS, m.TS)
	t := h.byThread[root]
	if t == nil {
		t = &thread{}
		h.byThread[root] = t
		h.order = append(h.order, root)
	}
	t.messages = append(t.messages, m)
}

// version notes by what a thread is known to be unchanged.
func (h *history) version(root, version string) {
	if t := h.byThread[root]; t != nil {
		t.version = version
	}
}

// give hands the threads over.
func (h *history) give(ctx context.Context) error {
	for _, root := range h.order {
		t := h.byThread[root]
		slices.SortStableFunc(t.messages, func(a, b message) int { return cmp.Compare(a.TS, b.TS) })
		switch {
		case t.messages[0].TS != root:
			h.to.Skip(root, "a thread whose first message is not there")
			continue
		case !slices.ContainsFunc(t.messages, func(m message) bool { return !m.bot() }):
			h.to.Skip(root, "a thread in which only bots speak")
			continue
		}
		d := h.document(root, t.messages)
		d.Version = t.version
		if d.Text == "" {
			h.to.Skip(root, "a thread without text")
			continue
		}
		if err := h.to.Add(ctx, d); err != nil {
			return err
		}
	}
	return nil
}

func (h *history) document(root string, messages []message) knowledge.Document {
	at, _ := timeOf(root) // take has looked
	first := messages[0]
	d := knowledge.Document{ID: idOf(h.channel.ID, root), Source: "slack", Part: h.channel.ID, PartName: "#" + h.channel.Name,
		URL: h.link(root), Who: first.User, At: at.Truncate(time.Second), Private: h.channel.private}
	if first.bot() {
		d.Who = ""
	}
	var said []string
	for i, m := range messages {
		// What a bot began is what people then talk about; what it answers is noise.
		if i > 0 && m.bot() {
			continue
		}
		text := plain(m.Text)
		if text != "" && !slices.Contains(said, text) { // an alert that fires again, or an answer that is broadcast
			said = append(said, text)
		}
		d.Resolved = d.Resolved || ended(m) || i > 0 && solved(text)
	}
	d.Text = strings.Join(said, "\n\n")
	d.Title = title(d.Text)
	return d
}

// idOf is the document's of a thread.
func idOf(channel, root string) string { return "slack/" + channel + "/" + root }

// link is the address of a thread.
func (h *history) link(root string) string {
	if h.site == "" {
		return ""
	}
	return h.site + "archives/" + h.channel.ID + "/p" + strings.Replace(root, ".", "", 1)
}

// timeOf reads a time stamp: seconds and, after a point, what makes it unique.
func timeOf(ts string) (time.Time, error) {
	seconds, rest, ok := strings.Cut(ts, ".")
	n, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil || !ok || n <= 0 || strings.Trim(rest, "0123456789") != "" {
		return time.Time{}, fmt.Errorf("%q is no time stamp", ts)
	}
	return time.Unix(n, 0).UTC(), nil
}

var ticks = []string{"white_check_mark", "heavy_check_mark", "ballot_box_with_check", "resolved", "solved", "fixed", "done"}

// ended is whether somebody ticked the message off.
func ended(m message) bool {
	return slices.ContainsFunc(m.Reactions, func(r reaction) bool { return slices.Contains(ticks, r.Name) })
}

var (
	solving = regexp.MustCompile(`(?i)\b(?:fixed|solved|resolved|that (?:did it|worked|helped|was it)|(?:works|running|runs|scheduled) (?:now|again)|behoben|gelöst|läuft (?:jetzt|wieder)|résolu|ça marche|resuelto|funciona)\b`)
	denying = regexp.MustCompile(`(?i)\b(?:not|isn't|never|no|nicht|kein|pas|still|if|until|once)\s+(?:\w+\s+){0,2}$`)
)

// solved is whether an answer says that the matter is over.
func solved(text string) bool {
	for _, at := range solving.FindAllStringIndex(text, -1) {
		if !denying.MatchString(text[:at[0]]) {
			return true
		}
	}
	return false
}
