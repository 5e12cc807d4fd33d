package growth

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/scaling"
	"github.com/unpend/unpend/rca/view"
)

// coming is a machine that Karpenter was asked for with the pod in mind, by its NodeClaim, and where it is
// told of. How far it has come is a question for each stage by itself: to be launched, to register, to be
// usable.
type coming struct {
	w *view.Cluster
	k *scaling.Claim
	g *Growth
	// before is one that was asked for before it and given up without having registered, and gaveUp what tells of it;
	// empty where none is known.
	before string
	gaveUp []diagnosis.Evidence
}

// tell tells how far it has come (conditions in pkg/apis/v1/nodeclaim_status.go; Unknown means
// that it is waited for).
func (m *coming) tell() {
	m.g.Suits = true
	switch k := m.k; {
	case !k.Launched.Met() && k.Launched.Status != "":
		m.launches()
	case k.Doubled():
		m.stuck(fmt.Sprintf("several nodes have the machine of NodeClaim %s, and Karpenter takes none of them for it: %s", k.Name, wordsOr(k.Registered, "it does not say more")), k.Registered)
	case k.Registered.Status == string(corev1.ConditionFalse): // what is waited for is Unknown
		m.stuck(fmt.Sprintf("the machine of NodeClaim %s joined, and Karpenter does not take it for its own: %s", k.Name, wordsOr(k.Registered, "it does not say why")), k.Registered)
	case !k.Registered.Met() && k.Node == "":
		m.registers()
	case !k.Initialized.Met():
		m.becomesUsable()
	}
}

func (m *coming) launches() {
	k := m.k
	codes := scaling.Codes(k.Launched.Reason, k.Launched.Message)
	switch {
	case len(codes) > 0 && !onlySetup(codes), strings.Contains(k.Launched.Reason, "InsufficientCapacity"):
		m.g.Codes, m.g.Claim = codes, k
		m.g.Pools = poolsNamed(m.w.Outlook(), []string{k.Pool})
		m.g.tell(diagnosis.CloudCapacityRefused, diagnosis.Proven, refusedSays("the NodeClaim "+k.Name, codes), diagnosis.Fact(m.ref(), "Launched="+k.Launched.Status+" "+view.Cut(k.Launched.Words(), 300), append(view.SaysOf(k.Launched), view.ConditionIs("Launched", k.Launched.Status))...))
	case len(codes) > 0 || strings.HasSuffix(k.Launched.Reason, "Failed") || k.Launched.Status == string(corev1.ConditionFalse):
		m.stuck("Karpenter cannot launch a node: NodeClaim "+k.Name+" is not launched: "+view.Cut(k.Launched.Words(), 160), k.Launched)
	case m.late(launchedBy):
		m.stuck(fmt.Sprintf("the node that Karpenter asked for %s ago was never launched: %s", view.Age(m.age()), view.Cut(k.Launched.Words(), 160)), k.Launched)
	default:
		m.comes(m.due(launchedBy), "is being launched", k.Launched)
	}
}

func (m *coming) registers() {
	k := m.k
	if m.late(promised) {
		m.stuck(fmt.Sprintf("the node that Karpenter asked for %s ago has not registered: NodeClaim %s: %s", view.Age(m.age()), k.Name, wordsOr(k.Registered, "no word of it")), k.Registered)
		return
	}
	if pool := m.w.Outlook().Pool(k.Pool); pool != nil && pool.Registers.Status == string(corev1.ConditionFalse) {
		m.stuckBy("NodePool/"+k.Pool, fmt.Sprintf("machines that Karpenter launches for NodePool %s do not join the cluster (NodeRegistrationHealthy=False): NodeClaim %s is the last of them", k.Pool, k.Name), pool.Registers)
		return
	}
	if m.before != "" {
		m.stuck(fmt.Sprintf("machines that Karpenter launches for NodePool %s do not join the cluster: NodeClaim %s was given up, and %s, which took its place, has not registered for %s", k.Pool, m.before, k.Name, view.Age(m.age())), k.Registered)
		m.g.told[diagnosis.ScaleUpStuck].Evidence = append(m.g.told[diagnosis.ScaleUpStuck].Evidence, m.gaveUp...)
		return
	}
	m.comes(m.due(promised), "has not registered yet", k.Registered)
}

func (m *coming) becomesUsable() {
	k := m.k
	since := cmp.Or(k.Registered.Since, k.Created)
	if since.IsZero() || m.w.State.Now.Sub(since) > equipped {
		m.g.Kept = m.keptOn()
		m.stuck(fmt.Sprintf("the new node %s came and is not usable: %s", cmp.Or(k.Node, "of NodeClaim "+k.Name), wordsOr(k.Initialized, "it is not initialised")), k.Initialized)
		return
	}
	m.comes(since.Add(equipped), "has registered as "+cmp.Or(k.Node, "a node")+" and is not initialised yet", k.Initialized)
}

func (m *coming) ref() string { return "NodeClaim/" + m.k.Name }

func (m *coming) age() time.Duration { return m.w.State.Now.Sub(m.k.Created) }

// launchedBy is how long a launch may take: after that Karpenter deletes the NodeClaim and makes
// another (pkg/controllers/nodeclaim/lifecycle/liveness.go, launchTimeout).
const launchedBy = 5 * time.Minute

// late says whether Karpenter would have given it up by now, where a stage may last so long.
func (m *coming) late(within time.Duration) bool { return !m.k.Created.IsZero() && m.age() > within }

// due is until when a stage that may last so long has to be over.
func (m *coming) due(within time.Duration) time.Time {
	return cmp.Or(m.k.Created, m.w.State.Now).Add(within)
}

// comes tells that it is on its way.
func (m *coming) comes(by time.Time, what string, of scaling.Condition) {
	m.g.Since, m.g.By, m.g.Claim = cmp.Or(m.k.Created, m.w.State.Now), by, m.k
	m.g.tell(diagnosis.ScalingUp, diagnosis.Likely, "Karpenter is bringing a node: NodeClaim "+m.k.Name+" "+what, diagnosis.Fact(m.ref(), conditionText(what, of), view.SaysOf(of)...))
}

// stuck tells that it comes no further, as it says itself.
func (m *coming) stuck(says string, of scaling.Condition) { m.stuckBy(m.ref(), says, of) }

// stuckBy is stuck as another object says.
func (m *coming) stuckBy(ref, says string, of scaling.Condition) {
	m.g.Claim = m.k
	if m.g.Since.IsZero() {
		m.g.Since = m.k.Created
	}
	m.g.tell(diagnosis.ScaleUpStuck, diagnosis.Likely, says, diagnosis.Fact(ref, conditionText("Karpenter waits", of), view.SaysOf(of)...))
}

// keptOn are the taints that somebody takes off a machine before it can be used, of those that
// still stand on its node: by its NodeClaim, by what Karpenter says it waits for, and those of
// Kubernetes' own that Karpenter knows (pkg/scheduling/taints.go, KnownEphemeralTaints).
func (m *coming) keptOn() []corev1.Taint {
	n := m.w.Nodes[m.k.Node]
	if n == nil {
		return nil
	}
	var out []corev1.Taint
	for _, t := range n.Spec.Taints {
		named := strings.Contains(m.k.Initialized.Message, `"`+t.ToString()+`"`)
		if named || t.Key == "node.cloudprovider.kubernetes.io/uninitialized" || slices.ContainsFunc(m.k.Startup, func(s corev1.Taint) bool { return s.MatchTaint(&t) }) {
			out = append(out, t)
		}
	}
	return out
}
