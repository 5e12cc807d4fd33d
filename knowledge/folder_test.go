package knowledge

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const runbook = `---
title: MIG layouts
url: https://wiki/mig
source: doc
at: 2026-10-03
resolved: true
tags: [gpu]
---
# MIG layouts

A pod that waits for ` + "`nvidia.com/mig-2g.10gb`" + ` on an *all-1g* node
needs [another layout](https://wiki/layouts).

- Look at the <b>label</b> first.

` + "```sh\nkubectl get node -L nvidia.com/mig.config\n```" + `
`

const log = `# GPU incidents

What went wrong, newest first.

## 2026-10-20 gpu-7 fell off the bus

Xid 79 in the kernel log.

### Resolved

Riser reseated.

## 2026-09-02: training waits

MIGFull, nothing to be done.

Resolved: no

## Contacts

Ask on-call.
`

func TestParse(t *testing.T) {
	for name, c := range map[string]struct {
		content string
		want    []Document
	}{
		"runbook": {runbook, []Document{{
			ID: "f.md", Source: "doc", Title: "MIG layouts", URL: "https://wiki/mig", At: day("2026-10-03"), Resolved: true,
			Text: "A pod that waits for nvidia.com/mig-2g.10gb on an all-1g node needs another layout.\n\nLook at the label first.\n\nkubectl get node -L nvidia.com/mig.config",
		}}},
		"log": {log, []Document{
			{ID: "f.md", Source: "doc", Title: "GPU incidents", URL: "f.md", Text: "What went wrong, newest first."},
			{ID: "f.md#2", Source: "doc", Title: "gpu-7 fell off the bus", URL: "f.md", At: day("2026-10-20"), Resolved: true,
				Text: "Xid 79 in the kernel log.\n\nResolved\n\nRiser reseated."},
			{ID: "f.md#6", Source: "doc", Title: "training waits", URL: "f.md", At: day("2026-09-02"),
				Text: "MIGFull, nothing to be done.\n\nResolved: no"},
			{ID: "f.md#9", Source: "doc", Title: "Contacts", URL: "f.md", Text: "Ask on-call."},
		}},
		"sections without dates are one document": {"# T\n\n## A\n\na\n\n## B\n\nb\n", []Document{
			{ID: "f.md", Source: "doc", Title: "T", URL: "f.md", Text: "A\n\na\n\nB\n\nb"}}},
		"no heading, carriage returns, byte order mark": {"\ufeff---\r\nat: 2026-10-03T10:00:00Z\r\n---\r\nplain\r\ntext", []Document{
			{ID: "f.md", Source: "doc", Title: "f.md", URL: "f.md", At: day("2026-10-03").Add(10 * time.Hour), Text: "plain text"}}},
		"a rule is no front matter": {"---\n\ntext", []Document{{ID: "f.md", Source: "doc", Title: "f.md", URL: "f.md", Text: "text"}}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parse("f.md", []byte(c.content))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestOpenFolder(t *testing.T) {
	dir := folder(t, map[string]string{
		"mig.md": runbook, "log/gpu.markdown": log, "notes.txt": "not Markdown", ".git/x.md": "Xid 13", "..data/link.md": "Xid 45 was seen.",
		"empty.md": "", "title.md": "# Only a title\n", "latin1.md": "caf\xe9", "yaml.md": "---\ntitle: [\n---\nx",
		"date.md": "---\nat: yesterday\n---\nx", "source.md": "---\nsource: rumour\n---\nx", "large.md": strings.Repeat("x", maxFileBytes+1),
	})
	outside := folder(t, map[string]string{"secret.md": "Xid 99"})
	link(t, filepath.Join(outside, "secret.md"), filepath.Join(dir, "escape.md"))
	link(t, "gone.md", filepath.Join(dir, "dangling.md"))
	link(t, "..data/link.md", filepath.Join(dir, "link.md"))
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe.md"), 0o644); err != nil {
		t.Fatal(err)
	}
	i, err := OpenFolder(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	closeAtEnd(t, i)
	var names []string
	for _, s := range i.Skipped() {
		name, why, _ := strings.Cut(s, ": ")
		if why == "" {
			t.Errorf("%s was skipped without a reason", name)
		}
		names = append(names, name)
	}
	want := []string{"dangling.md", "date.md", "escape.md", "large.md", "latin1.md", "pipe.md", "yaml.md", "empty.md", "source.md", "title.md"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Error(diff, i.Skipped())
	}
	if i.Len() != 6 {
		t.Errorf("%d documents, want the runbook, four of the log and the linked one", i.Len())
	}
	got := find(t, i, "Xid 79")
	wantHits := []Hit{{Source: "doc", Title: "gpu-7 fell off the bus", URL: "log/gpu.markdown", Quote: "Xid 79 in the kernel log.", At: day("2026-10-20")}}
	if len(got) == 1 {
		wantHits[0].Score = got[0].Score
	}
	if diff := cmp.Diff(wantHits, got); diff != "" {
		t.Error(diff)
	}
	for _, hidden := range []string{"Xid 13", "Xid 99"} {
		if hits := find(t, i, hidden); len(hits) != 0 {
			t.Errorf("%s was found: %v", hidden, hits)
		}
	}
	if hits := find(t, i, "Xid 45"); len(hits) != 1 {
		t.Errorf("a file behind a link inside the folder was not found: %v", hits)
	}
}

func link(t *testing.T, to, name string) {
	t.Helper()
	if err := os.Symlink(to, name); err != nil {
		t.Fatal(err)
	}
}

func TestOpenFolderRefuses(t *testing.T) {
	file := filepath.Join(folder(t, map[string]string{"a.md": "x"}), "a.md")
	for name, c := range map[string]struct{ dir, want string }{
		"missing":         {filepath.Join(t.TempDir(), "none"), "no such file or directory"},
		"a file":          {file, "not a directory"},
		"nothing in it":   {t.TempDir(), "has no document: it holds no *.md file"},
		"nothing of use":  {folder(t, map[string]string{"a.md": "", "b.md": "\xff"}), "has no document: b.md: it is not valid UTF-8; a.md: it is empty"},
		"only a text":     {folder(t, map[string]string{"a.txt": "x"}), "has no document"},
		"no name at all":  {"", "open knowledge folder"},
		"a hidden folder": {folder(t, map[string]string{".git/a.md": "x"}), "has no document"},
	} {
		t.Run(name, func(t *testing.T) {
			i, err := OpenFolder(t.Context(), c.dir)
			if i != nil {
				closeAtEnd(t, i)
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestIdentifiers(t *testing.T) {
	text := "Xid 79, XID=048, NVRM: Xid (PCI:0000:65:00): 31 on gpu-node-1: MIGFull, OOMKilled, NVML_ERROR_IN_USE; GPUs ask nvidia.com/mig-2g.10gb.me, not 1g.5gb+me. A re-made NVIDIA node has 3g.20gb."
	want := []string{"1g.5gb.me", "2g.10gb.me", "3g.20gb", "gpu-node-1", "migfull", "nvidia.com/mig-2g.10gb.me", "nvml_error_in_use", "oomkilled", "xid 31", "xid 48", "xid 79"}
	ids, _ := scan(text)
	var got []string
	for _, id := range ids {
		got = append(got, id.name)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
