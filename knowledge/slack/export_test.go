package slack

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/unpend/unpend/knowledge"
)

// pack writes an export.
func pack(t *testing.T, files map[string]string) string {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for name, content := range files {
		w, err := z.Create(name)
		if err == nil {
			_, err = w.Write([]byte(content))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return write(t, b.Bytes())
}

func write(t *testing.T, content []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "export.zip")
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func text(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// workspace is an export with all that goes wrong in one.
func workspace(t *testing.T) map[string]string {
	m := func(ts, user, text string, more ...string) map[string]any {
		out := map[string]any{"type": "message", "ts": ts, "user": user, "text": text, "user_profile": map[string]any{"real_name": "Ada Lovelace"}}
		for i := 0; i+1 < len(more); i += 2 {
			out[more[i]] = more[i+1]
		}
		return out
	}
	fixed := m("1790000100.000200", "U2", "&lt;@U1&gt; was right: <https://wiki/mig|relabel>, fixed", "thread_ts", "1790000000.000100")
	return map[string]string{
		"channels.json": `[{"id":"C1","name":"gpu-help"},{"id":"C2","name":"lunch"}]`,
		"groups.json":   `[{"id":"G1","name":"gpu-secret"}]`,
		"dms.json":      `[{"id":"D1","members":["U1","U2"]}]`,
		"users.json":    `[{"id":"U1","deleted":true}]`,
		"gpu-help/2026-09-21.json": text(t, []any{
			m("1790000000.000100", "U1", "<@U2|ada> job waits for nvidia.com/mig-2g.10gb\n\nsee <#C2|lunch> &amp; <!here>"), fixed,
			m("1790000001.000100", "U9", "has joined", "subtype", "channel_join"),
			m("1790000002.000100", "", "FIRING: GPU", "subtype", "bot_message", "bot_id", "B1"),
			m("1790000002.000200", "", "FIRING: GPU", "bot_id", "B1", "thread_ts", "1790000002.000100"),
			m("1790000003.000100", "U1", strings.Repeat("x", 5<<20)),
			m("1790000004.000100", "U1", "answer to what is older", "thread_ts", "1690000000.000100"),
			m("1790000005.000100", "", "This message was deleted.", "subtype", "tombstone"),
			m("noon", "U1", "when?"),
			m("1790000006.000100", "U1", ""),
		}),
		// The answer of a day later belongs to the thread.
		"gpu-help/2026-09-22.json":   text(t, []any{m("1790080000.000100", "U1", "thanks", "thread_ts", "1790000000.000100"), m("1790080001.000100", "B", "ticket made", "thread_ts", "1790000000.000100", "bot_id", "B2")}),
		"lunch/2026-09-21.json":      text(t, []any{m("1790000000.000100", "U1", "soup")}),
		"gpu-secret/2026-09-21.json": text(t, []any{m("1790000000.000100", "U1", "layoffs of GPUs")}),
		"D1/2026-09-21.json":         text(t, []any{m("1790000000.000100", "U1", "between us: Xid 79")}),
	}
}

func library(t *testing.T) *knowledge.Library {
	t.Helper()
	l, err := knowledge.EditLibrary(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

func read(t *testing.T, l *knowledge.Library, file string, set func(*Export)) (knowledge.Import, error) {
	t.Helper()
	e, err := Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	set(e)
	return l.Import(t.Context(), e, "slack", "export.zip", time.Time{})
}

func search(t *testing.T, l *knowledge.Library, words string) []knowledge.Hit {
	t.Helper()
	hits, err := l.Search(t.Context(), []string{words}, 5)
	if err != nil {
		t.Fatal(err)
	}
	for i := range hits {
		hits[i].Score = 0
	}
	return hits
}

func TestExport(t *testing.T) {
	l := library(t)
	file := pack(t, workspace(t))
	done, err := read(t, l, file, func(e *Export) { e.Workspace = "acme" })
	if err != nil {
		t.Fatal(err)
	}
	want := knowledge.Import{Source: "slack", From: "export.zip", Added: 2, Skipped: map[string]int{
		"a private channel that was not named":                    1,
		"a notice of a join, a topic, a pin or a deleted message": 2,
		"a thread in which only bots speak":                       1,
		"a message of more than 64 KiB":                           1,
		"a thread whose first message is not there":               1,
		"a message without a time":                                1,
		"a thread without text":                                   1,
	}}
	if diff := cmp.Diff(want, done); diff != "" {
		t.Error(diff)
	}
	hits := search(t, l, "nvidia.com/mig-2g.10gb")
	wantHits := []knowledge.Hit{{Source: "slack", Title: "@U2 job waits for nvidia.com/mig-2g.10gb", URL: "https://acme.slack.com/archives/C1/p1790000000000100", Who: "U1", Where: "#gpu-help", Part: "C1",
		At: time.Unix(1790000000, 0).UTC(), Quote: "@U2 job waits for nvidia.com/mig-2g.10gb\nsee #lunch & @here"}}
	if diff := cmp.Diff(wantHits, hits); diff != "" {
		t.Error(diff)
	}
	if hits := search(t, l, "relabel thanks"); len(hits) != 1 {
		t.Errorf("the answers are not in the thread: %v", hits)
	}
	for _, hidden := range []string{"layoffs", "Xid 79", "Lovelace", "ticket made"} {
		if hits := search(t, l, hidden); len(hits) != 0 {
			t.Errorf("%s was found: %v", hidden, hits)
		}
	}
	if again, err := read(t, l, file, func(e *Export) { e.Workspace = "acme" }); err != nil || again.Same != 2 || again.Added+again.Changed+again.Removed != 0 {
		t.Errorf("again: %+v, %v", again, err)
	}
}

func TestExportAgainWithEdits(t *testing.T) {
	l := library(t)
	files := workspace(t)
	if _, err := read(t, l, pack(t, files), func(*Export) {}); err != nil {
		t.Fatal(err)
	}
	// Everything was deleted from lunch, and the other channel has another name.
	delete(files, "lunch/2026-09-21.json")
	files["channels.json"] = `[{"id":"C1","name":"gpu-support"},{"id":"C2","name":"lunch"}]`
	for _, day := range []string{"21", "22"} {
		files["gpu-support/2026-09-"+day+".json"] = files["gpu-help/2026-09-"+day+".json"]
		delete(files, "gpu-help/2026-09-"+day+".json")
	}
	done, err := read(t, l, pack(t, files), func(*Export) {})
	if err != nil || done.Changed != 1 || done.Removed != 1 || done.Added != 0 || l.Len() != 1 {
		t.Errorf("got %+v, %v", done, err)
	}
	if hits := search(t, l, "nvidia.com/mig-2g.10gb"); len(hits) != 1 || hits[0].Where != "#gpu-support" || hits[0].URL != "" {
		t.Errorf("got %+v", hits)
	}
}

func TestExportChannels(t *testing.T) {
	files := workspace(t)
	for name, c := range map[string]struct {
		channels, private []string
		parts             []string
		err               string
	}{
		"public":        {nil, nil, []string{"C1", "C2"}, ""},
		"one":           {[]string{"#lunch"}, nil, []string{"C2"}, ""},
		"private, too":  {nil, []string{"G1"}, []string{"C1", "C2", "G1"}, ""},
		"misspelt":      {[]string{"lunhc"}, nil, nil, "the Slack export has no public channel lunhc"},
		"not as public": {[]string{"gpu-secret"}, nil, nil, "the Slack export has no public channel gpu-secret"},
		"direct":        {nil, []string{"D1"}, nil, "the Slack export has no private channel D1"},
	} {
		t.Run(name, func(t *testing.T) {
			l := library(t)
			_, err := read(t, l, pack(t, files), func(e *Export) { e.Channels, e.Private = c.channels, c.private })
			if c.err != "" && (err == nil || err.Error() != c.err) || c.err == "" && err != nil {
				t.Fatalf("got %v, want %q", err, c.err)
			}
			parts, err := l.Parts(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, p := range parts {
				got = append(got, p.Part)
			}
			if diff := cmp.Diff(c.parts, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDamagedExport(t *testing.T) {
	file := pack(t, workspace(t))
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		file, want string
	}{
		"truncated": {write(t, content[:len(content)/2]), "it is no zip, or its end is missing"},
		"empty":     {write(t, nil), "it is no zip, or its end is missing"},
		"no export": {pack(t, map[string]string{"a.txt": "x"}), "it has no channels.json"},
		"no JSON":   {pack(t, map[string]string{"channels.json": "<html>"}), "read channels.json"},
		"not there": {filepath.Join(t.TempDir(), "none.zip"), "no such file"},
	} {
		if _, err := Open(c.file); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	// A day that cannot be read: its channel stays as it was, the others follow.
	l := library(t)
	if _, err := read(t, l, file, func(*Export) {}); err != nil {
		t.Fatal(err)
	}
	files := workspace(t)
	files["gpu-help/2026-09-22.json"] = `[{"type":"message","ts":"1790080000.000100","te`
	files["lunch/2026-09-21.json"] = strings.ReplaceAll(files["lunch/2026-09-21.json"], "soup", "stew")
	done, err := read(t, l, pack(t, files), func(*Export) {})
	if err != nil || done.Changed != 1 || done.Same+done.Removed+done.Added != 0 || done.Skipped["a channel of which a day cannot be read: the file is damaged"] != 1 {
		t.Errorf("got %+v, %v", done, err)
	}
	if hits := search(t, l, "relabel thanks"); len(hits) != 1 {
		t.Errorf("the thread has lost its answers: %v", hits)
	}
}

// A day of which a byte has changed on its way is told by its check sum, whatever it says now:
// its channel stays as it was.
func TestChangedByte(t *testing.T) {
	l := library(t)
	file := pack(t, workspace(t))
	if _, err := read(t, l, file, func(*Export) {}); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	z, err := zip.NewReader(bytes.NewReader(content), int64(len(content)))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range z.File {
		if f.Name != "gpu-help/2026-09-22.json" {
			continue
		}
		begin, err := f.DataOffset()
		if err != nil {
			t.Fatal(err)
		}
		for at := uint64(0); at < f.CompressedSize64; at += 7 {
			changed := bytes.Clone(content)
			changed[uint64(begin)+at] ^= 1 //nolint:gosec // it is in the file
			done, err := read(t, l, write(t, changed), func(*Export) {})
			skipped := done.Skipped["a channel of which a day cannot be read: the file is damaged"]
			// Where its first block says that it is the last, all is there still.
			if err != nil || done.Same+skipped != 2 || skipped == 0 && at > 0 || done.Added+done.Changed+done.Removed != 0 {
				t.Fatalf("byte %d: %+v, %v", at, done, err)
			}
		}
	}
	if hits := search(t, l, "relabel thanks"); len(hits) != 1 {
		t.Errorf("the thread has lost its answers: %v", hits)
	}
}

// macOS packs a folder around, and files of its own.
func TestExportInAFolder(t *testing.T) {
	files := map[string]string{"__MACOSX/channels.json": "binary"}
	for name, content := range workspace(t) {
		files["acme export/"+name] = content
	}
	l := library(t)
	if done, err := read(t, l, pack(t, files), func(*Export) {}); err != nil || done.Added != 2 {
		t.Errorf("got %+v, %v", done, err)
	}
}

func TestSolved(t *testing.T) {
	for said, want := range map[string]bool{"fixed, thanks": true, "that did it": true, "läuft jetzt": true, "still not fixed": false, "it is not really solved": false,
		"the prefixed name": false, "runs again": true, "tell me once fixed": false} {
		if got := solved(said); got != want {
			t.Errorf("%q: %v", said, got)
		}
	}
}
