package oracle

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// free is what a node has left of a resource.
func (d *Dump) free(o object, name string) float64 {
	if name == "pods" {
		return o.amount("status", "allocatable", name) - float64(len(d.podsOf(o, nil)))
	}
	return o.amount("status", "allocatable", name) - d.requested(o, name)
}

// selects says whether a pod's selector and required affinity take a node.
func (d *Dump) selects(pod object, node string) []any {
	n := d.node(node)
	if n == nil {
		return nil
	}
	return []any{asked{d: d, node: n, pod: pod}.selected()}
}

// open are the nodes that a pod's selector, affinity and tolerations let it use.
func (d *Dump) open(pod object) []object {
	return slices.DeleteFunc(d.of("Node"), func(n object) bool {
		return !tolerable(pod, n) || n.at("spec", "unschedulable") == true || !(asked{d: d, node: n, pod: pod}).selected()
	})
}

// room is how many pods like one have room beside each other, by what they request, on the nodes
// that they may use.
func (d *Dump) room(pod object) float64 {
	sum := 0.0
	for _, n := range d.open(pod) {
		sum += d.roomOn(n, pod)
	}
	return sum
}

func (d *Dump) roomOn(node, pod object) float64 {
	least := d.free(node, "pods")
	for name := range resourcesOf(pod) {
		if asks := pod.asks(name); asks > 0 {
			least = min(least, math.Floor(d.free(node, name)/asks))
		}
	}
	return max(0, least)
}

// short is how many nodes have too little left of a resource for one more pod like one, once as many
// are there as have room.
func (d *Dump) short(pod object, name string) float64 {
	open, short, asks := d.open(pod), 0.0, pod.asks(name)
	for _, n := range d.of("Node") {
		left := d.free(n, name)
		if slices.ContainsFunc(open, func(o object) bool { return o.text("metadata", "name") == n.text("metadata", "name") }) {
			left -= d.roomOn(n, pod) * asks
		}
		if left < asks {
			short++
		}
	}
	return short
}

// resourcesOf are the names of what a pod's containers speak of.
func resourcesOf(pod object) map[string]bool {
	out := map[string]bool{}
	for _, list := range []string{"containers", "initContainers"} {
		for _, c := range pod.list("spec", list) {
			for _, of := range []string{"requests", "limits"} {
				for name := range c.texts("resources", of) {
					out[name] = true
				}
			}
		}
	}
	return out
}

// judged is what a scheduler of a name has made of a pod: its node, and its condition. That it
// looks at no pod that is gated is the API server's word, not its own.
func judged(pod object, name string) []any {
	if of := pod.text("spec", "schedulerName"); of != name && (of != "" || name != "default-scheduler") {
		return nil
	}
	var out []any
	if node := pod.text("spec", "nodeName"); node != "" {
		out = append(out, node)
	}
	for _, c := range pod.list("status", "conditions") {
		if c.text("type") == "PodScheduled" && c.text("reason") != "SchedulingGated" {
			out = append(out, map[string]any(c))
		}
	}
	return out
}

// by is who an event is from.
func by(event object) []any {
	var out []any
	for _, path := range [][]string{{"reportingComponent"}, {"reportingController"}, {"source", "component"}, {"deprecatedSource", "component"}} {
		if who := event.text(path...); who != "" {
			out = append(out, who)
		}
	}
	return out
}

// uses is what a pod counts against a quota, by the name that the quota has for it.
func uses(pod object, name string) float64 {
	limits := object{"spec": map[string]any{"containers": limitsAsRequests(pod, "containers"), "initContainers": limitsAsRequests(pod, "initContainers")}}
	switch {
	case name == "pods" || name == "count/pods":
		return 1
	case strings.HasPrefix(name, "limits."):
		return limits.asks(strings.TrimPrefix(name, "limits."))
	}
	return pod.asks(strings.TrimPrefix(name, "requests."))
}

func limitsAsRequests(pod object, list string) []any {
	var out []any
	for _, c := range pod.list("spec", list) {
		out = append(out, map[string]any{"restartPolicy": c.at("restartPolicy"), "resources": map[string]any{"requests": c.at("resources", "limits")}})
	}
	return out
}

// counted is what the pods of a quota's namespace that have not ended count against it.
func (d *Dump) counted(quota object, name string) float64 {
	sum := 0.0
	for _, p := range d.of("Pod") {
		if p.text("metadata", "namespace") == quota.text("metadata", "namespace") && !slices.Contains([]string{"Succeeded", "Failed"}, p.text("status", "phase")) {
			sum += uses(p, name)
		}
	}
	return sum
}

// memorySlices are how many memory slices a GPU of a report has, or each that has MIG on: as many
// as its profiles reach over.
func memorySlices(report object, index string) []any {
	return eachGPU(report, index, func(g object) float64 {
		most := 0.0
		for _, p := range g.list("profiles") {
			starts, _ := p.at("starts").([]any)
			for _, s := range starts {
				most = max(most, amount(s)+p.amount("memorySlices"))
			}
		}
		return most
	})
}

// unheld are how many of those nobody holds.
func unheld(report object, index string) []any {
	of := map[string]float64{}
	for _, g := range report.list("report", "gpus") {
		of[strconv.FormatFloat(g.amount("index"), 'f', -1, 64)] = 0
		for _, i := range g.list("instances") {
			if i.at("holder") != nil {
				of[strconv.FormatFloat(g.amount("index"), 'f', -1, 64)] += i.amount("size")
			}
		}
	}
	return eachGPU(report, index, func(g object) float64 {
		at := strconv.FormatFloat(g.amount("index"), 'f', -1, 64)
		return amount(memorySlices(report, at)[0]) - of[at]
	})
}

func eachGPU(report object, index string, is func(object) float64) []any {
	var out []any
	for _, g := range report.list("report", "gpus") {
		on := g.at("mig", "current") == true
		if index == "" && on || index != "" && strconv.FormatFloat(g.amount("index"), 'f', -1, 64) == index {
			out = append(out, is(g))
		}
	}
	return out
}

// refusedOn are the pods that a node's kubelet refused; with "*" those of all kubelets.
func (d *Dump) refusedOn(node object, which []string) []any {
	var out []any
	for _, p := range d.of("Pod") {
		reason, on := p.text("status", "reason"), p.text("spec", "nodeName")
		turned := reason == "UnexpectedAdmissionError" || reason == "TopologyAffinityError" || strings.HasPrefix(reason, "OutOf") || reason != "" && strings.HasPrefix(p.text("status", "message"), "Pod was rejected: ")
		if p.text("status", "phase") == "Failed" && turned && on != "" && (len(which) > 0 || on == node.text("metadata", "name")) {
			out = append(out, map[string]any(p))
		}
	}
	return out
}

// askedOf is how many devices a request of a claim, or of the template of one, asks; 0 for all.
func askedOf(claim object, request string) []any {
	name, sub, _ := strings.Cut(request, "/")
	for _, r := range slices.Concat(claim.list("spec", "devices", "requests"), claim.list("spec", "spec", "devices", "requests")) {
		if r.text("name") != name {
			continue
		}
		of := []object{r}
		if exactly, ok := r.at("exactly").(map[string]any); ok {
			of = []object{exactly}
		}
		for _, s := range r.list("firstAvailable") {
			if s.text("name") == sub {
				of = []object{s}
			}
		}
		switch {
		case of[0].text("allocationMode") == "All":
			return []any{0.0}
		case of[0].at("count") == nil:
			return []any{1.0}
		}
		return []any{of[0].at("count")}
	}
	return nil
}
