package guard

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

// closing makes the plan one that closes its node for good.
func (s *setting) closing() {
	s.plan.Spec.Kind, s.plan.Spec.Kinds = diagnosis.QuarantineGPU, []diagnosis.FixKind{diagnosis.QuarantineGPU}
	s.plan.Spec.Actions = []diagnosis.Action{{Verb: diagnosis.VerbCordon, Target: diagnosis.Target{Kind: "Node", Name: "gpu-1", UID: "uid-gpu-1"}, Relies: map[string]string{"unschedulable": "false"}}}
}

// quarantined is as a plan has left it.
func quarantined(n *corev1.Node, by *v1alpha1.Remediation) {
	marked(n, by, "")
	text, err := json.Marshal(diagnosis.Operation{Plan: by.Name, ID: by.UID, Step: "quarantined", Quarantined: "GPU 0 is sick"})
	if err != nil {
		panic(err) // of a test
	}
	n.Annotations[diagnosis.OperationAnnotation] = string(text)
}

// A node is not closed for good where it is the last that offers what somebody waits for,
// the plan's own pods among them; a closed one counts as closed by us.
func TestQuarantine(t *testing.T) {
	other := planFor(2, "gpu-2")
	check(t, []edge{
		{"the last one in use, for the plan's own incident",
			func(s *setting) { s.closing(); s.wants(s.plan.Spec.Incident); s.offers("gpu-1", "gpu-2") },
			func(s *setting) { s.closing(); s.wants(s.plan.Spec.Incident); s.offers("gpu-1") },
			Verdict{Refuse, "last-healthy", fmt.Sprintf("gpu-1 is the last node in use that offers %s, which incident gpu-0000000001 waits for: bring another back first, or choose another fix", shape), time.Time{}, v1alpha1.Refused}},
		{"it offers nothing anyway",
			func(s *setting) { s.closing(); s.wants(s.plan.Spec.Incident); s.offers() },
			func(s *setting) { s.closing(); s.wants("gpu-b"); s.offers("gpu-1") },
			Verdict{Refuse, "last-healthy", fmt.Sprintf("gpu-1 is the last node in use that offers %s, which incident gpu-b waits for: bring another back first, or choose another fix", shape), time.Time{}, v1alpha1.Refused}},
		{"the pool",
			func(s *setting) { s.closing(); quarantined(s.view.Nodes[1], other) },
			func(s *setting) {
				s.closing()
				quarantined(s.view.Nodes[1], other)
				quarantined(s.view.Nodes[2], other)
			},
			Verdict{Wait, "pool-unavailable", "2 of 20 GPU nodes are out of use (gpu-2 quarantined, gpu-3 quarantined), with gpu-1 it would be 3, the limit is 2 (10 %, at least 1): bring one back, or raise poolUnavailablePercent in ConfigMap unpend-guards", time.Time{}, v1alpha1.Queued}},
		{"it is quarantined, and not in flight",
			func(s *setting) { quarantined(s.view.Nodes[1], other) },
			func(s *setting) { quarantined(s.view.Nodes[0], other) },
			Verdict{Refuse, "node-busy", "node gpu-1 is quarantined, cordoned on purpose by plan 00000002: GPU 0 is sick; once its hardware is mended a person uncordons it, then ask for a new plan", time.Time{}, v1alpha1.Refused}},
	})
}

// A person ends a quarantine by opening the node; a plan that opens it may, once it does
// not undo what was done of late.
func TestQuarantineEnds(t *testing.T) {
	s := quiet()
	quarantined(s.view.Nodes[0], planFor(2, "gpu-1"))
	s.view.Nodes[0].Spec.Unschedulable = false
	if got := s.judge(); got.Decision != Allow {
		t.Errorf("a person has opened it: %+v", got)
	}
	s.view.Nodes[0].Spec.Unschedulable = true
	s.plan.Spec.Kind, s.plan.Spec.Kinds = diagnosis.UncordonNode, []diagnosis.FixKind{diagnosis.UncordonNode}
	s.plan.Spec.Actions = []diagnosis.Action{{Verb: diagnosis.VerbUncordon, Target: diagnosis.Target{Kind: "Node", Name: "gpu-1", UID: "uid-gpu-1"}}}
	if got := s.judge(); got.Decision != Allow {
		t.Errorf("a plan opens it: %+v", got)
	}
}

// Quarantined nodes are shown as what they are, and trip no breaker: they are our own.
func TestQuarantineIsShown(t *testing.T) {
	s := quiet()
	for i := range 8 {
		quarantined(s.view.Nodes[i], planFor(2, s.view.Nodes[i].Name))
	}
	f := s.limits.Figures(s.view)
	if len(f.InFlight) != 0 || len(f.Parked) != 0 || len(f.Quarantined) != 8 || f.Quarantined[0] != (Parked{"gpu-1", hex(2), "GPU 0 is sick"}) || f.OutOfUse[0] != "gpu-1 quarantined" {
		t.Errorf("%+v", f)
	}
	if why, open := s.limits.Tripped(s.view, time.Time{}); open {
		t.Error(why)
	}
}
