package causes

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/devices"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// volumeConflict is what the plugins that judge volumes refuse.
var volumeConflict = Rule{ID: diagnosis.VolumeConflict, Tell: func(c *Case, n *view.Node, b *blocker) *finding {
	if !slices.Contains([]string{"VolumeBinding", "VolumeZone", "VolumeRestrictions", "NodeVolumeLimits"}, b.Plugin) {
		return nil
	}
	if c.volumes == nil {
		c.volumes = c.readVolumes()
	}
	return &finding{c.volumes.certainty, "its volume cannot be had there: " + b.Reason, append([]diagnosis.Evidence{diagnosis.Fact(n.Ref(), b.Reason, c.volumeClaims(n)...)}, c.volumes.evidence...)}
}}

// volumeFacts are the same for every node.
type volumeFacts struct {
	certainty diagnosis.Certainty
	evidence  []diagnosis.Evidence
}

// readVolumes tells how the claims of the pod stand, and who else uses them. What was not
// read looks to the scheduler's code as if it were not there.
func (c *Case) readVolumes() *volumeFacts {
	f, unread := &volumeFacts{certainty: diagnosis.Proven}, c.Cluster.State.Unread
	for _, v := range c.Pod.Spec.Volumes {
		if v.PersistentVolumeClaim == nil {
			continue
		}
		claim := v.PersistentVolumeClaim.ClaimName
		if unread["PersistentVolumeClaim"] != "" {
			f.certainty = diagnosis.Possible
			continue
		}
		fact, claims := "does not exist", []diagnosis.Claim{diagnosis.That("", "", diagnosis.Absent, "")}
		for _, p := range c.Cluster.State.PVCs {
			if p.Namespace != c.Pod.Namespace || p.Name != claim {
				continue
			}
			fact, claims = "is "+string(p.Status.Phase), []diagnosis.Claim{diagnosis.That("status.phase", "", diagnosis.Is, string(p.Status.Phase))}
			if p.Spec.VolumeName != "" {
				fact += ", volume " + p.Spec.VolumeName
				claims = append(claims, diagnosis.That("spec.volumeName", "", diagnosis.Is, p.Spec.VolumeName))
			}
			if p.Spec.VolumeName != "" && unread["PersistentVolume"] != "" {
				f.certainty = diagnosis.Possible
			}
		}
		f.evidence = append(f.evidence, diagnosis.Fact("PersistentVolumeClaim/"+c.Pod.Namespace+"/"+claim, fact, claims...))
		f.evidence = append(f.evidence, c.usersOf(claim)...)
	}
	return f
}

// usersOf are the other pods that use a claim of the pod, so many that they can be shown.
func (c *Case) usersOf(claim string) []diagnosis.Evidence {
	var out []diagnosis.Evidence
	for _, p := range c.Cluster.State.Pods {
		if p.Namespace != c.Pod.Namespace || p.Name == c.Pod.Name || p.Spec.NodeName == "" || len(out) == devices.MaxHolderFacts {
			continue
		}
		if slices.ContainsFunc(p.Spec.Volumes, func(v corev1.Volume) bool {
			return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == claim
		}) {
			out = append(out, diagnosis.Fact(view.PodRef(p), "uses PersistentVolumeClaim "+claim+" on "+p.Spec.NodeName, diagnosis.That("spec.nodeName", "", diagnosis.Is, p.Spec.NodeName), diagnosis.That("spec.volumes", "", diagnosis.Contains, claim)))
		}
	}
	return out
}
