package oracle

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Claim is what a sentence says of one object: what stands at a path of it.
type Claim struct {
	Ref   string `json:"ref"`
	Path  string `json:"path"`
	Op    string `json:"op"`
	Value string `json:"value"`
}

func (c Claim) String() string {
	return strings.TrimSpace(fmt.Sprintf("%s %s %s %s", c.Ref, c.Path, c.Op, c.Value))
}

// Denies says why the dump denies a claim; empty: it is so.
func (d *Dump) Denies(c Claim) string {
	_, rest, _ := strings.Cut(c.Ref, "/")
	all := d.subjects(c)
	if c.Path == "" {
		if there := len(all) > 0; there != (c.Op == "exists") {
			return fmt.Sprintf("%d such objects are there", len(all))
		}
		return ""
	}
	if len(all) == 0 && rest != "*" {
		if c.Op == "absent" || strings.HasPrefix(c.Path, "count(") && c.Value == "0" {
			return ""
		}
		return "the dump lacks the object"
	}
	for _, o := range all {
		is, err := d.values(o, c.Path)
		if err != nil {
			return err.Error()
		}
		if !holds(c, is) {
			return fmt.Sprintf("it has %.300v", is)
		}
	}
	return ""
}

// subjects are what a claim is about. The end of an object may be the message, and its pods are
// there without it: then there is one that has nothing but its name.
func (d *Dump) subjects(c Claim) []object {
	kind, rest, _ := strings.Cut(c.Ref, "/")
	all := d.named(kind, rest)
	if len(all) == 0 && (c.Path == "words" || strings.Contains(c.Path, "(pods")) && rest != "*" {
		namespace, name := apart(rest)
		kind, _, _ := strings.Cut(kind, ".")
		all = []object{{"kind": kind, "metadata": map[string]any{"namespace": namespace, "name": name}}}
	}
	return all
}

// named are the objects of a kind of one name, or all of them.
func (d *Dump) named(kind, rest string) []object {
	namespace, name := apart(rest)
	kind, group, _ := strings.Cut(kind, ".") // kinds that others have, too, are named with their API's group
	var out []object
	for _, o := range d.of(kind) {
		if of, _, _ := strings.Cut(o.text("apiVersion"), "/"); group != "" && of != group {
			continue
		}
		if rest == "*" || o.text("metadata", "name") == name && o.text("metadata", "namespace") == namespace {
			out = append(out, o)
		}
	}
	return out
}

func apart(rest string) (namespace, name string) {
	if ns, of, ok := strings.Cut(rest, "/"); ok {
		return ns, of
	}
	return "", rest
}

// holds compares what stands there with what is claimed.
func holds(c Claim, is []any) bool {
	has := func(test func(string) bool) bool {
		return slices.ContainsFunc(is, func(v any) bool { return slices.ContainsFunc(leaves(v), test) })
	}
	equal := func(s string) bool { return s == c.Value || sameAmount(s, c.Value) }
	part := plain(c.Value)
	contains := func(s string) bool { return strings.Contains(plain(s), part) }
	switch c.Op {
	case "=":
		return has(equal) || len(is) == 0 && c.Value == "0" && amounts.MatchString(c.Path)
	case "!=":
		return !has(equal)
	case "exists":
		return len(is) > 0
	case "absent":
		return len(is) == 0
	case "at least":
		return slices.ContainsFunc(is, func(v any) bool { return amount(v) >= amount(c.Value) })
	case "contains":
		return has(contains)
	case "contains not":
		return !has(contains)
	case "none begins":
		return !has(func(s string) bool { return strings.HasPrefix(s, c.Value) })
	case "tolerates not":
		return !slices.ContainsFunc(is, func(v any) bool { return tolerated(tolerating(v), taintOf(c.Value)) })
	}
	return false
}

// amounts are paths where what is not there is none.
var amounts = regexp.MustCompile(`^(status\.(allocatable|capacity|used|hard|resources)|requests|free|uses|counted|spec\.priority)(\[|$)|^status\.\w+$`)

func tolerating(v any) object {
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	return object{"spec": map[string]any{"tolerations": list}}
}

// taintOf reads a taint as people write it: key=value:Effect.
func taintOf(s string) object {
	rest, effect, _ := strings.Cut(s, ":")
	key, value, _ := strings.Cut(rest, "=")
	return object{"key": key, "value": value, "effect": effect}
}

// leaves are all texts at or below a value.
func leaves(v any) []string {
	var out []string
	switch v := v.(type) {
	case map[string]any:
		for _, below := range v {
			out = append(out, leaves(below)...)
		}
	case []any:
		for _, below := range v {
			out = append(out, leaves(below)...)
		}
	case float64:
		out = append(out, strconv.FormatFloat(v, 'f', -1, 64))
	default:
		out = append(out, fmt.Sprint(v))
	}
	return out
}

// plain is text with single spaces, without what no terminal shows.
func plain(s string) string {
	return strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' && r != '\r' || r == 0x7f {
			return -1
		}
		return r
	}, s)), " ")
}

func sameAmount(a, b string) bool {
	x, err := resource.ParseQuantity(a)
	y, bad := resource.ParseQuantity(b)
	return err == nil && bad == nil && x.Cmp(y) == 0
}
