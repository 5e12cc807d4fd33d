package layouts

import "github.com/unpend/unpend/rca/view"

// Short is what a node that has GPUs has too few of: what is asked, and the node's own figures
// for it.
type Short struct {
	Ask                   view.Ask
	Allocatable, Capacity int64
}

// MIG returns the request, if it is one for MIG instances.
func (s *Short) MIG() (view.Ask, bool) { return s.Ask, s.Ask.Profile != "" }

// Whole is MIG for whole GPUs.
func (s *Short) Whole() (view.Ask, bool) { return s.Ask, s.Ask.Profile == "" }

// offered says that the node has as many as are asked, and others hold them: the layout
// that it should have had instead is in nobody's way.
func (s *Short) offered() bool { return s.Allocatable >= s.Ask.Count }
