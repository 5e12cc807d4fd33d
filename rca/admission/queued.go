package admission

import (
	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/watcher/incident"
)

// heldOf is what the objects of queues tell of whom they have not let begin, and what those that
// make pods of several templates tell of themselves.
func heldOf(st *cluster.State) []*incident.Held {
	var out []*incident.Held
	for kind, o := range st.Held {
		if h, ok := incident.HeldOf(kind, o); ok {
			out = append(out, h)
		}
	}
	return out
}
