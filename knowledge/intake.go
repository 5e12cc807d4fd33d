package knowledge

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	bleveindex "github.com/blevesearch/bleve_index_api"
)

// batchSize bounds memory while indexing; a batch costs one sync of the disk.
const batchSize = 500

// Source is something that documents are read from: an export or a folder.
type Source interface {
	// Read hands every document over, and says of what it left out why. What it
	// answers is what it had whole: there, a document that was not handed over does
	// not exist any more. With an error, nothing was whole.
	Read(ctx context.Context, to *Intake) ([]Whole, error)
}

// Whole is a part of a source of which everything was there.
type Whole struct {
	Source, Part string
	From, Until  time.Time // the documents of this time; zero: of all times
}

// Intake takes documents into an index. What a batch holds is there after a crash,
// what it does not hold is not: a document is never there by half, nor twice.
type Intake struct {
	index   *Index
	write   func(context.Context, []Change) error // all of it or, where that is not possible, in this order
	changes []Change
	seen    map[string]bool
	skip    func(what, why string)
	imports *Import
}

func (i *Index) intake(skip func(what, why string)) *Intake {
	return &Intake{index: i, write: i.apply, seen: map[string]bool{}, skip: skip, imports: &Import{}}
}

// Skip says what was left out, and why: the same words for the same reason, since
// reasons are counted.
func (t *Intake) Skip(what, why string) { t.skip(what, why) }

// Add takes a document, unless it is there as it is.
func (t *Intake) Add(ctx context.Context, d Document) error {
	if err := d.check(); err != nil {
		t.skip(d.name(), err.Error())
		return nil
	}
	if t.seen[d.ID] {
		t.skip(d.ID, "another document has that id")
		return nil
	}
	encoded, err := json.Marshal(d)
	if err != nil {
		return fmt.Errorf("index document %s: %w", d.ID, err)
	}
	if len(encoded) > MaxDocument {
		t.skip(d.ID, fmt.Sprintf("a document of more than %d KiB", MaxDocument>>10))
		return nil
	}
	t.seen[d.ID] = true
	switch was, err := t.index.stored(d.ID); {
	case err != nil:
		return err
	case was == string(encoded):
		t.imports.Same++
		return nil
	case was == "":
		t.imports.Added++
	default:
		t.imports.Changed++
	}
	return t.change(ctx, Change{ID: d.ID, Document: &d})
}

// Has says whether a document is there in a version; then it counts as handed over.
func (t *Intake) Has(id, version string) (bool, error) {
	was, err := t.index.stored(id)
	if err != nil || was == "" || version == "" {
		return false, err
	}
	d, err := read(was)
	if err != nil || d.Version != version {
		return false, err
	}
	if !t.seen[id] {
		t.seen[id] = true
		t.imports.Same++
	}
	return true, nil
}

// Taken says whether a document was handed over.
func (t *Intake) Taken(id string) bool { return t.seen[id] }

// Known are the ids of the documents that are there of a part of a source.
func (t *Intake) Known(ctx context.Context, source, part string) ([]string, error) {
	return t.index.having(ctx, fieldPart, source+"/"+part)
}

// Remove takes a document out, if it is there.
func (t *Intake) Remove(ctx context.Context, id string) error {
	was, err := t.index.stored(id)
	if err != nil || was == "" {
		return err
	}
	t.imports.Removed++
	return t.change(ctx, Change{ID: id})
}

// Only takes out what a source has in other parts than these.
func (t *Intake) Only(ctx context.Context, source string, parts []string) error {
	all, err := t.index.having(ctx, fieldOf, source)
	if err != nil {
		return err
	}
	left := map[string]bool{}
	for _, id := range all {
		was, err := t.index.stored(id)
		if err != nil {
			return err
		}
		d, err := read(was)
		if err != nil {
			return err
		}
		if d.Source == source && !slices.Contains(parts, d.Part) {
			left[d.Part] = true
		}
	}
	for _, part := range slices.Sorted(maps.Keys(left)) {
		if err := t.Leave(ctx, source, part); err != nil {
			return err
		}
	}
	return nil
}

// Leave takes out all of a part. Should it be read again, it is read from its beginning.
func (t *Intake) Leave(ctx context.Context, source, part string) error {
	ids, err := t.Known(ctx, source, part)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if err := t.Remove(ctx, id); err != nil {
			return err
		}
	}
	if err := t.unmark(source, part); err != nil {
		return err
	}
	return t.flush(ctx)
}

