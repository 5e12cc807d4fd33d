package fakejira

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// maxBody is jira.text.field.character.limit.
const maxBody = 32767

// unfit is why a description or a comment is not taken; or it is taken, and complained of,
// where it would show something else than text.
func (s *Server) unfit(v any) string {
	if s.cloud {
		doc, ok := v.(map[string]any)
		if !ok || doc["type"] != "doc" || fmt.Sprint(doc["version"]) != "1" {
			return "Operation value must be an Atlassian Document (see the Atlassian Document Format)"
		}
		body, err := json.Marshal(doc)
		if err != nil || length(string(body)) > maxBody {
			return "CONTENT_LIMIT_EXCEEDED"
		}
		return invalid(doc, "")
	}
	text, ok := v.(string)
	if !ok {
		return "Operation value must be a string"
	}
	if n := length(text); n > maxBody {
		return fmt.Sprintf("The entered text is too long. It exceeds the allowed limit of 32,767 characters: %d.", n)
	}
	if found := markup(text); found != "" {
		s.refused = append(s.refused, "it would be shown as markup: "+found)
	}
	return ""
}

// within are the nodes that a node may have, and what is known here:
// https://developer.atlassian.com/cloud/jira/platform/apis/document/structure/
var within = map[string][]string{
	"doc": {"heading", "paragraph", "bulletList", "codeBlock"}, "heading": {"text"}, "paragraph": {"text"}, "bulletList": {"listItem"}, "listItem": {"paragraph"}, "codeBlock": {"text"}, "text": nil,
}

// invalid is what is wrong with a node.
func invalid(n map[string]any, parent string) string {
	kind := fmt.Sprint(n["type"])
	children, known := within[kind]
	if !known || parent != "" && !slices.Contains(within[parent], kind) {
		return "INVALID_INPUT: " + kind + " in " + parent
	}
	text, is := n["text"].(string)
	if is != (kind == "text") || is && (text == "" || strings.ContainsRune(text, 0)) {
		return "INVALID_INPUT: a text node has a text, and no other"
	}
	marks := list(n["marks"])
	for _, m := range marks {
		if mark := object(m)["type"]; mark != "strong" && mark != "code" || parent == "codeBlock" || len(marks) > 1 {
			return fmt.Sprintf("INVALID_INPUT: mark %v in %s", mark, parent)
		}
	}
	content := list(n["content"])
	if len(content) == 0 && (kind == "bulletList" || kind == "listItem") {
		return "INVALID_INPUT: an empty " + kind
	}
	if len(content) > 0 && children == nil {
		return "INVALID_INPUT: content of " + kind
	}
	for _, c := range content {
		if why := invalid(object(c), kind); why != "" {
			return why
		}
	}
	return ""
}

var (
	block   = regexp.MustCompile(`(?s)\{noformat\}\n(.*?)\n\{noformat\}`)
	escaped = regexp.MustCompile(`\\[-#*_+?^~|%{}\[\]()!@]`)
	entity  = regexp.MustCompile(`&#([0-9]+);`)
	clock   = regexp.MustCompile(`[0-9](?::[0-9]+)+`)
	ours    = regexp.MustCompile(`(?m)^(\* |h3\. )|\{\{|\}\}|\{\*\}`)
	// active is what Jira's notation reads as something:
	// https://jira.atlassian.com/secure/WikiRendererHelpAction.jspa?section=all
	active = regexp.MustCompile(`(?m)[{}\[\]*+^~|!@#%\\?&]|(?:^|[^\pL\pN])[-_]|[-_](?:[^\pL\pN]|$)|[:;]\S|\((?:/|x|on|off|i|y|n|c|r|tm|flag|flagoff)\)|^\s*(?:h[1-6]|bq)\.|\b[A-Z][A-Z0-9_]+-[0-9]+|www\.`)
)

// literal stands for a character that is nothing else.
const literal = "\ue000"

// markup is the first thing in a text that is none, besides what a ticket may have.
func markup(text string) string {
	text = clock.ReplaceAllString(block.ReplaceAllString(text, ""), literal)
	text = entity.ReplaceAllString(escaped.ReplaceAllString(text, literal), literal)
	text = ours.ReplaceAllString(text, literal)
	if at := active.FindStringIndex(text); at != nil {
		return fmt.Sprintf("%q in %q", text[at[0]:at[1]], text[max(0, at[0]-40):min(len(text), at[1]+40)])
	}
	return ""
}

// Shown is a description as people read it.
func (i Issue) Shown() string { return shown(i.Fields["description"]) }

// Shown is a comment as people read it.
func (c Comment) Shown() string { return shown(c.Body) }

func shown(v any) string {
	if text, ok := v.(string); ok {
		var b strings.Builder
		from := 0
		for _, at := range block.FindAllStringSubmatchIndex(text, -1) {
			b.WriteString(spoken(text[from:at[0]]) + text[at[2]:at[3]])
			from = at[1]
		}
		return b.String() + spoken(text[from:]) + "\n"
	}
	var b strings.Builder
	read(object(v), &b)
	return strings.TrimSpace(b.String()) + "\n"
}

// spoken is the notation as people read it, outside of a block.
func spoken(text string) string {
	text = ours.ReplaceAllStringFunc(text, func(m string) string { return map[string]string{"* ": "• ", "h3. ": "## "}[m] })
	text = escaped.ReplaceAllStringFunc(text, func(m string) string { return m[1:] })
	text = entity.ReplaceAllStringFunc(text, func(m string) string {
		n, err := strconv.Atoi(m[2 : len(m)-1])
		if err != nil {
			return m
		}
		return string(rune(n))
	})
	return text
}

// read is a node as people read it.
func read(n map[string]any, b *strings.Builder) {
	kind := n["type"]
	if kind == "heading" {
		b.WriteString("## ")
	}
	if kind == "listItem" {
		b.WriteString("• ")
	}
	if text, ok := n["text"].(string); ok {
		b.WriteString(text)
	}
	for i, c := range list(n["content"]) {
		if kind == "doc" && i > 0 {
			b.WriteString("\n\n")
		}
		if kind == "bulletList" && i > 0 {
			b.WriteString("\n")
		}
		read(object(c), b)
	}
}
