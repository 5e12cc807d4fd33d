package oracle

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// change is one thing that can be done to a dump. do says how to undo it.
type change struct {
	at string // what it changes
	do func() (undo func())
}

// Changed does one thing to the dump that a claim should notice, the first that is found in an
// order of chance: another value where it reads one, or what it says is not there. then is called
// meanwhile, with what was done. False: nothing was found.
func (d *Dump) Changed(c Claim, r *rand.Rand, then func(at string)) bool {
	all := d.changes(c)
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	was := d.sight(c)
	for _, k := range all {
		undo := k.do()
		if d.sight(c) == was {
			undo()
			continue
		}
		then(k.at)
		undo()
		return true
	}
	return false
}

// changes are what could be done to the objects that a claim reads.
func (d *Dump) changes(c Claim) []change {
	kind, rest, _ := strings.Cut(c.Ref, "/")
	of := d.named(kind, rest)
	if len(of) == 0 && !strings.Contains(c.Path, "(pods") && c.Path != "words" || c.Path == "" && c.Op == "absent" {
		return []change{d.plantObject(kind, rest, c)}
	}
	if c.Path == "words" {
		return []change{d.unsaid(c)}
	}
	var out []change
	if slices.Contains([]string{"absent", "none begins", "tolerates not", "!=", "contains not"}, c.Op) || c.Op == "=" && c.Value == "0" {
		for _, o := range of {
			if is, err := d.values(o, c.Path); c.Op == "=" && err == nil && len(is) > 0 {
				continue // it has that value, which is changed below: one beside it makes the claim no less true
			}
			out = append(out, planted(o, c)...)
		}
		if c.Op == "none begins" || c.Op == "tolerates not" {
			return out
		}
	}
	if computed(c.Path) {
		of = slices.Concat(of, d.of("Pod"), d.of("Node"), d.of("Event"))
	}
	for _, o := range of {
		out = append(out, edits(o, c)...)
	}
	return out
}

// computed says whether a path is about more than the fields of its object.
func computed(path string) bool {
	for part := range strings.SplitSeq(path, " - ") {
		if m := function.FindStringSubmatch(part); m != nil {
			part = m[2]
		}
		root, _, _ := strings.Cut(part, "[")
		root, _, _ = strings.Cut(root, ".")
		if named[root] != nil || others[root] != nil {
			return true
		}
	}
	return false
}

// sight is as much of what a claim reads as it goes by.
func (d *Dump) sight(c Claim) string {
	all := d.subjects(c)
	out := []string{fmt.Sprint(len(all))}
	for _, o := range all {
		is, err := d.values(o, c.Path)
		switch {
		case err != nil:
			return err.Error()
		case c.Op == "exists" || c.Op == "absent":
			out = append(out, fmt.Sprint(len(is)))
		default:
			for _, v := range is {
				out = append(out, seen(c, v))
			}
		}
	}
	return strings.Join(out, " ")
}

// seen are the texts of a value that a claim goes by: of what contains something those that do.
func seen(c Claim, v any) string {
	texts := leaves(v)
	if c.Op == "=" && len(texts) > 1 { // of what has several it is one
		return strconv.FormatBool(slices.ContainsFunc(texts, func(s string) bool { return s == c.Value || sameAmount(s, c.Value) }))
	}
	if c.Op == "contains" || c.Op == "contains not" {
		part := plain(c.Value)
		var all []string // of a text of several lines those
		for _, s := range texts {
			all = append(all, strings.Split(s, "\n")...)
		}
		if slices.ContainsFunc(all, func(s string) bool { return strings.Contains(plain(s), part) }) {
			texts = all
		}
		texts = slices.DeleteFunc(texts, func(s string) bool { return !strings.Contains(plain(s), part) })
	}
	slices.Sort(texts)
	return strings.Join(texts, " ")
}

