package terms

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// Volumes is what the volumes of the pod ask of the place.
type Volumes struct {
	view.Subject
	// facts are those that are the same for every node, once asked for.
	facts *volumeFacts
}

// VolumesOf takes the pod.
func VolumesOf(s view.Subject) *Volumes { return &Volumes{Subject: s} }

// Tell is what the plugins that judge volumes refuse of a node, in their words.
func (c *Volumes) Tell(n *view.Node, reason string) *view.Finding {
	if c.facts == nil {
		c.facts = c.readVolumes()
	}
	says := "its volume cannot be had there: " + reason
	if strings.Contains(reason, "max volume count") {
		if full := c.FullOf(n); full != nil {
			return view.Found(c.facts.certainty, full.Says(), append([]diagnosis.Evidence{full.evidence(n)}, c.facts.evidence...)...)
		}
	}
	if c.facts.says != "" {
		says = c.facts.says
	}
	return view.Found(c.facts.certainty, says, append([]diagnosis.Evidence{diagnosis.Fact(n.Ref(), reason, c.volumeClaims(n)...)}, c.facts.evidence...)...)
}

// volumeFacts are the same for every node.
type volumeFacts struct {
	certainty diagnosis.Certainty
	evidence  []diagnosis.Evidence
	says      string // instead of what the plugins say; empty: they say it
}

// readVolumes tells how the claims of the pod stand, and who else uses them. What was not
// read looks to the scheduler's code as if it were not there.
func (c *Volumes) readVolumes() *volumeFacts {
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
				if misclassed(c.Cluster, p) != "" {
					fact += ", StorageClass " + ClassOf(p)
					claims = append(claims, diagnosis.That("spec.storageClassName", "", diagnosis.Is, ClassOf(p)))
				}
			}
			if p.Spec.VolumeName != "" && unread["PersistentVolume"] != "" {
				f.certainty = diagnosis.Possible
			}
			if p.Status.Phase != corev1.ClaimBound {
				f.unbound(c.Cluster, p)
			}
		}
		f.evidence = append(f.evidence, diagnosis.Fact("PersistentVolumeClaim/"+c.Pod.Namespace+"/"+claim, fact, claims...))
		if Missing(c.Cluster, c.Pod) == claim {
			f.missing(c, claim)
		}
		f.evidence = append(f.evidence, c.usersOf(claim)...)
	}
	if says, evidence := c.apartSays(); says != "" {
		f.says, f.evidence = says, append(evidence, f.evidence...)
	}
	return f
}

// Unbound is the first claim of the pod of which nobody makes the volume, or one said why not; empty: none.
func (c *Volumes) Unbound() string {
	for _, v := range c.Pod.Spec.Volumes {
		if v.PersistentVolumeClaim == nil {
			continue
		}
		for _, p := range c.Cluster.State.PVCs {
			if p.Namespace != c.Pod.Namespace || p.Name != v.PersistentVolumeClaim.ClaimName || p.Spec.VolumeName != "" {
				continue
			}
			if _, words := toldOf(c.Cluster, p); words != "" || byHand(c.Cluster, p) {
				return p.Name
			}
		}
	}
	return ""
}

// missing tells which claim may be meant.
func (f *volumeFacts) missing(c *Volumes, claim string) {
	if p := Resembling(c.Cluster, c.Pod, claim); p != nil && f.says == "" {
		says, evidence := meantSays(p, c.Pod, claim)
		f.says, f.evidence = says, append(f.evidence, evidence)
	}
}

// unbound tells why a claim has no volume, where anything says that.
func (f *volumeFacts) unbound(w *view.Cluster, p *corev1.PersistentVolumeClaim) {
	why := Unbound(w, p)
	if ByPeople(w, p) && why != "" {
		f.evidence = append(f.evidence, diagnosis.Fact("StorageClass/"+ClassOf(p), "makes no volumes: its provisioner is "+noProvisioner, diagnosis.That("provisioner", "", diagnosis.Is, noProvisioner)))
	}
	if s := SpareFor(w, p); s != nil {
		why, f.evidence = s.Says(), append(f.evidence, s.evidence())
	}
	if class, _ := Unshared(w, p); class != nil {
		why, f.evidence = unsharedSays(class), append(f.evidence, unsharedEvidence(class, p))
	}
	told, words := toldOf(w, p)
	if words != "" {
		f.evidence = append(f.evidence, told)
	}
	if why = cmp.Or(why, words); why != "" && f.says == "" {
		f.says = "PersistentVolumeClaim " + p.Name + " has no volume: " + why
	}
}

// usersOf are the other pods that use a claim of the pod, so many that they can be shown.
func (c *Volumes) usersOf(claim string) []diagnosis.Evidence {
	var out []diagnosis.Evidence
	for _, p := range c.Cluster.State.Pods {
		if p.Namespace != c.Pod.Namespace || p.Name == c.Pod.Name || p.Spec.NodeName == "" || len(out) == mostNamed {
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

// volumeClaims claim what the volumes of the pod say of nodes, and what this one has of that.
func (c *Volumes) volumeClaims(n *view.Node) []diagnosis.Claim {
	var out []diagnosis.Claim
	for _, v := range c.Pod.Spec.Volumes {
		if v.PersistentVolumeClaim == nil || c.Cluster.State.Unread["PersistentVolumeClaim"] != "" {
			continue
		}
		name := v.PersistentVolumeClaim.ClaimName
		at := slices.IndexFunc(c.Cluster.State.PVCs, func(p *corev1.PersistentVolumeClaim) bool {
			return p.Namespace == c.Pod.Namespace && p.Name == name
		})
		if at < 0 {
			out = append(out, diagnosis.That("", "", diagnosis.Absent, "").Of("PersistentVolumeClaim/"+c.Pod.Namespace+"/"+name))
			continue
		}
		if p := c.Cluster.State.PVCs[at]; p.Spec.VolumeName == "" && p.Status.Phase != "" {
			out = append(out, diagnosis.That("status.phase", "", diagnosis.Is, string(p.Status.Phase)).Of("PersistentVolumeClaim/"+c.Pod.Namespace+"/"+name), diagnosis.That("", "", diagnosis.Exists, "").Of(n.Ref()))
		}
		for _, pv := range c.Cluster.State.PVs {
			if pv.Name == c.Cluster.State.PVCs[at].Spec.VolumeName {
				out = append(out, wantsOf(pv, n)...)
			}
		}
	}
	return out
}

// wantsOf claims which labels a volume wants of its node, and what this one has there.
func wantsOf(pv *corev1.PersistentVolume, n *view.Node) []diagnosis.Claim {
	if pv.Spec.NodeAffinity == nil || pv.Spec.NodeAffinity.Required == nil {
		return nil
	}
	var out []diagnosis.Claim
	for _, term := range pv.Spec.NodeAffinity.Required.NodeSelectorTerms {
		for _, e := range term.MatchExpressions {
			out = append(out, diagnosis.That("spec.nodeAffinity", "", diagnosis.Contains, e.Key).Of("PersistentVolume/"+pv.Name), n.Labelled(e.Key)[0])
		}
	}
	return out
}
