package shelf

import (
	"bytes"
	"strings"
)

// cutter copies the text of one object without the space between its values and without
// the parts that take accepts. Whether the text is JSON is for the decoder to say, of what
// is left and of each part.
type cutter struct {
	in  []byte
	at  int
	out []byte
	// pays says whether a part is worth taking out; take takes it, and false gives up.
	pays func(*part) bool
	take func(p *part, text []byte, at int) bool
}

// value copies the next value, down to the parts of a branch; at is its place where it is
// the item of a list. false: the text is unusual.
func (c *cutter) value(b *branch, at int) bool {
	c.space()
	if c.at == len(c.in) {
		return false
	}
	switch {
	case b == nil:
	case b.part != nil && c.pays(b.part):
		from := len(c.out)
		if !c.plain() || !c.take(b.part, c.out[from:], at) {
			return false
		}
		c.out = append(c.out[:from], "null"...)
		return true
	case c.in[c.at] == '{' && len(b.next) > 0:
		return c.object(b, at)
	case c.in[c.at] == '[' && b.to(everyItem) != nil:
		return c.list(b.to(everyItem))
	}
	return c.plain()
}

func (c *cutter) object(b *branch, at int) bool {
	c.step()
	seen := make([]bool, len(b.next))
	for first := true; ; first = false {
		if c.next() == '}' && first {
			return c.step()
		}
		name, ok := c.name()
		if !ok || c.next() != ':' {
			return false
		}
		c.step()
		var to *branch
		for i, n := range b.next {
			switch {
			case n.name == name && !seen[i]:
				to, seen[i] = n, true
			case strings.EqualFold(n.name, name):
				return false // twice, or as only Go's decoder would take it
			}
		}
		if !c.value(to, at) {
			return false
		}
		switch c.next() {
		case ',':
			c.step()
		case '}':
			return c.step()
		default:
			return false
		}
	}
}

func (c *cutter) list(item *branch) bool {
	c.step()
	for at := 0; ; at++ {
		if c.next() == ']' && at == 0 {
			return c.step()
		}
		if !c.value(item, at) {
			return false
		}
		switch c.next() {
		case ',':
			c.step()
		case ']':
			return c.step()
		default:
			return false
		}
	}
}

// name copies the name of a field that is written in plain letters.
func (c *cutter) name() (string, bool) {
	if c.next() != '"' {
		return "", false
	}
	from := len(c.out)
	if !c.quoted() {
		return "", false
	}
	text := c.out[from+1 : len(c.out)-1]
	if bytes.ContainsFunc(text, func(r rune) bool { return r == '\\' || r > 126 }) {
		return "", false
	}
	return string(text), true
}

// plain copies a value as it stands.
func (c *cutter) plain() bool {
	for depth := 0; c.at < len(c.in); {
		switch b := c.in[c.at]; b {
		case '"':
			if !c.quoted() {
				return false
			}
		case ' ', '\n', '\t', '\r':
			c.space()
			if c.at < len(c.in) && inWord(c.in[c.at]) && inWord(c.out[len(c.out)-1]) {
				return false // two values where one may stand
			}
			continue
		case '{', '[':
			c.step()
			depth++
			continue
		case '}', ']':
			c.step()
			depth--
		case ',', ':':
			c.step()
			continue
		default:
			for c.at < len(c.in) && inWord(c.in[c.at]) {
				c.step()
			}
		}
		if depth <= 0 {
			return depth == 0
		}
	}
	return false
}

// inWord says whether a byte belongs to a number or a word.
func inWord(b byte) bool { return strings.IndexByte("{}[],:\" \n\t\r", b) < 0 }

// quoted copies a string.
func (c *cutter) quoted() bool {
	for end := c.at + 1; end < len(c.in); end++ {
		switch c.in[end] {
		case '\\':
			end++
		case '"':
			c.out = append(c.out, c.in[c.at:end+1]...)
			c.at = end + 1
			return true
		}
	}
	return false
}

// next is the next byte that is no space, 0 at the end.
func (c *cutter) next() byte {
	if c.space(); c.at == len(c.in) {
		return 0
	}
	return c.in[c.at]
}

// ends says whether nothing follows.
func (c *cutter) ends() bool { return c.next() == 0 && c.at == len(c.in) }

// step copies a byte.
func (c *cutter) step() bool {
	c.out = append(c.out, c.in[c.at])
	c.at++
	return true
}

func (c *cutter) space() {
	for c.at < len(c.in) && (c.in[c.at] == ' ' || c.in[c.at] == '\n' || c.in[c.at] == '\t' || c.in[c.at] == '\r') {
		c.at++
	}
}
