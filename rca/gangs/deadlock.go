package gangs

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/terms"
	"github.com/unpend/unpend/rca/view"
	"github.com/unpend/unpend/rca/whatif"
	"github.com/unpend/unpend/watcher/incident"
)

// Workload is a waiting pod with what of its incident tells whether members wait for each other.
type Workload struct {
	view.Subject
	Incident incident.Incident
	Asks     []view.Ask
	Wants    corev1.ResourceList // all that the pod requests
	Verdict  whatif.Verdict
	Company  *terms.Company
}

// Deadlock is found where members of one workload wait for each other, those that run hold what
// those that wait need, and there is no more of it on any node that they may use, also if
// everybody else left. Nobody ends, so nobody starts.
func (c *Workload) Deadlock() *view.Finding {
	certainty, together := c.membersWait()
	if !together || len(c.Asks) == 0 {
		return nil
	}
	of := c.Cluster.MemberOf(c.Pod)
	mine := slices.DeleteFunc(c.Cluster.Running(of), func(p *corev1.Pod) bool { return !c.holdsAsked(p) })
	if len(mine) == 0 {
		return nil
	}
	if f := c.standsInOwnWay(mine, certainty); f != nil {
		return f
	}
	a := c.Asks[0]
	var room, without, total int64
	var evidence []diagnosis.Evidence
	others := false
	for _, v := range c.Verdict.Nodes {
		n := c.Cluster.Nodes[v.Node]
		if slices.ContainsFunc(v.Blockers, func(b whatif.Blocker) bool { return b.Plugin != "NodeResourcesFit" }) || n.Allocatable(a.Resource) == 0 {
			continue
		}
		has := n.Allocatable(a.Resource)
		total += has
		left := has
		for _, p := range n.Pods {
			q := n.Requests[p][a.Resource]
			if slices.Contains(mine, p) {
				left -= q.Value()
			} else if q.Sign() > 0 {
				others = true
			}
		}
		room += max(0, left) / a.Count
		without += has / a.Count
	}
	wait := int64(max(1, c.Incident.Waiting))
	if of != c.Incident.Workload { // others of the incident are none of its members
		wait = int64(max(1, c.Cluster.Waiting(of)))
	}
	if without == 0 || room >= wait || room > 0 && others {
		return nil // no node is large enough; or there is room for all once others leave
	}
	var held int64
	for _, p := range mine {
		q := view.PodRequests(p)[a.Resource]
		held += q.Value()
		evidence = append(evidence, diagnosis.Fact(view.PodRef(p), fmt.Sprintf("runs on %s, holds %d %s", p.Spec.NodeName, q.Value(), a.Resource), view.Holding(p, a.Resource, q.String())...))
	}
	evidence = append(evidence, diagnosis.Fact(c.Ref(), fmt.Sprintf("waits for %d %s", a.Count, a.Resource), c.asks(a.Resource)...))
	if c.Cluster.State.Unread["Pod"] != "" {
		certainty = diagnosis.Likely
	}
	if c.Incident.Workload.Kind == "Deployment" {
		return view.Found(certainty, fmt.Sprintf("its rollout makes a new pod before it stops an old one (maxUnavailable is 0), and its old pods hold what the new one waits for: %d of %d %s", held, total, a.Resource), evidence...)
	}
	return view.Found(certainty, fmt.Sprintf("its own workload holds what it waits for: all members ask for %d %s together, the nodes that they may use have %d, and no member ends before all run", held+wait*a.Count, a.Resource, total), evidence...)
}

