package rca

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/cluster"
)

// PlanHash names a plan: sha256 over the canonical JSON of its actions, which
// hold the uid of every object to be written and the fields relied on. There is
// no resourceVersion in it: the kubelet posts status every few minutes and would
// make every plan stale. Canonical is JSON with sorted keys, also in patches: an API
// server that stored the actions gives them back so.
func PlanHash(actions []Action) string {
	var plain any
	numbers := json.NewDecoder(bytes.NewReader(canonical(actions)))
	numbers.UseNumber()
	if err := numbers.Decode(&plain); err != nil {
		panic(err) // it was encoded a line ago
	}
	sum := sha256.Sum256(canonical(plain)) // encoding/json sorts map keys
	return hex.EncodeToString(sum[:])
}

// canonical writes values built from strings, numbers and API types, which always marshal.
func canonical(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// NodeFacts are the facts about a node that a plan for it rests on, in the words
// of Action.Relies, to be held against it before a write. The state has to hold
// the node, the pods bound to it and its report; nil when the node is not there.
func NodeFacts(st *cluster.State, name string) map[string]string {
	for _, n := range st.Nodes {
		if n.Name == name {
			v := &nodeView{Node: n}
			v.readGeometry(st, name)
			return v.relies()
		}
	}
	return nil
}

// UnknownHolder stands, in the facts about a node, for a holder that could not be
// told.
const UnknownHolder = "?"

// HolderPrefix begins the keys, in the facts about a node, of who holds something
// of a GPU; the start of the instance follows. Where nobody does there is none.
func HolderPrefix(gpu int) string { return fmt.Sprintf("gpu%d@", gpu) }

// relies are the facts about a node that a plan for it rests on: its cordon, its
// taints (that of the cordon left out), what MIG manager was asked and says, what
// it advertises, and for each GPU the layout and the holders.
func (n *nodeView) relies() map[string]string {
	var taints []string
	for _, t := range n.Spec.Taints {
		if t.Key != corev1.TaintNodeUnschedulable {
			taints = append(taints, t.ToString())
		}
	}
	slices.Sort(taints)
	out := map[string]string{
		"unschedulable": fmt.Sprint(n.Spec.Unschedulable),
		"taints":        strings.Join(taints, " "),
		"mig":           n.Labels[labelMIGConfig] + " " + n.Labels[labelMIGState] + " " + n.Labels[labelMIGStrategy],
		"allocatable":   n.advertised(),
	}
	n.reliesOnWhole(out)
	for _, g := range n.gpus {
		out[fmt.Sprintf("gpu%d", g.Index)] = layoutText(g)
		for _, s := range g.Slots {
			switch {
			case s.Unknown:
				out[HolderPrefix(g.Index)+fmt.Sprint(s.Start)] = UnknownHolder
			case s.Held:
				out[HolderPrefix(g.Index)+fmt.Sprint(s.Start)] = s.Holder.Namespace + "/" + s.Holder.Pod
			}
		}
	}
	return out
}

// reliesOnWhole adds the GPUs that are not partitioned.
func (n *nodeView) reliesOnWhole(out map[string]string) {
	if n.geometry == nil {
		return
	}
	for _, g := range n.geometry.Report.GPUs {
		if g.MIG != nil && g.MIG.Current {
			continue
		}
		out[fmt.Sprintf("gpu%d", g.Index)] = "whole"
		for i, h := range g.Holders {
			out[HolderPrefix(g.Index)+fmt.Sprint(i)] = h.Namespace + "/" + h.Pod
			if h.Unknown || !n.holdersKnown {
				out[HolderPrefix(g.Index)+fmt.Sprint(i)] = UnknownHolder
			}
		}
	}
}
