package jira

import (
	"strings"

	"github.com/unpend/unpend/remediate/notice"
)

// Preview is an incident's ticket as people would read it, in lines of text, made of the very
// documents that Jira is given: its summary, its labels, what it says after it was told all of
// these, oldest first, and a comment for each thing that has happened. An empty line is between
// two blocks; a drawing is so many columns wide, and of more fixes than there is room for it is
// said how many there are.
func Preview(cluster string, columns, fixes int, told ...notice.Proposal) []string {
	j := &Jira{opts: Options{Cluster: cluster}}
	at := scales[0]
	at.columns, at.fixes = columns, fixes
	var r record
	for _, p := range told {
		r.tell(p)
	}
	p := told[len(told)-1]
	out := append([]string{title(p), "labels: unpend " + j.opts.label(p.Incident), ""}, j.description(p, at).lines()...)
	for _, l := range r.Lines {
		out = append(append(out, "", "comment:"), l.comment().lines()...)
	}
	return out
}

// lines are the document without its marks.
func (d document) lines() (out []string) {
	for i, b := range d {
		if i > 0 && d[i-1].heading == "" {
			out = append(out, "")
		}
		switch {
		case b.heading != "":
			out = append(out, b.heading)
		case b.code != "":
			out = append(out, strings.Split(b.code, "\n")...)
		case len(b.items) > 0:
			for _, item := range b.items {
				out = append(out, "- "+read(item))
			}
		default:
			out = append(out, read(b.text))
		}
	}
	return out
}

func read(runs []run) string {
	var b strings.Builder
	for _, r := range runs {
		b.WriteString(r.text)
	}
	return b.String()
}
