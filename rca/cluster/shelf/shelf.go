package shelf

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/rca/cluster"
)

const (
	// shelved is how many parts are kept at most: objects of one workload stand close
	// together in a dump.
	shelved = 4096
	// shelvedBytes are what their texts may have together: somebody may make pods all day
	// whose parts are large, and differ.
	shelvedBytes = 4 << 20
	// enough parts tell whether those of a kind are alike; at least half must be.
	enough = 1024
)

// Shelf keeps parts that were read, so that those that are the same text are decoded, and
// held in memory, once. Several goroutines may use it.
type Shelf struct {
	mu    sync.Mutex
	known map[*part]map[string]cluster.Object
	count map[*part]tally
	all   int
	bytes int       // of their texts
	texts sync.Pool // of *[]byte, to cut in
	words words
}

type tally struct{ asked, had int }

// New is a Shelf with nothing on it.
func New() *Shelf {
	return &Shelf{known: map[*part]map[string]cluster.Object{}, count: map[*part]tally{}}
}

// pays says whether enough parts are the same to look for them.
func (s *Shelf) pays(p *part) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.count[p]
	return t.asked < enough || 2*t.had >= t.asked
}

// find is the object that holds the part alone, nil when it is not known.
func (s *Shelf) find(p *part, text []byte) cluster.Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	o, t := s.known[p][string(text)], s.count[p]
	if t.asked++; o != nil {
		t.had++
	}
	s.count[p] = t
	return o
}

// put keeps it. Of two that come at once, one is kept, and either is right.
func (s *Shelf) put(p *part, text []byte, o cluster.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all, s.bytes = s.all+1, s.bytes+len(text)
	if s.all > shelved || s.bytes > shelvedBytes {
		clear(s.known)
		s.all, s.bytes = 1, len(text)
	}
	if s.known[p] == nil {
		s.known[p] = map[string]cluster.Object{}
	}
	s.known[p][string(text)] = o
}

// removed is a part that was taken out of an object's text.
type removed struct {
	part *part
	from cluster.Object
	at   int
}

// Read decodes an object as the kind's type, and trims it. What is wrong with it is said
// of all of it.
func (s *Shelf) Read(k *cluster.Kind, apiVersion string, data []byte) (cluster.Object, error) {
	obj := s.assemble(k, apiVersion, data)
	if obj == nil {
		var err error
		if obj, err = k.Decode(apiVersion, data); err != nil {
			return nil, err
		}
		cluster.Trim(obj)
	}
	switch t := obj.(type) {
	case *corev1.Pod:
		s.words.pod(t)
	case *nodeprobe.NodeGeometry:
		s.words.report(&t.Report)
	}
	return obj, nil
}

// assemble reads what is an object's own, and adds what others have too; nil where the
// text is not as it is usually written, or something is wrong with it.
func (s *Shelf) assemble(k *cluster.Kind, apiVersion string, data []byte) cluster.Object {
	if parts[k.Name] == nil {
		return nil
	}
	into, ok := s.texts.Get().(*[]byte)
	if !ok {
		into = new([]byte)
	}
	defer s.texts.Put(into)
	out, ok := s.cut(k, apiVersion, data, into)
	if !ok {
		return nil
	}
	obj, err := k.Decode(apiVersion, *into)
	if err != nil {
		return nil
	}
	cluster.Trim(obj)
	for _, t := range out {
		t.part.give(obj, t.from, t.at)
	}
	return obj
}

// Share has an object that was decoded without the shelf hold the same parts as others, where it
// has parts alike; it is trimmed, and nobody else's yet.
func (s *Shelf) Share(o cluster.Object) error {
	switch o := o.(type) {
	case *corev1.Pod:
		return s.pod(o)
	case *unstructured.Unstructured:
		return s.templates(o)
	}
	return nil
}

func (s *Shelf) pod(pod *corev1.Pod) error {
	s.words.pod(pod)
	return parts["Pod"].each(func(p *part) error {
		if !s.pays(p) {
			return nil
		}
		alone := &corev1.Pod{}
		p.give(alone, pod, 0)
		text, err := alone.Marshal()
		if err != nil {
			return err
		}
		if o := s.find(p, text); o != nil {
			p.give(pod, o, 0)
		} else {
			s.put(p, text, alone)
		}
		return nil
	})
}

// cut takes out of an object's text what is shelved, and shelves what is not: null stands
// in its place in the text that it leaves. false: the text is not as it is usually written.
func (s *Shelf) cut(k *cluster.Kind, apiVersion string, data []byte, into *[]byte) (out []removed, ok bool) {
	c := &cutter{in: data, out: (*into)[:0], pays: s.pays}
	c.take = func(p *part, text []byte, at int) bool {
		o := s.find(p, text)
		if o == nil {
			var err error
			if o, err = k.Decode(apiVersion, p.alone(text)); err != nil {
				return false
			}
			cluster.Trim(o)
			s.put(p, text, o)
		}
		out = append(out, removed{p, o, at})
		return true
	}
	ok = c.value(parts[k.Name], 0) && c.ends()
	*into = c.out
	return out, ok
}
