package knowledge

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/blevesearch/bleve/v2"
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
	batch   *bleve.Batch
	seen    map[string]bool
	newest  time.Time
	skip    func(what, why string)
	imports *Import
}

func (i *Index) intake(skip func(what, why string)) *Intake {
	return &Intake{index: i, batch: i.bleve.NewBatch(), seen: map[string]bool{}, skip: skip, imports: &Import{}}
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
	t.seen[d.ID] = true
	encoded, err := json.Marshal(d)
	if err != nil {
		return fmt.Errorf("index document %s: %w", d.ID, err)
	}
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
	if d.At.After(t.newest) {
		t.newest = d.At
	}
	if err := t.batch.Index(d.ID, d.fields(encoded)); err != nil {
		return fmt.Errorf("index document %s: %w", d.ID, err)
	}
	return t.full(ctx)
}

func (t *Intake) full(ctx context.Context) error {
	if t.batch.Size() < batchSize {
		return nil
	}
	return t.flush(ctx)
}

// flush writes what was taken.
func (t *Intake) flush(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("index documents: %w", err)
	}
	if t.batch.Size() == 0 {
		return nil
	}
	was, err := t.index.newest()
	if err == nil && t.newest.After(was) {
		var b []byte
		b, err = t.newest.MarshalText()
		t.batch.SetInternal(newestKey, b)
	}
	if err == nil {
		err = t.index.bleve.Batch(t.batch)
	}
	if err != nil {
		return fmt.Errorf("index %d documents: %w", t.batch.Size(), err)
	}
	t.batch.Reset()
	return nil
}

// stored is a document as the index holds it; empty when it does not.
func (i *Index) stored(id string) (string, error) {
	d, err := i.bleve.Document(id)
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
		t.batch.Delete(id)
		t.imports.Removed++
		if err := t.full(ctx); err != nil {
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
