package rca

import (
	"slices"
)

// volumeConflict is what the plugins that judge volumes refuse.
var volumeConflict = Rule{ID: VolumeConflict, Tell: func(c *Case, n *nodeView, b *blocker) *finding {
	if !slices.Contains([]string{"VolumeBinding", "VolumeZone", "VolumeRestrictions", "NodeVolumeLimits"}, b.Plugin) {
		return nil
	}
	evidence := []Evidence{{n.ref(), b.Reason}}
	for _, v := range c.Pod.Spec.Volumes {
		if v.PersistentVolumeClaim == nil {
			continue
		}
		claim := v.PersistentVolumeClaim.ClaimName
		fact := "does not exist"
		for _, p := range c.world.state.PVCs {
			if p.Namespace == c.Pod.Namespace && p.Name == claim {
				fact = "is " + string(p.Status.Phase) + ", volume " + p.Spec.VolumeName
			}
		}
		evidence = append(evidence, Evidence{"PersistentVolumeClaim/" + c.Pod.Namespace + "/" + claim, fact})
	}
	return &finding{Proven, "its volume cannot be had there", evidence}
}}
