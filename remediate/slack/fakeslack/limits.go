package fakeslack

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf16"
)

// count counts as Slack's clients do.
func count(s string) int { return len(utf16.Encode([]rune(s))) }

// The limits of texts, by the type of what has them and the field; written from
// docs.slack.dev/reference/block-kit, not from the adapter.
var longest = map[string]int{
	"header.text": 150, "section.text": 3000, "button.text": 75, "button.value": 2000, "confirm.title": 100, "confirm.text": 300, "confirm.confirm": 30, "confirm.deny": 30,
	"action_id": 255, "block_id": 255, "context.text": 3000, "rich_text.text": 3000,
}

// most elements of a block.
var most = map[string]int{"actions": 25, "context": 10}

// known are the blocks that are posted here.
var known = map[string]bool{"header": true, "section": true, "actions": true, "context": true, "rich_text": true, "divider": true}

// refuses is the error that Slack would answer with, and why; empty where it takes it.
func refuses(blocks, text string) string {
	if blocks == "" && text == "" {
		return "no_text"
	}
	if count(text) > 40000 {
		return "msg_too_long"
	}
	if blocks == "" {
		return ""
	}
	var all []map[string]any
	if err := json.Unmarshal([]byte(blocks), &all); err != nil {
		return "invalid_blocks_format: " + err.Error()
	}
	if len(all) > 50 {
		return fmt.Sprintf("invalid_blocks: no more than 50 items allowed, there are %d", len(all))
	}
	if n := count(blocks); n > 13200 {
		return fmt.Sprintf("msg_blocks_too_long: %d", n)
	}
	for i, b := range all {
		kind, _ := b["type"].(string)
		if why := wrong(kind, b); why != "" {
			return fmt.Sprintf("invalid_blocks: %s [json-pointer:/blocks/%d]", why, i)
		}
	}
	return ""
}

// wrong is what Slack would not take of a block.
func wrong(kind string, b map[string]any) string {
	if !known[kind] {
		return "unsupported type: " + kind
	}
	elements, _ := b["elements"].([]any)
	if n := most[kind]; n > 0 && (len(elements) > n || len(elements) == 0) {
		return fmt.Sprintf("%s has %d elements", kind, len(elements))
	}
	if kind == "rich_text" && (len(elements) == 0 || count(flat(b)) > longest["rich_text.text"]) {
		return "a rich text of nothing, or of more than 3000 characters"
	}
	if kind == "header" && object(b["text"])["type"] != "plain_text" {
		return "a header is plain text"
	}
	if why := texts(kind, b); why != "" {
		return why
	}
	seen := map[string]bool{}
	for _, e := range elements {
		o := object(e)
		if kind == "rich_text" {
			if o["type"] == "rich_text_section" && len(list(o["elements"])) == 0 {
				return "an empty section"
			}
			continue
		}
		if o["type"] == "plain_text" || o["type"] == "mrkdwn" {
			if s, _ := o["text"].(string); s == "" || count(s) > longest["context.text"] {
				return "a context of nothing, or too long"
			}
			continue
		}
		id, _ := o["action_id"].(string)
		if id == "" || seen[id] {
			return fmt.Sprintf("action_id %q is empty or there twice", id)
		}
		seen[id] = true
		name, _ := o["type"].(string)
		if why := texts(name, o); why != "" {
			return why
		}
		if c := object(o["confirm"]); c != nil {
			if why := texts("confirm", c); why != "" {
				return why
			}
		}
		if style := o["style"]; style != nil && style != "primary" && style != "danger" {
			return fmt.Sprintf("style %v", style)
		}
	}
	return ""
}

// texts holds the texts of an object to their limits; none may be empty.
func texts(kind string, o map[string]any) string {
	for field, v := range o {
		n, limited := longest[kind+"."+field]
		if field == "action_id" || field == "block_id" {
			n, limited = longest[field], true
		}
		if !limited {
			continue
		}
		s, ok := v.(string)
		if !ok {
			s, _ = object(v)["text"].(string)
		}
		if s == "" || count(s) > n {
			return fmt.Sprintf("%s.%s has %d characters, of 1 to %d", kind, field, count(s), n)
		}
	}
	return ""
}

func object(v any) map[string]any { o, _ := v.(map[string]any); return o }
func list(v any) []any            { l, _ := v.([]any); return l }

// flat is what a person reads of a block, or of all.
func flat(v any) string {
	switch v := v.(type) {
	case []any:
		var b strings.Builder
		for _, e := range v {
			b.WriteString(flat(e))
		}
		return b.String()
	case map[string]any:
		if s, ok := v["text"].(string); ok {
			return s
		}
		if v["type"] == "date" {
			s, _ := v["fallback"].(string)
			return s
		}
		return flat(v["text"]) + flat(v["elements"])
	}
	return ""
}

// calls are the texts in which Slack would read a mention, a link or markup of others: the
// fallback and what is of type mrkdwn.
func calls(blocks, text string) []string {
	read := []string{text}
	var walk func(any)
	walk = func(v any) {
		for _, e := range list(v) {
			walk(e)
		}
		o := object(v)
		if s, ok := o["text"].(string); ok && o["type"] == "mrkdwn" {
			read = append(read, s)
		}
		if o["type"] == "broadcast" || o["type"] == "user" || o["type"] == "usergroup" || o["type"] == "link" || o["emoji"] == true {
			read = append(read, fmt.Sprintf("<!%v>", o["type"]))
		}
		for _, e := range o {
			walk(e)
		}
	}
	var all []any
	if json.Unmarshal([]byte(blocks), &all) == nil {
		walk(all)
	}
	var out []string
	for _, s := range read {
		if strings.ContainsAny(s, "<>") {
			out = append(out, "it would be read as markup: "+s)
		}
	}
	return out
}

// Shown is what a person reads of a message, a block a line, with its buttons and what they
// ask.
func (m Message) Shown() string {
	var all []map[string]any
	if json.Unmarshal(m.Blocks, &all) != nil {
		return m.Text
	}
	var out []string
	for _, b := range all {
		if b["type"] != "actions" {
			out = append(out, flat(b))
			continue
		}
		for _, e := range list(b["elements"]) {
			o := object(e)
			line := "[" + flat(o["text"]) + "]"
			if style, ok := o["style"].(string); ok {
				line += " " + style
			}
			if c := object(o["confirm"]); c != nil {
				line += ": " + flat(c["title"]) + " " + flat(c["text"])
			}
			out = append(out, line)
		}
	}
	return strings.Join(out, "\n") + "\n"
}
