package terms

import (
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/unpend/unpend/rca/view"
)

// Meant is where one pod is to go, as far as the pod itself tells: a DaemonSet's is made for one node, any other
// goes where its selector and affinity, and those of its volumes, take it.
type Meant struct {
	// Key is the same for pods that are meant for the same nodes.
	Key string
	// Node is the one that it is made for; empty where it is made for none.
	Node     string
	affinity nodeaffinity.RequiredNodeAffinity
	volumes  []*nodeaffinity.LazyErrorNodeSelector
}

// MeantOf reads it off a pod.
func MeantOf(w *view.Cluster, pod *corev1.Pod) *Meant {
	m := &Meant{Node: view.MadeFor(pod)}
	if m.Key = m.Node; m.Node != "" {
		return m
	}
	m.affinity = nodeaffinity.GetRequiredNodeAffinity(pod)
	key := []any{pod.Spec.NodeSelector, view.RequiredAffinity(pod)}
	for _, v := range pod.Spec.Volumes {
		if v.PersistentVolumeClaim == nil {
			continue
		}
		pv := (*view.Kept(w, volumesOf))[pod.Namespace+"/"+v.PersistentVolumeClaim.ClaimName]
		if pv != nil && pv.Spec.NodeAffinity != nil && pv.Spec.NodeAffinity.Required != nil {
			key, m.volumes = append(key, pv.Spec.NodeAffinity.Required), append(m.volumes, nodeaffinity.NewLazyErrorNodeSelector(pv.Spec.NodeAffinity.Required))
		}
	}
	text, err := json.Marshal(key)
	if err != nil { // no such value has one: then no other is meant for the same nodes
		text = []byte(pod.UID)
	}
	m.Key = string(text)
	return m
}

// For says whether it is meant for a node.
func (m *Meant) For(n *view.Node) bool {
	if m.Node != "" {
		return m.Node == n.Name
	}
	if ok, err := m.affinity.Match(n.Node); err != nil || !ok {
		return false
	}
	return !slices.ContainsFunc(m.volumes, func(v *nodeaffinity.LazyErrorNodeSelector) bool {
		ok, err := v.Match(n.Node)
		return err != nil || !ok
	})
}

// Among are the names of those of some nodes that it is meant for.
func (m *Meant) Among(nodes map[string]*view.Node) []string {
	if m.Node != "" {
		if nodes[m.Node] == nil {
			return nil
		}
		return []string{m.Node}
	}
	var out []string
	for name, n := range nodes {
		if m.For(n) {
			out = append(out, name)
		}
	}
	return out
}

// volumesByClaim are the volumes that claims are bound to, by namespace and name of the claim.
type volumesByClaim map[string]*corev1.PersistentVolume

func volumesOf(w *view.Cluster) *volumesByClaim {
	byName, out := map[string]*corev1.PersistentVolume{}, volumesByClaim{}
	for _, pv := range w.State.PVs {
		byName[pv.Name] = pv
	}
	for _, c := range w.State.PVCs {
		if pv := byName[c.Spec.VolumeName]; pv != nil {
			out[c.Namespace+"/"+c.Name] = pv
		}
	}
	return &out
}
