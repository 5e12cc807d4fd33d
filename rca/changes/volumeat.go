package changes

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
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
