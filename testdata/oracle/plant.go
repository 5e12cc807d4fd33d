package oracle

import (
	"strconv"
	"strings"
)

// plantObject makes the object that is said not to be there, or to have none at a path.
func (d *Dump) plantObject(kind, rest string, c Claim) change {
	namespace, name := apart(rest)
	if name == "*" {
		name = "planted"
	}
	metadata := map[string]any{"name": name}
	if namespace != "" {
		metadata["namespace"] = namespace
	}
	made, path, value := map[string]any{"kind": kind, "metadata": metadata}, c.Path, "planted"
	if c.Op == "!=" || c.Op == "contains not" {
		value = c.Value
	}
	if path == "by" {
		path = "reportingComponent"
	}
	if m := function.FindStringSubmatch(path); m != nil {
		path = m[2] + "[planted=1]"
	}
	if path != "" {
		undo := func() {}
		put(made, path, value, &undo)
	}
	return change{"a " + kind + "/" + rest, func() func() {
		d.objects = append(d.objects, made)
		return func() { d.objects = d.objects[:len(d.objects)-1] }
	}}
}

// planted puts into an object what a claim says is not there; nothing where a path has it of more
// than the object.
func planted(o object, c Claim) []change {
	path, value := c.Path, any(c.Value)
	switch c.Op {
	case "none begins":
		path, value = strings.TrimSuffix(strings.TrimPrefix(path, "keys("), ")")+"["+c.Value+"planted]", "1"
	case "tolerates not":
		path, value = path+"[operator=Exists]", nil
	case "absent":
		value = "planted"
	case "=":
		value = "1"
	}
	if computed(path) || function.MatchString(path) {
		return nil
	}
	return []change{{o.text("kind") + "/" + o.text("metadata", "name") + " with " + path, func() func() {
		undo := func() {}
		put(map[string]any(o), path, value, &undo)
		return undo
	}}}
}

// put sets what stands at a path, and makes what the path goes through.
func put(m map[string]any, path string, value any, undo *func()) {
	s := segment.FindStringSubmatch(path)
	if s == nil || s[0] == "" {
		return
	}
	rest, which := path[len(s[0]):], brackets(s[2])
	keep := func(m map[string]any, key string) {
		was, had := m[key]
		before := *undo
		*undo = func() {
			if m[key] = was; !had {
				delete(m, key)
			}
			before()
		}
	}
	keep(m, s[1])
	now, key := m, s[1]
	for _, w := range which {
		if list, ok := now[key].([]any); ok && !strings.Contains(w, "=") {
			below, ok := first(list, w)
			if !ok {
				return
			}
			now, key = below, ""
			continue
		}
		if !strings.Contains(w, "=") { // a key of a map
			below, ok := now[key].(map[string]any)
			if !ok {
				below = map[string]any{}
				now[key] = below
			}
			keep(below, w)
			now, key = below, w
			continue
		}
		element := map[string]any{}
		for field := range strings.SplitSeq(w, ",") {
			k, v, _ := strings.Cut(field, "=")
			element[k] = v
		}
		list, _ := now[key].([]any)
		now[key] = append(append([]any{}, list...), element)
		now, key = element, ""
	}
	switch below, ok := now[key].(map[string]any); {
	case rest == "" && key != "":
		now[key] = value
	case rest != "" && key == "":
		put(now, rest, value, undo)
	case rest != "":
		if !ok {
			below = map[string]any{}
			now[key] = below
		}
		put(below, rest, value, undo)
	}
}

// first is the element of a list of that number, or the first of all.
func first(list []any, which string) (map[string]any, bool) {
	at, err := strconv.Atoi(which)
	if err != nil {
		at = 0
	}
	if at >= len(list) {
		return nil, false
	}
	m, ok := list[at].(map[string]any)
	return m, ok
}
