package stack

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/stack/parts"
	"github.com/unpend/unpend/rca/view"
)

// UpgradeState is the label by which the GPU Operator's upgrade controller says how far it is
// with a node (k8s-operator-libs pkg/upgrade/consts.go).
const UpgradeState = "nvidia.com/gpu-driver-upgrade-state"

// upgradeSkip is the label by which the upgrade controller begins no upgrade of a node; upgradeBy the annotation by which the
// driver's own manager evicts nobody there: the controller is to.
const (
	upgradeSkip = "nvidia.com/gpu-driver-upgrade.skip"
	upgradeBy   = "nvidia.com/gpu-driver-upgrade-enabled"
)

// closed are its states in which it keeps the node cordoned.
var closed = []string{"wait-for-jobs-required", "pod-deletion-required", "drain-required", "node-maintenance-required", "post-maintenance-required", "pod-restart-required", "validation-required", "uncordon-required", "upgrade-failed"}

// cordonedBefore marks a node that somebody had cordoned before the upgrade began.
const cordonedBefore = "nvidia.com/gpu-driver-upgrade.node-initial-state.unschedulable"

// upgradeTime is how long an upgrade of one node takes at most, where nobody holds it: pods
// are deleted, the driver is loaded, the validation's own limit is 600 s.
const upgradeTime = driverTime + 15*time.Minute

// Cordoned is an upgrade of the driver that keeps the node cordoned; nil where that is
// somebody else's doing.
func (s *Stack) Cordoned(n *view.Node) *Finding {
	if _, before := n.Annotations[cordonedBefore]; before || !n.Spec.Unschedulable {
		return nil
	}
	return s.driverOn(n).upgrading()
}

// upgrading: the driver's upgrade has stopped the node's GPUs, or has failed.
func (l *driverLink) upgrading() *Finding {
	s, n := l.s, l.n
	state := n.Labels[UpgradeState]
	if !slices.Contains(closed, state) {
		return nil
	}
	fact := "label " + UpgradeState + "=" + state
	since := l.upgradedAt()
	if !since.IsZero() {
		fact += " since " + diagnosis.Clock(since)
	}
	until := "the driver's upgrade of " + n.Name + " is done"
	holders := parts.Users(n)
	retry := againUpgraded(n, until)
	var leave Mend
	if len(holders) > 0 {
		leave = Mend{Kind: diagnosis.EvictPods, Title: "evict " + view.PodList(holders) + " from " + n.Name + ", so that its driver can be upgraded", Until: until, Risk: diagnosis.MediumRisk, Minutes: 20, Victims: holders}
	}
	var f *Finding
	switch held := len(holders) > 0; {
	case state == "upgrade-failed":
		f = s.finding(Driver, Failed, diagnosis.DriverNotReady, "failed to upgrade its driver"+cordonText(n), n.Ref(), fact, n.Labelled(UpgradeState)...)
		if held {
			f.Mends = append(f.Mends, leave)
		}
		f.Mends = append(f.Mends, retry)
	case held && slices.Contains(closed[:3], state):
		f = s.finding(Driver, Waiting, diagnosis.DriverNotReady, "cannot upgrade its driver while pods of users hold it", n.Ref(), fact, n.Labelled(UpgradeState)...)
		f.Evidence = append(f.Evidence, diagnosis.Fact(n.Ref(), "GPUs are held there by "+view.PodList(holders), heldBy(n, holders)...))
		f.Evidence = append(f.Evidence, parts.Undrained(holders)...)
		f.Mends = []Mend{leave, rebootMend(n, ": no module is loaded then", until, "a reboot cannot be tried on a copy")}
	case !since.IsZero() && s.since(since) > upgradeTime:
		f = s.finding(Driver, Waiting, diagnosis.DriverNotReady, fmt.Sprintf("is stuck in its driver's upgrade (%s) for %s", state, view.Age(s.since(since))), n.Ref(), fact, n.Labelled(UpgradeState)...)
		f.Certainty, f.Mends = s.aged(), []Mend{retry}
	default:
		f = s.finding(Driver, Starting, diagnosis.DriverNotReady, "has its driver upgraded now ("+state+")", n.Ref(), fact, n.Labelled(UpgradeState)...)
		f.Mends = []Mend{waitFor(n, "driver", upgradeTime)}
		if since.IsZero() {
			f.Certainty, f.Mends = diagnosis.Likely, append(f.Mends, retry)
		} else {
			f.Mends = []Mend{waitFor(n, "driver", upgradeTime-s.since(since))}
		}
	}
	f.Evidence = append(f.Evidence, skipped(n)...)
	if e := s.upgrades[n.Name]; e != nil {
		f.Evidence = append(f.Evidence, diagnosis.Fact(n.Ref(), e.Reason+": "+view.Quotable(e.Message, maxWords), diagnosis.Says(e.Message)))
	}
	if state == "upgrade-failed" && l.pod != nil && l.State != "" {
		f.Says += ": its driver's pod fails at " + l.Text()
		f.Evidence = append(f.Evidence, diagnosis.Fact(podRef(l.pod), l.Text(), l.Claims...))
	}
	return f
}

