package slack

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

var (
	angled = regexp.MustCompile(`<([^<>]*)>`)
	blank  = regexp.MustCompile(`\n[ \t]*(?:\n[ \t]*)+`)
	// escapes of Slack's own; it escapes nothing else.
	unescape = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&", "```", "\n", "`", "")
)

// plain is the text of a message without Slack's markup. People are told by their id,
// whatever name the message shows.
func plain(text string) string {
	text = angled.ReplaceAllStringFunc(strings.ToValidUTF8(text, "�"), func(m string) string {
		target, label, _ := strings.Cut(m[1:len(m)-1], "|")
		switch {
		case strings.HasPrefix(target, "@"):
			return target
		case strings.HasPrefix(target, "!"):
			return "@" + strings.TrimPrefix(target, "!")
		case strings.HasPrefix(target, "#") && label != "":
			return "#" + label
		case label != "":
			return label
		}
		return target
	})
	return strings.TrimSpace(blank.ReplaceAllString(unescape.Replace(strings.ReplaceAll(text, "\r\n", "\n")), "\n"))
}

// titleRunes is the longest title: a line of a terminal.
const titleRunes = 100

// title is the first line of a thread.
func title(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	line = strings.Join(strings.Fields(line), " ")
	if utf8.RuneCountInString(line) <= titleRunes {
		return line
	}
	cut := string([]rune(line)[:titleRunes-1])
	if space := strings.LastIndexByte(cut, ' '); space > titleRunes/2 {
		cut = cut[:space]
	}
	return cut + "…"
}
