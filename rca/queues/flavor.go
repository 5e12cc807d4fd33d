package queues

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// flavor is a ResourceFlavor of which one resource is asked for. Which nodes it stands for is read off
// it once, both for what they offer in all and for how its topology divides them.
type flavor struct {
	w        *view.Cluster
	name     string
	object   *unstructured.Unstructured // nil where it was not read
	labels   map[string]string          // of its nodes; none: it stands for any
	resource corev1.ResourceName
}

func flavorOf(w *view.Cluster, name string, resource corev1.ResourceName) *flavor {
	f := &flavor{w: w, name: name, object: objectOf(w.State.Queues.Flavors, "", name), resource: resource}
	if f.object != nil {
		f.labels, _, _ = unstructured.NestedStringMap(f.object.Object, "spec", "nodeLabels") //nolint:errcheck // of another type it chooses none
	}
	return f
}

func (f *flavor) ref() string { return "ResourceFlavor/" + f.name }

// nodes are those that it stands for.
func (f *flavor) nodes(yield func(*view.Node) bool) {
	for _, n := range f.w.SortedNodes() {
		if carries(n.Labels, f.labels) && !yield(n) {
			return
		}
	}
}

// standsFor says which nodes a flavor stands for, by its labels, and what they offer; nothing
// where the flavor was not read or stands for any node.
func (f *flavor) standsFor() []diagnosis.Evidence {
	if len(f.labels) == 0 || f.w.State.Unread["Node"] != "" {
		return nil
	}
	count, offered := 0, int64(0)
	for n := range f.nodes {
		count++
		offered += n.Allocatable(f.resource)
	}
	var texts []string
	claims := []diagnosis.Claim{diagnosis.That("count(nodes)", "", diagnosis.Is, strconv.Itoa(count)), diagnosis.That("sum(nodes.status.allocatable["+string(f.resource)+"])", "", diagnosis.Is, strconv.FormatInt(offered, 10))}
	for _, key := range slices.Sorted(maps.Keys(f.labels)) {
		texts = append(texts, key+"="+f.labels[key])
		claims = append(claims, diagnosis.That("spec.nodeLabels", key, diagnosis.Is, f.labels[key]))
	}
	fact := "stands for nodes with " + strings.Join(texts, ", ")
	switch {
	case count == 0:
		fact += ": no node has that now"
	case offered == 0:
		fact = fmt.Sprintf("%s: %s, and none of them offers %s", fact, view.CountOf(count, "node"), f.resource)
	default:
		fact = fmt.Sprintf("%s: %s with %d %s", fact, view.CountOf(count, "node"), offered, f.resource)
	}
	return []diagnosis.Evidence{diagnosis.Fact(f.ref(), fact, claims...)}
}

func carries(has, wants map[string]string) bool {
	for key, value := range wants {
		if has[key] != value {
			return false
		}
	}
	return true
}
