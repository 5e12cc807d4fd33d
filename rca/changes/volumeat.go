package changes

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/component-helpers/storage/volume"
)

// volumeAt is where a volume can be had, as its own node affinity says: one zone, or one node; empty where it is neither, or
// was not read.
func volumeAt(volumes []*corev1.PersistentVolume, name string) string {
	for _, v := range volumes {
		if v.Name != name || v.Spec.NodeAffinity == nil || v.Spec.NodeAffinity.Required == nil || len(v.Spec.NodeAffinity.Required.NodeSelectorTerms) != 1 {
			continue
		}
		for _, e := range v.Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions {
			switch {
			case e.Operator != corev1.NodeSelectorOpIn || len(e.Values) != 1:
			case strings.HasSuffix(e.Key, "/zone"):
				return " (zone " + e.Values[0] + ")"
			case e.Key == corev1.LabelHostname:
				return " (node " + e.Values[0] + ")"
			}
		}
	}
	return ""
}

// barredThere says whether the pod's own rules keep it off every node where a volume is: one more of them would not take it.
// Every node asks.
func barredThere(c *Bench, name string) bool {
	barred, known := c.barred[name]
	if !known {
		barred = offAll(c, name)
		c.barred[name] = barred
	}
	return barred
}

func offAll(c *Bench, name string) bool {
	own, there := nodeaffinity.GetRequiredNodeAffinity(c.Pod), false
	for _, v := range c.Cluster.State.PVs {
		if v.Name != name || v.Spec.NodeAffinity == nil {
			continue
		}
		for _, n := range c.Cluster.SortedNodes() {
			if volume.CheckNodeAffinity(v, n.Labels) != nil {
				continue
			}
			if takes, err := own.Match(n.Node); takes || err != nil {
				return false
			}
			there = true
		}
	}
	return there
}
