package dump

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// errUnusual is that a document is not a list of objects as kubectl, the API server and
// this program write it, or that it is broken: who reads all of it at once says how.
var errUnusual = errors.New("not a usual list")

// splitter cuts a list into its items as it is read, without keeping it: a dump of a large
// cluster is several times what is kept of it. What an item holds is checked by who decodes
// it.
type splitter struct {
	in   *bufio.Reader
	head head
	text []byte // of the value that was read last
}

// split hands over each item, in order; its bytes are the caller's until it returns.
func split(in io.Reader, item func([]byte)) (head, error) {
	s := &splitter{in: bufio.NewReaderSize(in, 1<<20)}
	if c, err := s.next(); err != nil || c != '{' {
		return s.head, errUnusual
	}
	for {
		end, err := s.field(item)
		if err != nil {
			return s.head, err
		}
		if end {
			break
		}
	}
	if _, err := s.next(); !errors.Is(err, io.EOF) {
		return s.head, errUnusual // another document follows
	}
	return s.head, nil
}

// field reads one field of the list, and what ends it; true: it was the last.
func (s *splitter) field(item func([]byte)) (last bool, err error) {
	if err := s.back(); err != nil {
		return false, err
	}
	name, err := s.word()
	if err != nil {
		return false, err
	}
	if c, err := s.next(); err != nil || c != ':' {
		return false, errUnusual
	}
	switch name {
	case "items":
		err = s.items(item)
	case "apiVersion":
		s.head.APIVersion, err = s.word()
	case "kind":
		s.head.Kind, err = s.word()
	case "metadata":
		var of []byte
		if err = s.back(); err == nil {
			of, err = s.value()
		}
		if err == nil && json.Unmarshal(of, &s.head.Metadata) != nil {
			err = errUnusual
		}
	default:
		if err = s.back(); err == nil {
			_, err = s.value()
		}
	}
	if err != nil {
		return false, err
	}
	return s.more('}')
}

func (s *splitter) items(item func([]byte)) error {
	if c, err := s.next(); err != nil || c != '[' {
		return errUnusual
	}
	if err := s.back(); err != nil {
		return err
	}
	if c, err := s.in.Peek(1); err != nil || c[0] == ']' {
		_, err = s.next()
		return err
	}
	for {
		if err := s.back(); err != nil {
			return err
		}
		one, err := s.value()
		if err != nil {
			return err
		}
		item(one)
		if last, err := s.more(']'); err != nil || last {
			return err
		}
	}
}

// more reads what stands behind a value: another follows, or the end.
func (s *splitter) more(end byte) (last bool, err error) {
	c, err := s.next()
	switch {
	case err == nil && c == end:
		return true, nil
	case err == nil && c == ',':
		return false, nil
	}
	return false, errUnusual
}

// word reads a string.
func (s *splitter) word() (out string, err error) {
	if err := s.back(); err != nil {
		return "", err
	}
	quoted, err := s.value()
	if err != nil || json.Unmarshal(quoted, &out) != nil {
		return "", errUnusual
	}
	return out, nil
}

// next is the next byte that is no space.
func (s *splitter) next() (byte, error) {
	for {
		c, err := s.in.ReadByte()
		if err != nil || c != ' ' && c != '\n' && c != '\t' && c != '\r' {
			return c, err
		}
	}
}

// back goes to the next byte that is no space.
func (s *splitter) back() error {
	if _, err := s.next(); err != nil {
		return errUnusual
	}
	return s.in.UnreadByte()
}

// value reads one value as it stands.
func (s *splitter) value() ([]byte, error) {
	s.text = s.text[:0]
	var at scan
	for {
		if _, err := s.in.Peek(1); err != nil {
			return nil, errUnusual
		}
		chunk, err := s.in.Peek(s.in.Buffered())
		if err != nil {
			return nil, errUnusual
		}
		n, end := at.over(chunk)
		s.text = append(s.text, chunk[:n]...)
		if _, err := s.in.Discard(n); err != nil {
			return nil, errUnusual
		}
		if end {
			return s.text, nil
		}
	}
}

// scan is where in a value the reading stands.
type scan struct {
	depth   int
	quoted  bool // within a string
	escaped bool // behind a backslash in it
	begun   bool
}

// over reads on, and says how much of the text belongs to the value, and whether it ends
// there.
func (s *scan) over(text []byte) (n int, end bool) {
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case s.escaped:
			s.escaped = false
		case s.quoted:
			skip := bytes.IndexAny(text[i:], `"\`)
			if skip < 0 {
				return len(text), false
			}
			if i += skip; text[i] == '\\' {
				s.escaped = true
			} else if s.quoted = false; s.depth == 0 {
				return i + 1, true
			}
		case c == '"':
			s.quoted = true
		case c == '{' || c == '[':
			s.depth++
		case c == '}' || c == ']':
			if s.depth == 0 {
				return i, true // of a number or a word, and not part of it
			}
			if s.depth--; s.depth == 0 {
				return i + 1, true
			}
		case s.depth == 0 && s.begun && (c == ',' || c == ' ' || c == '\n' || c == '\t' || c == '\r'):
			return i, true
		}
		s.begun = true
	}
	return len(text), false
}