// unmark forgets how far a part was read.
func (t *Intake) unmark(source, part string) error {
	id := markPrefix + source + "/" + part
	encoded, err := t.index.bleve.GetInternal([]byte(id))
	if err == nil && len(encoded) > 0 {
		t.changes = append(t.changes, Change{ID: id, Mark: none})
	}
	return err
}

// none is the mark of what was not read.
var none = json.RawMessage("null")

// Rename has all documents of a part tell what people call it now, and whether it is private.
func (t *Intake) Rename(ctx context.Context, source, part, name string, private bool) error {
	ids, err := t.Known(ctx, source, part)
	if err != nil {
		return err
	}
	for _, id := range ids {
		was, err := t.index.stored(id)
		if err != nil {
			return err
		}
		d, err := read(was)
		if err != nil {
			return err
		}
		if d.PartName == name && d.Private == private {
			continue
		}
		d.PartName, d.Private = name, private
		t.imports.Changed++
		if err := t.change(ctx, Change{ID: id, Document: &d}); err != nil {
			return err
		}
	}
	return t.flush(ctx)
}

// Mark keeps how far a source has been read, with all that was taken until then: after a
// crash both are there, or the mark before.
func (t *Intake) Mark(ctx context.Context, name string, v any) error {
	encoded, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("keep mark %s: %w", name, err)
	}
	t.changes = append(t.changes, Change{ID: markPrefix + name, Mark: encoded})
	return t.flush(ctx)
}

// Marked reads a mark into v; false when there is none that can be read, and the source has
// to be read from its beginning.
func (t *Intake) Marked(name string, v any) (bool, error) {
	encoded, err := t.index.bleve.GetInternal([]byte(markPrefix + name))
	if err != nil {
		return false, fmt.Errorf("read mark %s: %w", name, err)
	}
	return len(encoded) > 0 && !bytes.Equal(encoded, none) && json.Unmarshal(encoded, v) == nil, nil
}

func (t *Intake) change(ctx context.Context, c Change) error {
	t.changes = append(t.changes, c)
	if len(t.changes) < batchSize {
		return nil
	}
	return t.flush(ctx)
}

// flush writes what was taken.
func (t *Intake) flush(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("index documents: %w", err)
	}
	if len(t.changes) == 0 {
		return nil
	}
	if err := t.write(ctx, t.changes); err != nil {
		return err
	}
	t.changes = nil
	return nil
}

// stored is a document as the index holds it; empty when it does not.
func (i *Index) stored(id string) (string, error) {
	return storedIn(i.bleve, id)
}

// storedIn is a document as an index, or a reader of it, holds it.
func storedIn(r interface {
	Document(id string) (bleveindex.Document, error)
}, id string) (string, error) {
	d, err := r.Document(id)
	if err != nil {
		return "", fmt.Errorf("read document %s: %w", id, err)
	}
	out := ""
	if d != nil {
		d.VisitFields(func(f bleveindex.Field) {
			if f.Name() == fieldDoc {
				out = string(f.Value())
			}
		})
	}
	return out, nil
}

// remove takes away what was not handed over and lies in a part that was whole.
func (t *Intake) remove(ctx context.Context, w Whole) error {
	ids, err := t.index.having(ctx, fieldPart, w.Source+"/"+w.Part)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if t.seen[id] {
			continue
		}
		stored, err := t.index.stored(id)
		if err != nil {
			return err
		}
		d, err := read(stored)
		if err != nil {
			return err
		}
		if !w.From.IsZero() && d.At.Before(w.From) || !w.Until.IsZero() && !d.At.Before(w.Until) {
			continue
		}
		t.imports.Removed++
		if err := t.change(ctx, Change{ID: id}); err != nil {
			return err
		}
	}
	return nil
}

// having are the ids of the documents that have a term in a field.
func (i *Index) having(ctx context.Context, field, term string) (ids []string, err error) {
	adv, err := i.bleve.Advanced()
	if err != nil {
		return nil, err
	}
	r, err := adv.Reader()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	tfr, err := r.TermFieldReader(ctx, []byte(term), field, false, false, false)
	if err != nil {
		return nil, err
	}
	defer tfr.Close()
	for {
		next, err := tfr.Next(nil)
		if err != nil || next == nil {
			return ids, err
		}
		id, err := r.ExternalID(next.ID)
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
}

// handles are what d can be forgotten by, besides its id, in lower case.
func (d Document) handles() []string {
	out := []string{d.Source}
	for _, s := range []string{d.Part, d.PartName, strings.TrimPrefix(d.PartName, "#"), d.URL} {
		if s != "" {
			out = append(out, strings.ToLower(s))
		}
	}
	return out
}
