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

// Entry is for a node whose label names an entry that its config does not have, or that its
// GPUs cannot take, where no entry that is there makes what is asked: a person writes one.
func Entry(c *edit.Workload, n *view.Node, cause diagnosis.CauseID) []edit.Change {
	config := c.Cluster.ConfigOf(n)
	if config.Source == nil {
		return nil
	}
	name, source := n.Labels[view.LabelMIGConfig], config.Source.Namespace+"/"+config.Source.Name
	ch := edit.Change{Kind: diagnosis.FixMIGConfig, Cause: cause, Manual: true, Minutes: 6, Risk: diagnosis.MediumRisk, Drained: n.GPUHolders(),
		Title:      fmt.Sprintf("write entry %q into ConfigMap %s", name, source),
		Untestable: "what the entry is to make is in no object",
		Steps:      []string{"write the entry, into a ConfigMap of your own where the operator owns this one and writes it again: ClusterPolicy names it in spec.migManager.config", "have who holds GPUs of " + n.Name + " leave", "label the node"},
		Commands:   []string{fmt.Sprintf("kubectl -n %s edit configmap %s  # entry %s", config.Source.Namespace, config.Source.Name, name)}}
	if cause == diagnosis.MIGConfigInvalidForGPU {
		ch.Title = fmt.Sprintf("have entry %q of ConfigMap %s ask no more of a GPU of %s than it has places for", name, source, n.Name)
	}
	others := slices.DeleteFunc(slices.Sorted(maps.Keys(config.Entries)), func(e string) bool { return e == name })
	if len(others) > 0 {
		ch.Title += fmt.Sprintf(", or label %s with one that is there (%s)", n.Name, named(others))
	}
	for _, p := range ch.Drained {
		ch.Commands = append(ch.Commands, edit.EvictCommand(p))
	}
	if len(c.Cluster.State.LostBy(ch.Drained).Pods) > 0 {
		ch.Risk = diagnosis.HighRisk
	}
	ch.Commands = append(ch.Commands, fmt.Sprintf("kubectl label node %s %s=NAME --overwrite  # MIG manager acts on a change of the label", n.Name, view.LabelMIGConfig),
		fmt.Sprintf("kubectl get node %s -L %s,%s -w", n.Name, view.LabelMIGConfig, view.LabelMIGState))
	return []edit.Change{ch}
}

func named(entries []string) string {
	if len(entries) <= mostEntries {
		return strings.Join(entries, ", ")
	}
	return strings.Join(entries[:mostEntries], ", ") + ", …"
}
