package audit

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// Report is what was found of a trail, up to the line that is broken.
type Report struct {
	Lines int       `json:"lines"` // that are whole, and follow on one another
	From  time.Time `json:"from,omitzero"`
	To    time.Time `json:"to,omitzero"`
	Head  string    `json:"head,omitempty"` // hash of the last of them
	// Posted is the line that has the hash which was asked for.
	Posted int `json:"posted,omitempty"`
}

// BrokenError says that a trail is not as it was written.
type BrokenError struct {
	Line int    `json:"line"` // the first that is edited, removed or reordered; 0: the whole
	Says string `json:"says"` // one sentence, which names it
}

func (e *BrokenError) Error() string { return e.Says }

func broken(line int, format string, args ...any) error {
	return &BrokenError{line, fmt.Sprintf("line %d ", line) + fmt.Sprintf(format, args...)}
}

// Verify reads a trail and says what it covers. A *BrokenError names the first line
// that was edited, removed or reordered; any other error is one of reading. With head,
// a hash that was posted elsewhere, it is also broken when no line has that hash: then
// its end was cut off, or made again. A trail may have gone on since the hash was posted.
// It holds no more than one line at a time.
func Verify(r io.Reader, head string) (Report, error) {
	c := chain{head: origin, posted: head}
	torn, err := c.read(r)
	switch {
	case err != nil:
	case torn != nil:
		err = broken(c.Lines+1, "has no end: it was cut, or its writer was stopped in mid-write (then the executor's next start sets it aside)")
	case c.Lines == 0:
		err = &BrokenError{0, "it is empty: nothing was recorded yet, or all of it was removed"}
	case head != "" && c.Posted == 0:
		err = &BrokenError{c.Lines + 1, fmt.Sprintf("no line has the posted hash %s: lines behind line %d were removed, or the trail was made again", head, c.Lines)}
	}
	return c.Report, err
}

// chain is how far a trail has been followed.
type chain struct {
	Report
	head   string // as prev of the next line
	posted string
	size   int64 // bytes of the whole lines
}

// read follows a trail to its end. A last line that has no end is given back: it is
// no part of the chain.
func (c *chain) read(r io.Reader) (torn []byte, err error) {
	lines := bufio.NewReaderSize(r, maxLine+1)
	for {
		line, err := lines.ReadSlice('\n')
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			return nil, broken(c.Lines+1, "is longer than %d bytes: no record is", maxLine)
		case errors.Is(err, io.EOF):
			if len(line) == 0 {
				return nil, nil
			}
			return line, nil
		case err != nil:
			return nil, fmt.Errorf("read line %d: %w", c.Lines+1, err)
		}
		record, err := c.follow(line[:len(line)-1])
		if _, ok := errors.AsType[*gapError](err); ok {
			return nil, c.explain(record, lines)
		}
		if err != nil {
			return nil, err
		}
		c.size += int64(len(line))
	}
}

// follow takes the next line.
func (c *chain) follow(line []byte) (Record, error) {
	n := c.Lines + 1
	r, err := parse(line, n)
	switch {
	case err != nil:
		return r, err
	case r.Seq > int64(n):
		return r, &gapError{}
	case r.Seq < int64(n):
		return r, broken(n, "is record %d, where record %d was to be: a line was inserted or repeated", r.Seq, n)
	case r.Prev != c.head && n == 1:
		return r, broken(n, "says it follows on another line, though it is record 1: what was before it was removed")
	case r.Prev != c.head:
		return r, broken(n-1, "was replaced or edited, its own hash made to fit: line %d follows on another one", n)
	}
	c.Lines, c.Head, c.head, c.To = n, r.Hash, r.Hash, r.Time
	if n == 1 {
		c.From = r.Time
	}
	if r.Hash == c.posted {
		c.Posted = n
	}
	return r, nil
}

// gapError says that a record is missing before this one.
type gapError struct{}

func (*gapError) Error() string { return "a record is missing" }

// explain tells a record that was moved from one that was removed, by looking
// for it behind the gap.
func (c *chain) explain(behind Record, lines *bufio.Reader) error {
	want := c.Lines + 1
	for n := want + 1; ; n++ {
		line, err := lines.ReadSlice('\n')
		if err != nil {
			break
		}
		if r, err := parse(line[:len(line)-1], n); err == nil && r.Seq == int64(want) && r.Prev == c.head {
			return broken(want, "was moved: record %d stands in line %d now", want, n)
		}
	}
	if behind.Seq == int64(want)+1 {
		return broken(want, "was removed: record %d is missing, its place has record %d", want, behind.Seq)
	}
	return broken(want, "was removed: records %d to %d are missing, its place has record %d", want, behind.Seq-1, behind.Seq)
}

// parse reads line n as far as it can be judged alone. That a byte of it was changed
// is looked for first: whatever else is wrong then was written so.
func parse(line []byte, n int) (Record, error) {
	var r Record
	body, prev, hash, ok := split(line)
	switch {
	case n == 1 && bytes.HasPrefix(line, []byte("\ufeff")):
		return r, broken(n, "begins with a byte order mark: an editor has saved the file")
	case bytes.HasSuffix(line, []byte("\r")):
		return r, broken(n, "ends with CR LF: an editor, or a transfer as text, has changed the file")
	case len(line) == 0:
		return r, broken(n, "is empty: it was edited or inserted")
	case !ok && !json.Valid(line):
		return r, broken(n, "is not JSON: it was edited, or the file is no audit trail")
	case !ok:
		return r, broken(n, "does not end with prev and hash: it was edited, or the file is no audit trail")
	case hashOf(prev, body) != hash:
		return r, broken(n, "was edited: its hash is not that of what it says")
	}
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields()
	err := dec.Decode(&r)
	switch {
	case err != nil && strings.Contains(err.Error(), "unknown field"):
		_, field, _ := strings.Cut(err.Error(), "unknown field ")
		return r, broken(n, "has a field that this version does not know, %s: a newer unpend wrote it, verify with that one", field)
	case err != nil || dec.InputOffset() != int64(len(line)) || r.Prev != prev || r.Hash != hash:
		return r, broken(n, "is not a record, though its hash is right: no unpend wrote it")
	}
	return r, nil
}
