package mend

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/view"
)

// Unnamed stands for the name of an entry that a person has to choose.
const Unnamed = "NAME"

// LabelWith is the command that has MIG manager apply an entry; where none is told it is the one that the GPUs have, as far
// as what the node offers shows that, else a person's choice of those that there are.
func LabelWith(c *edit.Workload, n *view.Node, entry string) string {
	why := ""
	if entry == Unnamed {
		if off := offEntry(c, n); off != "" {
			entry, why = off, "  # by what the node offers its GPUs have MIG off, as this entry has them"
		} else {
			why = "  # NAME: the last layout that worked"
			others := slices.DeleteFunc(slices.Sorted(maps.Keys(c.Cluster.ConfigOf(n).Entries)), func(e string) bool { return e == n.Labels[view.LabelMIGConfig] })
			if c.Cluster.ConfigOf(n).Source != nil && len(others) > 0 {
				why += ", one of " + named(others)
			}
		}
	}
	return fmt.Sprintf("kubectl label node %s %s=%s --overwrite%s", n.Name, view.LabelMIGConfig, entry, why)
}

// offEntry is the entry that has MIG off on all GPUs, where the node's are whole by what it offers; empty where they are not.
func offEntry(c *edit.Workload, n *view.Node) string {
	total, err := strconv.ParseInt(n.Labels[view.LabelGPUCount], 10, 64)
	if err != nil || n.Geometry != nil || n.Manager().Strategy != "mixed" || total == 0 || n.Capacity(view.WholeGPU) != total {
		return ""
	}
	entries := c.Cluster.ConfigOf(n).Entries
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		rules := entries[name]
		if name != n.Labels[view.LabelMIGConfig] && len(rules) == 1 && !rules[0].MIGEnabled && string(rules[0].Devices) == `"all"` && len(rules[0].DeviceFilter) == 0 {
			return name
		}
	}
	return ""
}
