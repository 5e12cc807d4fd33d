package slack

import (
	"archive/zip"
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/unpend/unpend/knowledge"
)

// Whatever an export holds, and wherever it ends, reading it ends: with an error, with what it
// skipped, or with documents that can be indexed, of channels that may be read alone.
func FuzzExport(f *testing.F) {
	channels := `[{"id":"C1","name":"gpu"}]`
	for _, day := range []string{`[{"type":"message","user":"U1","ts":"1.2","text":"<@U2> <!channel> <https://x|y> Xid 79"}]`, `[{"type":"message","ts":"1.2","thread_ts":"1.2"},{"type":"message","ts":"1.3","thread_ts":"1.2","bot_id":"B"}]`,
		`[{]`, `{}`, `[null]`, `[{"type":"message","ts":"9999999999999999999.1","text":"x"}]`} {
		f.Add([]byte(channels), []byte(`[{"id":"G1","name":"secret"}]`), []byte(day), uint16(0))
		f.Add([]byte(channels), []byte(`[{"id":"G1","name":"gpu"}]`), []byte(day), uint16(40))
	}
	f.Add([]byte(`[{"id":"","name":".."}]`), []byte(`{}`), []byte(`[]`), uint16(1))
	f.Fuzz(func(t *testing.T, channels, groups, day []byte, cut uint16) {
		var b bytes.Buffer
		z := zip.NewWriter(&b)
		for name, data := range map[string][]byte{"channels.json": channels, "groups.json": groups, "gpu/2026-09-01.json": day, "secret/2026-09-01.json": day} {
			w, err := z.Create(name)
			if err == nil {
				_, err = w.Write(data)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "export.zip")
		if err := os.WriteFile(file, b.Bytes()[:max(0, b.Len()-int(cut))], 0o600); err != nil {
			t.Fatal(err)
		}
		e, err := Open(file)
		if err != nil {
			return
		}
		defer e.Close()
		l, err := knowledge.EditLibrary(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		if _, err := l.ImportThrough(t.Context(), e, "slack", "fuzz", time.Time{}, func(_ context.Context, c knowledge.Change) error {
			if d := c.Document; d != nil && (d.ID == "" || d.Private || !utf8.ValidString(d.Text+d.Title+d.URL)) {
				t.Errorf("handed over %+v", d)
			}
			return nil
		}); err != nil {
			return
		}
	})
}
