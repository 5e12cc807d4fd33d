package tally

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
	"github.com/unpend/unpend/remediate/plan"
	"github.com/unpend/unpend/remediate/v1alpha1"
	"github.com/unpend/unpend/watcher/incident"
)

// mostWatched bounds the pods that a plan watches: they are in its journal.
const mostWatched = 1000

// Before is what a plan that begins will be held to: who waits, and who runs near to what it
// does and is to go on running.
func Before(rem *v1alpha1.Remediation, st *cluster.State, fix diagnosis.Fix) *v1alpha1.Before {
	b := &v1alpha1.Before{}
	named := map[diagnosis.PodName]bool{}
	for _, p := range slices.Concat(fix.Cost.Evictions, fix.Cost.Alternates, fix.Cost.Restarts) {
		named[p] = true
	}
	for i := range rem.Spec.Actions {
		for _, t := range rem.Spec.Actions[i].Stopped() {
			named[diagnosis.PodName{Namespace: t.Namespace, Name: t.Name}] = true
		}
	}
	b.Workloads = append(b.Workloads, rem.Spec.Workload)
	nodes := touched(rem)
	for _, p := range st.Pods {
		if named[diagnosis.PodName{Namespace: p.Namespace, Name: p.Name}] {
			if w := incident.Topmost(p, st.Owner); !slices.Contains(b.Workloads, w) {
				b.Workloads = append(b.Workloads, w)
			}
			nodes[p.Spec.NodeName] = true
		}
	}
	besides := 0 // that wait already, and are none of the incident's
	for _, p := range st.Pods {
		near := nodes[p.Spec.NodeName] || p.Namespace == rem.Spec.Workload.Namespace && incident.Topmost(p, st.Owner) == rem.Spec.Workload
		switch {
		case named[diagnosis.PodName{Namespace: p.Namespace, Name: p.Name}]:
		case Waits(p):
			w := incident.Topmost(p, st.Owner)
			if w == rem.Spec.Workload {
				b.Waiting++
			}
			if slices.Contains(b.Workloads, w) && !ofIncident(rem, p, w) {
				besides++
			}
		case near && view.HoldsNode(p) && p.Status.Phase == corev1.PodRunning && !stays(p) && len(b.Running) < mostWatched:
			b.Running = append(b.Running, watched(p))
		}
	}
	if fix.Effect != nil {
		b.Announced = new(fix.Effect.WaitingAfter + besides)
	}
	return b
}

// ofIncident says that the plan is for a pod of its workload. Of a hundred and more it names the
// first alone.
func ofIncident(rem *v1alpha1.Remediation, p *corev1.Pod, w incident.Ref) bool {
	return w == rem.Spec.Workload && (len(rem.Spec.Waiting) >= plan.MostWaiting || slices.ContainsFunc(rem.Spec.Waiting, func(o v1alpha1.Pod) bool { return o.UID == p.UID }))
}

// touched are the nodes that a plan changes, takes pods from, or has a pod land on.
func touched(rem *v1alpha1.Remediation) map[string]bool {
	nodes := map[string]bool{}
	for _, name := range append(slices.Clone(rem.Spec.Nodes), rem.Spec.Node) {
		nodes[name] = name != ""
	}
	for _, a := range rem.Spec.Actions {
		if a.Target.Kind == "Node" {
			nodes[a.Target.Name] = true
		}
	}
	return nodes
}

// Waits says that a pod waits for a node.
func Waits(p *corev1.Pod) bool {
	return p.Spec.NodeName == "" && p.Status.Phase == corev1.PodPending && p.DeletionTimestamp == nil
}

// stays says that a pod belongs to its node: MIG manager stops those of the operator while
// it works, and they come back.
func stays(p *corev1.Pod) bool {
	by := metav1.GetControllerOfNoCopy(p)
	return by != nil && (by.Kind == "DaemonSet" || by.Kind == "Node") || p.Annotations[corev1.MirrorPodAnnotationKey] != ""
}

func watched(p *corev1.Pod) v1alpha1.Watched {
	w := v1alpha1.Watched{Namespace: p.Namespace, Name: p.Name, UID: p.UID}
	if by := metav1.GetControllerOfNoCopy(p); by != nil {
		w.OwnerKind, w.Owner = incident.OwnerKind(by), by.Name
	}
	return w
}
