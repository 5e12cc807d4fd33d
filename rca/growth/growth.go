package growth

import (
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/scaling"
	"github.com/unpend/unpend/rca/view"
)

// Case is a waiting pod with what of it autoscalers look at.
type Case struct {
	Cluster *view.Cluster
	Pod     *corev1.Pod
	Asks    []view.Ask
	Wants   corev1.ResourceList // all that it requests
	// NoNode: no filter accepts a node as things are.
	NoNode bool
}

// promised is how long a node that was promised may take: after that the cluster autoscaler
// gives a machine up that has not joined (max-node-provision-time), Karpenter a NodeClaim
// that has not registered (pkg/controllers/nodeclaim/lifecycle/liveness.go).
const promised = 15 * time.Minute

// equipped is how long a node that has registered may take until its GPUs are there:
// drivers are built meanwhile.
const equipped = 10 * time.Minute

// Growth is what the autoscalers make of a pod.
type Growth struct {
	told map[diagnosis.CauseID]*view.Finding
	// Suits: the autoscaler took a pool for one that the pod fits, or the pool's own words
	// say so. Then a node of it is what the pod was meant for.
	Suits bool
	// Since is when a node was promised, and By until when it has to be there; zero: not
	// told.
	Since, By time.Time
	// Pools are the NodePools it is about, Groups the cluster autoscaler's node groups.
	Pools  []scaling.Pool
	Groups []scaling.Group
	// Claim is the NodeClaim that is stuck or under way; nil for none that is known.
	Claim *scaling.Claim
	// Kept are the taints on the new node that somebody was to take off by now.
	Kept []corev1.Taint
	// Codes are the cloud's.
	Codes []scaling.Code
	// Bar is what keeps the autoscaler from helping, Lacks the resource that no machine it
	// knows has, Said its own words.
	Bar   scaling.Bar
	Lacks string
	Said  string
	// Crowd is how many pods a machine of the pool would have to take; 0 where it takes them.
	Crowd int64
	// Takers are the DaemonSets that take of each machine of the pool what the pod asks for.
	Takers []*appsv1.DaemonSet
	// Disk: the disk that the pool's node class gives each machine is smaller than what is asked of it.
	Disk bool
	// Shares is a node that offers more of what the pod asks for than Karpenter counts on its machine.
	Shares *view.Node
	// Small are what machines of the Groups have too little of, and Roomiest is the one that has most.
	Small    []corev1.ResourceName
	Roomiest *view.Node
	// Over is the key of the pod's affinity or spread that no new node would meet, Counted the
	// NodePools that make values of it where the pod cannot be.
	Over    string
	Counted []string
	// Beside are the values of Over which Karpenter counts beside one that has no name.
	Beside []string
	// Startup is the taint that fresh nodes have for a while, and that the autoscaler takes for one that stays.
	Startup string
	// Selects is the label that the pod selects and that machines of the Groups may have, by their names alone.
	Selects string
	// met are labels that the pod selects and that a pool's machines would have.
	met map[string]string
	// Like: a fresh node like one that the Groups have, or like Shares, would take the pod.
	Like bool
	// Down is the autoscaler's controller that does not run; nil where one does, or none is seen.
	Down *Down
	// Halted: the cluster autoscaler runs and looks at no pod.
	Halted bool
	// Bare are the nodes that the cluster autoscaler counts as not ready, for they are labelled
	// as having GPUs and offer none by the names that it knows.
	Bare []string
	// Held are the machines on their way out that count against the pool's limits.
	Held []Held
	// Label is the one label for which all pools are refused that the pod could be meant for.
	Label string
	// LabelsHidden: a taint keeps the pod from groups whose labels nobody has seen.
	LabelsHidden bool
	// Karpenter: it is Karpenter's, else the cluster autoscaler's.
	Karpenter bool
	// None: no NodePool that Karpenter looks at has an instance type left; Pools are those that say so.
	None bool
	of   *Case
	// OfTemplate is NodeSelectorMismatch, UntoleratedTaint or VolumeConflict, where that is what keeps the
	// pod from all that the pools make; empty else.
	OfTemplate diagnosis.CauseID
	Template   *view.Finding
	// Tolerate is the toleration that such a taint wants, where the autoscaler's words name it.
	Tolerate string
}

