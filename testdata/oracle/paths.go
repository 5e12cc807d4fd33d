package oracle

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var (
	function = regexp.MustCompile(`^(count|sum|keys)\((.*)\)$`)
	segment  = regexp.MustCompile(`^([^.\[]+)?((?:\[[^\]]*\])*)(?:\.|$)`)
)

// values are what stands at a path of an object, one for each element where it goes through
// lists.
func (d *Dump) values(o object, path string) ([]any, error) {
	if m := function.FindStringSubmatch(path); m != nil {
		below, err := d.values(o, m[2])
		if err != nil {
			return nil, err
		}
		return reduce(m[1], below), nil
	}
	root, key, _ := strings.Cut(strings.TrimSuffix(path, "]"), "[")
	switch root {
	case "words":
		return d.words(o), nil
	case "pods":
		return d.podsOf(o), nil
	case "requests":
		return []any{d.requested(o, key)}, nil
	case "free":
		if key == "pods" {
			return []any{o.amount("status", "allocatable", key) - float64(len(d.podsOf(o)))}, nil
		}
		return []any{o.amount("status", "allocatable", key) - d.requested(o, key)}, nil
	}
	now := []any{map[string]any(o)}
	if m := segment.FindStringSubmatch(path); m != nil && m[1] == "nodes" {
		now, path = d.nodesOf(o, brackets(m[2])), path[len(m[0]):]
	} else if m != nil && m[1] == "members" {
		now, path = d.membersOf(o, brackets(m[2])), path[len(m[0]):]
	}
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
		if m, ok := v.(map[string]any); ok && m[name] != nil {
			out = append(out, m[name])
		}
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
	sum, count := 0.0, 0
	for _, v := range all {
		if list, ok := v.([]any); ok {
			count += len(list)
			continue
		}
		count++
		sum += amount(v)
	}
	if name == "count" {
		return []any{float64(count)}
	}
	return []any{sum}
}

// requested is what a pod asks, or all pods of a node that have not ended.
func (d *Dump) requested(o object, name string) float64 {
	if o.text("kind") == "Pod" {
		return o.asks(name)
	}
	return d.used(o.text("metadata", "name"), name)
}

// podsOf are the pods of a node that have not ended, or those that an object owns.
func (d *Dump) podsOf(o object) []any {
	var out []any
	for _, p := range d.of("Pod") {
		ended := slices.Contains([]string{"Succeeded", "Failed"}, p.text("status", "phase"))
		here := o.text("kind") == "Node" && p.text("spec", "nodeName") == o.text("metadata", "name") && !ended
		owned := slices.ContainsFunc(p.list("metadata", "ownerReferences"), func(r object) bool {
			return r.text("kind") == o.text("kind") && r.text("name") == o.text("metadata", "name")
		})
		if here || owned && p.text("metadata", "namespace") == o.text("metadata", "namespace") {
			out = append(out, map[string]any(p))
		}
	}
	return out
}

// nodesOf are the nodes that a flavor of a queue stands for, of those the ones with the labels.
func (d *Dump) nodesOf(flavor object, labels []string) []any {
	var out []any
	for _, n := range d.of("Node") {
		has, of := n.texts("metadata", "labels"), true
		for key, value := range flavor.texts("spec", "nodeLabels") {
			of = of && has[key] == value
		}
		for _, l := range labels {
			key, value, _ := strings.Cut(l, "=")
			of = of && has[key] == value
		}
		if of {
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
