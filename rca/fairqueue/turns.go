package fairqueue

import "slices"

// key names an incident and the namespace that it counts for.
type key struct{ namespace, id string }

// turns is the order of what is due: one incident of each namespace in turn, within a
// namespace the one that waits longest. It is the store behind a workqueue.
type turns struct {
	lines  map[string][]key
	order  []string // namespaces that wait, whose turn it is first
	length int
}

func newTurns() *turns { return &turns{lines: map[string][]key{}} }

// Touch leaves an incident where it stands.
func (*turns) Touch(key) {}

// Len is how many incidents are due.
func (t *turns) Len() int { return t.length }

// Push has an incident wait behind the others of its namespace.
func (t *turns) Push(k key) {
	if len(t.lines[k.namespace]) == 0 {
		t.order = append(t.order, k.namespace)
	}
	t.lines[k.namespace] = append(t.lines[k.namespace], k)
	t.length++
}

// Pop takes the next one, and sends its namespace to the end.
func (t *turns) Pop() key {
	namespace := t.order[0]
	t.order = slices.Delete(t.order, 0, 1)
	line := t.lines[namespace]
	k := line[0]
	if line = slices.Delete(line, 0, 1); len(line) > 0 {
		t.lines[namespace] = line
		t.order = append(t.order, namespace)
	} else {
		delete(t.lines, namespace)
	}
	t.length--
	return k
}
