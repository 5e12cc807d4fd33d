package events

import (
	"maps"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
)

// How many Events are kept, each of less than 2 KiB: of one namespace, and of all.
// What was seen longest ago goes first, of the namespace that has too many or, when
// all have too many together, of the one that has most.
const (
	maxOfOne = 2_000
	maxOfAll = 20_000
	// slack is how many more may gather before the oldest are looked for.
	slack = 8 // an eighth
)

// held are the Events that are kept, by namespace and name.
type held struct {
	mu    sync.Mutex
	by    map[string]map[string]*corev1.Event
	count int
}

func (h *held) clear() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.by, h.count = map[string]map[string]*corev1.Event{}, 0
}

// put keeps an Event, and returns those that have to go for it.
func (h *held) put(e *corev1.Event) (gone []*corev1.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	of := h.by[e.Namespace]
	if of == nil {
		of = map[string]*corev1.Event{}
		h.by[e.Namespace] = of
	}
	if of[e.Name] == nil {
		h.count++
	}
	of[e.Name] = e
	if len(of) > maxOfOne+maxOfOne/slack {
		gone = h.evict(e.Namespace, len(of)-maxOfOne)
	}
	if h.count > maxOfAll+maxOfAll/slack {
		most := slices.MaxFunc(slices.Sorted(maps.Keys(h.by)), func(a, b string) int { return len(h.by[a]) - len(h.by[b]) })
		gone = append(gone, h.evict(most, (len(h.by[most])+1)/2)...)
	}
	return gone
}

// evict forgets the oldest of a namespace.
func (h *held) evict(namespace string, n int) []*corev1.Event {
	of := h.by[namespace]
	all := slices.SortedFunc(maps.Values(of), func(a, b *corev1.Event) int {
		x, y := seen(a), seen(b)
		if c := x.Compare(y.Time); c != 0 {
			return c
		}
		return strings.Compare(a.Name, b.Name)
	})
	for _, e := range all[:n] {
		delete(of, e.Name)
	}
	h.count -= n
	return all[:n]
}

// drop forgets an Event; false when it was not kept.
func (h *held) drop(namespace, name string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.by[namespace][name] == nil {
		return false
	}
	delete(h.by[namespace], name)
	if len(h.by[namespace]) == 0 {
		delete(h.by, namespace)
	}
	h.count--
	return true
}

// all are the Events that are kept.
func (h *held) all() []corev1.Event {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := make([]corev1.Event, 0, h.count)
	for _, ns := range slices.Sorted(maps.Keys(h.by)) {
		for _, name := range slices.Sorted(maps.Keys(h.by[ns])) {
			out = append(out, *h.by[ns][name])
		}
	}
	return out
}
