package capacity

import (
	"fmt"
	"strings"

	"github.com/unpend/unpend/rca/view"
)

// notes collect what is not counted, each reason once.
type notes struct{ list []omission }

type omission struct {
	what, why string
	names     []string
}

func (n *notes) add(what, why, name string) {
	for i := range n.list {
		if n.list[i].what == what && n.list[i].why == why {
			n.list[i].names = append(n.list[i].names, name)
			return
		}
	}
	n.list = append(n.list, omission{what, why, []string{name}})
}

// maxNamed is how many names a note lists.
const maxNamed = 4

func (n omission) String() string {
	what := n.what
	if len(n.names) > 1 {
		what += "s"
	}
	names := strings.Join(n.names[:min(len(n.names), maxNamed)], ", ")
	if more := len(n.names) - maxNamed; more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Sprintf("%d %s %s (%s)", len(n.names), what, n.why, names)
}

// ignored lists what was not counted.
func (q *question) ignored() []string {
	out := make([]string, 0, len(q.notes.list)+1)
	for _, n := range q.notes.list {
		out = append(out, n.String())
	}
	if q.tenants.Above > 0 {
		out = append(out, fmt.Sprintf("%s who may leave only for a priority above %d, that of %s", view.CountOf(q.tenants.Above, "holder"), q.tenants.Asker.Priority, q.host.asker()))
	}
	if waiting := q.waiting(); waiting > 0 {
		out = append(out, fmt.Sprintf("pods that already wait for it: %d", waiting))
	}
	if text := q.host.unlooked(); text != "" {
		out = append(out, text)
	}
	for _, kind := range []string{"NodeGeometry", "PodDisruptionBudget", "PriorityClass"} {
		if why, ok := q.world.State.Unread[kind]; ok {
			out = append(out, kind+" unread: "+why)
		}
	}
	return out
}

// waiting counts the pods without a node that ask for the resource.
func (q *question) waiting() int {
	n := 0
	for _, p := range q.world.State.Pods {
		if p.Spec.NodeName == "" && !view.Ended(p) && p.DeletionTimestamp == nil {
			if r := view.PodRequests(p)[q.ask.Resource]; !r.IsZero() {
				n++
			}
		}
	}
	return n
}
