package diagnosis

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Claim is one thing that a sentence says of one object, so that somebody who has nothing
// but the object's YAML can hold the sentence against it.
type Claim struct {
	Ref string `json:"ref"` // "Node/gpu-1"; with "*" for a name every object of the kind
	// Path is where it stands. Keys, indices and the fields that choose from a list are in
	// brackets, as they stand: status.allocatable[nvidia.com/gpu], spec.taints[key=team,effect=NoSchedule].
	// It goes on in a text that is YAML: data[status].nodeGroups[name=a].health.maxSize.
	// What several objects make together has a name: requests[cpu] is what a pod asks, or the
	// pods of a node that have not ended, requests[nvidia.com/mig-*] of all that begins so; free[cpu]
	// is what a node has left. selects[gpu-1] is whether a pod's selector and required affinity take
	// a node; meant[gpu-1] of how many pods they do that wait as it does, have its requests and its controller.
	// missing[zone,0:pool] is on how many nodes just its selector's zone, and of its required affinity's first term
	// pool, are not met; of terms that is the one that comes nearest, "|" parts alternatives. room is how many like the pod have room, by their requests, on the nodes that it may use.
	// short[cpu] is how many nodes have too little left of that for one more, once those are there.
	// skew[zone,gpu-1] is by how much the pod on a node would make its part of a topology fuller than the
	// least full one, by its constraint on that. judged[x] is what scheduler x made of a pod, its node and condition; by is who an event is from.
	// uses[limits.cpu] is what a pod counts against a quota, counted[limits.cpu] what all pods of a
	// quota's namespace that have not ended do. slices[0] are the memory slices of a report's GPU, by
	// its profiles, unheld[0] those that nobody holds; without an index of each GPU with MIG on.
	// asked[gpus] is how many devices a request of a claim, or a claim's template, asks, 0 for all.
	// words is all that events and conditions say of the object.
	// A path goes on in other objects: pods are those of a node or an owner, in brackets by their labels
	// those of an owner that have not ended; nodes those of a
	// queue's flavor, in brackets by their labels, or those that a pod's selector, affinity and
	// tolerations let it use; members those of a PodGroup that have not ended, in brackets by phase;
	// refused those that a node's kubelet refused, refused[*] those of all.
	// count(…), sum(…) and max(…) are of a list; keys(…) are those of a map; " - " is between amounts.
	// Empty: the object itself.
	Path  string `json:"path"`
	Op    Op     `json:"op"`
	Value string `json:"value,omitempty"`
}

// Op is how a Claim compares what stands at its path with its value.
type Op string

// The operations. Amounts are equal as quantities, and one that is not there is 0. Contains
// looks at every text at or below the path, whatever its white space.
const (
	Is           Op = "="
	IsNot        Op = "!="
	AtLeast      Op = "at least" // as amounts
	Exists       Op = "exists"
	Absent       Op = "absent"
	Contains     Op = "contains"
	ContainsNot  Op = "contains not"
	NoneBegins   Op = "none begins"
	ToleratesNot Op = "tolerates not" // the value is a taint as people write it
)

// Paths that many sentences are about.
const (
	Labels      = "metadata.labels"
	Taints      = "spec.taints"
	Allocatable = "status.allocatable"
	Capacity    = "status.capacity"
	Requests    = "requests"
	Free        = "free"
	Selects     = "selects"
	Meant       = "meant"
	Missing     = "missing"
	Words       = "words"
)

// maxClaimWords is how much of a text is claimed, in characters: what a sentence quotes.
const maxClaimWords = 600

// That is a claim about what stands at a path, below a key where one is given; what it is
// about is the object of its Fact.
func That(path, key string, op Op, value string) Claim {
	if key != "" {
		path += "[" + key + "]"
	}
	return Claim{Path: path, Op: op, Value: value}
}

// Of is the claim about another object than the sentence's.
func (c Claim) Of(ref string) Claim {
	c.Ref = ref
	return c
}

// Says claims that events or conditions of the object have these words, the first of them
// where they are many.
func Says(text string) Claim {
	text = strings.Join(strings.Fields(text), " ")
	if r := []rune(text); len(r) > maxClaimWords {
		text = string(r[:maxClaimWords])
	}
	return Claim{Path: Words, Op: Contains, Value: text}
}

// Fact is a sentence about an object with what it is made from. The claims that name no
// object are about that one; they become the evidence's own.
func Fact(ref, fact string, claims ...Claim) Evidence {
	for i := range claims {
		if claims[i].Ref == "" {
			claims[i].Ref = ref
		}
	}
	return Evidence{Ref: ref, Fact: fact, Claims: claims}
}

// Same says that two pieces of evidence are one sentence about one object, or quote the same
// words of it, at another length.
func (e Evidence) Same(o Evidence) bool {
	return e.Ref == o.Ref && (e.Fact == o.Fact || e.words() != "" && e.words() == o.words())
}

// words are those that the evidence quotes; empty where it quotes none.
func (e Evidence) words() string {
	for _, c := range e.Claims {
		if c.Path == Words && c.Op == Contains {
			return c.Value
		}
	}
	return ""
}

// NoneOf is that a node offers none of a resource: it has the key at zero, for it was announced once, or does not have it at all.
func NoneOf(node *corev1.Node, resource corev1.ResourceName) Evidence {
	ref, name := "Node/"+node.Name, string(resource)
	if _, has := node.Status.Allocatable[resource]; !has {
		return Fact(ref, "no allocatable "+name, That(Allocatable, name, Absent, ""))
	}
	return Fact(ref, "allocatable "+name+"=0", That(Allocatable, name, Is, "0"))
}
