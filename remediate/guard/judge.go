package guard

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/remediate/v1alpha1"
)

// View is the world that a plan is judged in, read just before.
type View struct {
	Now    time.Time
	Nodes  []*corev1.Node         // all of the cluster
	Plans  []v1alpha1.Remediation // all; the one that is judged may be among them
	Paused bool                   // the kill switch
	// GuardsGone: it is on because its ConfigMap was deleted.
	GuardsGone bool
	// Breaker as it is recorded. One that is about to open holds a plan back even
	// before that is recorded.
	Breaker BreakerState
	// Namespace of the guard-rails, for the commands that a person is told.
	Namespace string
	// Wanted are, by incident, the resources that its pods wait for.
	Wanted map[string][]corev1.ResourceName
}

// Decision is what the limits say of a plan.
type Decision string

// The decisions.
const (
	Allow  Decision = "allow"
	Wait   Decision = "wait"
	Refuse Decision = "refuse"
)

// Verdict is a decision and why.
type Verdict struct {
	Decision Decision
	// Rule that decided, of a closed set, for metrics; empty when it is allowed.
	Rule string
	// Reason is for a person: what is in the way, the figure, the limit, what to do.
	// It stays the same for as long as the world does, whatever the time.
	Reason string
	// Until is when to look again; zero when only a change in the cluster helps.
	Until time.Time
	// Phase that the plan has by this.
	Phase v1alpha1.Phase
}

// rule is one guard-rail. Its verdict is empty when it has nothing against the plan.
type rule struct {
	name  string
	judge func(*question) Verdict
}

// beforehand are the rules for a plan that has not begun, in order: the first that
// has something against it decides.
func beforehand() []rule {
	return slices.Concat([]rule{
		// What no waiting mends is said at once.
		{"ended", ended},                    // a plan is carried out once
		{"target", target},                  // an empty set is never "all"
		{"expired", expired},                // a late yes to what was proved long ago
		{"superseded", superseded},          // a yes to the older of two plans
		{"evictions-per-plan", stopsOfPlan}, // too much for one plan
		{"opposite", opposite},              // to and fro
	}, forAll(), []rule{
		// What others do just now.
		{"node-busy", nodeBusy},
		{"nodes-in-flight", nodesInFlight},
		{"pool-unavailable", poolUnavailable},
		{"last-healthy", lastHealthy}, // only once nobody else's work makes it the last
		{"evictions-per-hour", stopsOfHour},
		{"cool-down", coolDown},
	})
}

// forAll are the rules that stop all plans, whatever they do.
func forAll() []rule {
	return []rule{{"paused", paused}, {"breaker", breaker}, {"freeze", freeze}}
}

// Stopped says why no plan at all may begin now, no matter who carries it out: a person has
// paused unpend, the breaker is open, or a freeze window is. Empty: nothing of that.
func (l Limits) Stopped(v View) string {
	return first(&question{limits: l, view: v, plan: &v1alpha1.Remediation{}}, forAll()).Reason
}

// underWay are the rules between two writes of a plan that has begun. Whatever else
// has come up since, a node half changed is worse than one that is done.
func underWay() []rule { return []rule{{"paused", paused}} }

// question is a plan that is judged, and what several rules ask about it.
type question struct {
	limits Limits
	view   View
	plan   *v1alpha1.Remediation
	nodes  map[string]bool // that the plan is about
	taken  map[string]bool // those that it takes out of use
	pool   *pool
}

// Judge says whether a plan may begin; of one that has begun, whether it may go on.
// It takes time in proportion to the nodes and plans of the view.
func (l Limits) Judge(v View, plan *v1alpha1.Remediation) Verdict {
	rules, phase := beforehand(), v1alpha1.Running
	if plan.Status.Phase.Begun() {
		rules, phase = underWay(), plan.Status.Phase
	}
	if found := first(newQuestion(l, v, plan), rules); found.Decision != "" {
		return found
	}
	return Verdict{Decision: Allow, Phase: phase}
}

func newQuestion(l Limits, v View, plan *v1alpha1.Remediation) *question {
	q := &question{limits: l, view: v, plan: plan, nodes: map[string]bool{}, taken: map[string]bool{}}
	for name := range nodesOf(plan) {
		q.nodes[name] = true
	}
	for name := range takenBy(plan) {
		q.taken[name] = true
	}
	return q
}

// first is the verdict of the first rule that has something against the plan; empty when
// none has.
func first(q *question, rules []rule) Verdict {
	for _, r := range rules {
		if found := r.judge(q); found.Decision != "" {
			found.Rule = r.name
			return found
		}
	}
	return Verdict{}
}

func refuse(phase v1alpha1.Phase, format string, args ...any) Verdict {
	return Verdict{Decision: Refuse, Phase: phase, Reason: fmt.Sprintf(format, args...)}
}

// wait holds a plan back; one that has begun stays in its phase.
func (q *question) wait(until time.Time, format string, args ...any) Verdict {
	phase := v1alpha1.Queued
	if q.plan.Status.Phase.Begun() {
		phase = q.plan.Status.Phase
	}
	return Verdict{Decision: Wait, Phase: phase, Until: until.UTC(), Reason: fmt.Sprintf(format, args...)}
}

// instant writes a time for a person.
func instant(t time.Time) string { return t.Format(time.RFC3339) }
