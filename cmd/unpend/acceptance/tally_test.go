package acceptance

import (
	"sync"
	"time"
)

// tally counts, over lanes, the cases of a promise that were kept, and keeps the
// longest times.
type tally struct {
	mu         sync.Mutex
	passed, of int
	worst      map[string]time.Duration
}

// add counts a case.
func (s *tally) add(passed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.of++
	if passed {
		s.passed++
	}
}

// wrong takes cases back that were counted as kept.
func (s *tally) wrong(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.passed -= n
}

// took keeps the longest time of a kind.
func (s *tally) took(what string, d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.worst == nil {
		s.worst = map[string]time.Duration{}
	}
	s.worst[what] = max(s.worst[what], d)
}
