package web

import (
	"context"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/notice"
)

// covered stands where a name was that the reader may not read.
const covered = "(another namespace)"

// names are the namespaces there are, read again every now and then.
type names struct {
	list func(context.Context) ([]string, error)
	now  func() time.Time

	mu   sync.Mutex
	all  []string
	till time.Time
}

// namesFor is how long a list of namespaces is good for: who looks again and again asks once.
const namesFor = 10 * time.Second

func (n *names) get(ctx context.Context) ([]string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.now().Before(n.till) {
		return n.all, nil
	}
	all, err := n.list(ctx)
	if err != nil {
		return nil, err
	}
	n.all, n.till = all, n.now().Add(namesFor)
	return all, nil
}

// veil covers the names of namespaces that a reader may not read, and of what is in them.
// Where it cannot be asked what they may, nothing passes: see err.
type veil struct {
	ctx    context.Context // of the one request that it lives for
	reader *reader
	all    bool            // the reader may read every namespace: nothing is covered
	spaces map[string]bool // all that exist
	hidden map[string]bool // names of objects in namespaces that are covered
	err    error
}

// veil for a reader, who is shown something about these incidents.
func (p *Page) veil(ctx context.Context, r *reader, about []notice.Proposal) (*veil, error) {
	whole, err := r.mayRead(ctx, "")
	if err != nil {
		return nil, err
	}
	v := &veil{ctx: ctx, reader: r, all: whole, spaces: map[string]bool{}, hidden: map[string]bool{}}
	if whole {
		return v, nil
	}
	all, err := p.names.get(ctx)
	if err != nil {
		return nil, err
	}
	for _, name := range all {
		v.spaces[name] = true
	}
	for _, proposal := range about {
		v.spaces[namespaceOf(proposal)] = true
	}
	delete(v.spaces, "")
	for _, proposal := range about {
		v.note(reflect.ValueOf(proposal))
	}
	for _, proposal := range about { // a name of theirs that others have too
		if d := proposal.Finding; d != nil && v.may(d.Workload.Namespace) {
			delete(v.hidden, d.Workload.Name)
		}
	}
	return v, v.err
}

// veilOf is for what else there is to tell a reader of an incident, which may name what that
// names.
func (p *Page) veilOf(ctx context.Context, r *reader, incident string, also any) (*veil, error) {
	i, _ := p.board.get(incident) // as it was before it was covered
	v, err := p.veil(ctx, r, []notice.Proposal{i})
	if err == nil && !v.all {
		v.note(reflect.ValueOf(also))
		err = v.err
	}
	return v, err
}

// namespaceOf an incident; empty when nothing tells.
func namespaceOf(p notice.Proposal) string {
	if p.Finding != nil {
		return p.Finding.Workload.Namespace
	}
	for _, n := range p.Plans {
		return n.Workload.Namespace
	}
	return ""
}

// may says whether a namespace may be shown.
func (v *veil) may(namespace string) bool {
	if v.all {
		return true
	}
	yes, err := v.reader.mayRead(v.ctx, namespace)
	if err != nil {
		v.err = err
	}
	return yes && err == nil
}

// proposal is a copy without what is covered; false when the reader may not know of the
// incident at all.
func (v *veil) proposal(p notice.Proposal) (notice.Proposal, bool) {
	if v.all {
		return p, true
	}
	if !v.may(namespaceOf(p)) {
		return notice.Proposal{}, false
	}
	out := v.copy(reflect.ValueOf(p)).Interface().(notice.Proposal) //nolint:forcetypeassert // it is a copy
	return out, v.err == nil
}

// note looks for names of objects in namespaces that are covered: elsewhere they may stand
// alone.
func (v *veil) note(from reflect.Value) {
	if name, ok := reflect.TypeAssert[diagnosis.PodName](from); ok {
		v.spaces[name.Namespace] = true
		if !v.may(name.Namespace) {
			v.hidden[name.Name] = true
		}
		return
	}
	switch from.Kind() {
	case reflect.String:
		for _, run := range runs.FindAllString(from.String(), -1) {
			parts := words(run)
			for i, part := range parts[:len(parts)-1] {
				if v.covers(part) {
					v.hidden[parts[i+1]] = true
				}
			}
		}
	case reflect.Struct, reflect.Pointer, reflect.Slice, reflect.Map:
		each(from, v.note)
	}
}

// each goes through what a value holds.
func each(from reflect.Value, do func(reflect.Value)) {
	switch {
	case from.Type() == reflect.TypeFor[time.Time](), from.Kind() == reflect.Pointer && from.IsNil():
	case from.Kind() == reflect.Pointer:
		do(from.Elem())
	case from.Kind() == reflect.Struct:
		for _, field := range from.Fields() {
			do(field)
		}
	case from.Kind() == reflect.Slice:
		for i := range from.Len() {
			do(from.Index(i))
		}
	case from.Kind() == reflect.Map:
		for _, key := range from.MapKeys() {
			do(key)
			do(from.MapIndex(key))
		}
	}
}

// copy covers every text; a field that is added later is covered too.
func (v *veil) copy(from reflect.Value) reflect.Value {
	if name, ok := reflect.TypeAssert[diagnosis.PodName](from); ok && !v.may(name.Namespace) {
		return reflect.ValueOf(diagnosis.PodName{Name: covered})
	}
	out := reflect.New(from.Type()).Elem()
	out.Set(from)
	switch {
	case from.Type() == reflect.TypeFor[time.Time]():
	case from.Kind() == reflect.String:
		out.SetString(v.text(from.String()))
	case from.Kind() == reflect.Pointer && !from.IsNil():
		out.Set(reflect.New(from.Type().Elem()))
		out.Elem().Set(v.copy(from.Elem()))
	case from.Kind() == reflect.Struct:
		for i := range from.NumField() {
			out.Field(i).Set(v.copy(from.Field(i)))
		}
	case from.Kind() == reflect.Slice && !from.IsNil():
		out.Set(reflect.MakeSlice(from.Type(), 0, from.Len()))
		for i := range from.Len() {
			out = reflect.Append(out, v.copy(from.Index(i)))
		}
	case from.Kind() == reflect.Map && !from.IsNil():
		out.Set(reflect.MakeMap(from.Type()))
		for _, key := range from.MapKeys() {
			out.SetMapIndex(v.copy(key), v.copy(from.MapIndex(key)))
		}
	}
	return out
}

// runs are names, and names of names: ns/pod, Pod/ns/pod, gpu-1/GPU.
var runs = regexp.MustCompile(`[A-Za-z0-9._/-]*[A-Za-z0-9]`)

// text covers in a text each name that is covered, with what it is part of.
func (v *veil) text(s string) string {
	return runs.ReplaceAllStringFunc(s, func(run string) string {
		parts := words(run)
		for i, part := range parts {
			if known := i > 0 && v.spaces[parts[i-1]]; v.covers(part) || v.hidden[part] && !known {
				return covered
			}
		}
		return run
	})
}

// words are what a run is made of; of a Service's DNS name each part.
func words(run string) []string {
	if strings.Contains(run, ".svc") {
		run = strings.ReplaceAll(run, ".", "/")
	}
	return strings.Split(run, "/")
}

// covers says whether a word is the name of a namespace that the reader may not read.
func (v *veil) covers(word string) bool { return v.spaces[word] && !v.may(word) }

// command is one that can be run: one that names what is covered cannot.
func command(s string) bool { return !strings.Contains(s, covered) }
