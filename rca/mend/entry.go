package mend

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/view"
)

// mostEntries bounds how many entries of a config are named.
const mostEntries = 6

// MendEntry is for a node whose label names an entry that its config does not have, or that its
// GPUs cannot take, where no entry that is there makes what is asked: a person writes one.
func MendEntry(c *edit.Workload, n *view.Node, cause diagnosis.CauseID) []edit.Change {
	config := c.Cluster.ConfigOf(n)
	if config.Source == nil {
		return nil
	}
	name, source := n.Labels[view.LabelMIGConfig], config.Source.Namespace+"/"+config.Source.Name
	ch := edit.Change{Kind: diagnosis.FixMIGConfig, Cause: cause, Manual: true, Minutes: 6, Risk: diagnosis.MediumRisk, Drained: n.GPUHolders(),
		Title:      fmt.Sprintf("write entry %q into ConfigMap %s, or label %s with one that is there (%s)", name, source, n.Name, named(slices.Sorted(maps.Keys(config.Entries)))),
		Untestable: "what the entry is to make is in no object",
		Commands:   []string{fmt.Sprintf("kubectl -n %s get configmap %s -o yaml  # its entries; where the operator owns it, it writes it again: have a ConfigMap of your own then, which ClusterPolicy names in spec.migManager.config", config.Source.Namespace, config.Source.Name)}}
	if cause == diagnosis.MIGConfigInvalidForGPU {
		ch.Title = fmt.Sprintf("have entry %q of ConfigMap %s ask no more of a GPU of %s than it has places for, or label the node with another (%s)", name, source, n.Name, named(slices.DeleteFunc(slices.Sorted(maps.Keys(config.Entries)), func(e string) bool { return e == name })))
	}
	for _, p := range ch.Drained {
		ch.Commands = append(ch.Commands, edit.EvictCommand(p))
		if !view.ComesBack(p) {
			ch.Risk = diagnosis.HighRisk
		}
	}
	ch.Commands = append(ch.Commands, fmt.Sprintf("kubectl label node %s %s=NAME --overwrite  # MIG manager acts on a change of the label", n.Name, view.LabelMIGConfig),
		fmt.Sprintf("kubectl get node %s -L %s,%s -w", n.Name, view.LabelMIGConfig, view.LabelMIGState))
	return []edit.Change{ch}
}

func named(entries []string) string {
	if len(entries) == 0 {
		return "it has none"
	}
	more := ""
	if len(entries) > mostEntries {
		more = ", …"
	}
	return strings.Join(entries[:min(len(entries), mostEntries)], ", ") + more
}
