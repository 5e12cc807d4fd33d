package knowledge

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Change is what happens to one document of a library, or to a mark. The last change of an id
// says all of it.
type Change struct {
	ID       string          `json:"id"`
	Document *Document       `json:"document,omitempty"` // nil: it is gone
	Mark     json.RawMessage `json:"mark,omitempty"`     // how far a source has been read, where the id is a mark's
}

// markPrefix begins the ids of marks; no source of documents is called so.
const markPrefix = "mark/"

// Key tells the changes of one id from all others: letters, digits and one point.
func (c Change) Key() string {
	kind, _, _ := strings.Cut(c.ID, "/")
	return fmt.Sprintf("%s.%x", kind, sha256.Sum256([]byte(c.ID)))
}

// Apply brings changes to the library that were handed on (see ImportThrough): all of them
// or, with an error, none. What is there as it is stays untouched; what nobody can index is
// left out.
func (l *Library) Apply(ctx context.Context, all []Change) error {
	last := map[string]int{}
	for i, c := range all {
		last[c.ID] = i
	}
	var news []Change
	for i, c := range all {
		if last[c.ID] != i {
			continue
		}
		same, err := l.same(c)
		if err != nil {
			return err
		}
		if !same && (c.Document == nil || c.Document.ID == c.ID && c.Document.check() == nil) {
			news = append(news, c)
		}
	}
	if len(news) == 0 {
		return nil
	}
	return l.apply(ctx, news)
}

// Holds says whether a change that was handed on is there.
func (l *Library) Holds(c Change) (bool, error) { return l.same(c) }

// same is whether a change is there already.
func (i *Index) same(c Change) (bool, error) {
	if c.isMark() {
		was, err := i.bleve.GetInternal([]byte(c.ID))
		return string(was) == string(c.Mark), err
	}
	was, err := i.stored(c.ID)
	if err != nil || c.Document == nil {
		return was == "", err
	}
	encoded, err := json.Marshal(c.Document)
	return was == string(encoded), err
}

func (c Change) isMark() bool { return strings.HasPrefix(c.ID, markPrefix) }

// apply writes changes in one batch: after a crash all of them are there, or none.
func (i *Index) apply(_ context.Context, all []Change) error {
	i.mu.RLock()
	defer i.mu.RUnlock()
	if i.closed {
		return errors.New("index documents: the index is closed")
	}
	batch, newest := i.bleve.NewBatch(), time.Time{}
	for _, c := range all {
		switch {
		case c.isMark():
			batch.SetInternal([]byte(c.ID), c.Mark)
		case c.Document == nil:
			batch.Delete(c.ID)
		default:
			encoded, err := json.Marshal(c.Document)
			if err == nil {
				err = batch.Index(c.ID, c.Document.fields(encoded))
			}
			if err != nil {
				return fmt.Errorf("index document %s: %w", c.ID, err)
			}
			if c.Document.At.After(newest) {
				newest = c.Document.At
			}
		}
	}
	was, err := i.newest()
	if err == nil && newest.After(was) {
		var b []byte
		b, err = newest.MarshalText()
		batch.SetInternal(newestKey, b)
	}
	if err == nil {
		err = i.bleve.Batch(batch)
	}
	if err != nil {
		return fmt.Errorf("index %d documents: %w", len(all), err)
	}
	return nil
}

// Changes hands over every document of some sources, as a change that would bring it to
// another library, and the marks of how far they were read.
func (l *Library) Changes(ctx context.Context, sources []string, hand func(Change) error) error {
	for _, source := range sources {
		ids, err := l.having(ctx, fieldOf, source)
		if err != nil {
			return fmt.Errorf("list the documents of %s: %w", source, err)
		}
		parts := map[string]bool{}
		for _, id := range ids {
			stored, err := l.stored(id)
			if err != nil {
				return err
			}
			d, err := read(stored)
			if err != nil {
				return err
			}
			if d.Source != source {
				continue
			}
			parts[d.Part] = true
			if err := hand(Change{ID: id, Document: &d}); err != nil {
				return err
			}
		}
		for _, part := range slices.Sorted(maps.Keys(parts)) {
			mark := markPrefix + source + "/" + part
			encoded, err := l.bleve.GetInternal([]byte(mark))
			if err == nil && len(encoded) > 0 {
				err = hand(Change{ID: mark, Mark: encoded})
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}
