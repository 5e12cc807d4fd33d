package cluster

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// FromFiles reads dumps: YAML or JSON streams, files or folders (their .yaml,
// .yml and .json files, sub-folders too), "-" for stdin. Unknown kinds are
// ignored. A malformed document is an error that names file, document and line.
func FromFiles(paths []string, stdin io.Reader) (*State, error) {
	s := &State{Unread: map[string]string{}}
	r := &fileReader{state: s, held: map[string]bool{}}
	for _, p := range paths {
		if err := r.read(p, stdin); err != nil {
			return nil, err
		}
	}
	s.finish()
	s.Now = s.newest()
	for _, k := range kinds {
		if !r.held[k.name] {
			s.Unread[k.name] = "the dump holds none"
		}
	}
	return s, nil
}

type fileReader struct {
	state *State
	held  map[string]bool // kinds met, empty lists included
	// inFolder: the file was found, not named.
	inFolder bool
}

func (r *fileReader) read(path string, stdin io.Reader) error {
	if path == "-" {
		data, err := io.ReadAll(stdin)
		if err != nil {
			return fmt.Errorf("read stdin: %w", err)
		}
		return r.stream("stdin", data)
	}
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("read dump: %w", err)
	}
	if !info.IsDir() {
		return r.file(path)
	}
	r.inFolder = true
	defer func() { r.inFolder = false }()
	return filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return fmt.Errorf("read dump: %w", err)
		}
		if d.IsDir() || !slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(p)) {
			return nil
		}
		return r.file(p)
	})
}

func (r *fileReader) file(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read dump: %w", err)
	}
	return r.stream(path, data)
}

// stream reads documents one after the other. JSON is told by its first byte:
// its decoder is much faster than YAML's.
func (r *fileReader) stream(name string, data []byte) error {
	if trimmed := bytes.TrimSpace(data); len(trimmed) > 0 && trimmed[0] == '{' {
		return r.jsonStream(name, data)
	}
	line := 1
	for n, doc := range splitYAML(data) {
		at := position{name, n + 1, line}
		line += bytes.Count(doc, []byte("\n"))
		if len(bytes.TrimSpace(stripComments(doc))) == 0 {
			continue
		}
		converted, err := yaml.YAMLToJSON(doc)
		if err != nil {
			return at.fail(err)
		}
		if err := r.object(converted); err != nil {
			return at.fail(err)
		}
	}
	return nil
}

func (r *fileReader) jsonStream(name string, data []byte) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	for n := 1; ; n++ {
		rest := bytes.TrimLeft(data[dec.InputOffset():], " \t\r\n")
		at := position{name, n, lineAt(data, len(data)-len(rest))}
		var doc json.RawMessage
		err := dec.Decode(&doc)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
			at.line = lineAt(data, int(syntax.Offset)-1) // counted from the stream's first byte
		}
		if err == nil {
			err = r.object(doc)
		}
		if err != nil {
			return at.fail(err)
		}
	}
}

// object takes one document in: an object, or a list of them.
func (r *fileReader) object(data []byte) error {
	var head struct {
		APIVersion string            `json:"apiVersion"`
		Kind       string            `json:"kind"`
		Items      []json.RawMessage `json:"items"`
	}
	if string(bytes.TrimSpace(data)) == "null" {
		return nil
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return err
	}
	if r.inFolder && head.Kind == "" && head.APIVersion == "" {
		return nil // a folder may hold other YAML beside dumps
	}
	if head.Kind == "" || head.APIVersion == "" {
		return errors.New("apiVersion or kind is missing")
	}
	if base, isList := strings.CutSuffix(head.Kind, "List"); isList && kindOf(head.APIVersion, head.Kind) == nil {
		if k := kindOf(head.APIVersion, base); k != nil {
			r.held[k.name] = true
		}
		return r.items(head.APIVersion, base, head.Items)
	}
	return r.one(head.APIVersion, head.Kind, data)
}

// items of a typed list need not repeat their kind.
func (r *fileReader) items(apiVersion, base string, items []json.RawMessage) error {
	for i, item := range items {
		var head struct {
			APIVersion string `json:"apiVersion"`
			Kind       string `json:"kind"`
		}
		if err := json.Unmarshal(item, &head); err != nil {
			return fmt.Errorf("item %d: %w", i, err)
		}
		if head.Kind == "" {
			head.APIVersion, head.Kind = apiVersion, base
		}
		read := r.one
		if strings.HasSuffix(head.Kind, "List") {
			read = func(_, _ string, data []byte) error { return r.object(data) }
		}
		if err := read(head.APIVersion, head.Kind, item); err != nil {
			return fmt.Errorf("item %d: %w", i, err)
		}
	}
	return nil
}

func (r *fileReader) one(apiVersion, name string, data []byte) error {
	k := kindOf(apiVersion, name)
	if k == nil {
		return nil
	}
	obj, err := k.decode(data)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if obj.GetName() == "" {
		return fmt.Errorf("%s: metadata.name is missing", name)
	}
	r.held[k.name] = true
	trim(obj)
	k.add(r.state, obj)
	return nil
}

// position says where a document stands.
type position struct {
	file     string
	document int
	line     int
}

// lineAt is the line, from 1, that the byte at offset is on.
func lineAt(data []byte, offset int) int {
	return 1 + bytes.Count(data[:max(0, min(offset, len(data)))], []byte("\n"))
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

// splitYAML cuts at lines that are "---".
func splitYAML(data []byte) [][]byte {
	var docs [][]byte
	start := 0
	for i := 0; i < len(data); {
		end := bytes.IndexByte(data[i:], '\n')
		next := len(data)
		if end >= 0 {
			next = i + end + 1
		}
		if line := bytes.TrimRight(data[i:next], " \r\n"); bytes.Equal(line, []byte("---")) && i > start {
			docs = append(docs, data[start:i])
			start = i
		}
		i = next
	}
	return append(docs, data[start:])
}

func stripComments(doc []byte) []byte {
	var out []byte
	for line := range bytes.Lines(doc) {
		t := bytes.TrimSpace(line)
		if len(t) > 0 && t[0] != '#' && !bytes.Equal(t, []byte("---")) {
			out = append(out, line...)
		}
	}
	return out
}
