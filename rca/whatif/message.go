package whatif

import (
	"regexp"
	"strconv"
	"strings"
)

// Message is what the scheduler's sentence says (FitError.Error, the same shape
// from 1.30 to 1.37). It is asked only where the nodes cannot be read: it counts
// nodes and does not name them, and of each it tells the first failing filter alone.
type Message struct {
	Nodes   int          // that the scheduler knows
	Reasons []NodeReason // as it gives them
	// Whole is what keeps the pod from every node alike (a PreFilter's message).
	Whole string
	// Used counts nodes where something could be freed and nothing that helps may
	// be (`No preemption victims found`); Never those that no eviction helps
	// (`Preemption is not helpful`): from 1.34 on also nodes that do not offer
	// what is asked at all.
	Used, Never int
}

// NodeReason is one filter's reason and the number of nodes that it is told of.
type NodeReason struct {
	Count int
	Text  string
}

var (
	fitSentence   = regexp.MustCompile(`^0/(\d{1,7}) nodes are available:`)
	countedReason = regexp.MustCompile(`^(\d{1,7}) (.+)$`)
	nextCount     = regexp.MustCompile(`, \d{1,7} `)
)

// NoNodesSentence is what it says where there is no node at all.
const NoNodesSentence = "no nodes available to schedule pods"

// ParseMessage reads the scheduler's sentence; false when the text is none. Other
// schedulers write others.
func ParseMessage(text string) (Message, bool) {
	if strings.TrimSpace(text) == NoNodesSentence {
		return Message{}, true
	}
	text = strings.TrimSuffix(text, " ...") // an event's note is cut at 1024 bytes
	m := fitSentence.FindStringSubmatch(text)
	if m == nil {
		return Message{}, false
	}
	out := Message{Nodes: atoi(m[1])}
	body, tail, _ := strings.Cut(text[len(m[0]):], "preemption: ")
	body, _, _ = strings.Cut(strings.TrimSpace(body)+" ", ". ")
	body = strings.TrimSuffix(strings.TrimSpace(body), ".")
	if !countedReason.MatchString(body) {
		out.Whole = body
	} else {
		out.Reasons = reasons(body)
	}
	for _, r := range preempted(tail) {
		switch {
		case strings.HasPrefix(r.Text, "No preemption victims found"):
			out.Used += r.Count
		case strings.HasPrefix(r.Text, "Preemption is not helpful"):
			out.Never += r.Count
		}
	}
	return out, true
}

// preempted reads the sentence within the sentence.
func preempted(tail string) []NodeReason {
	m := fitSentence.FindString(tail)
	if m == "" {
		return nil
	}
	return reasons(strings.TrimSuffix(strings.TrimSpace(tail[len(m):]), "."))
}

// reasons splits "3 a, 2 b": a comma that no count follows is part of a reason.
func reasons(body string) []NodeReason {
	var out []NodeReason
	for body != "" {
		part := body
		if at := nextCount.FindStringIndex(body); at != nil {
			part, body = body[:at[0]], body[at[0]+2:]
		} else {
			body = ""
		}
		if m := countedReason.FindStringSubmatch(strings.TrimSpace(part)); m != nil {
			out = append(out, NodeReason{atoi(m[1]), m[2]})
		}
	}
	return out
}

// atoi reads digits that an expression has matched.
func atoi(digits string) int {
	n, err := strconv.Atoi(digits)
	if err != nil {
		return 0
	}
	return n
}
