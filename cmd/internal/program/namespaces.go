package program

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/unpend/unpend/cmd/internal/program/console"
	"github.com/unpend/unpend/rca/cluster"
)

// namespacesOf are the namespaces that a state tells of, by name: those that were read, and
// those of pods, of Jobs and of what queues hold: who waits there may have no pod.
func namespacesOf(st *cluster.State) []string {
	names := map[string]bool{}
	for _, n := range st.Namespaces {
		names[n.Name] = true
	}
	for _, p := range st.Pods {
		names[p.Namespace] = true
	}
	for _, j := range st.Jobs {
		names[j.Namespace] = true
	}
	for _, o := range st.Held {
		names[o.GetNamespace()] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// exists says whether a namespace is there; of a live cluster whose namespaces may not be
// listed that is not known. An empty name is all of them.
func exists(st *cluster.State, namespace string) (there, known bool) {
	if namespace == "" || slices.Contains(namespacesOf(st), namespace) {
		return true, true
	}
	return false, !st.Live || st.Unread["Namespace"] == ""
}

func noNamespace(st *cluster.State, namespace string) error {
	if !st.Live {
		return fmt.Errorf("the dump holds nothing of namespace %s: it has %s", namespace, some(namespacesOf(st)))
	}
	return fmt.Errorf("namespace %s does not exist: there are %s", namespace, some(namespacesOf(st)))
}

// maxNames is how many names a sentence lists.
const maxNames = 12

// some are the first of some names, and how many there are more.
func some(names []string) string {
	switch more := len(names) - maxNames; {
	case len(names) == 0:
		return "none"
	case more > 0:
		return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNames], ", "), more)
	}
	return strings.Join(names, ", ")
}

// looked says where was looked for what waits.
func (t target) looked(st *cluster.State) string {
	if t.namespace != "" {
		return "namespace " + t.namespace
	}
	names := namespacesOf(st)
	return console.Plural(len(names), "namespace", "namespaces") + " (" + some(names) + ")"
}
