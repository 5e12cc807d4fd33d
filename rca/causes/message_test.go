package causes

import (
	"reflect"
	"slices"
	"testing"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/whatif"
)

// What schedulers wrote, from 1.30 to 1.37, word for word.
func TestParseMessage(t *testing.T) {
	cases := map[string]struct {
		text string
		want whatif.Message
		tell []diagnosis.CauseID
	}{
		"1.30, short, no tail that tells": {
			"0/2 nodes are available: 2 Insufficient nvidia.com/mig-2g.10gb. preemption: 0/2 nodes are available: 2 No preemption victims found for incoming pod.",
			whatif.Message{Nodes: 2, Reasons: []whatif.NodeReason{{Count: 2, Text: "Insufficient nvidia.com/mig-2g.10gb"}}, Used: 2}, []diagnosis.CauseID{diagnosis.MIGInstancesInUse}},
		"1.34, never offered": {
			"0/2 nodes are available: 2 Insufficient nvidia.com/mig-2g.10gb. preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling.",
			whatif.Message{Nodes: 2, Reasons: []whatif.NodeReason{{Count: 2, Text: "Insufficient nvidia.com/mig-2g.10gb"}}, Never: 2}, []diagnosis.CauseID{diagnosis.MIGLayoutMismatch}},
		"1.36, DRA's word before the tail": {
			"0/2 nodes are available: 2 Insufficient nvidia.com/gpu. no new claims to deallocate, preemption: 0/2 nodes are available: 1 No preemption victims found for incoming pod, 1 Preemption is not helpful for scheduling.",
			whatif.Message{Nodes: 2, Reasons: []whatif.NodeReason{{Count: 2, Text: "Insufficient nvidia.com/gpu"}}, Used: 1, Never: 1}, []diagnosis.CauseID{diagnosis.Unknown}},
		"1.34, a taint with its key": {
			"0/3 nodes are available: 1 node(s) had untolerated taint {nvidia.com/gpu: present}, 2 Insufficient cpu. preemption: 0/3 nodes are available: 1 Preemption is not helpful for scheduling, 2 No preemption victims found for incoming pod.",
			whatif.Message{Nodes: 3, Reasons: []whatif.NodeReason{{Count: 1, Text: "node(s) had untolerated taint {nvidia.com/gpu: present}"}, {Count: 2, Text: "Insufficient cpu"}}, Used: 2, Never: 1}, []diagnosis.CauseID{diagnosis.UntoleratedTaint, diagnosis.HostResourcesShort}},
		"1.34, taints of the node's own state": {
			"0/3 nodes are available: 1 node(s) had untolerated taint {node.kubernetes.io/unschedulable: }, 2 node(s) had untolerated taint {node.kubernetes.io/unreachable: }.",
			whatif.Message{Nodes: 3, Reasons: []whatif.NodeReason{{Count: 1, Text: "node(s) had untolerated taint {node.kubernetes.io/unschedulable: }"}, {Count: 2, Text: "node(s) had untolerated taint {node.kubernetes.io/unreachable: }"}}}, []diagnosis.CauseID{diagnosis.NodeCordoned, diagnosis.NodeNotReady}},
		"1.35, a taint without": {
			"0/12 nodes are available: 10 node(s) had untolerated taint(s), 2 node(s) were unschedulable. preemption: 0/12 nodes are available: 12 Preemption is not helpful for scheduling.",
			whatif.Message{Nodes: 12, Reasons: []whatif.NodeReason{{Count: 10, Text: "node(s) had untolerated taint(s)"}, {Count: 2, Text: "node(s) were unschedulable"}}, Never: 12}, []diagnosis.CauseID{diagnosis.UntoleratedTaint, diagnosis.NodeCordoned}},
		"a comma within a reason": {
			"0/4 nodes are available: 1 node(s) didn't satisfy plugin(s) [NodeAffinity, X], 3 node(s) didn't match pod anti-affinity rules.",
			whatif.Message{Nodes: 4, Reasons: []whatif.NodeReason{{Count: 1, Text: "node(s) didn't satisfy plugin(s) [NodeAffinity, X]"}, {Count: 3, Text: "node(s) didn't match pod anti-affinity rules"}}}, []diagnosis.CauseID{diagnosis.NodeSelectorMismatch, diagnosis.PodAffinityConflict}},
		"1.33 and later, volumes": {
			"0/1 nodes are available: 1 node(s) didn't match PersistentVolume's node affinity. preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.",
			whatif.Message{Nodes: 1, Reasons: []whatif.NodeReason{{Count: 1, Text: "node(s) didn't match PersistentVolume's node affinity"}}, Never: 1}, []diagnosis.CauseID{diagnosis.VolumeConflict}},
		"a PreFilter's word for all": {
			`0/3 nodes are available: persistentvolumeclaim "data" not found. preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.`,
			whatif.Message{Nodes: 3, Whole: `persistentvolumeclaim "data" not found`, Never: 3}, []diagnosis.CauseID{diagnosis.VolumeConflict}},
		"DRA": {
			"0/1 nodes are available: 1 cannot allocate all claims. still not schedulable, preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.",
			whatif.Message{Nodes: 1, Reasons: []whatif.NodeReason{{Count: 1, Text: "cannot allocate all claims"}}, Never: 1}, []diagnosis.CauseID{diagnosis.Unknown}},
		"preemption is off": {
			"0/1 nodes are available: 1 node(s) didn't match pod topology spread constraints (missing required label). preemption: not eligible due to preemptionPolicy=Never.",
			whatif.Message{Nodes: 1, Reasons: []whatif.NodeReason{{Count: 1, Text: "node(s) didn't match pod topology spread constraints (missing required label)"}}}, []diagnosis.CauseID{diagnosis.TopologySpreadConflict}},
		"cut in the middle": {
			"0/9 nodes are available: 4 Insufficient nvidia.com/gpu, 5 node(s) didn't mat ...",
			whatif.Message{Nodes: 9, Reasons: []whatif.NodeReason{{Count: 4, Text: "Insufficient nvidia.com/gpu"}, {Count: 5, Text: "node(s) didn't mat"}}}, []diagnosis.CauseID{diagnosis.Unknown, diagnosis.Unknown}},
		"an empty cluster": {"no nodes available to schedule pods", whatif.Message{}, nil},
	}
	for name, c := range cases {
		m, ok := whatif.ParseMessage(c.text)
		if !ok || !reflect.DeepEqual(m, c.want) {
			t.Errorf("%s: %+v (%v), want %+v", name, m, ok, c.want)
		}
		var tell []diagnosis.CauseID
		for _, r := range m.Reasons {
			tell = append(tell, causeOf(m, r.Text))
		}
		if m.Whole != "" {
			tell = append(tell, causeOf(m, m.Whole))
		}
		if !slices.Equal(tell, c.tell) {
			t.Errorf("%s: tells %v, want %v", name, tell, c.tell)
		}
	}
	for _, other := range []string{"", "Failed to schedule pod, incompatible requirements", "all nodes are unavailable: 3 node(s) resource fit failed.", "0/x nodes are available: none", "1/2 nodes are available: 1 x"} {
		if m, ok := whatif.ParseMessage(other); ok {
			t.Errorf("%q is taken for the scheduler's: %+v", other, m)
		}
	}
}

func FuzzParseMessage(f *testing.F) {
	f.Add("0/2 nodes are available: 2 Insufficient nvidia.com/mig-2g.10gb. preemption: 0/2 nodes are available: 2 No preemption victims found for incoming pod.")
	f.Add("0/9 nodes are available: 4 a, 5 b ...")
	f.Add("0/1 nodes are available: preemption: ")
	f.Fuzz(func(t *testing.T, text string) {
		m, ok := whatif.ParseMessage(text)
		if !ok && !reflect.DeepEqual(m, whatif.Message{}) {
			t.Errorf("%q is none, and says %+v", text, m)
		}
		for _, r := range m.Reasons {
			if r.Text == "" {
				t.Errorf("%q: a reason without words", text)
			}
			causeOf(m, r.Text)
		}
	})
}
