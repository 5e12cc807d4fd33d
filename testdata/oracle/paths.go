package oracle

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"
)

var (
	function = regexp.MustCompile(`^(count|sum|max|keys)\((.*)\)$`)
	segment  = regexp.MustCompile(`^([^.\[]+)?((?:\[[^\]]*\])*)(?:\.|$)`)
)

// values are what stands at a path of an object, one for each element where it goes through
// lists or other objects.
func (d *Dump) values(o object, path string) ([]any, error) {
	if from, less, ok := strings.Cut(path, " - "); ok {
		return d.difference(o, from, less)
	}
	if m := function.FindStringSubmatch(path); m != nil {
		below, err := d.values(o, m[2])
		if err != nil {
			return nil, err
		}
		return reduce(m[1], below), nil
	}
	root, key, _ := strings.Cut(strings.TrimSuffix(path, "]"), "[")
	if made := named[root]; made != nil {
		return made(d, o, key), nil
	}
	m := segment.FindStringSubmatch(path)
	if m != nil && others[m[1]] != nil {
		return d.through(others[m[1]](d, o, brackets(m[2])), path[len(m[0]):])
	}
	now := []any{map[string]any(o)}
	for path != "" {
		m := segment.FindStringSubmatch(path)
		if m == nil || m[0] == "" {
			return nil, fmt.Errorf("no path: %q", path)
		}
		path = path[len(m[0]):]
		now = field(now, m[1])
		for _, which := range brackets(m[2]) {
			now = choose(now, which)
		}
	}
	return now, nil
}

// difference is what is left of an amount without others, which " - " parts.
func (d *Dump) difference(o object, from, less string) ([]any, error) {
	all, err := d.values(o, "sum("+from+")")
	if err != nil {
		return nil, err
	}
	for part := range strings.SplitSeq(less, " - ") {
		below, err := d.values(o, "sum("+part+")")
		if err != nil {
			return nil, err
		}
		all[0] = thousandths(amount(all[0]) - amount(below[0]))
	}
	return all, nil
}

// through is what stands at a path of each of several objects.
func (d *Dump) through(objects []any, path string) ([]any, error) {
	var out []any
	for _, v := range objects {
		o, ok := v.(map[string]any)
		if !ok {
			continue
		}
		below, err := d.values(o, path)
		if err != nil {
			return nil, err
		}
		out = append(out, below...)
	}
	return out, nil
}

// others are the names of objects that belong to one: a path may go on in each.
var others = map[string]func(d *Dump, o object, which []string) []any{
	"pods":    (*Dump).podsOf,
	"nodes":   (*Dump).nodesOf,
	"members": (*Dump).membersOf,
	"refused": (*Dump).refusedOn,
}

// named are what no field of an object has: it is made of the fields of several.
var named = map[string]func(d *Dump, o object, key string) []any{
	"words":    func(d *Dump, o object, _ string) []any { return d.words(o) },
	"requests": func(d *Dump, o object, key string) []any { return []any{d.requested(o, key)} },
	"free":     func(d *Dump, o object, key string) []any { return []any{thousandths(d.free(o, key))} },
	"selects":  (*Dump).selects,
	"meant":    (*Dump).meant,
	"missing":  (*Dump).missing,
	"skew":     (*Dump).skew,
	"room":     func(d *Dump, o object, _ string) []any { return []any{d.room(o)} },
	"short":    func(d *Dump, o object, key string) []any { return []any{d.short(o, key)} },
	"judged":   func(_ *Dump, o object, key string) []any { return judged(o, key) },
	"by":       func(_ *Dump, o object, _ string) []any { return by(o) },
	"uses":     func(_ *Dump, o object, key string) []any { return []any{uses(o, key)} },
	"counted":  func(d *Dump, o object, key string) []any { return []any{d.counted(o, key)} },
	"asked":    func(_ *Dump, o object, key string) []any { return askedOf(o, key) },
	"unheld":   func(_ *Dump, o object, key string) []any { return unheld(o, key) },
	"slices":   func(_ *Dump, o object, key string) []any { return memorySlices(o, key) },
}

func brackets(s string) []string {
	var out []string
	for s != "" {
		end := strings.IndexByte(s, ']')
		out, s = append(out, s[1:end]), s[end+1:]
	}
	return out
}

func field(of []any, name string) []any {
	if name == "" {
		return of
	}
	var out []any
	for _, v := range of {
		if text, ok := v.(string); ok { // of a ConfigMap, where a path goes on in it
			v = written(text)
		}
		if m, ok := v.(map[string]any); ok && m[name] != nil {
			out = append(out, m[name])
		}
	}
	return out
}

// written is the YAML that a text is; nil for none.
func written(text string) map[string]any {
	var out map[string]any
	if err := yaml.Unmarshal([]byte(text), &out); err != nil {
		return nil
	}
	return out
}

// choose is what brackets leave: an element by number or by its fields, all of them, those
// that have a field, or what a map has under a key.
func choose(of []any, which string) []any {
	var out []any
	for _, v := range of {
		if m, ok := v.(map[string]any); ok {
			if m[which] != nil {
				out = append(out, m[which])
			}
			continue
		}
		list, ok := v.([]any)
		if !ok {
			continue
		}
		if i, err := strconv.Atoi(which); err == nil {
			if i < len(list) {
				out = append(out, list[i])
			}
			continue
		}
		for _, e := range list {
			if m, ok := e.(map[string]any); which == "*" || ok && fits(m, which) {
				out = append(out, e)
			}
		}
	}
	return out
}

