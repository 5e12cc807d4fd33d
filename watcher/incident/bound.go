package incident

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// MaxMessage is what an incident that travels stays below, in bytes, whatever a tenant
// writes into a pod: a sixteenth of the megabyte that NATS takes by default.
const MaxMessage = 64 << 10

// What is kept of an incident, in elements and in bytes of JSON: API objects that are
// valid have names of at most 253 characters and resources of at most 317, as kinds with their groups; reasons
// and the names in ownerReferences are bounded by nobody.
const (
	maxRequests = 64
	maxName     = 320
	maxWord     = 128
)

// bounded is the incident as it travels: what is too long for a message is cut. The id is
// that of the whole, which is what a diagnosis in the same process reads.
func (i Incident) bounded() Incident {
	i.Workload = Ref{cut(i.Workload.Kind, maxName), cut(i.Workload.Namespace, maxName), cut(i.Workload.Name, maxName)}
	i.Newest = cut(i.Newest, maxWord)
	pods := make([]PodRef, len(i.Pods)) // at most MaxPods
	for n, p := range i.Pods {
		pods[n] = PodRef{cut(p.Name, maxName), cut(p.UID, maxWord), cut(p.Reason, maxWord)}
	}
	i.Pods = pods
	names := slices.SortedFunc(maps.Keys(i.Requests), func(a, b string) int { return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b)) })
	kept := map[string]string{}
	for _, name := range names[:min(len(names), maxRequests)] {
		kept[cut(name, maxName)] = cut(i.Requests[name], maxWord)
	}
	i.More += len(i.Requests) - len(kept)
	i.Requests = kept
	return i
}

// rank has what is read first come first: GPUs, then what every node has.
func rank(resource string) int {
	switch {
	case strings.HasPrefix(resource, "nvidia.com/"):
		return 0
	case !strings.Contains(resource, "/"):
		return 1
	}
	return 2
}

// cut is the beginning of a text that takes at most n bytes as JSON, quotes included.
func cut(s string, n int) string {
	fits := func(s string) bool {
		text, err := json.Marshal(s)
		return err == nil && len(text) <= n
	}
	if len(s) <= n && fits(s) {
		return s
	}
	const more = "…"
	runes := []rune(s[:min(len(s), n)])
	for len(runes) > 0 && !fits(string(runes)+more) {
		runes = runes[:len(runes)-1]
	}
	return string(runes) + more
}
