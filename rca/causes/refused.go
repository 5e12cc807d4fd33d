package causes

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
	"github.com/unpend/unpend/watcher/incident"
)

// refusalsOf finds those of one incident.
func refusalsOf(all []incident.Refusal, st *cluster.State, i incident.Incident) []incident.Refusal {
	var out []incident.Refusal
	for _, r := range all {
		if incident.ID(incident.Topmost(r.Pod, st.Owner), incident.Requests(r.Pod)) == i.ID {
			out = append(out, r)
		}
	}
	return out
}

// Next is the pod that the API server refused, as it would be made now; nil when
// the incident lacks none.
func (c *Case) Next() *corev1.Pod {
	if len(c.Refusals) == 0 {
		return nil
	}
	return c.Refusals[0].Pod
}

// refusedSays is what is quoted of the API server's refusal: a hint, never a proof.
func (c *Case) refusedSays() string {
	for _, r := range c.Refusals {
		if r.Says != "" {
			return r.Says
		}
	}
	return ""
}

// lacks is the evidence that pods do not exist.
func (c *Case) lacks() []diagnosis.Evidence {
	var out []diagnosis.Evidence
	for _, r := range c.Refusals {
		fact := fmt.Sprintf("wants %d pods, %d of them do not exist", r.Wants, r.Missing)
		if r.Says != "" {
			fact += "; its last refusal: " + view.Cut(strings.Join(strings.Fields(r.Says), " "), 300)
		}
		out = append(out, diagnosis.Fact(view.ObjectRef(r.Owner.Kind, r.Owner.Namespace, r.Owner.Name), fact, lacksClaims(r)...))
	}
	return out
}

// told is a finding about the pod that was refused.
func (c *Case) told(certainty diagnosis.Certainty, says string, evidence []diagnosis.Evidence) *finding {
	return &finding{certainty, says, append(evidence, c.lacks()...)}
}

// unreadSays is a cause that nothing but the refusal's text tells, because the
// objects that would prove it were not read; nil when the text does not.
func (c *Case) unreadSays(kind string, phrases ...string) *finding {
	text := c.refusedSays()
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

func (c *Case) podRef() string { return view.PodRef(c.Pod) }
