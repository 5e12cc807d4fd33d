package gangs

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

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
	// Stuck are the pods of other workloads, found with a deadlock, that wait as this one does: they
	// do not end by themselves either.
	Stuck []*corev1.Pod
}

// Deadlock is found where members of one workload wait for each other, those that run hold what
// those that wait need, and there is no more of it on any node that they may use, also if
// everybody else left. Nobody ends, so nobody starts.
func (c *Workload) Deadlock() *view.Finding {
	certainty, together := c.membersWait()
	if !together {
		return nil
	}
	of := c.Cluster.MemberOf(c.Pod)
	if r := c.roller(); r.Kind == "Deployment" {
		of = r // what owns it may own others
	}
	mine, former := c.Cluster.Running(of), Former(c.Cluster, c.Pod)
	if f := c.standsInOwnWay(mine, certainty); f != nil {
		return f
	}
	s := c.scarce()
	if s == nil || c.roller().Kind == "DaemonSet" { // which has a pod for each node: none waits for the others
		return nil
	}
	if s.host && c.roller().Kind != "Deployment" && len(former) == 0 && !unbegun(mine) || len(former) == 0 && works(mine) {
		return nil // who waits for CPU or memory is let in by anybody who ends; or it goes on with fewer
	}
	for _, p := range former {
		if !slices.Contains(mine, p) { // else what owns both revisions is read
			mine = append(mine, p)
		}
	}
	mine = slices.DeleteFunc(mine, func(p *corev1.Pod) bool { return s.of(view.PodRequests(p)) == 0 })
	if len(mine) == 0 {
		return nil
	}
	halves := c.halves(of, mine)
	if view.GroupOf(c.Pod) != "" && len(halves) == 0 && len(former) == 0 {
		return nil // those that hold it are whole, and work
	}
	stuck := c.stuckToo(s, of)
	r := c.roomOf(s, mine, stuck)
	evidence := r.evidence
	wait := int64(max(1, c.Incident.Waiting))
	if of != c.Incident.Workload { // others of the incident are none of its members
		wait = int64(max(1, c.Cluster.Waiting(of)))
	}
	if r.without == 0 || r.left >= wait || r.left > 0 && r.leave {
		return nil // no node is large enough; or there is room for all once others leave
	}
	if set := renewing(c.Cluster, c.Pod); set != nil && r.own < int64(ptr.Deref(set.Spec.Replicas, 1)) {
		return nil // there is no room for all of the new revision, in whatever order
	}
	var held, old int64
	for _, p := range mine {
		q := view.PodRequests(p)[s.name]
		held += s.of(view.PodRequests(p))
		if slices.Contains(former, p) {
			old += s.of(view.PodRequests(p))
		}
		evidence = append(evidence, diagnosis.Fact(view.PodRef(p), fmt.Sprintf("runs on %s, holds %s %s", p.Spec.NodeName, q.String(), s.name), append(view.Holding(p, s.name, q.String()), view.InGroup(p)...)...))
	}
	all := append(slices.Clone(mine), c.Cluster.WaitingOf(of)...)
	counted := slices.Concat(c.keeps(), c.asks(s.name), c.mayUse(s, r.total), c.together(mine, s), c.together(all, s))
	evidence = append(evidence, diagnosis.Fact(c.Ref(), fmt.Sprintf("waits for %s %s", s.amount(s.count), s.name), counted...))
	if c.Cluster.State.Unread["Pod"] != "" {
		certainty = diagnosis.Likely
	}
	if c.roller().Kind == "Deployment" {
		return view.Found(certainty, fmt.Sprintf("its rollout makes a new pod before it stops an old one (%s), and its old pods hold what the new one waits for: %s of %s %s", c.keepsSays(), s.amount(held), s.amount(r.total), s.name), evidence...)
	}
	if old > 0 {
		return view.Found(certainty, fmt.Sprintf("its rollout keeps the pods of the old revision until those of the new one are ready, and they hold what the new one waits for: %s %s", s.amount(old), s.name), evidence...)
	}
	if len(halves) > 0 {
		return view.Found(certainty, halvesSay(halves, s.name), evidence...)
	}
	if len(r.others) > 0 {
		return view.Found(diagnosis.Likely, s.together(of, r.others), evidence...)
	}
	return view.Found(certainty, fmt.Sprintf("its own workload holds what it waits for: all members ask for %s %s together, the nodes that they may use have %s, and no member ends before all run", s.amount(held+wait*s.count), s.name, s.amount(r.total)), evidence...)
}

// room is what the nodes that the pods may use have of what is scarce.
type room struct {
	left, own, without int64 // for so many pods: beside who stays, were its own pods not there, and were nobody there
	total              int64
	leave              bool                  // somebody who holds of it ends by himself
	others             map[incident.Ref]bool // workloads whose pods are stuck, and hold of it
	evidence           []diagnosis.Evidence
}

