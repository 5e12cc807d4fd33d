package oracle

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// meant is how many pods wait as one does, of its controller and with its requests, whose selector and
// required affinity take a node.
func (d *Dump) meant(pod object, node string) []any {
	n := d.node(node)
	if n == nil {
		return nil
	}
	count := 0.0
	for _, p := range d.of("Pod") {
		if p.fellowOf(pod) && (asked{d: d, node: n, pod: p}).selected() {
			count++
		}
	}
	return []any{count}
}

// fellowOf says whether a pod waits for a node as another does: the same object controls both, and they request the same.
func (o object) fellowOf(other object) bool {
	if phase := o.text("status", "phase"); o.text("spec", "nodeName") != "" || phase != "" && phase != "Pending" || o.at("metadata", "deletionTimestamp") != nil {
		return false
	}
	for name := range maps.Keys(resourcesOf(o)) {
		if o.asks(name) != other.asks(name) {
			return false
		}
	}
	return o.text("metadata", "namespace") == other.text("metadata", "namespace") && len(resourcesOf(o)) == len(resourcesOf(other)) && o.controller() == other.controller()
}

// controller is what controls a pod, or the pod's own name where nothing does.
func (o object) controller() string {
	for _, r := range o.list("metadata", "ownerReferences") {
		if r.at("controller") == true {
			return r.text("kind") + "/" + r.text("name")
		}
	}
	return o.text("metadata", "name")
}

// missing is on how many nodes just some requirements of a pod are not met: keys of its selector, and of its required affinity
// keys behind the number of their term; "|" parts lists that are alternatives.
// Of what makes pods they are those of its template.
func (d *Dump) missing(pod object, lists string) []any {
	if spec := pod.at("spec", "template", "spec"); spec != nil {
		pod = object{"spec": spec}
	}
	count := 0.0
	for _, n := range d.of("Node") {
		if list := lacks(pod, n); list != "" && slices.Contains(strings.Split(lists, "|"), list) {
			count++
		}
	}
	return []any{count}
}

// lacks are the requirements of a pod that a node does not meet, of the terms of an affinity those of the one that lacks fewest.
func lacks(pod, node object) string {
	labels, fields := node.texts("metadata", "labels"), map[string]string{"metadata.name": node.text("metadata", "name")}
	var out, nearest []string
	selector := pod.texts("spec", "nodeSelector")
	for _, key := range slices.Sorted(maps.Keys(selector)) {
		if is, has := labels[key]; !has || is != selector[key] {
			out = append(out, key)
		}
	}
	found := false
	for i, t := range pod.list("spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms") {
		expressions, names := t.list("matchExpressions"), t.list("matchFields")
		if len(expressions)+len(names) == 0 {
			continue
		}
		var of []string
		for at, e := range slices.Concat(expressions, names) {
			has := labels
			if at >= len(expressions) {
				has = fields
			}
			if !matches(e, has) {
				of = append(of, strconv.Itoa(i)+":"+e.text("key"))
			}
		}
		if !found || len(of) < len(nearest) {
			found, nearest = true, of
		}
	}
	return strings.Join(append(out, nearest...), ",")
}
