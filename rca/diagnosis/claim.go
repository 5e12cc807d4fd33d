package diagnosis

import "strings"

// Claim is one thing that a sentence says of one object, so that somebody who has nothing
// but the object's YAML can hold the sentence against it.
type Claim struct {
	Ref string `json:"ref"` // "Node/gpu-1"; with "*" for a name every object of the kind
	// Path is where it stands. Keys, indices and the fields that choose from a list are in
	// brackets, as they stand: status.allocatable[nvidia.com/gpu], spec.taints[key=team,effect=NoSchedule].
	// What several objects make together has a name: requests[cpu] is what a pod asks, or the
	// pods of a node that have not ended; free[cpu] is what a node has left; pods are those of
	// a node or an owner; nodes those of a queue's flavor, in brackets by their labels; members
	// those of a PodGroup that have not ended, in brackets by their phase; words is all that events
	// and conditions say of the object.
	// count(…) and sum(…) are of a list; keys(…) are those of a map. Empty: the object itself.
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
	Words       = "words"
)

// maxClaimWords is how much of a text is claimed, in characters: what a sentence quotes.
const maxClaimWords = 400

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