// roomOf counts it, and notes whose pods are stuck on it.
func (c *Workload) roomOf(s *scarce, mine []*corev1.Pod, stuck map[*corev1.Pod]incident.Ref) room {
	r := room{others: map[incident.Ref]bool{}}
	for _, v := range c.Verdict.Nodes {
		n := c.Cluster.Nodes[v.Node]
		if forbidden(v) || s.of(n.Status.Allocatable) == 0 {
			continue
		}
		has := s.of(n.Status.Allocatable)
		r.total += has
		left, mines := has, int64(0)
		for _, p := range n.Pods {
			held := s.of(n.Requests[p])
			switch {
			case held == 0:
			case slices.Contains(mine, p):
				left -= held
				mines += held
			case s.stays(p, stuck):
				left -= held
				if by, is := stuck[p]; is {
					r.others[by], c.Stuck = true, append(c.Stuck, p)
				}
			default:
				r.leave = true
			}
		}
		if s.host {
			q := n.Status.Allocatable[s.name]
			r.evidence = append(r.evidence, diagnosis.Fact(n.Ref(), fmt.Sprintf("allocatable %s=%s", s.name, q.String()), diagnosis.That(diagnosis.Allocatable, string(s.name), diagnosis.Is, q.String())))
		}
		r.left += max(0, left) / s.count
		r.own += max(0, left+mines) / s.count
		r.without += has / s.count
	}
	return r
}

// roller is what replaces the workload's pods by new ones: a Deployment or DaemonSet, though an operator's object may own it; else
// the workload.
func (c *Workload) roller() incident.Ref {
	if r, ok := incident.Roller(c.Pod, c.Cluster.State.Owner); ok && view.RevisionOf(c.Pod).Service == "" { // of which each has its own
		return r
	}
	return c.Incident.Workload
}

// halves are the groups of a workload that hold a part of what is asked and wait for the rest; none
// where all members meet.
func (c *Workload) halves(of incident.Ref, mine []*corev1.Pod) []string {
	waiting, held := c.Cluster.WaitingGroups(of), map[string]bool{}
	for _, p := range mine {
		if g := view.GroupOf(p); waiting[g] {
			held[g] = true
		}
	}
	return slices.SortedFunc(maps.Keys(held), func(a, b string) int { return cmp.Or(len(a)-len(b), strings.Compare(a, b)) })
}

// mostGroups bounds how many groups are named.
const mostGroups = 8

func halvesSay(groups []string, name corev1.ResourceName) string {
	if len(groups) == 1 {
		return fmt.Sprintf("group %s of it holds a part of the %s that it needs and waits for the rest, and does not begin before all of its members run", groups[0], name)
	}
	which := strings.Join(groups[:min(len(groups), mostGroups)], ", ")
	if len(groups) > mostGroups {
		which += " and others"
	}
	return fmt.Sprintf("groups %s of it each hold a part of the %s that they need and wait for the rest, and none begins before all of its members run", which, name)
}

// membersWait says whether members of the workload wait for each other, and how well that
// is known.
func (c *Workload) membersWait() (diagnosis.Certainty, bool) {
	w := c.roller()
	if certainty, meet := view.MembersMeet(c.Cluster.MemberOf(c.Pod).Kind); meet {
		return certainty, true
	}
	if len(Former(c.Cluster, c.Pod)) > 0 {
		if renewing(c.Cluster, c.Pod) != nil {
			return diagnosis.Proven, true
		}
		return diagnosis.Likely, true
	}
	if owner, ok := c.Cluster.State.Owner(w.Kind, w.Namespace, w.Name); ok {
		if d, rolls := owner.(*appsv1.Deployment); rolls {
			return diagnosis.Proven, c.behindOldPods(d)
		}
		if d, set := owner.(*appsv1.DaemonSet); set {
			return diagnosis.Proven, surging(d)
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
	if d.Spec.Paused || d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType {
		return false
	}
	share, _ := maxUnavailable(d)
	n, err := intstr.GetScaledValueFromIntOrPercent(&share, int(ptr.Deref(d.Spec.Replicas, 1)), false)
	if err != nil || n > 0 {
		return false
	}
	mine := metav1.GetControllerOfNoCopy(c.Pod)
	running := c.Cluster.Running(c.roller())
	return mine != nil && !slices.ContainsFunc(running, func(p *corev1.Pod) bool {
		o := metav1.GetControllerOfNoCopy(p)
		return o == nil || view.Refers(o, mine.Kind, mine.Name, mine.UID)
	})
}

// rendezvous says whether an Indexed Job's pods find each other by name: independent ones
// have no use for a subdomain.
func (c *Workload) rendezvous(j *batchv1.Job) bool { return j.Spec.Template.Spec.Subdomain != "" }
