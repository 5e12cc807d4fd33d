// Package upkeep tells who has closed a node to work on it: software that reboots nodes, upgrades them, or
// gives them another configuration leaves traces, and none of them in the cordon itself.
package upkeep

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// Closure is software that has closed a node to work on it, by its own traces: a person who opens the
// node works against it, or in its place.
type Closure struct {
	Who  string
	Says string // to complete "the node is cordoned, …"
	// Again: it has not given the node up, and closes it again.
	Again bool
	// See is what tells how far it is, and Look the commands by which that is seen.
	See      string
	Look     []string
	Evidence diagnosis.Evidence
}

// Of is who has closed a cordoned node for upkeep; nil where nothing says so.
func Of(w *view.Cluster, n *view.Node) *Closure {
	if !n.Spec.Unschedulable {
		return nil
	}
	for _, of := range []func(*view.Cluster, *view.Node) *Closure{rebooted, planned, configured} {
		if u := of(w, n); u != nil {
			return u
		}
	}
	return nil
}

// RebootLock is the annotation of its own DaemonSet by which kured says whose turn it is
// (kubereboot/kured, pkg/daemonsetlock).
const RebootLock = "weave.works/kured-node-lock"

// rebooted: kured holds its lock for the node. It drains it first, and waits for the drain as long as
// that takes.
func rebooted(w *view.Cluster, n *view.Node) *Closure {
	type lock struct {
		Node    string    `json:"nodeID"`
		Created time.Time `json:"created"`
	}
	for _, d := range w.State.DaemonSets {
		var held struct {
			lock
			Locks []lock `json:"locks"` // where several may reboot at once
		}
		if json.Unmarshal([]byte(d.Annotations[RebootLock]), &held) != nil { // or there is no such annotation
			continue
		}
		for _, l := range append(held.Locks, held.lock) {
			if l.Node != n.Name {
				continue
			}
			since := ""
			if !l.Created.IsZero() {
				since = " since " + diagnosis.Clock(l.Created)
			}
			ref := view.ObjectRef("DaemonSet", d.Namespace, d.Name)
			return &Closure{Who: "kured", Says: "kured holds its lock for it" + since + ", to drain and reboot it", Again: true, See: "see what its drain waits for: a PodDisruptionBudget that allows nobody to leave holds it for good",
				Look:     []string{fmt.Sprintf("kubectl -n %s logs ds/%s --all-pods --since=2h | grep -i -e evict -e drain", d.Namespace, d.Name), "kubectl get pods -A -o wide --field-selector spec.nodeName=" + n.Name, "kubectl get pdb -A"},
				Evidence: diagnosis.Fact(ref, "its lock is held for "+n.Name+since, diagnosis.That("metadata.annotations["+RebootLock+"]", "", diagnosis.Contains, n.Name))}
		}
	}
	return nil
}

// The labels by which Rancher's system-upgrade-controller marks the Jobs that work on nodes
// (rancher/system-upgrade-controller, pkg/apis/upgrade.cattle.io).
const (
	upgradedNode = "upgrade.cattle.io/node"
	upgradePlan  = "upgrade.cattle.io/plan"
)

// planned: a Plan's Job is at work on the node, or has failed and left it closed.
func planned(w *view.Cluster, n *view.Node) *Closure {
	for _, j := range w.State.Jobs {
		if j.Labels[upgradedNode] != n.Name || j.Labels[upgradePlan] == "" || jobIs(j, batchv1.JobComplete) {
			continue
		}
		plan, ref := j.Labels[upgradePlan], view.ObjectRef("Job", j.Namespace, j.Name)
		claims := []diagnosis.Claim{diagnosis.That(diagnosis.Labels, upgradedNode, diagnosis.Is, n.Name), diagnosis.That(diagnosis.Labels, upgradePlan, diagnosis.Is, plan)}
		u := &Closure{Who: "Plan " + plan, Look: []string{fmt.Sprintf("kubectl -n %s describe job %s", j.Namespace, j.Name), fmt.Sprintf("kubectl -n %s get plans.upgrade.cattle.io %s -o yaml", j.Namespace, plan)}}
		if !jobIs(j, batchv1.JobFailed) {
			u.Says, u.Again, u.See = "upgrade Plan "+plan+" works on it", true, "see how far its Job is"
			u.Evidence = diagnosis.Fact(ref, "of Plan "+plan+", is at work on "+n.Name, claims...)
			return u
		}
		u.Says, u.See = "perhaps left so by upgrade Plan "+plan+", whose Job has failed there", "see why its Job failed: the Plan comes back to "+n.Name+" once it is changed, or the Job deleted"
		u.Evidence = diagnosis.Fact(ref, "of Plan "+plan+", for "+n.Name+", has failed", append(claims, view.ConditionIs(string(batchv1.JobFailed), "True"))...)
		return u
	}
	return nil
}

func jobIs(j *batchv1.Job, kind batchv1.JobConditionType) bool {
	for _, c := range j.Status.Conditions {
		if c.Type == kind && c.Status == corev1.ConditionTrue {
			return true
		}
	}
	return false
}

// machineConfig begins the annotations by which OpenShift's machine-config-operator says how far a
// node is (pkg/daemon/constants).
const machineConfig = "machineconfiguration.openshift.io/"

// configured: OpenShift gives the node another configuration, or could not.
func configured(_ *view.Cluster, n *view.Node) *Closure {
	state, reason := n.Annotations[machineConfig+"state"], n.Annotations[machineConfig+"reason"]
	if state != "Working" && state != "Degraded" {
		return nil
	}
	u := &Closure{Who: "OpenShift", Says: "OpenShift works on its configuration", Again: true, See: "see how far machine-config-operator is with its pool",
		Look:     []string{"oc get machineconfigpools", "oc describe node " + n.Name + " | grep " + strings.TrimSuffix(machineConfig, "/"), "oc -n openshift-machine-config-operator get pods -o wide --field-selector spec.nodeName=" + n.Name},
		Evidence: diagnosis.Fact(n.Ref(), machineConfig+"state is "+state, diagnosis.That("metadata.annotations["+machineConfig+"state]", "", diagnosis.Is, state))}
	if state == "Degraded" {
		u.Says = "OpenShift could not give it its configuration"
	}
	if reason != "" {
		u.Says += ": " + view.Quotable(reason, 160)
		u.Evidence.Claims = append(u.Evidence.Claims, diagnosis.That("metadata.annotations["+machineConfig+"reason]", "", diagnosis.Is, reason))
	}
	return u
}