// Of works it out.
func Of(c Case) *Growth {
	g := &Growth{told: map[diagnosis.CauseID]*view.Finding{}}
	c.byKarpenter(g)
	other := &Growth{told: map[diagnosis.CauseID]*view.Finding{}}
	c.byClusterAutoscaler(other)
	if len(g.told) == 0 && g.OfTemplate == "" {
		g = other
	}
	for id, f := range other.told { // some clusters have both
		g.tell(id, f.Certainty, f.Says, f.Evidence...)
	}
	g.of = &c
	return g
}

// Unasked is what is known of pods that do not exist: no autoscaler has been asked for a node.
func Unasked(c Case) *Growth { return &Growth{of: &c} }

// PassedOver says whether Karpenter leaves the pools out that the pod is meant for, or has none, without a word to it.
func (g *Growth) PassedOver() bool {
	return g.None || g.Bar == scaling.NotReady || g.Bar == scaling.NoPool
}

// Makes says whether a NodePool that the pod is meant for, and that makes no machine as it is, would make one with that label.
func (g *Growth) Makes(key, value string) bool {
	return g.PassedOver() && slices.ContainsFunc(g.Pools, func(p scaling.Pool) bool {
		return p.Labels[key] == value || key == scaling.LabelPool && p.Name == value
	})
}

// Told is what there is to say of one of the autoscalers' causes; nil for nothing.
func (g *Growth) Told(id diagnosis.CauseID) *view.Finding { return g.told[id] }

// Spare are the groups of the cluster autoscaler's that have machines such as the pod could use, may have
// more, and are not those that it is about: nobody else grows them for the pod.
func (g *Growth) Spare() []scaling.Group {
	if g.of == nil {
		return nil
	}
	groups, _, _ := g.of.couldHold(g.of.Cluster.Outlook(), func(group *scaling.Group) bool {
		return group.Grows() && !group.InBackoff() && len(membersOf(g.of.Cluster, group)) > 0 && !slices.ContainsFunc(g.Groups, func(of scaling.Group) bool { return of.Name == group.Name })
	})
	return groups
}

// Untried are the groups at zero that could hold the pod for all that is known, may have machines, and are not
// those that it is about: nobody asks the cloud for one of theirs while another's is waited for.
func (g *Growth) Untried() []scaling.Group {
	if g.of == nil {
		return nil
	}
	groups, _, _ := g.of.couldHold(g.of.Cluster.Outlook(), func(group *scaling.Group) bool {
		return group.Empty() && !group.InBackoff() && !slices.ContainsFunc(g.Groups, func(of scaling.Group) bool { return of.Name == group.Name })
	})
	return groups
}

// ShutBy says whether a NodePool that it is about is not usable and makes its machines by a
// node class of that kind.
func (g *Growth) ShutBy(kind string) bool {
	return slices.ContainsFunc(g.Pools, func(p scaling.Pool) bool {
		usable, known := p.Usable()
		return p.Class.Kind == kind && known && !usable
	})
}

// tell notes a cause, unless it is told already.
func (g *Growth) tell(id diagnosis.CauseID, certainty diagnosis.Certainty, says string, evidence ...diagnosis.Evidence) {
	if g.told[id] == nil {
		g.told[id] = view.Found(certainty, says, evidence...)
	}
}

// events are the pod's own, not those of a predecessor of its name.
func (c *Case) events(yield func(*corev1.Event) bool) {
	for _, e := range c.Cluster.EventsOf("Pod", c.Pod.Namespace, c.Pod.Name) {
		if uid := e.InvolvedObject.UID; (uid == "" || uid == c.Pod.UID) && !yield(e) {
			return
		}
	}
}

// newestEvent is the pod's event that ok accepts and that was seen last; a repetition
// counts as seen.
func (c *Case) newestEvent(ok func(*corev1.Event) bool) *corev1.Event {
	var newest *corev1.Event
	for e := range c.events {
		if ok(e) && (newest == nil || scaling.Seen(e).After(scaling.Seen(newest))) {
			newest = e
		}
	}
	return newest
}

// PromiseAge is for how long a node has been promised, at a time: a promise that is repeated,
// as Karpenter does, is no younger for it. 0 where none is.
func (g *Growth) PromiseAge(now time.Time) time.Duration {
	if g.Since.IsZero() {
		return 0
	}
	return now.Sub(g.Since)
}

// stopped says whether no filter accepts a node: then objects of an autoscaler alone say
// why none comes.
func (c *Case) stopped() bool {
	return len(c.Pod.Spec.SchedulingGates) == 0 && c.NoNode && c.Cluster.State.Unread["Node"] == ""
}
