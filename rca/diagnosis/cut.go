package diagnosis

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// size is how long the lists and texts of a Summary may be.
type size struct {
	list int // elements
	text int // bytes as JSON
}

// sizes are tried one after the other. With the last no Summary reaches MaxMessage: it is
// the number of fields that bounds it (a test fills every one of them). 338 bytes hold the
// longest name there is, a namespace's and a pod's.
var sizes = []size{{60, 4000}, {20, 1000}, {5, 338}}

// maxSlots is above what any drawing has: a GPU has at most 8 slices, before and after.
const maxSlots = 32

// cut is a copy of the summary whose lists and texts are no longer than that; what it
// shares with the diagnosis is not changed. A field that is added later is cut too.
func (l size) cut(s Summary) Summary {
	c := cutter{l, map[string]int{}}
	maps.Copy(c.left, s.LeftOut)
	s.LeftOut = nil
	out := c.value(reflect.ValueOf(s), "", "").Interface().(Summary)
	if len(c.left) > 0 {
		out.LeftOut = c.left
	}
	return out
}

type cutter struct {
	size
	left map[string]int
}

// value copies v, which stands at path; rule is what its field's tag says: "never" leaves
// its lists alone, "whole" leaves texts out that would have to be cut; "out" leaves a field out.
func (c cutter) value(v reflect.Value, path, rule string) reflect.Value {
	out := reflect.New(v.Type()).Elem()
	switch {
	case v.Type() == reflect.TypeFor[time.Time]():
		out.Set(v)
	case v.Kind() == reflect.String:
		out.SetString(c.text(v.String(), path))
	case v.Kind() == reflect.Pointer && !v.IsNil():
		out.Set(reflect.New(v.Type().Elem()))
		out.Elem().Set(c.value(v.Elem(), path, rule))
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			own := f.Tag.Get("cut")
			if own == "out" {
				continue
			}
			if own == "" && rule == "never" {
				own = rule
			}
			out.Field(i).Set(c.value(v.Field(i), strings.TrimPrefix(path+"."+name, "."), own))
		}
	case v.Kind() == reflect.Slice:
		out.Set(c.slice(v, path, rule))
	case v.Kind() == reflect.Map && !v.IsNil():
		out.Set(c.texts(v, path))
	default:
		out.Set(v)
	}
	return out
}

func (c cutter) slice(v reflect.Value, path, rule string) reflect.Value {
	out := reflect.MakeSlice(v.Type(), 0, min(v.Len(), c.list)) // an empty list, not null, as readers are promised
	for i := range v.Len() {
		if rule != "never" && out.Len() == c.list {
			c.left[path] += v.Len() - i
			break
		}
		if rule == "whole" && encoded(v.Index(i).String()) > c.size.text {
			c.left[path]++
			continue
		}
		out = reflect.Append(out, c.value(v.Index(i), path, rule))
	}
	return out
}

// texts copies a map of texts, the first by name.
func (c cutter) texts(v reflect.Value, path string) reflect.Value {
	out := map[string]string{}
	all := v.Interface().(map[string]string) //nolint:forcetypeassert // a Summary has no other, and a test fills them all
	for i, name := range slices.Sorted(maps.Keys(all)) {
		if len(out) == c.list {
			c.left[path] += len(all) - i
			break
		}
		out[c.text(name, path)] = c.text(all[name], path)
	}
	return reflect.ValueOf(out)
}

// text is the beginning of s that takes no more bytes as JSON than the size says. Bytes
// that are no UTF-8 are replaced, as JSON would.
func (c cutter) text(s, path string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if encoded(s) <= c.size.text {
		return s
	}
	c.left[path]++
	room := c.size.text - len("…")
	for i, r := range s {
		if room -= encodedRune(r); room < 0 {
			return s[:i] + "…"
		}
	}
	return s
}

// encoded is how many bytes a text takes in JSON, without its quotes.
func encoded(s string) int {
	n := 0
	for _, r := range s {
		n += encodedRune(r)
	}
	return n
}

// encodedRune follows encoding/json, which also escapes what HTML or JavaScript would read.
func encodedRune(r rune) int {
	switch {
	case strings.ContainsRune("\"\\\b\f\n\r\t", r):
		return len(`\n`)
	case r < ' ' || strings.ContainsRune("<>&\u2028\u2029", r):
		return len(`\u0000`)
	}
	return utf8.RuneLen(r)
}
