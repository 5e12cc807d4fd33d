package knowledge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/blevesearch/bleve/v2"
)

const (
	// indexVersion names the folder of the index: one that another version made,
	// with other fields, is not read.
	indexVersion = "v2"
	// busyAfter is how long a library waits for another process to end its import.
	busyAfter = "3s"
	// maxImports bounds the imports that are remembered.
	maxImports = 20
)

// importsKey holds the last imports.
var importsKey = []byte("imports")

// ErrBusy says that another process writes to the library, or, to who wants to
// write, that another one reads it.
var ErrBusy = errors.New("another process uses it; try again when that has ended")

// Library is an index that stays on disk, in a folder of its own.
type Library struct {
	*Index
	dir string
}

// Import is what one import did.
type Import struct {
	Source  string         `json:"source"` // slack, jira or doc
	From    string         `json:"from"`   // the file or folder
	At      time.Time      `json:"at"`
	Added   int            `json:"added"`
	Changed int            `json:"changed"`
	Same    int            `json:"same"`
	Removed int            `json:"removed"`
	Skipped map[string]int `json:"skipped,omitempty"` // how many, by the reason
}

// Part is a channel, a project or a folder that a library has documents of.
type Part struct {
	Source    string `json:"source"`
	Part      string `json:"part"`
	Name      string `json:"name,omitempty"` // what people call it
	Documents int    `json:"documents"`
}

// OpenLibrary opens the library in dir to be searched. The error wraps
// fs.ErrNotExist where none is, and ErrBusy during an import.
func OpenLibrary(dir string) (*Library, error) { return openLibrary(dir, true) }

// EditLibrary opens the library in dir to be searched and changed, and makes one
// where none is. Nobody else can open it until it is closed.
func EditLibrary(dir string) (*Library, error) {
	if err := makeLibrary(dir); err != nil {
		return nil, fmt.Errorf("make knowledge library %s: %w", dir, err)
	}
	return openLibrary(dir, false)
}

func openLibrary(dir string, readOnly bool) (*Library, error) {
	path := filepath.Join(dir, indexVersion)
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("open knowledge library: %w", err)
	}
	b, err := bleve.OpenUsing(path, map[string]any{"read_only": readOnly, "bolt_timeout": busyAfter})
	if err != nil && strings.Contains(err.Error(), "timeout") {
		err = ErrBusy
	}
	if err != nil {
		return nil, fmt.Errorf("open knowledge library %s: %w", dir, err)
	}
	return &Library{Index: wrap(b), dir: dir}, nil
}

// makeLibrary makes an empty one beside and moves it into place: who is killed
// meanwhile leaves no half of one.
func makeLibrary(dir string) error {
	path := filepath.Join(dir, indexVersion)
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	// Private channels may be in there.
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	temporary, err := os.MkdirTemp(dir, "new-")
	if err != nil {
		return err
	}
	b, err := create(filepath.Join(temporary, indexVersion), nil)
	if err == nil {
		err = b.Close()
	}
	if err == nil {
		err = os.Rename(filepath.Join(temporary, indexVersion), path)
	}
	return errors.Join(err, os.RemoveAll(temporary))
}

// Import reads a source into the library. What is there as it is stays untouched,
// what was edited is replaced, what is gone from a part that the source has whole
// is removed: so an import that was killed goes on when it is called again.
func (l *Library) Import(ctx context.Context, s Source, name, from string, now time.Time) (Import, error) {
	done, err := l.through(ctx, s, Import{Source: name, From: from, At: now}, l.apply)
	if err != nil {
		return done, err
	}
	return done, l.remember(done)
}

// ImportThrough is Import where what changes is handed on instead, in its order, to who
// brings it to this library and to others (see Apply): of several that hold the same
// documents, one reads the source.
func (l *Library) ImportThrough(ctx context.Context, s Source, name, from string, now time.Time, hand func(context.Context, Change) error) (Import, error) {
	return l.through(ctx, s, Import{Source: name, From: from, At: now}, func(ctx context.Context, all []Change) error {
		for _, c := range all {
			if err := hand(ctx, c); err != nil {
				return err
			}
		}
		return nil
	})
}

