package fairqueue

import (
	"time"

	"github.com/unpend/unpend/watcher/incident"
)

// tenant is what is known of a namespace.
type tenant struct {
	entries map[string]*entry // by id of the incident
	looked  int               // how many of them are looked at
	left    []string          // those that are not, in their order, and some that are gone
}

// entry is what is known of an incident.
type entry struct {
	incident incident.Incident
	asked    time.Time // since when it is due; zero when it is not
	looked   time.Time // when it was last
	pace     time.Duration
	failed   int
	again    bool // it is due for a change of the cluster, whatever its pace
	left     bool // its namespace has too many
}

// due is from when on an incident that was asked for is looked at.
func (e *entry) due() time.Time {
	if paced := e.looked.Add(e.pace); !e.again && paced.After(e.asked) {
		return paced
	}
	return e.asked
}

// Put tells what is true of an incident now.
func (q *Queue) Put(i incident.Incident) {
	k := key{i.Workload.Namespace, i.ID}
	q.mu.Lock()
	defer q.mu.Unlock()
	if i.Resolved {
		q.forget(k)
		return
	}
	e := q.known(k)
	if e == nil {
		e = q.meet(k)
	}
	e.incident, e.failed = i, 0
	q.schedule(k, e)
}

func (q *Queue) known(k key) *entry {
	if t := q.tenants[k.namespace]; t != nil {
		return t.entries[k.id]
	}
	return nil
}

// meet is the entry of an incident that is new.
func (q *Queue) meet(k key) *entry {
	t := q.tenants[k.namespace]
	if t == nil {
		t = &tenant{entries: map[string]*entry{}}
		q.tenants[k.namespace] = t
	}
	e := &entry{left: t.looked >= q.opts.PerNamespace}
	if t.entries[k.id] = e; e.left {
		t.left = append(t.left, k.id)
	} else {
		t.looked++
	}
	return e
}

// schedule has an incident looked at as soon as its pace allows.
func (q *Queue) schedule(k key, e *entry) {
	if e.left {
		return
	}
	now := q.opts.Now()
	if e.asked.IsZero() {
		e.asked = now
	}
	q.due.AddAfter(k, e.due().Sub(now)) // at once when that is past
}

// forget drops an incident, and has another of its namespace looked at in its place.
func (q *Queue) forget(k key) {
	e := q.known(k)
	if e == nil {
		return
	}
	t := q.tenants[k.namespace]
	delete(t.entries, k.id)
	if len(t.entries) == 0 {
		delete(q.tenants, k.namespace)
		return
	}
	if e.left {
		return
	}
	t.looked--
	for len(t.left) > 0 {
		id := t.left[0]
		t.left = t.left[1:]
		if next := t.entries[id]; next != nil && next.left {
			next.left = false
			t.looked++
			q.schedule(key{k.namespace, id}, next)
			return
		}
	}
}

func (q *Queue) countLeft() float64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := 0
	for _, t := range q.tenants {
		n += len(t.entries) - t.looked
	}
	return float64(n)
}

// Stuck is since when no incident was looked at although one is due; zero when none is due.
// How many are due does not matter: a tenant makes as many as they like.
func (q *Queue) Stuck() time.Time {
	q.mu.Lock()
	defer q.mu.Unlock()
	var oldest time.Time
	now := q.opts.Now()
	for _, t := range q.tenants {
		for _, e := range t.entries {
			if e.asked.IsZero() || e.left {
				continue
			}
			if due := e.due(); due.Before(now) && (oldest.IsZero() || due.Before(oldest)) {
				oldest = due
			}
		}
	}
	if !oldest.IsZero() && q.ended.After(oldest) {
		return q.ended
	}
	return oldest
}
