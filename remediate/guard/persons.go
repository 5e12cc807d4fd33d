package guard

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

// Persons is how many persons have to approve a plan, and why it is two.
func (l Limits) Persons(plan *v1alpha1.Remediation) (n int, why string) {
	var reasons []string
	if mode := modeChange(plan); l.TwoPersons.ModeChange && mode != "" {
		reasons = append(reasons, mode)
	}
	nodes := map[string]bool{}
	for name := range nodesOf(plan) {
		nodes[name] = true
	}
	if len(nodes) > l.TwoPersons.Nodes {
		reasons = append(reasons, fmt.Sprintf("it changes %d nodes, one person may change %d", len(nodes), l.TwoPersons.Nodes))
	}
	stopped := stops(plan)
	if stopped > l.TwoPersons.Evictions {
		reasons = append(reasons, fmt.Sprintf("it stops %d pods, one person may stop %d", stopped, l.TwoPersons.Evictions))
	}
	if l.TwoPersons.HigherPriority && stopped > 0 && plan.Spec.VictimPriority > plan.Spec.Priority {
		reasons = append(reasons, fmt.Sprintf("it stops a pod of priority %d for pods of priority %d", plan.Spec.VictimPriority, plan.Spec.Priority))
	}
	if len(reasons) > 0 {
		return 2, strings.Join(reasons, "; ")
	}
	return 1, ""
}

// modeChange says of which GPU a plan changes the MIG mode; empty when of none. Where
// the plan does not say what a GPU was, or leaves it without instances, it may well.
func modeChange(plan *v1alpha1.Remediation) string {
	for _, a := range plan.Spec.Actions {
		if a.Verb != diagnosis.VerbRelayout || a.Relayout == nil {
			continue
		}
		for _, gpu := range a.Relayout.GPUs {
			was, known := layout(a.Relies[fmt.Sprintf("gpu%d", gpu)])
			if !known || len(without0(a.Relayout.Layouts[gpu])) == 0 && len(was) > 0 {
				return fmt.Sprintf("it changes the MIG mode of GPU %d of node %s, as far as the plan tells", gpu, a.Target.Name)
			}
		}
		if len(a.Relayout.Entry) > 0 && switchesOff(a.Relayout.Entry, a.Relies) {
			return fmt.Sprintf("its config %s may switch MIG off on node %s", a.Relayout.Config, a.Target.Name)
		}
	}
	return ""
}

// switchesOff says whether a mig-parted entry has a rule without MIG for a GPU that
// is not known to be whole anyway.
func switchesOff(entry json.RawMessage, relies map[string]string) bool {
	var rules []struct {
		Devices json.RawMessage `json:"devices"`
		Enabled bool            `json:"mig-enabled"`
	}
	if err := json.Unmarshal(entry, &rules); err != nil {
		return true
	}
	for _, r := range rules {
		var gpus []int
		if r.Enabled {
			continue
		}
		if err := json.Unmarshal(r.Devices, &gpus); err != nil { // "all"
			return true
		}
		if slices.ContainsFunc(gpus, func(gpu int) bool { return relies[fmt.Sprintf("gpu%d", gpu)] != "whole" }) {
			return true
		}
	}
	return false
}

// Approved says whether enough persons have said yes to a plan, and who. A no by
// anybody decides. When two are needed they are two different ones, and neither is
// who asked for the plan. Approvals of another object of that name, and those made
// before the plan or once it had expired, do not count.
func Approved(plan *v1alpha1.Remediation, approvals []v1alpha1.Approval, persons int) (ok bool, by []string, why string) {
	var dropped []string
	for i := range approvals {
		a := &approvals[i]
		if a.Spec.Plan != plan.Name || v1alpha1.PlanOf(a.Name) != plan.Name {
			continue // of another plan
		}
		without := uncounted(plan, a, persons)
		switch {
		case a.Spec.Decision == v1alpha1.Reject && plan.UID != "" && a.Spec.Remediation == string(plan.UID):
			return false, nil, fmt.Sprintf("%s said no%s", a.Spec.Approver, because(a.Spec.Reason))
		case without != "":
			dropped = append(dropped, without)
		case !slices.Contains(by, a.Spec.Approver):
			by = append(by, a.Spec.Approver)
		}
	}
	slices.Sort(by)
	slices.Sort(dropped)
	if need := max(1, persons); len(by) < need {
		return false, by, strings.Join(append([]string{fmt.Sprintf("%d of %d persons have approved it", len(by), need)}, dropped...), "; ")
	}
	return true, by, ""
}

// uncounted says why a yes does not count; empty when it does. Times of creation are
// the API server's, and whole seconds.
func uncounted(plan *v1alpha1.Remediation, a *v1alpha1.Approval, persons int) string {
	who := a.Spec.Approver
	switch {
	case plan.UID == "" || a.Spec.Remediation != string(plan.UID):
		return fmt.Sprintf("that of %s is for another object of that name", who)
	case a.Spec.Decision != v1alpha1.Approve || a.Name == plan.Name+v1alpha1.No:
		return fmt.Sprintf("that of %s says %q", who, a.Spec.Decision)
	case who == "":
		return "one does not say who gave it"
	case a.DeletionTimestamp != nil:
		return fmt.Sprintf("that of %s is being deleted", who)
	case a.CreationTimestamp.Before(&plan.CreationTimestamp):
		return fmt.Sprintf("that of %s is older than the plan", who)
	case !a.CreationTimestamp.Before(&plan.Spec.Expires):
		return fmt.Sprintf("that of %s was made once the plan had expired, at %s", who, instant(plan.Spec.Expires.Time))
	case persons > 1 && who == plan.Spec.Requester:
		return fmt.Sprintf("%s asked for the plan, two others have to approve it", who)
	}
	return ""
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}
