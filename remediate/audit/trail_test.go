package audit

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

func clock() time.Time { return noon }

func open(t testing.TB, path string) *Trail {
	t.Helper()
	trail, err := Open(path, clock)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { trail.Close() })
	return trail
}

func read(t *testing.T, path string) []string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return slices.Collect(strings.Lines(string(data)))
}

// records are those of a trail that verifies, head and all.
func records(t *testing.T, path, head string) []Record {
	t.Helper()
	lines := read(t, path)
	report, err := verify(lines, head)
	if err != nil || report.Lines != len(lines) || report.Head != head {
		t.Fatalf("got %+v, %v", report, err)
	}
	var out []Record
	for i, line := range lines {
		r, err := parse([]byte(strings.TrimSuffix(line, "\n")), i+1)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, r)
	}
	return out
}

func TestAppend(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	trail := open(t, path)
	if head := trail.Head(); head != "" {
		t.Errorf("head %q of nothing", head)
	}
	first, timeless := sample(1), sample(2)
	first.Time = noon.In(time.FixedZone("", 3600))
	first.Seq, first.Prev, first.Hash = 77, "x", "y" // not the caller's to say
	timeless.Time = time.Time{}
	one, err := trail.Append(first)
	if err != nil || trail.Head() != one {
		t.Fatal(one, err)
	}
	if err := trail.Close(); err != nil {
		t.Fatal(err)
	}
	trail = open(t, path)
	if trail.Head() != one {
		t.Errorf("head %q after a restart, was %q", trail.Head(), one)
	}
	two, err := trail.Append(timeless)
	if err != nil || trail.Head() != two {
		t.Fatal(two, err)
	}
	want := []Record{sample(1), sample(2)}
	want[0].Seq, want[0].Time, want[0].Prev, want[0].Hash = 1, noon, origin, one
	want[1].Seq, want[1].Time, want[1].Prev, want[1].Hash = 2, noon, one, two
	if got := records(t, path, two); !slices.EqualFunc(got, want, same) {
		t.Errorf("got %+v", got)
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if _, err := os.Stat(path + ".torn"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a torn file, though nothing was torn: %v", err)
	}
}

func same(a, b Record) bool { return fmt.Sprintf("%+v", a) == fmt.Sprintf("%+v", b) }

func TestAppendAtTheSameTime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	trail := open(t, path)
	var heads sync.Map
	var all sync.WaitGroup
	for w := range 8 {
		all.Go(func() {
			for n := range 10 {
				head, err := trail.Append(sample(100*w + n))
				if err != nil {
					t.Error(err)
				}
				heads.Store(head, true)
			}
		})
	}
	all.Wait()
	got := records(t, path, trail.Head())
	if len(got) != 80 {
		t.Fatalf("%d records", len(got))
	}
	for _, r := range got {
		if _, told := heads.Load(r.Hash); !told {
			t.Errorf("nobody was told of %s", r.Hash)
		}
	}
}

func TestAppendRefuses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	trail := open(t, path)
	cases := map[string]func(*Record){
		`result "perhaps" is not known`:      func(r *Record) { r.Result = "perhaps" },
		"the record names no step":           func(r *Record) { r.Step = "" },
		"does not say who writes it":         func(r *Record) { r.Actor = "" },
		`plan "gpu-1" is not 64 hex`:         func(r *Record) { r.Plan = "gpu-1" },
		"too long":                           func(r *Record) { r.Approvers = []string{strings.Repeat("a", 1<<17)} },
		"year outside of range":              func(r *Record) { r.Time = time.Date(12026, 1, 1, 0, 0, 0, 0, time.UTC) },
		"plan \"" + plan + "x\" is not 64 h": func(r *Record) { r.Plan += "x" },
	}
	for want, spoil := range cases {
		r := sample(1)
		spoil(&r)
		if head, err := trail.Append(r); head != "" || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %q, %v, want %q", head, err, want)
		}
	}
	if lines := read(t, path); len(lines) != 0 {
		t.Errorf("written: %q", lines)
	}
	head, err := trail.Append(sample(1))
	if err != nil {
		t.Fatal(err)
	}
	records(t, path, head)
}

