package diagnosis

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The root cause comes first, what others said of it after, and nothing of what every pod
// has.
func TestWords(t *testing.T) {
	d := Diagnosis{
		Requests: map[string]string{"cpu": "4", "memory": "1Gi", "nvidia.com/mig-2g.10gb": "1"},
		Claims:   []ClaimedDevices{{Class: "gpu.nvidia.com"}},
		Drawing:  &Drawing{Product: "NVIDIA A100-SXM4-40GB"},
		Causes: []Cause{
			{ID: SchedulerMissing, Says: "no scheduler answers", Evidence: []Evidence{
				{Fact: "label a=b"}, {Fact: "FailedCreate: quota exceeded"}, {Fact: "wants 2 pods; its last refusal: pods is forbidden"},
				{Fact: "karpenter says FailedScheduling: no instance type"}, {Fact: "FailedMount: one too many"},
			}},
			{ID: NodeCordoned, Says: "cordoned"}, {ID: Unknown, Says: "no GPU on the node"},
		},
		Nodes: []NodeBlockers{{Blockers: []Blocker{{Reason: "Insufficient nvidia.com/gpu", Cause: SchedulerMissing}, {Reason: "node(s) were unschedulable", Cause: NodeCordoned}}}},
	}
	want := []string{"SchedulerMissing", "no scheduler answers", phrases[SchedulerMissing],
		"FailedCreate: quota exceeded", "pods is forbidden", "karpenter says FailedScheduling: no instance type",
		"nvidia.com/mig-2g.10gb", "gpu.nvidia.com", "NVIDIA A100-SXM4-40GB", "cordoned"}
	if diff := cmp.Diff(want, d.Words()); diff != "" {
		t.Error(diff)
	}
	if got := (Diagnosis{}).Words(); len(got) != 0 {
		t.Errorf("%q", got)
	}
	long := Diagnosis{Causes: []Cause{{ID: MIGFull, Says: strings.Repeat("é", 500)}}}
	if got := long.Words()[2]; got != strings.Repeat("é", maxPhrase) {
		t.Errorf("%q", got)
	}
	d.Causes[0].Evidence = nil
	d.Nodes[0].Blockers[0] = Blocker{Reason: "node(s) had untolerated taint(s)", Cause: SchedulerMissing}
	if got := d.Words(); got[3] != "node(s) had untolerated taint(s)" {
		t.Errorf("%q", got)
	}
}

// Every cause that a rule tells has words of people, or nobody would find it by them.
func TestPhrasesOfEveryCause(t *testing.T) {
	for _, id := range Catalogue() {
		if id != Unknown && phrases[id] == "" {
			t.Errorf("%s has none", id)
		}
	}
	if len(phrases) != len(Catalogue())-1 {
		t.Errorf("%d phrases of %d causes", len(phrases), len(Catalogue()))
	}
}

func TestRecordInWords(t *testing.T) {
	for _, c := range []struct {
		of   Record
		want string
	}{
		{Record{4, 5, 3}, "worked here 4 times of 5, in about 3 min"},
		{Record{1, 1, 1}, "worked here the one time it was tried, in about 1 min"},
		{Record{1, 2, 0}, "worked here once of 2 times"},
		{Record{0, 1, 0}, "did not help here the one time it was tried"},
		{Record{0, 3, 0}, "did not help here any of 3 times"},
	} {
		if got := c.of.String(); got != c.want {
			t.Errorf("%+v: %q", c.of, got)
		}
	}
}
