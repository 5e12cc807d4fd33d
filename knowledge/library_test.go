package knowledge

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// told is a Source of some documents.
type told struct {
	docs  []Document
	whole []Whole
	err   error
	each  func(n int)
}

func (s told) Read(ctx context.Context, to *Intake) ([]Whole, error) {
	for n, d := range s.docs {
		if s.each != nil {
			s.each(n)
		}
		if err := to.Add(ctx, d); err != nil {
			return nil, err
		}
	}
	return s.whole, s.err
}

func edit(t *testing.T, dir string) *Library {
	t.Helper()
	l, err := EditLibrary(dir)
	if err != nil {
		t.Fatal(err)
	}
	closeAtEnd(t, l.Index)
	return l
}

func imported(t *testing.T, l *Library, s Source) Import {
	t.Helper()
	done, err := l.Import(t.Context(), s, "slack", "export.zip", day("2026-11-01"))
	if err != nil {
		t.Fatal(err)
	}
	return done
}

func said(id, part, text string, at time.Time) Document {
	return Document{ID: "slack/" + id, Source: "slack", Part: part, PartName: "#" + part + "-name", Title: id, Text: text, At: at, URL: "https://slack/" + id}
}

func TestImportAgain(t *testing.T) {
	dir := t.TempDir()
	l := edit(t, dir)
	october, november := day("2026-10-05"), day("2026-11-05")
	docs := []Document{said("1", "C1", "Xid 79 on the left", october), said("2", "C1", "Xid 13", october), said("3", "C1", "Xid 31", november), said("4", "C2", "Xid 48", october)}
	first := imported(t, l, told{docs: append(docs, Document{ID: "bad", Source: "rumour"}, docs[0])})
	want := Import{Source: "slack", From: "export.zip", At: day("2026-11-01"), Added: 4,
		Skipped: map[string]int{`source "rumour" is none of slack, jira, doc, outcome`: 1, "another document has that id": 1}}
	if diff := cmp.Diff(want, first); diff != "" {
		t.Error(diff)
	}
	// Of October, of C1, everything is there: 2 is gone; 3 and 4 lie outside.
	docs[0].Text = "Xid 79 on the right"
	second := imported(t, l, told{docs: docs[:1], whole: []Whole{{Source: "slack", Part: "C1", From: day("2026-10-01"), Until: day("2026-11-01")}}})
	if want := (Import{Source: "slack", From: "export.zip", At: day("2026-11-01"), Changed: 1, Removed: 1, Skipped: map[string]int{}}); !cmp.Equal(want, second) {
		t.Error(cmp.Diff(want, second))
	}
	if third := imported(t, l, told{docs: docs[:1]}); third.Same != 1 || third.Added+third.Changed+third.Removed != 0 {
		t.Errorf("got %+v", third)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := OpenLibrary(dir)
	if err != nil {
		t.Fatal(err)
	}
	closeAtEnd(t, r.Index)
	for words, want := range map[string][]string{"Xid 79": {"https://slack/1"}, "left": {}, "Xid 13": {}, "Xid 31": {"https://slack/3"}, "Xid 48": {"https://slack/4"}} {
		if diff := cmp.Diff(want, urls(find(t, r.Index, words))); diff != "" {
			t.Errorf("%s: %s", words, diff)
		}
	}
	parts, err := r.Parts(t.Context())
	if diff := cmp.Diff([]Part{{"slack", "C1", "#C1-name", 2}, {"slack", "C2", "#C2-name", 1}}, parts); err != nil || diff != "" {
		t.Error(err, diff)
	}
	imports, err := r.Imports()
	if err != nil || len(imports) != 3 || !cmp.Equal(imports[0], first) {
		t.Errorf("%v, %v", imports, err)
	}
	if n, err := r.Bytes(); err != nil || n == 0 || r.Len() != 3 {
		t.Errorf("%d bytes of %d documents, %v", n, r.Len(), err)
	}
}

// What ends with an error removes nothing, and what was read until then stays.
func TestImportThatFails(t *testing.T) {
	l := edit(t, t.TempDir())
	imported(t, l, told{docs: []Document{said("1", "C1", "Xid 79", day("2026-10-05"))}})
	broken := errors.New("no")
	_, err := l.Import(t.Context(), told{docs: []Document{said("2", "C1", "Xid 13", day("2026-10-05"))}, whole: []Whole{{Source: "slack", Part: "C1"}}, err: broken}, "slack", "x", time.Time{})
	if !errors.Is(err, broken) || l.Len() != 2 {
		t.Errorf("%d documents, %v", l.Len(), err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.Import(ctx, told{docs: []Document{said("3", "C1", "Xid 14", day("2026-10-05"))}}, "slack", "x", time.Time{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestForget(t *testing.T) {
	for name, left := range map[string]int{"slack": 1, "C1": 2, "#c1-name": 2, "C1-name": 2, "https://slack/1": 3, "slack/1": 3, "GPU-118": 3, "jira": 3, "nothing": 4, "": 4} {
		l := edit(t, t.TempDir())
		at := day("2026-10-05")
		imported(t, l, told{docs: []Document{said("1", "C1", "a", at), said("2", "C1", "b", at), said("3", "C2", "c", at),
			{ID: "jira/GPU-118", Source: "jira", Part: "GPU", Text: "d"}}})
		n, err := l.Forget(t.Context(), name)
		if err != nil || n != 4-left || l.Len() != left {
			t.Errorf("%q: %d forgotten, %d left, %v", name, n, l.Len(), err)
		}
	}
}

func TestOpenLibraryRefuses(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "deep", "down")
	if _, err := OpenLibrary(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	l := edit(t, dir)
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v: private channels may be in there", info.Mode(), err)
	}
	if _, err := OpenLibrary(dir); !errors.Is(err, ErrBusy) {
		t.Errorf("during an import: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	a, err := OpenLibrary(dir)
	if err != nil {
		t.Fatal(err)
	}
	closeAtEnd(t, a.Index)
	b, err := OpenLibrary(dir)
	if err != nil {
		t.Fatalf("a second reader: %v", err)
	}
	closeAtEnd(t, b.Index)
}

const killed = 3 * batchSize

// killedSource has more than a batch, and at one of them the process is gone.
func killedSource(at int) told {
	s := told{}
	for n := range killed {
		s.docs = append(s.docs, said(fmt.Sprint(n), "C1", fmt.Sprintf("Xid %d", n+1), day("2026-10-05")))
	}
	s.each = func(n int) {
		if n == at {
			p, err := os.FindProcess(os.Getpid())
			if err == nil {
				err = p.Kill()
			}
			fmt.Println("survived", err)
			select {}
		}
	}
	return s
}

// TestBeKilled is the process that TestKilledImportGoesOn kills.
func TestBeKilled(t *testing.T) {
	dir := os.Getenv("UNPEND_TEST_LIBRARY")
	if dir == "" {
		return
	}
	l := edit(t, dir)
	imported(t, l, killedSource(2*batchSize+batchSize/2))
}

func TestKilledImportGoesOn(t *testing.T) {
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(self, "-test.run", "^TestBeKilled$")
	c.Env = append(os.Environ(), "UNPEND_TEST_LIBRARY="+dir)
	if out, err := c.CombinedOutput(); err == nil {
		t.Fatalf("it was not killed: %s", out)
	}
	l := edit(t, dir)
	if n := l.Len(); n != 2*batchSize {
		t.Errorf("%d documents, want the two batches that were written", n)
	}
	done := imported(t, l, killedSource(-1))
	if done.Same != 2*batchSize || done.Added != batchSize || done.Changed != 0 || l.Len() != killed {
		t.Errorf("%+v, %d documents", done, l.Len())
	}
	for _, n := range []int{1, killed / 2, killed} {
		if hits := find(t, l.Index, fmt.Sprintf("Xid %d", n)); len(hits) != 1 {
			t.Errorf("Xid %d: %v", n, urls(hits))
		}
	}
}

func TestFolderIntoLibrary(t *testing.T) {
	dir := folder(t, map[string]string{"mig.md": runbook, "log/gpu.md": log, "empty.md": ""})
	l := edit(t, t.TempDir())
	if done := imported(t, l, Folder{dir}); done.Added != 5 || !cmp.Equal(done.Skipped, map[string]int{"it is empty": 1}) {
		t.Errorf("got %+v", done)
	}
	if err := os.Remove(filepath.Join(dir, "log", "gpu.md")); err != nil {
		t.Fatal(err)
	}
	if done := imported(t, l, Folder{dir}); done.Same != 1 || done.Removed != 4 || l.Len() != 1 {
		t.Errorf("got %+v", done)
	}
	if _, err := l.Import(t.Context(), Folder{t.TempDir()}, "doc", "x", time.Time{}); err == nil || l.Len() != 1 {
		t.Errorf("an empty folder: %v", err)
	}
}

func TestSearchAllTakesTurns(t *testing.T) {
	a := open(t, []Document{{ID: "1", Source: "doc", URL: "a1", Text: "Xid 79"}, {ID: "2", Source: "doc", URL: "a2", Text: "Xid 79 and a longer text about it"}})
	b := open(t, []Document{{ID: "1", Source: "doc", URL: "b1", Text: "Xid 79"}})
	for limit, want := range map[int][]string{1: {"a1"}, 2: {"a1", "b1"}, 3: {"a1", "b1", "a2"}, 9: {"a1", "b1", "a2"}} {
		hits, err := SearchAll(t.Context(), []*Index{a, b}, []string{"Xid 79"}, limit)
		if diff := cmp.Diff(want, urls(hits)); err != nil || diff != "" {
			t.Errorf("%d: %v %s", limit, err, diff)
		}
	}
}