func fits(m map[string]any, which string) bool {
	for want := range strings.SplitSeq(which, ",") {
		key, value, valued := strings.Cut(want, "=")
		if m[key] == nil || valued && !slices.Contains(leaves(m[key]), value) {
			return false
		}
	}
	return true
}

func reduce(name string, all []any) []any {
	if name == "keys" {
		var out []any
		for _, v := range all {
			if m, ok := v.(map[string]any); ok {
				for key := range m {
					out = append(out, key)
				}
			}
		}
		return out
	}
	sum, most, count := 0.0, 0.0, 0
	for _, v := range all {
		if list, ok := v.([]any); ok {
			count += len(list)
			continue
		}
		count++
		sum, most = sum+amount(v), max(most, amount(v))
	}
	switch name {
	case "count":
		return []any{float64(count)}
	case "max":
		return []any{most}
	}
	return []any{thousandths(sum)}
}

// requested is what a pod asks, or all pods of a node that have not ended; with "*" at the end of
// the name of all resources that begin so.
func (d *Dump) requested(o object, name string) float64 {
	if prefix, all := strings.CutSuffix(name, "*"); all {
		sum := 0.0
		for of := range d.resources() {
			if strings.HasPrefix(of, prefix) {
				sum += d.requested(o, of)
			}
		}
		return sum
	}
	if o.text("kind") == "Pod" {
		return o.asks(name)
	}
	return d.used(o.text("metadata", "name"), name)
}

// resources are the names of all that pods speak of.
func (d *Dump) resources() map[string]bool {
	out := map[string]bool{}
	for _, p := range d.of("Pod") {
		maps.Copy(out, resourcesOf(p))
	}
	return out
}

// podsOf are the pods of a node that have not ended, or those that an object owns; of these the ones
// with the labels that have not ended.
func (d *Dump) podsOf(o object, labels []string) []any {
	var out []any
	for _, p := range d.of("Pod") {
		ended := slices.Contains([]string{"Succeeded", "Failed"}, p.text("status", "phase"))
		here := o.text("kind") == "Node" && p.text("spec", "nodeName") == o.text("metadata", "name") && !ended
		owned := slices.ContainsFunc(p.list("metadata", "ownerReferences"), func(r object) bool {
			return r.text("kind") == o.text("kind") && r.text("name") == o.text("metadata", "name")
		})
		if len(labels) > 0 && (ended || !p.labelled(labels)) {
			continue
		}
		if here || owned && p.text("metadata", "namespace") == o.text("metadata", "namespace") {
			out = append(out, map[string]any(p))
		}
	}
	return out
}

// labelled says whether an object has all of some labels.
func (o object) labelled(labels []string) bool {
	has := o.texts("metadata", "labels")
	return !slices.ContainsFunc(labels, func(l string) bool {
		key, value, _ := strings.Cut(l, "=")
		return has[key] != value
	})
}

// nodesOf are the nodes that a flavor of a queue stands for, of those the ones with the labels;
// of a pod those that it may use.
func (d *Dump) nodesOf(flavor object, labels []string) []any {
	var out []any
	if flavor.text("kind") == "Pod" {
		for _, n := range d.open(flavor) {
			out = append(out, map[string]any(n))
		}
		return out
	}
	for _, n := range d.of("Node") {
		has, of := n.texts("metadata", "labels"), true
		for key, value := range flavor.texts("spec", "nodeLabels") {
			of = of && has[key] == value
		}
		if of && n.labelled(labels) {
			out = append(out, map[string]any(n))
		}
	}
	return out
}

// memberKeys are where a pod names the group of its gang, by the group's API: labels of the
// scheduler plugins, annotations of Volcano and KAI.
var memberKeys = map[string][]string{
	"scheduling.x-k8s.io":   {"scheduling.x-k8s.io/pod-group", "pod-group.scheduling.sigs.k8s.io"},
	"scheduling.volcano.sh": {"scheduling.k8s.io/group-name", "scheduling.volcano.sh/group-name"},
	"scheduling.run.ai":     {"pod-group-name"},
}

// membersOf are the pods of a PodGroup that have not ended, of those the ones of a phase.
func (d *Dump) membersOf(group object, which []string) []any {
	api, _, _ := strings.Cut(group.text("apiVersion"), "/")
	name := group.text("metadata", "name")
	var out []any
	for _, p := range d.of("Pod") {
		phase := p.text("status", "phase")
		in := p.text("spec", "schedulingGroup", "podGroupName") == name && api == "scheduling.k8s.io"
		for _, key := range memberKeys[api] {
			in = in || p.texts("metadata", "labels")[key] == name || p.texts("metadata", "annotations")[key] == name
		}
		if !in || p.text("metadata", "namespace") != group.text("metadata", "namespace") || phase == "Succeeded" || phase == "Failed" {
			continue
		}
		if len(which) == 0 || slices.Contains(which, "phase="+phase) {
			out = append(out, map[string]any(p))
		}
	}
	return out
}

// words are all that events and the object's own status say of it.
func (d *Dump) words(o object) []any {
	out := []any{o.at("status")}
	for _, e := range d.of("Event") {
		for _, about := range []string{"involvedObject", "regarding"} {
			if e.text(about, "kind") == o.text("kind") && e.text(about, "name") == o.text("metadata", "name") && e.text(about, "namespace") == o.text("metadata", "namespace") {
				out = append(out, e.text("message"), e.text("note"), e.text("reason"))
			}
		}
	}
	return slices.DeleteFunc(out, func(v any) bool { return v == nil || v == "" })
}
