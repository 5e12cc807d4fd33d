package shelf

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/rca/cluster"
)

// part is what many objects of a kind have alike: the pods of a workload their containers,
// the GPUs of a model their profiles.
type part struct {
	// path are the names of the fields that lead there; everyItem stands for the items of
	// a list, of which there is one on the way at most.
	path []string
	// give hands it on from an object that holds nothing else; at is the item's place.
	give func(to, from cluster.Object, at int)
}

const everyItem = "*"

// parts by kind. They are most of a large dump's text.
var parts = map[string]*branch{
	"Pod": grow(
		ofPod(func(to, from *corev1.Pod) { to.Labels = from.Labels }, "metadata", "labels"),
		ofPod(func(to, from *corev1.Pod) { to.OwnerReferences = from.OwnerReferences }, "metadata", "ownerReferences"),
		ofPod(func(to, from *corev1.Pod) { to.Spec.InitContainers = from.Spec.InitContainers }, "spec", "initContainers"),
		ofPod(func(to, from *corev1.Pod) { to.Spec.Containers = from.Spec.Containers }, "spec", "containers"),
		ofPod(func(to, from *corev1.Pod) { to.Spec.Affinity = from.Spec.Affinity }, "spec", "affinity"),
		ofPod(func(to, from *corev1.Pod) { to.Spec.NodeSelector = from.Spec.NodeSelector }, "spec", "nodeSelector"),
		ofPod(func(to, from *corev1.Pod) { to.Spec.Tolerations = from.Spec.Tolerations }, "spec", "tolerations"),
		ofPod(func(to, from *corev1.Pod) { to.Spec.TopologySpreadConstraints = from.Spec.TopologySpreadConstraints }, "spec", "topologySpreadConstraints"),
	),
	nodeprobe.Kind.Kind: grow(
		&part{path: []string{"report", "gpus", everyItem, "profiles"}, give: func(to, from cluster.Object, at int) {
			to.(*nodeprobe.NodeGeometry).Report.GPUs[at].Profiles = from.(*nodeprobe.NodeGeometry).Report.GPUs[0].Profiles
		}},
	),
}

func ofPod(give func(to, from *corev1.Pod), path ...string) *part {
	return &part{path: path, give: func(to, from cluster.Object, _ int) { give(to.(*corev1.Pod), from.(*corev1.Pod)) }}
}

// alone is the text of an object that holds a part and nothing else.
func (p *part) alone(text []byte) []byte {
	var before, after []byte
	for _, name := range p.path {
		open, shut := `{"`+name+`":`, "}"
		if name == everyItem {
			open, shut = "[", "]"
		}
		before, after = append(before, open...), append([]byte(shut), after...)
	}
	return append(append(before, text...), after...)
}

// branch is a field on the way to parts, or a part.
type branch struct {
	name string
	part *part
	next []*branch
}

func grow(parts ...*part) *branch {
	root := &branch{}
	for _, p := range parts {
		at := root
		for _, name := range p.path {
			to := at.to(name)
			if to == nil {
				to = &branch{name: name}
				at.next = append(at.next, to)
			}
			at = to
		}
		at.part = p
	}
	return root
}

func (b *branch) to(name string) *branch {
	for _, n := range b.next {
		if n.name == name {
			return n
		}
	}
	return nil
}

// each calls do for every part until one fails.
func (b *branch) each(do func(*part) error) error {
	if b.part != nil {
		return do(b.part)
	}
	for _, n := range b.next {
		if err := n.each(do); err != nil {
			return err
		}
	}
	return nil
}
