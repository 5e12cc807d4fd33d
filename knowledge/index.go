package knowledge

import (
	"context"
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

// batchSize bounds memory while indexing; a batch costs one sync of the disk.
const batchSize = 500

// The fields of an indexed document.
const (
	fieldTitle = "title"
	fieldText  = "text"
	fieldIDs   = "ids" // exact identifiers
)

// Index is a searchable set of documents. It may be used by many goroutines.
type Index struct {
	dir     string
	bleve   bleve.Index
	words   analysis.Analyzer
	docs    map[string]Document
	newest  time.Time
	skipped []string

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
	im := newMapping()
	// unsafe_batch: nothing is lost by a crash that a rebuild would not bring back.
	b, err := bleve.NewUsing(filepath.Join(dir, "index"), im, bleve.Config.DefaultIndexType, bleve.Config.DefaultKVStore,
		map[string]any{"unsafe_batch": true})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make search index: %w", err), os.RemoveAll(dir))
	}
	i := &Index{dir: dir, bleve: b, words: im.AnalyzerNamed(en.AnalyzerName), docs: make(map[string]Document, len(docs))}
	if err := i.add(ctx, docs); err != nil {
		return nil, errors.Join(err, i.Close())
	}
	return i, nil
}

// newMapping indexes text in English and identifiers whole; nothing is stored,
// the documents stay in memory.
func newMapping() *mapping.IndexMappingImpl {
	text := bleve.NewTextFieldMapping()
	text.Analyzer, text.Store, text.IncludeInAll, text.DocValues = en.AnalyzerName, false, false, false
	exact := bleve.NewTextFieldMapping()
	exact.Analyzer, exact.Store, exact.IncludeInAll, exact.DocValues = keyword.Name, false, false, false

	doc := bleve.NewDocumentStaticMapping()
	doc.AddFieldMappingsAt(fieldTitle, text)
	doc.AddFieldMappingsAt(fieldText, text)
	doc.AddFieldMappingsAt(fieldIDs, exact)

	im := bleve.NewIndexMapping()
	im.DefaultMapping = doc
	im.ScoringModel = bleveindex.BM25Scoring
	return im
}

func (i *Index) add(ctx context.Context, docs []Document) error {
	batch := i.bleve.NewBatch()
	for _, d := range docs {
		if err := d.check(); err != nil {
			i.skipped = append(i.skipped, fmt.Sprintf("%s: %v", d.name(), err))
			continue
		}
		if _, twice := i.docs[d.ID]; twice {
			i.skipped = append(i.skipped, d.ID+": another document has that id")
			continue
		}
		i.docs[d.ID] = d
		if d.At.After(i.newest) {
			i.newest = d.At
		}
		ids, _ := scan(d.Title + "\n" + d.Text)
		fields := map[string]any{fieldTitle: separable.Replace(d.Title), fieldText: separable.Replace(d.Text), fieldIDs: ids}
		if err := batch.Index(d.ID, fields); err != nil {
			return fmt.Errorf("index document %s: %w", d.ID, err)
		}
		if batch.Size() >= batchSize {
			if err := i.write(ctx, batch); err != nil {
				return err
			}
		}
	}
	return i.write(ctx, batch)
}

func (i *Index) write(ctx context.Context, batch *bleve.Batch) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("index documents: %w", err)
	}
	if batch.Size() == 0 {
		return nil
	}
	if err := i.bleve.Batch(batch); err != nil {
		return fmt.Errorf("index %d documents: %w", batch.Size(), err)
	}
	batch.Reset()
	return nil
}

func (d Document) name() string {
	if d.ID != "" {
		return d.ID
	}
	return "document " + d.Title
}

// Len is the number of documents that can be found.
func (i *Index) Len() int { return len(i.docs) }

// Skipped names each document or file that was left out, and why.
func (i *Index) Skipped() []string { return i.skipped }

// Close waits for searches, ends the index and removes its folder. Closing
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
	return errors.Join(err, os.RemoveAll(i.dir))
}
