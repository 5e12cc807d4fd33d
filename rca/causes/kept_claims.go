package causes

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/devices"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// labelOf claims what the node has under a key.
func labelOf(n *view.Node, key string) diagnosis.Claim {
	value, has := n.Labels[key]
	if !has {
		return diagnosis.That(diagnosis.Labels, key, diagnosis.Absent, "").Of(n.Ref())
	}
	return diagnosis.That(diagnosis.Labels, key, diagnosis.Is, value).Of(n.Ref())
}

// whereItStands claims the node's place in every topology that affinities speak of, those of
// the pod and of the pods that are in its way, and where these run.
func (c *Case) whereItStands(n *view.Node) []diagnosis.Claim {
	away := c.inTheWay(n)
	away = away[:min(len(away), devices.MaxHolderFacts)]
	terms := slices.Concat(TogetherWith(c.Pod), ApartFrom(c.Pod))
	for _, p := range away {
		terms = append(terms, ApartFrom(p)...)
	}
	var out []diagnosis.Claim
	for _, t := range terms {
		if claim := labelOf(n, t.TopologyKey); !slices.Contains(out, claim) {
			out = append(out, claim)
		}
	}
	return append(out, running(away)...)
}

// volumeClaims claim what the volumes of the pod say of nodes, and what this one has of that.
func (c *Case) volumeClaims(n *view.Node) []diagnosis.Claim {
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
			out = append(out, diagnosis.That("spec.nodeAffinity", "", diagnosis.Contains, e.Key).Of("PersistentVolume/"+pv.Name), labelOf(n, e.Key))
		}
	}
	return out
}
