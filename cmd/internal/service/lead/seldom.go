package lead

import (
	"sync"
	"time"
)

// quietFor is how long trouble that goes on, or comes again, is not told of again in the log:
// /readyz and the metrics have it all the time.
const quietFor = 10 * time.Minute

// seldom keeps what is tried again every second from filling the log.
type seldom struct {
	now  func() time.Time
	mu   sync.Mutex
	said map[string]time.Time
}

// NewSeldom has told of nothing yet.
func NewSeldom(now func() time.Time) *seldom {
	return &seldom{now: now, said: map[string]time.Time{}}
}

// Due says whether something is to be told, and takes it for told then.
func (s *seldom) Due(what string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	if last, told := s.said[what]; told && now.Sub(last) < quietFor {
		return false
	}
	s.said[what] = now
	return true
}
