package service

import (
	"crypto/sha256"
	"fmt"
	"path"
	"regexp"
)

// destination is one of a place's channels, projects or services. Each is told by itself, so
// that one that is away holds up no other of the same place.
type destination struct {
	name   string // among all; a word of a NATS subject
	at     string // as a route names it; empty: what the configuration of the place names
	config Config
}

// destinations are where a place has people told: what its own configuration names, and what
// routes name instead.
func (p place) destinations(c Config) []destination {
	if !p.wanted(c) {
		return nil
	}
	out := []destination{{name: p.name, config: c}}
	if p.each != nil {
		out = p.each(c)
	}
	seen := map[string]bool{}
	for _, r := range c.Routes {
		at := r.At[p.name]
		if at == "" || seen[at] || p.at == nil {
			continue
		}
		seen[at] = true
		other := c
		p.at(&other, at)
		out = append(out, destination{named(p.name, at), at, other})
	}
	return out
}

var word = regexp.MustCompile(`^[A-Za-z0-9_-]{1,40}$`)

// named is what a destination is called: as people write it, where that can be a word of a
// subject, and else by its last part and its hash.
func named(place, at string) string {
	if word.MatchString(at) {
		return place + "-" + at
	}
	sum := sha256.Sum256([]byte(at))
	return fmt.Sprintf("%s-%.40s-%x", place, regexp.MustCompile(`[^A-Za-z0-9_-]+`).ReplaceAllString(path.Base(at), "_"), sum[:4])
}