// unsaid takes words away wherever they stand that a claim is about.
func (d *Dump) unsaid(c Claim) change {
	part := plain(c.Value)
	return change{"all that says it", func() func() {
		var undo []func()
		for _, o := range d.objects {
			walk(map[string]any(o), "", func(_ string, v any, set func(any)) {
				if s, ok := v.(string); ok && strings.Contains(plain(s), part) {
					set("nothing")
					undo = append(undo, func() { set(s) })
				}
			}, nil)
		}
		return func() {
			for _, u := range undo {
				u()
			}
		}
	}}
}

// edits are other values for each of an object's, and for a claim that something exists the object
// without each.
func edits(o object, c Claim) []change {
	var out []change
	about := o.text("kind") + "/" + o.text("metadata", "name") + " "
	drop := func(at string, _ any, drop func() func()) {
		if c.Op == "exists" {
			out = append(out, change{about + "without " + at, drop})
		}
	}
	walk(map[string]any(o), "", func(at string, v any, set func(any)) {
		if slices.Contains([]string{".kind", ".apiVersion", ".metadata.name", ".metadata.namespace"}, at) {
			return // another object's
		}
		if text, ok := v.(string); ok && strings.Contains(text, "\n") {
			out = append(out, lines(about+at, text, set)...)
		}
		is := other(v, c)
		out = append(out, change{fmt.Sprintf("%s%s: %.40v, was %.40v", about, at, is, v), func() func() {
			set(is)
			return func() { set(v) }
		}})
	}, drop)
	return out
}

// lines are other values for each line of a text that is YAML.
func lines(at, text string, set func(any)) []change {
	var out []change
	all := strings.Split(text, "\n")
	for i, line := range all {
		key, value, ok := strings.Cut(line, ": ")
		if !ok {
			continue
		}
		now := slices.Clone(all)
		now[i] = key + ": " + otherText(value)
		out = append(out, change{at + ": " + now[i], func() func() {
			set(strings.Join(now, "\n"))
			return func() { set(text) }
		}})
	}
	return out
}

// walk goes through all values below one.
func walk(v any, at string, leaf func(at string, v any, set func(any)), drop func(at string, v any, drop func() func())) {
	step := func(at string, below any, set func(any)) {
		switch below.(type) {
		case map[string]any, []any:
			walk(below, at, leaf, drop)
		default:
			leaf(at, below, set)
		}
	}
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			below := v[key]
			if drop != nil {
				drop(at+"."+key, below, func() func() {
					delete(v, key)
					return func() { v[key] = below }
				})
			}
			step(at+"."+key, below, func(is any) { v[key] = is })
		}
	case []any:
		for i, below := range v {
			step(fmt.Sprintf("%s[%d]", at, i), below, func(is any) { v[i] = is })
		}
	}
}

// other is another value than one: what the claim says is not there, or nothing like it.
func other(v any, c Claim) any {
	switch c.Op {
	case "!=", "contains not":
		return c.Value
	case "contains":
		return "another"
	case "at least":
		return "0"
	case "absent":
		if _, key, ok := strings.Cut(strings.TrimSuffix(c.Path, "]"), "["); ok {
			return key
		}
	}
	if m := counts.FindStringSubmatch(c.Path); m != nil && c.Value == "0" {
		return m[1] // one more that is counted
	}
	switch v := v.(type) {
	case bool:
		return !v
	case float64:
		return v + 1
	case int64:
		return v + 1
	case string:
		return otherText(v)
	}
	return "other"
}

// counts is what the elements of a list have that a path counts.
var counts = regexp.MustCompile(`=([^\],]*)\]\)$`)

func otherText(s string) string {
	switch s {
	case "True":
		return "False"
	case "False":
		return "True"
	case "true":
		return "false"
	case "false":
		return "true"
	}
	if at := strings.IndexAny(s, "0123456789"); at >= 0 {
		return s[:at] + string('0'+(s[at]-'0'+1)%10) + s[at+1:]
	}
	return s + "-other"
}
