package jira

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
)

// wiki is the document in Jira's text formatting notation:
// https://jira.atlassian.com/secure/WikiRendererHelpAction.jspa?section=all
func (d document) wiki() string {
	var out []string
	for _, b := range d {
		switch {
		case b.heading != "":
			out = append(out, "h3. "+literal(b.heading))
		case b.code != "":
			out = append(out, "{noformat}\n"+verbatim(b.code)+"\n{noformat}")
		case len(b.items) > 0:
			var lines []string
			for _, item := range b.items {
				lines = append(lines, "* "+marked(item))
			}
			out = append(out, strings.Join(lines, "\n"))
		default:
			out = append(out, marked(b.text))
		}
	}
	return strings.Join(out, "\n\n")
}

// marked are runs with their marks. A mark counts only where no letter touches it, which
// braces see to.
func marked(runs []run) string {
	var b strings.Builder
	for i, r := range runs {
		text := literal(r.text)
		switch {
		case r.code:
			fmt.Fprintf(&b, "{{%s}}", strings.TrimSpace(text))
		case r.bold && strings.TrimSpace(text) != "":
			fmt.Fprintf(&b, "{*}%s{*}", strings.TrimSpace(text))
		case i == 0:
			b.WriteString(unled(text))
		default:
			b.WriteString(text)
		}
	}
	return b.String()
}

// leads are what a line begins with that makes it another block.
var leads = regexp.MustCompile(`^\s*(h[1-6]|bq)\.`)

// unled is a text that begins no other block.
func unled(text string) string {
	if !leads.MatchString(text) {
		return text
	}
	text = strings.TrimSpace(text)
	return entity(rune(text[0])) + text[1:]
}

// escapable are the characters that a backslash makes literal:
// https://unpkg.com/browse/@atlaskit/editor-wikimarkup-transformer@11.20.13/dist/es2019/parser/utils/escape.js
const escapable = `#*_+?^~|%{}[]()!@-`

// emoticons are what makes a picture between parentheses.
var emoticons = regexp.MustCompile(`^\((/|x|!|\+|-|\?|on|off|\*[rgby]?|i|y|n|c|r|tm|flag|flagoff)\)`)

// key looks like another ticket's, which would be linked.
var key = regexp.MustCompile(`^[A-Z][A-Z0-9_]+-[0-9]`)

// literal is a text in which nothing is read as markup, as a link, a mention or a picture.
// What a backslash does not help with is written as the entity that Jira's own renderer makes
// of an escaped character.
func literal(text string) string {
	var b strings.Builder
	all := []rune(text)
	at := func(i int) rune {
		if i < 0 || i >= len(all) {
			return ' '
		}
		return all[i]
	}
	word := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
	linked := -1 // where a key has its hyphen
	for i, r := range all {
		if !word(at(i-1)) && unicode.IsUpper(r) && key.MatchString(string(all[i:min(len(all), i+maxLabel)])) {
			linked = i + strings.IndexByte(string(all[i:min(len(all), i+maxLabel)]), '-')
		}
		switch {
		case r == '\\', r == '&', r == '<', r == '>', i == linked, r == '.' && i >= 3 && strings.EqualFold(string(all[i-3:i]), "www"):
			b.WriteString(entity(r))
		case r == ':' && unicode.IsDigit(at(i-1)) && unicode.IsDigit(at(i+1)):
			b.WriteRune(r) // of a time
		case (r == ':' || r == ';') && (i == len(all)-1 || !unicode.IsSpace(all[i+1])):
			b.WriteString(entity(r)) // an address, or a face, perhaps with what comes next
		case (r == '-' || r == '_') && word(at(i-1)) && word(at(i+1)):
			b.WriteRune(r)
		case r == ')' || r == '(' && !emoticons.MatchString(string(all[i:min(len(all), i+10)])):
			b.WriteRune(r)
		case strings.ContainsRune(escapable, r):
			b.WriteString(`\` + string(r))
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

func entity(r rune) string { return fmt.Sprintf("&#%d;", r) }

// verbatim is a text that does not end the block it is in.
func verbatim(text string) string { return strings.ReplaceAll(text, "{noformat", "{ noformat") }
