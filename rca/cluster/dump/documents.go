package dump

import (
	"bytes"
	"fmt"
	"strings"
)

// position says where a document stands.
type position struct {
	file     string
	document int
	line     int
}

// newlines counts those before the byte at offset.
func newlines(data []byte, offset int) int {
	return bytes.Count(data[:max(0, min(offset, len(data)))], []byte("\n"))
}

// fail names file, document and line; a line the YAML decoder gives counts from
// the document's first.
func (p position) fail(err error) error {
	line := p.line
	if _, rest, ok := strings.Cut(err.Error(), "yaml: line "); ok {
		var n int
		if _, scan := fmt.Sscanf(rest, "%d", &n); scan == nil {
			line += n - 1
		}
	}
	return fmt.Errorf("%s: document %d, line %d: %w", p.file, p.document, line, err)
}

// splitYAML cuts before lines that begin a document ("---", also with a comment
// or content behind it) and after those that end one ("...").
func splitYAML(data []byte) [][]byte {
	var docs [][]byte
	start, at := 0, 0
	for line := range bytes.Lines(data) {
		next := at + len(line)
		if marks(line, "---") && at > start {
			docs = append(docs, data[start:at])
			start = at
		}
		if marks(line, "...") {
			docs = append(docs, data[start:next])
			start = next
		}
		at = next
	}
	return append(docs, data[start:])
}

func marks(line []byte, marker string) bool {
	return bytes.HasPrefix(line, []byte(marker)) && (len(line) == len(marker) || strings.ContainsRune(" \t\r\n", rune(line[len(marker)])))
}

// hasContent is false for a document of comments and directives alone.
func hasContent(doc []byte) bool {
	for line := range bytes.Lines(doc) {
		if t := bytes.TrimSpace(line); len(t) > 0 && t[0] != '#' && t[0] != '%' && !marks(line, "...") {
			return true
		}
	}
	return false
}
