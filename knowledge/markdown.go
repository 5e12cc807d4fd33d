package knowledge

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/text"
	"sigs.k8s.io/yaml"
)

// frontMatter may open a file, between two lines of three hyphens. Other keys
// are left to the tools they are for.
type frontMatter struct {
	Title    string `json:"title"`
	URL      string `json:"url"`
	Source   string `json:"source"`
	At       string `json:"at"`
	Resolved bool   `json:"resolved"`
}

var (
	// dated opens the heading of an incident in a log.
	dated = regexp.MustCompile(`^(\d{4}-\d{2}-\d{2})\b[\s:,–—-]*`)
	// outcome is a paragraph or heading that says how the matter ended.
	outcome = regexp.MustCompile(`(?im)^(?:resolved|resolution)\b[\s:.–—-]*(not?\b|open\b)?`)
)

// parse makes documents of a Markdown file. A file is one document, unless it
// is a log of incidents: a `##` heading that starts with a date makes it one,
// and then every `##` section is a document, and so is what stands before the
// first. name is the file's path; it is the document's URL unless the front
// matter has one.
func parse(name string, content []byte) ([]Document, error) {
	meta, body, err := splitFrontMatter(content)
	if err != nil {
		return nil, err
	}
	base := Document{ID: name, Source: meta.Source, Title: meta.Title, URL: meta.URL, Resolved: meta.Resolved}
	if base.Source == "" {
		base.Source = "doc"
	}
	if base.URL == "" {
		base.URL = name
	}
	if meta.At != "" {
		if base.At, err = parseTime(meta.At); err != nil {
			return nil, err
		}
	}
	blocks := blocksOf(body)
	if base.Title == "" {
		base.Title = titleOf(name, blocks)
	}
	if !isLog(blocks) {
		base.fill(blocks)
		return []Document{base}, nil
	}
	return sections(base, blocks), nil
}

func splitFrontMatter(content []byte) (frontMatter, []byte, error) {
	var meta frontMatter
	// Windows editors leave a byte order mark and carriage returns.
	s := strings.ReplaceAll(strings.TrimPrefix(string(content), "\ufeff"), "\r\n", "\n")
	if !strings.HasPrefix(s, "---\n") {
		return meta, []byte(s), nil
	}
	head, body, closed := strings.Cut(s[len("---\n"):]+"\n", "\n---\n")
	if !closed {
		// A file may open with a thematic break.
		return meta, []byte(s), nil
	}
	if err := yaml.Unmarshal([]byte(head), &meta); err != nil {
		return meta, nil, fmt.Errorf("read front matter: %w", err)
	}
	return meta, []byte(body), nil
}

func parseTime(s string) (time.Time, error) {
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(layout, s); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("read front matter: at %q is neither a date nor RFC 3339", s)
}

// block is a paragraph, list item, code block or heading as plain text; level
// is 0 but for headings.
type block struct {
	level int
	text  string
}

func blocksOf(source []byte) []block {
	var out []block
	root := goldmark.DefaultParser().Parse(text.NewReader(source))
	walk := func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering || n.Type() == ast.TypeInline {
			return ast.WalkContinue, nil
		}
		b := block{}
		switch n := n.(type) {
		case *ast.Heading:
			b = block{n.Level, inline(n, source)}
		case *ast.Paragraph, *ast.TextBlock:
			b.text = inline(n, source)
		case *ast.CodeBlock, *ast.FencedCodeBlock:
			b.text = string(n.Lines().Value(source))
		default:
			return ast.WalkContinue, nil
		}
		if b.text = strings.TrimSpace(b.text); b.text != "" {
			out = append(out, b)
		}
		return ast.WalkSkipChildren, nil
	}
	// The walker returns only errors of walk, which has none.
	_ = ast.Walk(root, walk)
	return out
}

// inline is the text of a block without its markup; HTML tags are dropped.
func inline(n ast.Node, source []byte) string {
	var b strings.Builder
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		switch c := c.(type) {
		case *ast.Text:
			b.Write(c.Segment.Value(source))
			if c.SoftLineBreak() || c.HardLineBreak() {
				b.WriteByte(' ')
			}
		case *ast.String:
			b.Write(c.Value)
		case *ast.AutoLink:
			b.Write(c.Label(source))
		default:
			b.WriteString(inline(c, source))
		}
	}
	return b.String()
}

func titleOf(name string, blocks []block) string {
	for _, b := range blocks {
		if b.level == 1 {
			return b.text
		}
	}
	return name
}

func isLog(blocks []block) bool {
	for _, b := range blocks {
		if b.level == 2 && dated.MatchString(b.text) {
			return true
		}
	}
	return false
}

// sections makes a document of each `##` section of a log.
func sections(base Document, blocks []block) []Document {
	var out []Document
	part, start := base, 0
	end := func(to int) {
		if part.fill(blocks[start:to]); part.Text != "" {
			out = append(out, part)
		}
	}
	for i, b := range blocks {
		if b.level != 2 {
			continue
		}
		end(i)
		part, start = base, i+1
		part.ID = fmt.Sprintf("%s#%d", base.ID, i)
		part.Title = b.text
		if m := dated.FindStringSubmatch(b.text); m != nil {
			if at, err := time.Parse(time.DateOnly, m[1]); err == nil {
				part.At = at
				part.Title = strings.TrimSpace(b.text[len(m[0]):])
			}
		}
		if part.Title == "" {
			part.Title = base.Title
		}
	}
	end(len(blocks))
	return out
}

// fill takes text and outcome from blocks; the title is not repeated in it.
func (d *Document) fill(blocks []block) {
	var texts []string
	for _, b := range blocks {
		if b.level == 1 && b.text == d.Title {
			continue
		}
		texts = append(texts, b.text)
		if m := outcome.FindStringSubmatch(b.text); m != nil {
			d.Resolved = m[1] == ""
		}
	}
	d.Text = strings.Join(texts, "\n\n")
}
