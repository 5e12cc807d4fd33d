package audit

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// Trail is the file that records are appended to, by this process alone. Its
// methods may be called at the same time.
type Trail struct {
	path string
	now  func() time.Time

	mu     sync.Mutex
	file   *os.File
	lines  int64
	head   string // as prev of the next line
	size   int64  // bytes: where the next line goes
	failed error  // the file may hold more or less than we know
}

// Open opens the trail at path, or begins one that only its owner can read. The
// chain is followed from its first line: an error names the line that is broken, and
// nothing is appended to such a file. A last line that was not written to its end is
// moved to path+".torn", and a record of that is appended.
func Open(path string, now func() time.Time) (*Trail, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the audit trail: %w", err)
	}
	t := &Trail{path: path, now: now, file: f, head: origin}
	if err := t.begin(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return t, nil
}

func (t *Trail) begin() error {
	if err := syscall.Flock(int(t.file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return fmt.Errorf("audit trail %s is written by another process: %w", t.path, err)
	}
	c := chain{head: origin}
	torn, err := c.read(t.file)
	var b *BrokenError
	switch {
	case errors.As(err, &b):
		return fmt.Errorf("audit trail %s: %w; keep the file as evidence: move it away, then a new trail is begun", t.path, err)
	case err != nil:
		return fmt.Errorf("audit trail %s: %w", t.path, err)
	}
	t.lines, t.head, t.size = int64(c.Lines), c.head, c.size
	if err := syncFolder(t.path); err != nil { // its name is to survive, too
		return err
	}
	if torn == nil {
		return nil
	}
	return t.setAside(torn)
}

// setAside keeps a line that has no end in the file beside. The record of it is
// written over the line before the rest is cut off: stopped anywhere in between, the
// next Open finds what is left of it.
func (t *Trail) setAside(torn []byte) error {
	beside := t.path + ".torn"
	f, err := os.OpenFile(beside, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("set a torn line aside: %w", err)
	}
	_, err = f.Write(append(torn, '\n'))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("set a torn line aside: %w", err)
	}
	if err := syncFolder(beside); err != nil {
		return err
	}
	at := t.size
	t.size += int64(len(torn))
	_, err = t.append(at, Record{
		Step: "audit/torn", Result: Torn, Actor: "unpend.dev/audit",
		Text: fmt.Sprintf("line %d was not written to its end: %d bytes of it were moved to %s", t.lines+1, len(torn), filepath.Base(beside)),
		Why:  fmt.Sprintf("sha256 of them: %x", sha256.Sum256(torn)),
	})
	return err
}

// Append writes a record to the disk and returns its hash, the trail's head from now
// on. Seq, Prev and Hash are filled in, and Time when it is zero. After an error the
// record is not in the trail; when the disk leaves open what it holds, or somebody
// else has changed the file, every further Append fails as well.
func (t *Trail) Append(r Record) (head string, err error) {
	if err := r.check(); err != nil {
		return "", fmt.Errorf("append to the audit trail: %w", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.append(t.size, r)
}

// append writes a record at a place, which is the end but for a torn line.
func (t *Trail) append(at int64, r Record) (string, error) {
	if t.failed != nil {
		return "", t.failed
	}
	if t.failed = t.untouched(); t.failed != nil {
		return "", t.failed
	}
	r.Seq = t.lines + 1
	if r.Time.IsZero() {
		r.Time = t.now()
	}
	r.Time = r.Time.UTC()
	line, hash, err := seal(r, t.head)
	if err != nil {
		return "", fmt.Errorf("append to the audit trail: %w", err)
	}
	line = append(line, '\n')
	if _, err := t.file.WriteAt(line, at); err != nil {
		// A full disk: what there is of the line goes, for a later one to be written
		// there; but not when that would hide a torn one.
		undo := errors.New("a torn line is under it")
		if at == t.size {
			undo = t.file.Truncate(at)
		}
		if undo != nil {
			t.failed = fmt.Errorf("audit trail %s has half a line: %w; start again to set it aside", t.path, errors.Join(err, undo))
			return "", t.failed
		}
		return "", fmt.Errorf("append to the audit trail: %w", err)
	}
	end := at + int64(len(line))
	if t.size > end {
		err = t.file.Truncate(end)
	}
	if err = errors.Join(err, t.file.Sync()); err != nil {
		t.failed = fmt.Errorf("audit trail %s: whether record %d is on the disk is not known: %w; start again to look", t.path, r.Seq, err)
		return "", t.failed
	}
	t.lines, t.head, t.size = r.Seq, hash, end
	return hash, nil
}

// untouched says whether the file is still the one we know, and as long as we left it.
func (t *Trail) untouched() error {
	ours, err := t.file.Stat()
	if err != nil {
		return fmt.Errorf("audit trail %s: %w", t.path, err)
	}
	there, err := os.Stat(t.path)
	switch {
	case err != nil:
		return fmt.Errorf("audit trail %s was taken away while it was written: %w", t.path, err)
	case !os.SameFile(ours, there):
		return fmt.Errorf("audit trail %s was replaced by another file while it was written", t.path)
	case ours.Size() != t.size:
		return fmt.Errorf("audit trail %s was changed by somebody else: it has %d bytes, %d were written", t.path, ours.Size(), t.size)
	}
	return nil
}

// Head is the hash of the last record, to be posted where the trail's writer
// cannot change it; empty when there is none.
func (t *Trail) Head() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.lines == 0 {
		return ""
	}
	return t.head
}

// Close lets another process write the trail.
func (t *Trail) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.file.Close()
}

func syncFolder(path string) error {
	dir, err := os.Open(filepath.Dir(path))
	if err == nil {
		err = errors.Join(dir.Sync(), dir.Close())
	}
	if err != nil {
		return fmt.Errorf("sync the folder of %s: %w", path, err)
	}
	return nil
}
