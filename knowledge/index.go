package knowledge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/blevesearch/bleve/v2"
	"github.com/blevesearch/bleve/v2/analysis"
	"github.com/blevesearch/bleve/v2/analysis/analyzer/keyword"
	"github.com/blevesearch/bleve/v2/analysis/lang/en"
	"github.com/blevesearch/bleve/v2/mapping"
	bleveindex "github.com/blevesearch/bleve_index_api"
)

// The fields of an indexed document.
const (
	fieldTitle = "title"
	fieldText  = "text"
	fieldPart  = "part" // where it is from, as Library tells and forgets it
	fieldOf    = "of"   // all that it can be forgotten by
	fieldDoc   = "doc"  // the Document; stored, not searched
)

// newestKey holds when the newest document was written.
var newestKey = []byte("newest")

// Index is a searchable set of documents. It may be used by many goroutines.
type Index struct {
	temporary string // the folder that Close removes
	bleve     bleve.Index
	words     analysis.Analyzer
	skipped   []string

	mu     sync.RWMutex // bleve's readers crash when it is closed under them
	closed bool
}

// New indexes docs. A document that cannot be indexed is left out and named by
// Skipped. The index lies in a temporary folder, which Close removes: it is
// rebuilt from its sources at every start, and bleve ranks by BM25 only on disk.
func New(ctx context.Context, docs []Document) (*Index, error) {
	dir, err := os.MkdirTemp("", "unpend-knowledge-")
	if err != nil {
		return nil, fmt.Errorf("make folder for the search index: %w", err)
	}
	// unsafe_batch: nothing is lost by a crash that a rebuild would not bring back.
	b, err := create(filepath.Join(dir, "index"), map[string]any{"unsafe_batch": true})
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	i := wrap(b)
	i.temporary = dir
	t := i.intake(func(what, why string) { i.skipped = append(i.skipped, what+": "+why) })
	for _, d := range docs {
		if err = t.Add(ctx, d); err != nil {
			break
		}
	}
	if err == nil {
		err = t.flush(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, i.Close())
	}
	return i, nil
}

func create(dir string, config map[string]any) (bleve.Index, error) {
	b, err := bleve.NewUsing(dir, newMapping(), bleve.Config.DefaultIndexType, bleve.Config.DefaultKVStore, config)
	if err != nil {
		return nil, fmt.Errorf("make search index: %w", err)
	}
	return b, nil
}

func wrap(b bleve.Index) *Index {
	return &Index{bleve: b, words: b.Mapping().AnalyzerNamed(en.AnalyzerName)}
}

// newMapping indexes text in English and identifiers whole, a field a kind. The
// document is stored once; fields that are stored or sorted by double the size.
func newMapping() *mapping.IndexMappingImpl {
	text := bleve.NewTextFieldMapping()
	text.Analyzer, text.Store, text.IncludeInAll, text.DocValues = en.AnalyzerName, false, false, false
	text.IncludeTermVectors = false // where words stand is read from the candidates
	exact := bleve.NewTextFieldMapping()
	exact.Analyzer, exact.Store, exact.IncludeInAll, exact.DocValues = keyword.Name, false, false, false
	exact.IncludeTermVectors = false
	stored := bleve.NewTextFieldMapping()
	stored.Index, stored.IncludeInAll, stored.IncludeTermVectors, stored.DocValues = false, false, false, false

	doc := bleve.NewDocumentStaticMapping()
	doc.AddFieldMappingsAt(fieldTitle, text)
	doc.AddFieldMappingsAt(fieldText, text)
	for _, kind := range kinds {
		doc.AddFieldMappingsAt(kind, exact)
	}
	doc.AddFieldMappingsAt(fieldPart, exact)
	doc.AddFieldMappingsAt(fieldOf, exact)
	doc.AddFieldMappingsAt(fieldDoc, stored)

	im := bleve.NewIndexMapping()
	im.DefaultMapping = doc
	im.ScoringModel = bleveindex.BM25Scoring
	return im
}

// fields are what the index holds of d.
func (d Document) fields(encoded []byte) map[string]any {
	out := map[string]any{fieldTitle: separable.Replace(d.Title), fieldText: separable.Replace(d.Text), fieldDoc: string(encoded)}
	ids, _ := scan(d.Title + "\n" + d.Text)
	byKind := map[string][]string{}
	for _, id := range ids {
		byKind[id.kind] = append(byKind[id.kind], id.name)
	}
	for kind, names := range byKind {
		out[kind] = names
	}
	if d.Part != "" {
		out[fieldPart] = d.Source + "/" + d.Part
	}
	out[fieldOf] = d.handles()
	return out
}

// read is the document that a stored field holds.
func read(stored string) (Document, error) {
	var d Document
	if err := json.Unmarshal([]byte(stored), &d); err != nil {
		return d, fmt.Errorf("read a document of the index: %w", err)
	}
	return d, nil
}

func (d Document) name() string {
	if d.ID != "" {
		return d.ID
	}
	return "document " + d.Title
}

// Len is the number of documents that can be found.
func (i *Index) Len() int {
	n, err := i.bleve.DocCount()
	if err != nil {
		return 0 // it is closed
	}
	return int(n)
}

// Skipped names each document or file that was left out, and why.
func (i *Index) Skipped() []string { return i.skipped }

// newest is when the newest document was written; zero when none has a time.
func (i *Index) newest() (time.Time, error) {
	var at time.Time
	b, err := i.bleve.GetInternal(newestKey)
	if err != nil || len(b) == 0 {
		return at, err
	}
	return at, at.UnmarshalText(b)
}

// Close waits for searches and ends the index; a temporary one is removed. Closing
// again does nothing.
func (i *Index) Close() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.closed {
		return nil
	}
	i.closed = true
	err := i.bleve.Close()
	if err != nil {
		err = fmt.Errorf("close search index: %w", err)
	}
	if i.temporary == "" {
		return err
	}
	return errors.Join(err, os.RemoveAll(i.temporary))
}