func TestOneWriter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	trail := open(t, path)
	if _, err := Open(path, clock); err == nil || !strings.Contains(err.Error(), "is written by another process") {
		t.Errorf("got %v", err)
	}
	if err := trail.Close(); err != nil {
		t.Fatal(err)
	}
	open(t, path)
	if _, err := trail.Append(sample(1)); !errors.Is(err, os.ErrClosed) {
		t.Errorf("appending to a closed trail: %v", err)
	}
}

// A trail that somebody changed is not continued.
func TestOpenRefusesABrokenChain(t *testing.T) {
	lines, _ := trailOf(t, samples(3)...)
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	text := lines[0] + lines[2]
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Open(path, clock)
	want := "audit trail " + path + ": line 2 was removed: record 2 is missing, its place has record 3; keep the file as evidence: move it away, then a new trail is begun"
	if err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
	if got := strings.Join(read(t, path), ""); got != text {
		t.Errorf("it was changed: %q", got)
	}
}

// However much of a line got to the disk, it is kept, and the trail goes on.
func TestTornLine(t *testing.T) {
	lines, _ := trailOf(t, samples(3)...)
	line := lines[2]
	for _, torn := range []string{line[:1], line[:len(line)/2], line[:len(line)-1], strings.Repeat("\x00", 5000), "x"} {
		path := filepath.Join(t.TempDir(), "audit.jsonl")
		if err := os.WriteFile(path, []byte(lines[0]+lines[1]+torn), 0o600); err != nil {
			t.Fatal(err)
		}
		trail := open(t, path)
		if _, err := trail.Append(sample(4)); err != nil {
			t.Fatal(err)
		}
		got := records(t, path, trail.Head())
		if len(got) != 4 {
			t.Fatalf("%d records: %+v", len(got), got)
		}
		want := Record{Seq: 3, Time: noon, Step: "audit/torn", Result: Torn, Actor: "unpend.dev/audit",
			Text: fmt.Sprintf("line 3 was not written to its end: %d bytes of it were moved to audit.jsonl.torn", len(torn)),
			Why:  fmt.Sprintf("sha256 of them: %x", sha256.Sum256([]byte(torn))), Prev: got[1].Hash, Hash: got[2].Hash}
		if !same(got[2], want) {
			t.Errorf("got %+v", got[2])
		}
		if kept := read(t, path+".torn"); len(kept) != 1 || kept[0] != torn+"\n" {
			t.Errorf("kept %q of %q", kept, torn)
		}
	}
}

// Stopped while a torn line is set aside, the next start finds what is left of it.
func TestTornTwice(t *testing.T) {
	lines, _ := trailOf(t, samples(2)...)
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	if err := os.WriteFile(path, []byte(lines[0]+lines[1]+strings.Repeat("z", 3000)), 0o600); err != nil {
		t.Fatal(err)
	}
	open(t, path).Close()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	f.WriteString("zzz")
	f.Close()
	trail := open(t, path)
	if got := records(t, path, trail.Head()); len(got) != 4 || got[2].Result != Torn || got[3].Result != Torn {
		t.Errorf("got %+v", got)
	}
	if kept := read(t, path+".torn"); len(kept) != 2 || kept[1] != "zzz\n" {
		t.Errorf("kept %q", kept)
	}
}

// Who changes the file under its writer stops the trail.
func TestChangedWhileOpen(t *testing.T) {
	cases := map[string]func(path string) error{
		"was changed by somebody else":      func(path string) error { return os.Truncate(path, 10) },
		"was replaced by another file":      func(path string) error { os.Remove(path); return os.WriteFile(path, nil, 0o600) },
		"was taken away while it was writt": os.Remove,
	}
	for want, change := range cases {
		path := filepath.Join(t.TempDir(), "audit.jsonl")
		trail := open(t, path)
		if _, err := trail.Append(sample(1)); err != nil {
			t.Fatal(err)
		}
		if err := change(path); err != nil {
			t.Fatal(err)
		}
		for range 2 { // for good
			if _, err := trail.Append(sample(2)); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %q", err, want)
			}
		}
	}
}

func BenchmarkSeal(b *testing.B) {
	r := sample(1)
	for b.Loop() {
		if _, _, err := seal(r, origin); err != nil {
			b.Fatal(err)
		}
	}
}

// What a step waits for: the disk, mostly.
func BenchmarkAppend(b *testing.B) {
	trail := open(b, filepath.Join(b.TempDir(), "audit.jsonl"))
	r := sample(1)
	for b.Loop() {
		if _, err := trail.Append(r); err != nil {
			b.Fatal(err)
		}
	}
}
