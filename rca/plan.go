package rca

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// planHash names a plan: sha256 over the canonical JSON of its actions, which
// hold the uid of every object to be written and the fields relied on. There is
// no resourceVersion in it: the kubelet posts status every few minutes and would
// make every plan stale.
func planHash(actions []Action) string {
	sum := sha256.Sum256(mustJSON(actions)) // encoding/json sorts map keys
	return hex.EncodeToString(sum[:])
}

// relies are the facts about a node that a plan for it rests on.
func (n *nodeView) relies() map[string]string {
	taints := make([]string, len(n.Spec.Taints))
	for i, t := range n.Spec.Taints {
		taints[i] = t.ToString()
	}
	slices.Sort(taints)
	out := map[string]string{
		"unschedulable": fmt.Sprint(n.Spec.Unschedulable),
		"taints":        strings.Join(taints, " "),
		"mig":           n.Labels[labelMIGConfig] + " " + n.Labels[labelMIGState] + " " + n.Labels[labelMIGStrategy],
		"allocatable":   n.advertised(),
	}
	for _, g := range n.gpus {
		var text strings.Builder
		text.WriteString(layoutText(g))
		for _, s := range g.Slots {
			if s.Held {
				fmt.Fprintf(&text, " %d:%s/%s", s.Start, s.Holder.Namespace, s.Holder.Pod)
			}
		}
		out[fmt.Sprintf("gpu%d", g.Index)] = text.String()
	}
	return out
}
