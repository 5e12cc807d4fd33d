package admission

import (
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"

	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/watcher/incident"
)

// Refusals lists who in a state lacks pods because the API server refused them, or a queue
// has not let it begin, by owner. The pods in it are as they would be made now.
func Refusals(st *cluster.State) []incident.Refusal {
	out := incident.Makers{Now: st.Now, ReplicaSets: st.ReplicaSets, Deployments: st.Deployments, StatefulSets: st.StatefulSets, DaemonSets: st.DaemonSets,
		Jobs: st.Jobs, Events: st.Events, LimitRanges: st.LimitRanges, Held: heldOf(st), AllPods: st.Unread["Pod"] == "", AllJobs: st.Unread["Job"] == ""}.Refusals(st.Pods, st.Owner)
	for _, r := range out {
		withPriority(r.Pod, st.PriorityClasses)
	}
	return out
}

// withPriority gives a pod the priority that admission would: that of its class, or
// of the class that is the default of all (plugin/pkg/admission/priority).
func withPriority(p *corev1.Pod, classes []*schedulingv1.PriorityClass) {
	if class := classOf(p, classes); class != nil {
		p.Spec.PriorityClassName, p.Spec.Priority, p.Spec.PreemptionPolicy = class.Name, &class.Value, class.PreemptionPolicy
	}
}

// classOf is the class that a pod is of, or would be; nil: none.
func classOf(p *corev1.Pod, classes []*schedulingv1.PriorityClass) (class *schedulingv1.PriorityClass) {
	for _, c := range classes {
		switch {
		case c.Name == p.Spec.PriorityClassName:
			class = c
		case p.Spec.PriorityClassName == "" && c.GlobalDefault && (class == nil || c.Value < class.Value):
			class = c
		}
	}
	return class
}

// PriorityOf is the highest priority of an incident's pods. Where none of them says (it does
// not exist yet, or a dump has its manifest), it is what admission would give to the one that
// stands for them; nil where that cannot be told: every cluster has classes of its own, so
// none at all means that they were not read.
func PriorityOf(i incident.Incident, p *corev1.Pod, classes []*schedulingv1.PriorityClass) *int32 {
	if i.Priority != nil {
		return i.Priority
	}
	switch class := classOf(p, classes); {
	case class != nil:
		return &class.Value
	case p.Spec.PriorityClassName != "" || len(classes) == 0:
		return nil
	}
	return new(int32)
}
