package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/unpend/unpend/cmd/internal/bus"
	"github.com/unpend/unpend/knowledge"
)

// keeps says whether there is a library that outcomes are kept in.
func (c knowledgeConfig) keeps() bool { return c.shared() || c.Library != "" }

// shelf is what this process has of what the team has said. Each process has one of its own:
// what is read from Slack and Jira it gets from the bus, and loses nothing with its disk.
type shelf struct {
	index     *knowledge.Index
	library   *knowledge.Library // nil: there is only a folder, or nothing is shared
	meaning   *meaning           // nil: words find alone
	temporary string             // removed at the end
	full      chan struct{}      // closed when it has all that the bus had
	filled    sync.Once
}

// openShelf is nil where no knowledge is configured.
func (s *Service) openShelf(ctx context.Context) (*shelf, error) {
	c := s.config.Knowledge
	switch {
	case !c.shared() && c.Library == "" && c.Folder == "":
		return nil, nil
	case !c.shared() && c.Library == "":
		index, err := knowledge.OpenFolder(ctx, c.Folder)
		if err != nil {
			return nil, fmt.Errorf("read knowledge: %w", err)
		}
		for _, why := range index.Skipped() {
			s.logger.WarnContext(ctx, "a document of the knowledge folder is left out", "why", why)
		}
		return &shelf{index: index}, nil
	}
	at := &shelf{full: make(chan struct{})}
	dir, err := c.Library, error(nil)
	if dir == "" {
		if dir, err = os.MkdirTemp("", "unpend-knowledge-"); err != nil {
			return nil, fmt.Errorf("make a folder for what the team has said: %w", err)
		}
		at.temporary = dir
	}
	if at.library, err = knowledge.EditLibrary(dir); err != nil {
		return nil, errors.Join(err, at.close())
	}
	at.index = at.library.Index
	if at.meaning, err = s.meaningIfThere(ctx, at.library); err != nil {
		return nil, errors.Join(err, at.close())
	}
	if c.Folder != "" {
		if err := s.shelve(ctx, at.library, c.Folder); err != nil {
			return nil, errors.Join(err, at.close())
		}
	}
	return at, nil
}

// meaningIfThere is nil too where the model's key is not there: words find alone, which the log
// and /readyz say. Who only tells people has no such key.
func (s *Service) meaningIfThere(ctx context.Context, l *knowledge.Library) (*meaning, error) {
	if !s.does("diagnose") {
		return nil, nil
	}
	if why := missing(s.config.Knowledge.Embeddings.KeyFile); why != nil {
		const off = "documents are found by their words alone"
		s.logger.ErrorContext(ctx, "a part is off until its file is there and this process starts again", "part", off, "error", why)
		s.ready.off(off, why)
		return nil, nil
	}
	return s.newMeaning(l)
}

// shelve reads the folder, which every process has of its own.
func (s *Service) shelve(ctx context.Context, l *knowledge.Library, folder string) error {
	done, err := l.Import(ctx, knowledge.Folder{Dir: folder}, "doc", folder, time.Now())
	if err != nil {
		return fmt.Errorf("read knowledge: %w", err)
	}
	for why, n := range done.Skipped {
		s.logger.WarnContext(ctx, "documents of the knowledge folder are left out", "why", why, "documents", n)
	}
	return nil
}

// searched is nil where there is nothing.
func (a *shelf) searched() *knowledge.Index {
	if a == nil {
		return nil
	}
	return a.index
}

// shelved finds what is on the shelf and may be told in a place.
func (s *Service) shelved(ctx context.Context, place, query string, n int) ([]knowledge.Hit, error) {
	return s.onShelf(ctx, place, []string{query}, n)
}

// onShelf is shelved for phrases, as a diagnosis has them.
func (s *Service) onShelf(ctx context.Context, place string, phrases []string, n int) ([]knowledge.Hit, error) {
	may := s.config.Knowledge.audience().In(place)
	if s.shelf.meaning != nil {
		return s.shelf.meaning.search(ctx, may, phrases, n)
	}
	return s.shelf.index.SearchFor(ctx, may, phrases, n)
}

func (a *shelf) close() error {
	if a == nil {
		return nil
	}
	var err error
	if a.index != nil {
		err = a.index.Close()
	}
	if a.temporary != "" {
		err = errors.Join(err, os.RemoveAll(a.temporary))
	}
	return err
}

// stock brings what the bus has to the library, until ctx ends.
func (s *Service) stock(ctx context.Context) error {
	s.bus.Replicate(ctx, bus.Documents, func(ctx context.Context, bodies [][]byte, all bool) error {
		var changes []knowledge.Change
		for _, body := range bodies {
			var c knowledge.Change
			if err := json.Unmarshal(body, &c); err != nil || c.ID == "" {
				s.logger.WarnContext(ctx, "a document on the bus cannot be read and is left out", "error", err)
				continue
			}
			changes = append(changes, c)
		}
		if err := s.shelf.library.Apply(ctx, changes); err != nil {
			return err
		}
		if all {
			s.shelf.filled.Do(func() { close(s.shelf.full) })
		}
		return nil
	}, func(err error) {
		s.logger.WarnContext(ctx, "what the team has said is read from the bus again", "error", err)
	})
	return nil
}

// hand brings a change to every process; where nothing is shared, each reads for itself.
func (s *Service) hand(ctx context.Context, c knowledge.Change) error {
	if !s.config.Knowledge.shared() {
		return s.shelf.library.Apply(ctx, []knowledge.Change{c})
	}
	body, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("tell of document %s: %w", c.ID, err)
	}
	id := fmt.Sprintf("%s-%d", strings.ReplaceAll(c.Key(), ".", "-"), time.Now().UnixNano())
	// One process reads a source: what it says now is so.
	return s.bus.PublishNewer(ctx, bus.Documents, c.Key(), id, body, func([]byte) bool { return false })
}