// standsInOwnWay tells of a rollout whose pods have to be apart, where old ones stand on every
// node that would take the new one: it is the place, and not what it asks for, that they hold.
func (c *Workload) standsInOwnWay(mine []*corev1.Pod, certainty diagnosis.Certainty) *view.Finding {
	if c.Incident.Workload.Kind != "Deployment" || len(c.Verdict.Feasible()) > 0 {
		return nil
	}
	var evidence []diagnosis.Evidence
	for _, v := range c.Verdict.Nodes {
		n := c.Cluster.Nodes[v.Node]
		if slices.ContainsFunc(v.Blockers, func(b whatif.Blocker) bool { return b.Plugin != "InterPodAffinity" }) {
			continue // it would not take the pod without them either
		}
		apart := c.Company.InTheWay(n)
		if unmet, _, _ := c.Company.UnmetTerms(n); len(unmet) > 0 || len(apart) == 0 || slices.ContainsFunc(apart, func(p *corev1.Pod) bool { return !slices.Contains(mine, p) }) {
			return nil
		}
		evidence = append(evidence, diagnosis.Evidence{Ref: view.PodRef(apart[0]), Fact: "runs on " + n.Name + ", where no other of its kind may be"})
	}
	if len(evidence) == 0 {
		return nil
	}
	if c.Cluster.State.Unread["Pod"] != "" {
		certainty = diagnosis.Likely
	}
	return view.Found(certainty, fmt.Sprintf("its rollout makes a new pod before it stops an old one (maxUnavailable is 0), its pods have to be apart, and old ones stand on all %s that would take the new one", view.CountOf(len(evidence), "node")), evidence...)
}

func (c *Workload) holdsAsked(p *corev1.Pod) bool {
	list := view.PodRequests(p)
	return slices.ContainsFunc(c.Asks, func(a view.Ask) bool { q := list[a.Resource]; return q.Sign() > 0 })
}

// membersWait says whether members of the workload wait for each other, and how well that
// is known.
func (c *Workload) membersWait() (diagnosis.Certainty, bool) {
	w := c.Incident.Workload
	if certainty, meet := view.MembersMeet(c.Cluster.MemberOf(c.Pod).Kind); meet {
		return certainty, true
	}
	if owner, ok := c.Cluster.State.Owner(w.Kind, w.Namespace, w.Name); ok {
		if d, rolls := owner.(*appsv1.Deployment); rolls {
			return diagnosis.Proven, c.behindOldPods(d)
		}
		if j, job := owner.(*batchv1.Job); job {
			return diagnosis.Likely, j.Spec.CompletionMode != nil && *j.Spec.CompletionMode == batchv1.IndexedCompletion && j.Spec.Parallelism != nil && *j.Spec.Parallelism > 1 && c.rendezvous(j)
		}
	}
	return "", false
}

// behindOldPods says whether a rollout waits for itself: the pod is of a new template, those of
// former ones run, and none of them stops before it is ready.
func (c *Workload) behindOldPods(d *appsv1.Deployment) bool {
	s := d.Spec.Strategy
	if d.Spec.Paused || s.Type == appsv1.RecreateDeploymentStrategyType {
		return false
	}
	share := intstr.FromString("25%") // the API server's default
	if s.RollingUpdate != nil && s.RollingUpdate.MaxUnavailable != nil {
		share = *s.RollingUpdate.MaxUnavailable
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(&share, int(ptr.Deref(d.Spec.Replicas, 1)), false)
	if err != nil || n > 0 {
		return false
	}
	mine := metav1.GetControllerOfNoCopy(c.Pod)
	running := c.Cluster.Running(c.Incident.Workload)
	return mine != nil && !slices.ContainsFunc(running, func(p *corev1.Pod) bool {
		o := metav1.GetControllerOfNoCopy(p)
		return o == nil || view.Refers(o, mine.Kind, mine.Name, mine.UID)
	})
}

// rendezvous says whether an Indexed Job's pods find each other by name: independent ones
// have no use for a subdomain.
func (c *Workload) rendezvous(j *batchv1.Job) bool { return j.Spec.Template.Spec.Subdomain != "" }

// asks claims what the pod asks of a resource.
func (c *Workload) asks(name corev1.ResourceName) []diagnosis.Claim {
	q := c.Wants[name]
	return c.Claims(diagnosis.That(diagnosis.Requests, string(name), diagnosis.Is, q.String()))
}
