package causes

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// message is what the scheduler's sentence says (FitError.Error, the same shape
// from 1.30 to 1.37). It counts only where the nodes cannot be read: the sentence has
// numbers of nodes without names, and of each node the first failing filter alone.
type message struct {
	Nodes   int          // that the scheduler knows
	Reasons []nodeReason // as it gives them
	// Whole is what keeps the pod from every node alike (a PreFilter's message).
	Whole string
	// Used counts nodes where something could be freed and nothing that helps may
	// be (`No preemption victims found`); Never those that no eviction helps
	// (`Preemption is not helpful`): from 1.34 on also nodes that do not offer
	// what is asked at all.
	Used, Never int
}

// nodeReason is one filter's reason, and how many nodes it refuses for that.
type nodeReason struct {
	Count int
	Text  string
}

var (
	fitSentence   = regexp.MustCompile(`^0/(\d{1,7}) nodes are available:`)
	countedReason = regexp.MustCompile(`^(\d{1,7}) (.+)$`)
	nextCount     = regexp.MustCompile(`, \d{1,7} `)
)

const noNodesSentence = "no nodes available to schedule pods"

// parseMessage reads the scheduler's sentence; false when the text is none. Other
// schedulers write others.
func parseMessage(text string) (message, bool) {
	if strings.TrimSpace(text) == noNodesSentence {
		return message{}, true
	}
	text = strings.TrimSuffix(text, " ...") // an event's note is cut at 1024 bytes
	m := fitSentence.FindStringSubmatch(text)
	if m == nil {
		return message{}, false
	}
	out := message{Nodes: atoi(m[1])}
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
func preempted(tail string) []nodeReason {
	m := fitSentence.FindString(tail)
	if m == "" {
		return nil
	}
	return reasons(strings.TrimSuffix(strings.TrimSpace(tail[len(m):]), "."))
}

// reasons splits "3 a, 2 b": a comma that no count follows is part of a reason.
func reasons(body string) []nodeReason {
	var out []nodeReason
	for body != "" {
		part := body
		if at := nextCount.FindStringIndex(body); at != nil {
			part, body = body[:at[0]], body[at[0]+2:]
		} else {
			body = ""
		}
		if m := countedReason.FindStringSubmatch(strings.TrimSpace(part)); m != nil {
			out = append(out, nodeReason{atoi(m[1]), m[2]})
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

// toldBy maps the scheduler's words to the cause they most likely tell of, in the
// versions from 1.30 to 1.37 (pkg/scheduler/framework/plugins of each).
var toldBy = []struct {
	part string
	id   diagnosis.CauseID
}{
	{"untolerated taint {node.kubernetes.io/unschedulable", diagnosis.NodeCordoned},
	{"untolerated taint {node.kubernetes.io/", diagnosis.NodeNotReady},
	{"had untolerated taint", diagnosis.UntoleratedTaint},
	{"didn't match Pod's node affinity/selector", diagnosis.NodeSelectorMismatch},
	{"didn't satisfy plugin(s) [NodeAffinity", diagnosis.NodeSelectorMismatch},
	{"were unschedulable", diagnosis.NodeCordoned},
	{"volume node affinity conflict", diagnosis.VolumeConflict},
	{"PersistentVolume", diagnosis.VolumeConflict},
	{"persistentvolumeclaim", diagnosis.VolumeConflict},
	{"persistent volumes", diagnosis.VolumeConflict},
	{"no available volume zone", diagnosis.VolumeConflict},
	{"max volume count", diagnosis.VolumeConflict},
	{"topology spread constraints", diagnosis.TopologySpreadConflict},
	{"affinity rules", diagnosis.PodAffinityConflict},
	{"device class", diagnosis.DRAClassMissing},
	{"Too many pods", diagnosis.HostResourcesShort},
}

// causeOf says what a reason most likely means.
func (m message) causeOf(reason string) diagnosis.CauseID {
	if name, ok := strings.CutPrefix(reason, "Insufficient "); ok {
		return m.shortage(name)
	}
	for _, t := range toldBy {
		if strings.Contains(reason, t.part) {
			return t.id
		}
	}
	return diagnosis.Unknown
}

// shortage tells used up from never there, as far as the preemption tail does.
func (m message) shortage(name string) diagnosis.CauseID {
	mig := strings.HasPrefix(name, view.MIGPrefix)
	switch {
	case !view.IsGPU(corev1.ResourceName(name)):
		return diagnosis.HostResourcesShort
	case m.Used > 0 && m.Never > 0, m.Used+m.Never == 0:
		return diagnosis.Unknown // no telling which nodes are which
	case m.Used > 0 && mig:
		return diagnosis.MIGInstancesInUse
	case m.Used > 0:
		return diagnosis.GPUsInUse
	case mig:
		return diagnosis.MIGLayoutMismatch
	}
	return diagnosis.GPURequestTooLarge
}

// byMessage is what can be told without nodes: the scheduler's own words, which
// name the first reason of each node only.
func (c *Case) byMessage(byID tellings) {
	if c.Cluster.State.Unread["Node"] == "" {
		return
	}
	i := slices.IndexFunc(c.Refusal.Conditions, func(k corev1.PodCondition) bool {
		return k.Type == corev1.PodScheduled && k.Status == corev1.ConditionFalse
	})
	if i < 0 {
		return
	}
	m, ok := parseMessage(c.Refusal.Conditions[i].Message)
	if !ok {
		return
	}
	said := []diagnosis.Evidence{{Ref: c.podRef(), Fact: "PodScheduled: " + c.Refusal.Conditions[i].Message}}
	if m.Nodes == 0 && m.Whole == "" && len(m.Reasons) == 0 {
		byID.note(diagnosis.NoNodes, "", &finding{diagnosis.Possible, "by the scheduler's words: " + noNodesSentence, said})
		return
	}
	slices.SortStableFunc(m.Reasons, func(a, b nodeReason) int { return cmp.Compare(b.Count, a.Count) })
	if m.Whole != "" {
		m.Reasons = []nodeReason{{m.Nodes, m.Whole}}
	}
	for _, r := range m.Reasons {
		byID.note(m.causeOf(r.Text), "", &finding{diagnosis.Possible, fmt.Sprintf("%d of %d nodes, by the scheduler's words: %s", r.Count, m.Nodes, r.Text), said})
	}
}
