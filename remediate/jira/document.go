package jira

import (
	"encoding/json"

	"github.com/unpend/unpend/remediate/wording"
)

// document is a text before it is written for one deployment or the other.
type document []block

// block is a heading, a paragraph, a list, or lines in a fixed pitch.
type block struct {
	heading string
	text    []run
	items   [][]run
	code    string
}

// run is a part of a line. What it says is cleaned, and stays text wherever it is written.
type run struct {
	text string
	bold bool
	code bool
}

// words are runs with a bound on each.
type words struct {
	most int // characters
	runs []run
}

func (w *words) add(s string, bold, code bool) *words {
	if s = wording.Fit(wording.Clean(s), w.most); s != "" {
		w.runs = append(w.runs, run{s, bold, code})
	}
	return w
}

func (w *words) plain(s string) *words { return w.add(s, false, false) }

func (w *words) bold(s string) *words { return w.add(s, true, false) }

// name is what is copied: an object, a command.
func (w *words) name(s string) *words { return w.add(s, false, true) }

// fits says whether Jira takes a text as it is written.
func (j *Jira) fits(d document) bool {
	switch text := j.speak.write(d).(type) {
	case string:
		return wording.Length(text) <= maxBody
	default:
		body, err := json.Marshal(text)
		if err != nil {
			panic(err) // it is ours
		}
		return wording.Length(string(body)) <= maxBody
	}
}

// within leaves out of the end of a text, but for its last block, what Jira would not take.
func (j *Jira) within(d document) document {
	for len(d) > 2 && !j.fits(d) {
		d = append(d[:len(d)-2:len(d)-2], d[len(d)-1])
	}
	return d
}
