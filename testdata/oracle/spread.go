package oracle

import (
	"slices"
	"strings"
)

// skew is by how much a pod on a node would make its part of a topology fuller than the least full
// one, by the pod's constraint on that topology; "key,node".
func (d *Dump) skew(pod object, which string) []any {
	key, name, _ := strings.Cut(which, ",")
	node := d.node(name)
	at := slices.IndexFunc(pod.list("spec", "topologySpreadConstraints"), func(c object) bool {
		return c.text("topologyKey") == key && c.text("whenUnsatisfiable") != "ScheduleAnyway"
	})
	if node == nil || at < 0 {
		return nil
	}
	c := pod.list("spec", "topologySpreadConstraints")[at]
	here, labelled := node.texts("metadata", "labels")[key]
	full := d.fullness(pod, c, key)
	if !labelled {
		return nil
	}
	least, first := 0.0, true
	for _, n := range full {
		if first || n < least {
			least, first = n, false
		}
	}
	if float64(len(full)) < c.amount("minDomains") {
		least = 0
	}
	itself := 0.0
	if spreads(c, pod, pod) {
		itself = 1
	}
	return []any{full[here] + itself - least}
}

// fullness is how many pods of a constraint each part of a topology has.
func (d *Dump) fullness(pod, c object, key string) map[string]float64 {
	out := map[string]float64{}
	for _, n := range d.of("Node") {
		part, labelled := n.texts("metadata", "labels")[key]
		a := asked{d: d, node: n, pod: pod}
		if !labelled || c.text("nodeAffinityPolicy") != "Ignore" && !a.selected() || c.text("nodeTaintsPolicy") == "Honor" && !tolerable(pod, n) {
			continue
		}
		out[part] += 0
		for _, v := range d.podsOf(n, nil) {
			p, _ := v.(map[string]any)
			if o := object(p); o.text("metadata", "namespace") == pod.text("metadata", "namespace") && o.at("metadata", "deletionTimestamp") == nil && spreads(c, pod, o) {
				out[part]++
			}
		}
	}
	return out
}

// spreads says whether a constraint of a pod counts another.
func spreads(c, pod, other object) bool {
	labels := other.texts("metadata", "labels")
	if c.at("labelSelector") == nil {
		return false
	}
	for key, value := range c.texts("labelSelector", "matchLabels") {
		if labels[key] != value {
			return false
		}
	}
	keys, _ := c.at("matchLabelKeys").([]any)
	for _, key := range keys {
		name, _ := key.(string)
		if value, has := pod.texts("metadata", "labels")[name]; has && labels[name] != value {
			return false
		}
	}
	return allMatch(c.list("labelSelector", "matchExpressions"), labels)
}

// tolerable says whether a pod tolerates all taints of a node that keep pods from it.
func tolerable(pod, node object) bool {
	return !slices.ContainsFunc(node.list("spec", "taints"), func(t object) bool {
		return t.text("effect") != "PreferNoSchedule" && !tolerated(pod, t)
	})
}
