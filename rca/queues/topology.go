package queues

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// together is a pod set of a Workload that wants its pods in one domain of a topology.
type together struct {
	of            string // the Workload
	podSet, level string
	count         int64
	required      bool
}

// wantsTogether are the pod sets of a Workload that want their pods close to each other: by
// their topologyRequest, or the annotation of their template that it is made from
// (apis/kueue/v1beta1, PodSetTopologyRequest and topology_types.go).
func wantsTogether(w *unstructured.Unstructured) []together {
	var out []together
	for _, set := range nested(w, "spec", "podSets") {
		notes, _, _ := unstructured.NestedStringMap(set, "template", "metadata", "annotations") //nolint:errcheck // another type asks for nothing
		request, _, _ := unstructured.NestedMap(set, "topologyRequest")                         //nolint:errcheck // as above
		count, _, _ := unstructured.NestedInt64(set, "count")                                   //nolint:errcheck // 0 is not counted with
		t := together{of: view.ObjectRef("Workload", w.GetNamespace(), w.GetName()), podSet: wordOf(set, "name"), count: count}
		t.level = cmp.Or(wordOf(request, "required"), notes["kueue.x-k8s.io/podset-required-topology"])
		if t.required = t.level != ""; !t.required {
			t.level = cmp.Or(wordOf(request, "preferred"), notes["kueue.x-k8s.io/podset-preferred-topology"])
		}
		if t.level != "" {
			out = append(out, t)
		}
	}
	return out
}

// placed is what a flavor's Topology has of the level at which pods are wanted together: none
// of that name, or how much each of its domains offers of the resource.
func (f *flavor) placed(w *unstructured.Unstructured, each int64) []diagnosis.Evidence {
	wants, st := wantsTogether(w), f.w.State
	if len(wants) == 0 || f.object == nil {
		return nil
	}
	topology := nestedText(f.object, "spec", "topologyName")
	if topology == "" {
		return []diagnosis.Evidence{diagnosis.Fact(f.ref(), "names no Topology (spec.topologyName), so it places no pods together", diagnosis.That("spec.topologyName", "", diagnosis.Absent, ""))}
	}
	ref, o := "Topology/"+topology, objectOf(st.Queues.Topologies, "", topology)
	switch {
	case o == nil && st.Unread["Topology"] != "":
		return nil
	case o == nil:
		return []diagnosis.Evidence{diagnosis.Fact(ref, "is not among those that were read; ResourceFlavor "+f.name+" names it", diagnosis.That("", "", diagnosis.Absent, ""),
			diagnosis.That("spec.topologyName", "", diagnosis.Is, topology).Of(f.ref()))}
	}
	var levels []string
	for _, l := range nested(o, "spec", "levels") {
		levels = append(levels, wordOf(l, "nodeLabel"))
	}
	var out []diagnosis.Evidence
	for _, t := range wants {
		at := slices.Index(levels, t.level)
		if at < 0 {
			out = append(out, diagnosis.Fact(ref, fmt.Sprintf("has the levels %s, and pod set %s wants its pods in one %s", strings.Join(levels, ", "), t.podSet, t.level),
				diagnosis.That("spec.levels", "", diagnosis.ContainsNot, t.level), diagnosis.That("spec.podSets", "", diagnosis.Contains, t.level).Of(t.of)))
			continue
		}
		claims := []diagnosis.Claim{diagnosis.That("spec.levels", "", diagnosis.Contains, t.level), diagnosis.That("spec.podSets[name="+t.podSet+"]", "", diagnosis.Contains, t.level).Of(t.of)}
		fact, more := f.domains(levels[:at+1]).says(t, each)
		out = append(out, diagnosis.Fact(ref, fact, append(claims, more...)...))
	}
	return out
}

// domains are the parts that a level of a Topology divides a flavor's nodes into.
type domains struct {
	of      *flavor
	levels  []string
	offers  map[string]int64 // what the nodes of each offer of a resource, by their labels
	without int              // nodes of the flavor that lack the label of a level, and so are in none
}

func (f *flavor) domains(levels []string) domains {
	d := domains{of: f, levels: levels, offers: map[string]int64{}}
	for n := range f.nodes {
		var path []string
		for _, l := range levels {
			if n.Labels[l] != "" {
				path = append(path, l+"="+n.Labels[l])
			}
		}
		if len(path) < len(levels) {
			d.without++
			continue
		}
		d.offers[strings.Join(path, ",")] += n.Allocatable(f.resource)
	}
	return d
}

// says is what the domain that offers most offers, and what a pod set wants of one.
func (d domains) says(t together, each int64) (string, []diagnosis.Claim) {
	level, best := d.levels[len(d.levels)-1], ""
	for _, path := range slices.Sorted(maps.Keys(d.offers)) {
		if best == "" || d.offers[path] > d.offers[best] {
			best = path
		}
	}
	if best == "" {
		return fmt.Sprintf("no node of flavor %s has the label %s", d.of.name, level), nil
	}
	most := fmt.Sprint(d.offers[best])
	text := fmt.Sprintf("no %s has more than %s %s", level, most, d.of.resource)
	if d.without > 0 {
		text += "; nodes without the label are in none"
	}
	how := "would like"
	if t.required {
		how = "wants"
	}
	nodes := "nodes[" + strings.ReplaceAll(best, ",", "][") + "]"
	set := "spec.podSets[name=" + t.podSet + "]"
	return fmt.Sprintf("%s; pod set %s %s %d × %d in one", text, t.podSet, how, t.count, each), []diagnosis.Claim{
		diagnosis.That("sum("+nodes+".status.allocatable["+string(d.of.resource)+"])", "", diagnosis.Is, most).Of(d.of.ref()),
		diagnosis.That(set+".count", "", diagnosis.Is, fmt.Sprint(t.count)).Of(t.of), diagnosis.That(set, "", diagnosis.Contains, fmt.Sprint(each)).Of(t.of)}
}
