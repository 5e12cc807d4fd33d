package admission

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
	"github.com/unpend/unpend/watcher/incident"
)

// Refused are the owners that lack pods of one incident because the API server refused them; none
// for an incident whose pods exist.
type Refused struct {
	Cluster  *view.Cluster
	Workload incident.Ref
	All      []incident.Refusal
}

// RefusedOf finds those of an incident among all of the cluster.
func RefusedOf(w *view.Cluster, i incident.Incident) *Refused {
	out := &Refused{Cluster: w, Workload: i.Workload}
	for _, r := range w.Refusals {
		if incident.ID(incident.Topmost(r.Pod, w.State.Owner), incident.Requests(r.Pod)) == i.ID {
			out.All = append(out.All, r)
		}
	}
	return out
}

// Next is the pod that the API server refused, as it would be made now; nil when
// the incident lacks none.
func (c *Refused) Next() *corev1.Pod {
	if len(c.All) == 0 {
		return nil
	}
	return c.All[0].Pod
}

// Says is what is quoted of the API server's refusal: a hint, never a proof.
func (c *Refused) Says() string {
	for _, r := range c.All {
		if r.Says != "" {
			return r.Says
		}
	}
	return ""
}

// lacks is the evidence that pods do not exist.
func (c *Refused) lacks() []diagnosis.Evidence {
	var out []diagnosis.Evidence
	for _, r := range c.All {
		fact := "wants 1 pod, and it does not exist"
		switch {
		case r.Wants > 1 && r.Missing == 1:
			fact = fmt.Sprintf("wants %d pods, 1 of them does not exist", r.Wants)
		case r.Wants > 1:
			fact = fmt.Sprintf("wants %d pods, %d of them do not exist", r.Wants, r.Missing)
		}
		if r.Says != "" {
			fact += "; its last refusal: " + view.Cut(strings.Join(strings.Fields(r.Says), " "), 300)
		}
		ref := view.ObjectRef(r.Owner.Kind, r.Owner.Namespace, r.Owner.Name)
		out = append(out, diagnosis.Fact(ref, fact, c.lacksClaims(r)...))
		for _, l := range r.Later {
			out = append(out, laterSays(ref, l))
		}
	}
	return out
}

// laterSays tells of pods that are not tried before the one that was refused; of how many, where a field says that.
func laterSays(ref string, l incident.Later) diagnosis.Evidence {
	if l.Wants == "" {
		return diagnosis.Fact(ref, "makes the pods of "+l.Name+" only after it", diagnosis.That(l.At, "", diagnosis.Exists, ""))
	}
	return diagnosis.Fact(ref, fmt.Sprintf("makes %s of %s only after it", view.CountOf(l.Missing, "pod"), l.Name), setClaims(l.Set, l.Count, l.Missing)...)
}

// told is a finding about the pod that was refused.
func (c *Refused) told(certainty diagnosis.Certainty, says string, evidence []diagnosis.Evidence) *view.Finding {
	return view.Found(certainty, says, append(evidence, c.lacks()...)...)
}

// unreadSays is a cause that nothing but the refusal's text tells, because the
// objects that would prove it were not read; nil when the text does not.
func (c *Refused) unreadSays(kind string, phrases ...string) *view.Finding {
	text := c.Says()
	if c.Cluster.State.Unread[kind] == "" {
		return nil
	}
	for _, p := range phrases {
		if strings.Contains(text, p) {
			return c.told(diagnosis.Possible, "the API server said: "+view.Cut(text, 160), nil)
		}
	}
	return nil
}
