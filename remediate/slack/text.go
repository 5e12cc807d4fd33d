package slack

import (
	"encoding/json"
	"strings"
	"time"

	api "github.com/slack-go/slack"

	"github.com/unpend/unpend/remediate/wording"
)

// escape makes a text safe where Slack reads markup:
// https://docs.slack.dev/messaging/formatting-message-text#escaping
var escape = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

func clean(s string) string { return wording.Clean(s) }

func length(s string) int { return wording.Length(s) }

func fit(s string, n int) string { return wording.Fit(s, n) }

// rich is a paragraph in which Slack reads no markup.
type rich struct {
	elements []api.RichTextSectionElement
	most     int // characters that one text may have
	n        int
}

func (t *rich) add(s string, style *api.RichTextSectionTextStyle) *rich {
	s = fit(s, min(t.most, maxText-t.n))
	if s == "" || t.n >= maxText-1 {
		return t
	}
	t.n += length(s)
	t.elements = append(t.elements, api.NewRichTextSectionTextElement(s, style))
	return t
}

// plain adds a text, cleaned; our own line breaks are br.
func (t *rich) plain(s string) *rich { return t.add(clean(s), nil) }

func (t *rich) bold(s string) *rich {
	return t.add(clean(s), &api.RichTextSectionTextStyle{Bold: true})
}

// code adds a command or a name to be copied.
func (t *rich) code(s string) *rich {
	return t.add(clean(s), &api.RichTextSectionTextStyle{Code: true})
}

func (t *rich) br() *rich {
	if t.n == 0 {
		return t
	}
	return t.add("\n", nil)
}

// at adds a time, which everybody reads in their own zone:
// https://docs.slack.dev/reference/block-kit/blocks/rich-text-block#date-element-type
func (t *rich) at(when time.Time) *rich {
	utc := when.UTC().Format("2006-01-02 15:04 UTC")
	t.n += length(utc)
	t.elements = append(t.elements, api.NewRichTextSectionDateElement(when.Unix(), "{date_short_pretty} {time}", nil, &utc))
	return t
}

func (t *rich) block() api.Block {
	return api.NewRichTextBlock("", api.NewRichTextSection(t.elements...))
}

// pre is lines in a fixed pitch.
func pre(lines []string) api.Block {
	text := api.NewRichTextSectionTextElement(fit(strings.Join(lines, "\n"), maxText), nil)
	return api.NewRichTextBlock("", &api.RichTextPreformatted{Type: api.RTEPreformatted, Elements: []api.RichTextSectionElement{text}})
}

func header(s string) api.Block {
	off := false
	return api.NewHeaderBlock(&api.TextBlockObject{Type: api.PlainTextType, Text: fit(clean(s), maxHeader), Emoji: &off})
}

// plainly is a text of a button or a dialog.
func plainly(s string, most int) *api.TextBlockObject {
	off := false
	return &api.TextBlockObject{Type: api.PlainTextType, Text: fit(clean(s), most), Emoji: &off}
}

// size is what Slack has to take of blocks.
func size(blocks []api.Block) int {
	body, err := json.Marshal(blocks)
	if err != nil {
		panic(err) // they are ours
	}
	return length(string(body))
}
