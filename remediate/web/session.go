package web

import (
	"crypto/rand"
	"crypto/sha256"
	"sync"
	"time"
)

// How many sessions there are, and for how long: the one that was used least lately gives
// way to a new one.
const (
	mostSessions = 512
	mostOfOne    = 16 // of one person
	longest      = 8 * time.Hour
	idle         = time.Hour
)

// sessions are the readers who have signed in. They are kept nowhere else: a restart ends
// them all.
type sessions struct {
	now func() time.Time

	mu  sync.Mutex
	all map[[sha256.Size]byte]*session // by the hash of the id in the cookie
}

type session struct {
	*reader
	began, used time.Time
}

func newSessions(now func() time.Time) *sessions {
	return &sessions{now: now, all: map[[sha256.Size]byte]*session{}}
}

// begin makes a session and gives its id, which nobody can guess.
func (s *sessions) begin(r *reader) (id string) {
	id = rand.Text()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire()
	if s.ofUser(r.user) >= mostOfOne {
		s.drop(func(other *session) bool { return other.user == r.user })
	}
	if len(s.all) >= mostSessions {
		s.drop(func(*session) bool { return true })
	}
	s.all[sha256.Sum256([]byte(id))] = &session{r, s.now(), s.now()}
	return id
}

func (s *sessions) ofUser(name string) (n int) {
	for _, other := range s.all {
		if other.user == name {
			n++
		}
	}
	return n
}

// drop ends the session that was used least lately among some.
func (s *sessions) drop(among func(*session) bool) {
	var last [sha256.Size]byte
	var at *session
	for key, other := range s.all {
		if among(other) && (at == nil || other.used.Before(at.used)) {
			last, at = key, other
		}
	}
	delete(s.all, last)
}

func (s *sessions) expire() {
	for key, other := range s.all {
		if now := s.now(); now.Sub(other.began) >= longest || now.Sub(other.used) >= idle {
			delete(s.all, key)
		}
	}
}

// of is the reader of a session that has not ended; nil when there is none.
func (s *sessions) of(id string) *reader {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire()
	found := s.all[sha256.Sum256([]byte(id))]
	if found == nil {
		return nil
	}
	found.used = s.now()
	return found.reader
}

func (s *sessions) end(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, sha256.Sum256([]byte(id)))
}
