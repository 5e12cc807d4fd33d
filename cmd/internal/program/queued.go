package program

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/scaling"
	"github.com/unpend/unpend/watcher/incident"
)

// there says of an object that is asked about, and has no pod that waits, that it exists,
// and what it or its queue says of itself; empty where no such object was read.
func (t target) there(st *cluster.State) string {
	if t.name == "" {
		return ""
	}
	for _, j := range st.Jobs {
		if !t.is("Job") || !t.names("job", j) {
			continue
		}
		text := fmt.Sprintf("job/%s in namespace %s is there", j.Name, j.Namespace)
		suspended := j.Spec.Suspend != nil && *j.Spec.Suspend
		if suspended {
			text += ", and is suspended: it has no pods until somebody or its queue resumes it (spec.suspend is true)"
		}
		queue := j.Labels[incident.QueueLabel]
		switch said := t.queued(st, j.Namespace); {
		case said != "":
			return text + "; " + said
		case suspended && queue != "" && st.Unread["Workload.kueue.x-k8s.io"] == "":
			return text + "; its queue is " + queue + ", and Kueue has made no Workload for it (does Kueue run, with its integration for Jobs?)"
		case suspended && queue != "":
			return text + "; its queue is " + queue + ", and what Kueue says of it was not read"
		case suspended:
			return text
		}
		return text + ", and no pod of it waits"
	}
	if said := t.queued(st, t.namespace); said != "" {
		return said
	}
	return t.other(st)
}

// names says whether an object is the one that is asked about.
func (t target) names(kind string, o metav1.Object) bool {
	return o.GetName() == t.name && (t.kind == "" || t.kind == kind) && (t.namespace == "" || o.GetNamespace() == "" || o.GetNamespace() == t.namespace)
}

// queued quotes Kueue's Workload, or the PodGroup, that was made for what is asked about.
func (t target) queued(st *cluster.State, namespace string) string {
	for _, w := range st.QueuedWorkloads {
		if !t.stands("workload", w, namespace) {
			continue
		}
		text := fmt.Sprintf("%s waits in Kueue: Workload %s", t.of(w), w.GetName())
		if queue, _, _ := unstructured.NestedString(w.Object, "spec", "queueName"); queue != "" { //nolint:errcheck // another type is no name
			text += " in queue " + queue
		}
		if active, set, err := unstructured.NestedBool(w.Object, "spec", "active"); err == nil && set && !active {
			return text + " is not active (spec.active is false)"
		}
		for _, kind := range []string{"Finished", "Evicted", "QuotaReserved", "Admitted"} {
			k := scaling.ConditionOf(w, kind)
			if k.Status == "" || k.Met() != (kind == "Finished" || kind == "Evicted") {
				continue
			}
			return text + " says " + kind + "=" + k.Status + " " + k.Words()
		}
		if scaling.ConditionOf(w, "Admitted").Met() {
			return fmt.Sprintf("%s is admitted by Kueue (Workload %s), and no pod of it waits", t.of(w), w.GetName())
		}
		return text + " says nothing of why"
	}
	for _, g := range slices.Concat(st.PodGroups.Volcano, st.PodGroups.KAI, st.PodGroups.Plugins, st.PodGroups.Kubernetes) {
		if !t.stands("podgroup", g, namespace) {
			continue
		}
		text := fmt.Sprintf("%s is there: PodGroup %s", t.of(g), g.GetName())
		if phase, _, _ := unstructured.NestedString(g.Object, "status", "phase"); phase != "" { //nolint:errcheck // another type is no phase
			text += " is " + phase
		}
		if queue, _, _ := unstructured.NestedString(g.Object, "spec", "queue"); queue != "" { //nolint:errcheck // another type is no name
			text += ", queue " + queue
		}
		if k := scaling.ConditionOf(g, "Unschedulable"); k.Met() {
			text += ", says " + k.Words()
		}
		for _, e := range st.Events {
			if o := e.InvolvedObject; o.Kind == "PodGroup" && o.Namespace == g.GetNamespace() && o.Name == g.GetName() {
				return text + "; " + cmp.Or(e.ReportingController, e.Source.Component) + " says " + e.Reason + ": " + strings.Join(strings.Fields(e.Message), " ")
			}
		}
		return text
	}
	return ""
}

// stands says whether an object is what is asked about, or was made for that.
func (t target) stands(kind string, o *unstructured.Unstructured, namespace string) bool {
	if namespace != "" && o.GetNamespace() != namespace {
		return false
	}
	return t.names(kind, o) || slices.ContainsFunc(o.GetOwnerReferences(), func(r metav1.OwnerReference) bool {
		return r.Name == t.name && t.is(incident.OwnerKind(&r))
	})
}

// of names what an object was made for, or itself.
func (t target) of(o *unstructured.Unstructured) string {
	for _, r := range o.GetOwnerReferences() {
		if r.Name == t.name {
			return fmt.Sprintf("%s/%s in namespace %s", strings.ToLower(r.Kind), r.Name, o.GetNamespace())
		}
	}
	return fmt.Sprintf("%s/%s in namespace %s", strings.ToLower(o.GetKind()), o.GetName(), o.GetNamespace())
}

// other finds other objects that were read, by name.
func (t target) other(st *cluster.State) string {
	found := ""
	note := func(kind string, o metav1.Object) {
		if found != "" || !t.names(kind, o) {
			return
		}
		found = kind + "/" + o.GetName()
		if ns := o.GetNamespace(); ns != "" {
			found += " in namespace " + ns
		}
		found += " is there"
	}
	for kind, o := range st.Workloads {
		if t.is(kind) {
			note(strings.ToLower(kind), o)
		}
	}
	for kind, o := range st.Operated {
		if name, _, _ := strings.Cut(kind, "."); t.is(kind) {
			note(strings.ToLower(name), o)
		}
	}
	for _, o := range st.Owners {
		if t.is(incident.KindOf(o.GroupVersionKind().GroupKind())) {
			note(strings.ToLower(o.Kind), o)
		}
	}
	if found != "" {
		return found + ", and no pod of it waits"
	}
	kinds := map[string][]*unstructured.Unstructured{"localqueue": st.Queues.Local, "clusterqueue": st.Queues.Cluster, "resourceflavor": st.Queues.Flavors, "admissioncheck": st.Queues.Checks, "topology": st.Queues.Topologies, "queue": slices.Concat(st.Queues.Volcano, st.Queues.KAI), "nodepool": st.NodePools, "nodeclaim": st.NodeClaims}
	for kind, all := range st.NodeClasses.ByKind() {
		kinds[strings.ToLower(kind)] = all
	}
	for kind, all := range kinds {
		if t.kind != kind { // only by its kind: a workload may have the name of a queue
			continue
		}
		for _, o := range all {
			note(kind, o)
		}
	}
	return found
}
