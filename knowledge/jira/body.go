package jira

import (
	"encoding/json"
	"regexp"
	"strings"
)

// plain is the text of a body: a string of wiki markup, or a document in ADF.
func plain(raw json.RawMessage) string {
	var wiki string
	if json.Unmarshal(raw, &wiki) == nil {
		return tidy(unwiki(wiki))
	}
	var doc node
	if json.Unmarshal(raw, &doc) != nil {
		return ""
	}
	var b strings.Builder
	doc.write(&b, 0)
	return tidy(b.String())
}

// node is a piece of a document in Atlassian Document Format.
type node struct {
	Type    string `json:"type"`
	Text    string `json:"text"`
	Content []node `json:"content"`
	Attrs   struct {
		ID   string `json:"id"`
		URL  string `json:"url"`
		Text string `json:"text"`
	} `json:"attrs"`
}

// maxDepth bounds how deep a document nests; Jira's own editor stays below ten.
const maxDepth = 50

func (n node) write(b *strings.Builder, depth int) {
	if depth > maxDepth {
		return
	}
	switch n.Type {
	case "text":
		b.WriteString(n.Text)
	case "hardBreak":
		b.WriteByte('\n')
	case "mention":
		b.WriteString("@" + n.Attrs.ID) // its text is the person's name
	case "inlineCard", "blockCard", "embedCard":
		b.WriteString(n.Attrs.URL)
	case "status":
		b.WriteString(n.Attrs.Text)
	}
	for _, c := range n.Content {
		c.write(b, depth+1)
	}
	switch n.Type {
	case "paragraph", "heading", "codeBlock", "blockquote", "panel", "rule":
		b.WriteString("\n\n")
	case "tableCell", "tableHeader":
		b.WriteByte(' ')
	}
}

// What wiki markup says besides its text.
var (
	wikiMacro   = regexp.MustCompile(`\{(?:code|noformat|quote|panel|color|info|note|warning|tip|expand)(?::[^}]*)?\}`)
	wikiMention = regexp.MustCompile(`\[~(?:accountid:)?([^\]|]+)\]`)
	wikiLink    = regexp.MustCompile(`\[([^\]|]+)\|[^\]]+\]`)
	wikiImage   = regexp.MustCompile(`![^!\s|]+\.(?:png|jpe?g|gif|svg)(?:\|[^!]*)?!`)
	wikiHeading = regexp.MustCompile(`(?m)^h[1-6]\.\s+(.*)$`)
	wikiList    = regexp.MustCompile(`(?m)^[*#-]+\s+`)
	wikiTable   = regexp.MustCompile(`(?m)^\|{1,2}|\|{1,2}`)
	wikiMono    = regexp.MustCompile(`\{\{([^}]*)\}\}`)
	wikiStyle   = regexp.MustCompile(`(^|[\s(])([*_+])(\S(?:[^\n*_+]*\S)?)([*_+])($|[\s.,:;!?)])`)
	blank       = regexp.MustCompile(`\n[ \t]*(?:\n[ \t]*)+`)
)

func unwiki(s string) string {
	s = wikiMacro.ReplaceAllString(strings.ReplaceAll(s, "\r\n", "\n"), "\n")
	s = wikiMention.ReplaceAllString(s, "@$1")
	s = wikiImage.ReplaceAllString(s, "")
	s = wikiLink.ReplaceAllString(s, "$1")
	s = wikiHeading.ReplaceAllString(s, "\n$1\n")
	s = wikiList.ReplaceAllString(s, "")
	s = wikiTable.ReplaceAllString(s, " ")
	s = wikiMono.ReplaceAllString(s, "$1")
	return wikiStyle.ReplaceAllString(s, "$1$3$5")
}

func tidy(s string) string {
	return strings.TrimSpace(blank.ReplaceAllString(strings.ToValidUTF8(s, "�"), "\n\n"))
}
