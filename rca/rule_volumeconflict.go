package rca

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// volumeConflict is what the plugins that judge volumes refuse.
var volumeConflict = Rule{ID: VolumeConflict, Tell: func(c *Case, n *nodeView, b *blocker) *finding {
	if !slices.Contains([]string{"VolumeBinding", "VolumeZone", "VolumeRestrictions", "NodeVolumeLimits"}, b.Plugin) {
		return nil
	}
	evidence, bound := []Evidence{{n.ref(), b.Reason}}, false
	for _, v := range c.Pod.Spec.Volumes {
		if v.PersistentVolumeClaim == nil {
			continue
		}
		claim := v.PersistentVolumeClaim.ClaimName
		fact := "does not exist"
		for _, p := range c.world.state.PVCs {
			if p.Namespace == c.Pod.Namespace && p.Name == claim {
				fact = "is " + string(p.Status.Phase)
				if p.Spec.VolumeName != "" {
					bound = true
					fact += ", volume " + p.Spec.VolumeName
				}
			}
		}
		if c.world.state.Unread["PersistentVolumeClaim"] == "" {
			evidence = append(evidence, Evidence{"PersistentVolumeClaim/" + c.Pod.Namespace + "/" + claim, fact})
		}
		evidence = append(evidence, c.usersOf(claim)...)
	}
	certainty := Proven
	if unread := c.world.state.Unread; unread["PersistentVolumeClaim"] != "" || bound && unread["PersistentVolume"] != "" {
		certainty = Possible // what was not read looks to the scheduler's code as if it were not there
	}
	return &finding{certainty, "its volume cannot be had there: " + b.Reason, evidence}
}}

// usersOf are the other pods that use a claim of the pod.
func (c *Case) usersOf(claim string) []Evidence {
	var out []Evidence
	for _, p := range c.world.state.Pods {
		if p.Namespace != c.Pod.Namespace || p.Name == c.Pod.Name || p.Spec.NodeName == "" || len(out) == maxHolderFacts {
			continue
		}
		if slices.ContainsFunc(p.Spec.Volumes, func(v corev1.Volume) bool {
			return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == claim
		}) {
			out = append(out, Evidence{"Pod/" + p.Namespace + "/" + p.Name, "uses PersistentVolumeClaim " + claim + " on " + p.Spec.NodeName})
		}
	}
	return out
}
