package audit

import (
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
)

// room lets no file of this process grow beyond so many bytes, as a full disk does.
func room(t *testing.T, bytes uint64) (more func()) {
	t.Helper()
	signal.Ignore(syscall.SIGXFSZ)
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &was); err != nil {
		t.Fatal(err)
	}
	more = func() {
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &was); err != nil {
			t.Error(err)
		}
		signal.Reset(syscall.SIGXFSZ)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: bytes, Max: was.Max}); err != nil {
		t.Fatal(err)
	}
	return more
}

// Half a line is no line: when there is room again the trail goes on.
func TestFullDisk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	trail := open(t, path)
	one, err := trail.Append(sample(1))
	if err != nil {
		t.Fatal(err)
	}
	more := room(t, uint64(trail.size)+100)
	head, err := trail.Append(sample(2))
	more()
	if head != "" || !errors.Is(err, syscall.EFBIG) || trail.Head() != one {
		t.Errorf("got %q, %v; head %s", head, err, trail.Head())
	}
	records(t, path, one)
	if _, err := trail.Append(sample(3)); err != nil {
		t.Fatal(err)
	}
	if got := records(t, path, trail.Head()); len(got) != 2 || got[1].Step != sample(3).Step {
		t.Errorf("got %+v", got)
	}
}

// A torn line that cannot be recorded stays where it is, for the next start.
func TestFullDiskHidesNoTornLine(t *testing.T) {
	lines, _ := trailOf(t, samples(2)...)
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	if err := os.WriteFile(path, []byte(lines[0]+lines[1][:40]), 0o600); err != nil {
		t.Fatal(err)
	}
	more := room(t, uint64(len(lines[0])+60))
	_, err := Open(path, clock)
	more()
	if !errors.Is(err, syscall.EFBIG) {
		t.Fatalf("got %v", err)
	}
	trail := open(t, path)
	if got := records(t, path, trail.Head()); len(got) != 2 || got[1].Result != Torn {
		t.Errorf("got %+v", got)
	}
	if kept := read(t, path+".torn"); len(kept) != 2 || kept[0] != lines[1][:40]+"\n" {
		t.Errorf("kept %q", kept)
	}
}