// againUpgraded has the upgrade controller upgrade the driver of a node once more, which it passes by where a label says so.
func againUpgraded(n *view.Node, until string) Mend {
	m := Mend{Kind: diagnosis.RepairDeviceStack, Title: "have the driver's upgrade of " + n.Name + " tried again", Until: until, Risk: diagnosis.MediumRisk, Minutes: 20,
		Steps:    []string{"see why it failed: the driver's pod, and the Events of the node", "have the upgrade controller begin again; it uncordons the node when it is done"},
		Commands: []string{"kubectl get events -A --field-selector reason=GPUDriverUpgrade,involvedObject.name=" + n.Name, "kubectl get pods -A -l app.kubernetes.io/component=nvidia-driver -o wide --field-selector spec.nodeName=" + n.Name}}
	if skipsUpgrade(n) {
		m.Title = "take label " + upgradeSkip + " off " + n.Name + ", and have its driver's upgrade tried again"
		m.Steps = append([]string{"ask who set label " + upgradeSkip + " whether it may go: with it no upgrade begins there"}, m.Steps...)
		m.Commands = append(m.Commands, "kubectl label node "+n.Name+" "+upgradeSkip+"-")
	}
	m.Commands = append(m.Commands, "kubectl label node "+n.Name+" "+UpgradeState+"=upgrade-required --overwrite")
	return m
}

func skipsUpgrade(n *view.Node) bool { return n.Labels[upgradeSkip] == "true" }

// skipped says that no upgrade of the node's driver begins, where its label has that.
func skipped(n *view.Node) []diagnosis.Evidence {
	if !skipsUpgrade(n) {
		return nil
	}
	return []diagnosis.Evidence{diagnosis.Fact(n.Ref(), "label "+upgradeSkip+"=true; the upgrade controller begins no upgrade there", n.Labelled(upgradeSkip)...)}
}

// byController: the driver's manager leaves it to the upgrade controller to evict who holds the driver.
func byController(n *view.Node, holders []*corev1.Pod, until string, f *Finding) {
	if n.Annotations[upgradeBy] != "true" {
		return
	}
	f.Evidence = append(f.Evidence, diagnosis.Fact(n.Ref(), "annotation "+upgradeBy+"=true: the driver's manager evicts nobody, the upgrade controller is to", diagnosis.That("metadata.annotations", upgradeBy, diagnosis.Is, "true")))
	f.Evidence = append(f.Evidence, skipped(n)...)
	m := againUpgraded(n, until)
	m.Stops = holders
	if !skipsUpgrade(n) { // no upgrade has failed
		m.Title = "have the upgrade controller evict who holds the driver of " + n.Name + ", and load it again"
		m.Steps = []string{"have the upgrade controller begin with the node: it cordons it, evicts who has GPUs, and uncordons it when the driver is loaded"}
	}
	f.Mends = slices.Insert(f.Mends, 1, m)
}

// upgradedAt is when the upgrade's label was written: by the node's managed fields, else by
// the controller's own Event.
func (l *driverLink) upgradedAt() time.Time {
	for _, m := range l.n.ManagedFields {
		if m.Time != nil && m.FieldsV1 != nil && strings.Contains(m.FieldsV1.GetRawString(), `"f:`+UpgradeState+`"`) {
			return m.Time.Time
		}
	}
	if e := l.s.upgrades[l.n.Name]; e != nil && strings.HasSuffix(e.Message, l.n.Labels[UpgradeState]) {
		return parts.Said(e)
	}
	return time.Time{}
}

func cordonText(n *view.Node) string {
	if n.Spec.Unschedulable {
		return ", and stays cordoned for it"
	}
	return ""
}
