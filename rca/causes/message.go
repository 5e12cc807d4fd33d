package causes

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
	"github.com/unpend/unpend/rca/whatif"
)

// toldBy maps the scheduler's words to the cause they most likely tell of, in the
// versions from 1.30 to 1.37 (pkg/scheduler/framework/plugins of each).
var toldBy = []struct {
	part string
	id   diagnosis.CauseID
}{
	{"untolerated taint {node.kubernetes.io/unschedulable", diagnosis.NodeCordoned},
	{"untolerated taint {node.kubernetes.io/", diagnosis.NodeNotReady},
	{"had untolerated taint", diagnosis.UntoleratedTaint},
	{"didn't match Pod's node affinity/selector", diagnosis.NodeSelectorMismatch},
	{"didn't satisfy plugin(s) [NodeAffinity", diagnosis.NodeSelectorMismatch},
	{"were unschedulable", diagnosis.NodeCordoned},
	{"volume node affinity conflict", diagnosis.VolumeConflict},
	{"PersistentVolume", diagnosis.VolumeConflict},
	{"persistentvolumeclaim", diagnosis.VolumeConflict},
	{"persistent volumes", diagnosis.VolumeConflict},
	{"no available volume zone", diagnosis.VolumeConflict},
	{"max volume count", diagnosis.VolumeConflict},
	{"topology spread constraints", diagnosis.TopologySpreadConflict},
	{"affinity rules", diagnosis.PodAffinityConflict},
	{"device class", diagnosis.DRAClassMissing},
	{"Too many pods", diagnosis.HostResourcesShort},
}

// causeOf says what a reason most likely means.
func causeOf(m whatif.Message, reason string) diagnosis.CauseID {
	if name, ok := strings.CutPrefix(reason, "Insufficient "); ok {
		return shortage(m, name)
	}
	for _, t := range toldBy {
		if strings.Contains(reason, t.part) {
			return t.id
		}
	}
	return diagnosis.Unknown
}

// shortage tells used up from never there, as far as the preemption tail does.
func shortage(m whatif.Message, name string) diagnosis.CauseID {
	mig := strings.HasPrefix(name, view.MIGPrefix)
	switch {
	case !view.IsGPU(corev1.ResourceName(name)):
		return diagnosis.HostResourcesShort
	case m.Used > 0 && m.Never > 0, m.Used+m.Never == 0:
		return diagnosis.Unknown // no telling which nodes are which
	case m.Used > 0 && mig:
		return diagnosis.MIGInstancesInUse
	case m.Used > 0:
		return diagnosis.GPUsInUse
	case mig:
		return diagnosis.MIGLayoutMismatch
	}
	return diagnosis.GPURequestTooLarge
}

// byMessage is what can be told without nodes: the scheduler's own words, which
// name the first reason of each node only.
func (c *Case) byMessage(byID tellings) {
	if c.Cluster.State.Unread["Node"] == "" {
		return
	}
	i := slices.IndexFunc(c.Refusal.Conditions, func(k corev1.PodCondition) bool {
		return k.Type == corev1.PodScheduled && k.Status == corev1.ConditionFalse
	})
	if i < 0 {
		return
	}
	m, ok := whatif.ParseMessage(c.Refusal.Conditions[i].Message)
	if !ok {
		return
	}
	said := []diagnosis.Evidence{diagnosis.Fact(c.podRef(), "PodScheduled: "+c.Refusal.Conditions[i].Message, diagnosis.Says(c.Refusal.Conditions[i].Message))}
	if m.Nodes == 0 && m.Whole == "" && len(m.Reasons) == 0 {
		byID.note(diagnosis.NoNodes, "", &finding{diagnosis.Possible, "by the scheduler's words: " + whatif.NoNodesSentence, said})
		return
	}
	slices.SortStableFunc(m.Reasons, func(a, b whatif.NodeReason) int { return cmp.Compare(b.Count, a.Count) })
	if m.Whole != "" {
		m.Reasons = []whatif.NodeReason{{Count: m.Nodes, Text: m.Whole}}
	}
	for _, r := range m.Reasons {
		byID.note(causeOf(m, r.Text), "", &finding{diagnosis.Possible, fmt.Sprintf("%d of %d nodes, by the scheduler's words: %s", r.Count, m.Nodes, r.Text), said})
	}
}