func (l *Library) through(ctx context.Context, s Source, done Import, write func(context.Context, []Change) error) (Import, error) {
	done.Skipped = map[string]int{}
	t := l.intake(func(_, why string) { done.Skipped[why]++ })
	t.imports, t.write = &done, write
	whole, err := s.Read(ctx, t)
	if err != nil {
		return done, errors.Join(err, t.flush(ctx))
	}
	for _, w := range whole {
		if err := t.remove(ctx, w); err != nil {
			return done, fmt.Errorf("remove what is gone from %s: %w", done.From, err)
		}
	}
	return done, t.flush(ctx)
}

func (l *Library) remember(done Import) error {
	all, err := l.Imports()
	if err != nil {
		return err
	}
	all = append(all, done)
	encoded, err := json.Marshal(all[max(0, len(all)-maxImports):])
	if err == nil {
		err = l.bleve.SetInternal(importsKey, encoded)
	}
	if err != nil {
		return fmt.Errorf("note the import: %w", err)
	}
	return nil
}

// Imports are the last imports that ended, oldest first.
func (l *Library) Imports() (all []Import, err error) {
	stored, err := l.bleve.GetInternal(importsKey)
	if err == nil && len(stored) > 0 {
		err = json.Unmarshal(stored, &all)
	}
	if err != nil {
		return nil, fmt.Errorf("read the imports of the library: %w", err)
	}
	return all, nil
}

// Parts are what the library has documents of, by source and name.
func (l *Library) Parts(ctx context.Context) ([]Part, error) {
	dict, err := l.bleve.FieldDict(fieldPart)
	if err != nil {
		return nil, fmt.Errorf("list the parts of the library: %w", err)
	}
	keys := map[string]bool{}
	for e, err := dict.Next(); e != nil || err != nil; e, err = dict.Next() {
		if err != nil {
			return nil, errors.Join(err, dict.Close())
		}
		keys[e.Term] = true
	}
	if err := dict.Close(); err != nil {
		return nil, err
	}
	out := []Part{}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		// The dictionary also has what was removed; its documents say what is there.
		ids, err := l.having(ctx, fieldPart, key)
		if err != nil {
			return nil, err
		}
		if len(ids) == 0 {
			continue
		}
		stored, err := l.stored(ids[len(ids)-1])
		if err != nil {
			return nil, err
		}
		d, err := read(stored)
		if err != nil {
			return nil, err
		}
		out = append(out, Part{Source: d.Source, Part: d.Part, Name: d.PartName, Documents: len(ids)})
	}
	return out, nil
}

// Forget removes what name names: a source, a channel or project by id or name, a
// folder, a document by id or address. It returns how many documents went.
func (l *Library) Forget(ctx context.Context, name string) (int, error) {
	t := l.intake(func(string, string) {})
	ids, err := l.having(ctx, fieldOf, strings.ToLower(name))
	if err != nil {
		return 0, fmt.Errorf("forget %s: %w", name, err)
	}
	for _, source := range append([]string{""}, sources...) {
		id := strings.TrimPrefix(source+"/"+name, "/")
		stored, err := l.stored(id)
		if err != nil {
			return 0, err
		}
		if stored != "" && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	for _, id := range ids {
		t.changes = append(t.changes, Change{ID: id})
	}
	if err := l.unmarked(ctx, t, ids); err != nil {
		return 0, fmt.Errorf("forget %s: %w", name, err)
	}
	// One batch: all of it goes or nothing.
	if err := t.flush(ctx); err != nil {
		return len(ids), err
	}
	return len(ids), l.forgetVectors(ids)
}

// unmarked has parts of which nothing is left read from their beginning, should they be read
// again.
func (l *Library) unmarked(ctx context.Context, t *Intake, gone []string) error {
	parts, err := l.Parts(ctx)
	if err != nil {
		return err
	}
	for _, p := range parts {
		ids, err := t.Known(ctx, p.Source, p.Part)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(ids, func(id string) bool { return !slices.Contains(gone, id) }) {
			continue
		}
		if err := t.unmark(p.Source, p.Part); err != nil {
			return err
		}
	}
	return nil
}

// Bytes is how large the library is on disk.
func (l *Library) Bytes() (int64, error) {
	var n int64
	err := filepath.WalkDir(l.dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err == nil {
			n += info.Size()
		}
		return err
	})
	return n, err
}
