package slack

import (
	"strings"

	api "github.com/slack-go/slack"

	"github.com/unpend/unpend/remediate/notice"
)

// Preview is an incident's message as people would see it, in lines of text, made of the very
// blocks that are posted. An empty line is between two blocks; the first line is the headline.
func Preview(p notice.Proposal, cluster string, buttons bool) []string {
	s := &Slack{opts: Options{Cluster: cluster, Buttons: buttons}}
	var out []string
	for i, b := range s.finding(&record{}, p).blocks {
		if i > 0 {
			out = append(out, "")
		}
		out = append(out, strings.Split(strings.TrimRight(reads(b), "\n"), "\n")...)
	}
	return out
}

// reads is what a person reads of a block.
func reads(b api.Block) string {
	switch b := b.(type) {
	case *api.HeaderBlock:
		return b.Text.Text
	case *api.RichTextBlock:
		var all strings.Builder
		for _, e := range b.Elements {
			switch e := e.(type) {
			case *api.RichTextSection:
				all.WriteString(section(e.Elements))
			case *api.RichTextPreformatted:
				all.WriteString(section(e.Elements))
			}
		}
		return all.String()
	case *api.ContextBlock:
		var parts []string
		for _, e := range b.ContextElements.Elements {
			if text, ok := e.(*api.TextBlockObject); ok {
				parts = append(parts, text.Text)
			}
		}
		return strings.Join(parts, " ")
	case *api.ActionBlock:
		var all []string
		for _, e := range b.Elements.ElementSet {
			if button, ok := e.(*api.ButtonBlockElement); ok {
				all = append(all, "[ "+button.Text.Text+" ]")
			}
		}
		return strings.Join(all, "  ")
	}
	return ""
}

func section(elements []api.RichTextSectionElement) string {
	var all strings.Builder
	for _, e := range elements {
		switch e := e.(type) {
		case *api.RichTextSectionTextElement:
			all.WriteString(e.Text)
		case *api.RichTextSectionDateElement:
			if e.Fallback != nil {
				all.WriteString(*e.Fallback)
			}
		}
	}
	return all.String()
}
