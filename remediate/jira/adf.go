package jira

// node is one of the Atlassian Document Format, in which nothing of a text node is read as
// markup: https://developer.atlassian.com/cloud/jira/platform/apis/document/structure/
type node struct {
	Type    string         `json:"type"`
	Version int            `json:"version,omitempty"`
	Attrs   map[string]any `json:"attrs,omitempty"`
	Content []node         `json:"content,omitempty"`
	Text    string         `json:"text,omitempty"`
	Marks   []node         `json:"marks,omitempty"`
}

// adf is the document as Cloud takes it.
func (d document) adf() node {
	doc := node{Type: "doc", Version: 1, Content: []node{}}
	for _, b := range d {
		switch {
		case b.heading != "":
			doc.Content = append(doc.Content, node{Type: "heading", Attrs: map[string]any{"level": 3}, Content: inline([]run{{text: b.heading}})})
		case b.code != "":
			doc.Content = append(doc.Content, node{Type: "codeBlock", Content: inline([]run{{text: b.code}})})
		case len(b.items) > 0:
			list := node{Type: "bulletList"}
			for _, item := range b.items {
				list.Content = append(list.Content, node{Type: "listItem", Content: []node{{Type: "paragraph", Content: inline(item)}}})
			}
			doc.Content = append(doc.Content, list)
		default:
			doc.Content = append(doc.Content, node{Type: "paragraph", Content: inline(b.text)})
		}
	}
	return doc
}

func inline(runs []run) (out []node) {
	for _, r := range runs {
		n := node{Type: "text", Text: r.text}
		switch {
		case r.code:
			n.Marks = []node{{Type: "code"}}
		case r.bold:
			n.Marks = []node{{Type: "strong"}}
		}
		out = append(out, n)
	}
	return out
}
