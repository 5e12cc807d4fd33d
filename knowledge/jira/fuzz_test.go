package jira

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/unpend/unpend/knowledge"
)

// Whatever a body holds, its text is valid UTF-8 and no longer than it has to be.
func FuzzBody(f *testing.F) {
	for _, s := range []string{`"h1. Title\r\n{code:go}x{code} [~accountid:5b10] !a.png|thumbnail! |a||b| {{mono}} *bold* [x|https://x]"`,
		`{"type":"doc","version":1,"content":[{"type":"paragraph","content":[{"type":"text","text":"a"},{"type":"mention","attrs":{"id":"5b10","text":"@Ada"}},{"type":"hardBreak"},{"type":"inlineCard","attrs":{"url":"https://x"}}]}]}`,
		`{"type":"table","content":[{"type":"tableRow","content":[{"type":"tableCell","content":[]}]}]}`, `null`, `[]`, `{"content":{}}`, `"\ud800"`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		text := plain(json.RawMessage(raw))
		if !utf8.ValidString(text) || len(text) > 8*len(raw)+8 {
			t.Errorf("%q: %d bytes: %q", raw, len(text), text)
		}
	})
}

// Whatever a file holds, reading it ends: with an error, or with documents that can be indexed.
func FuzzExport(f *testing.F) {
	for _, s := range []string{`{"issues":[{"key":"GPU-1","fields":{"summary":"s","description":"d","created":"2026-09-01T09:00:00.000+0000","comment":{"comments":[{"body":"c"}]}}}]}`,
		`[{"key":"GPU-1","fields":{"summary":1}}]`, `{"issues":{}}`, `[`, `{"issues":[{"key":"GPU-1"}]} {"issues":[]}`, ``, `[null]`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		file := filepath.Join(t.TempDir(), "export.json")
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		reads(t, &Export{File: file, Complete: true})
	})
}

// reads reads a source in the way of an import, and checks what it hands over.
func reads(t *testing.T, s knowledge.Source) {
	t.Helper()
	l, err := knowledge.EditLibrary(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	done, err := l.ImportThrough(t.Context(), s, "jira", "fuzz", time.Time{}, func(_ context.Context, c knowledge.Change) error {
		if d := c.Document; d != nil && (d.ID == "" || !utf8.ValidString(d.Text+d.Title+d.URL) || len(d.Text) > knowledge.MaxDocument) {
			t.Errorf("handed over %+v", d)
		}
		return nil
	})
	if err == nil && done.Removed > 0 {
		t.Errorf("%+v", done)
	}
}
