package growth

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/scaling"
	"github.com/unpend/unpend/rca/view"
)

// nominations are what Karpenter has said of nodes for one pod.
type nominations struct {
	newest        *corev1.Event
	claims, nodes []string // of all of them
	since         time.Time
	first         map[string]*corev1.Event // of each NodeClaim
}

func (c *Case) nominated() nominations {
	n := nominations{first: map[string]*corev1.Event{}}
	for e := range c.events {
		if !scaling.FromKarpenter(e) || e.Reason != "Nominated" {
			continue
		}
		claims, nodes := scaling.Nominated(e.Message)
		n.claims, n.nodes = append(n.claims, claims...), append(n.nodes, nodes...)
		at := scaling.Begun(e)
		if n.since.IsZero() || at.Before(n.since) {
			n.since = at
		}
		for _, name := range claims {
			if was := n.first[name]; was == nil || at.Before(scaling.Begun(was)) {
				n.first[name] = e
			}
		}
		if n.newest == nil || scaling.Seen(e).After(scaling.Seen(n.newest)) {
			n.newest = e
		}
	}
	return n
}

// byKarpenter tells what Karpenter makes of the pod: by its NodeClaims and NodePools, where
// they were read, and by its Events.
func (c *Case) byKarpenter(g *Growth) {
	n := c.nominated()
	failed := c.newestEvent(func(e *corev1.Event) bool {
		return scaling.FromKarpenter(e) && e.Reason == "FailedScheduling"
	})
	o := c.Cluster.Outlook()
	if n.newest == nil && failed == nil && len(o.Pools)+len(o.Claims) == 0 {
		noPool(c, g)
		return
	}
	g.Karpenter = true
	arrived := c.byClaims(g, o, n)
	if refusal := c.refusedMachine(o, n); refusal != nil && g.told[diagnosis.ScalingUp] == nil && len(g.told) == 0 {
		c.tellRefused(g, refusal)
	}
	if len(g.told) > 0 {
		return
	}
	if n.newest != nil && (failed == nil || !scaling.Seen(failed).After(scaling.Seen(n.newest))) {
		if !arrived {
			c.byNomination(g, n)
		}
		return
	}
	if failed != nil {
		c.bySilentPools(g, o, failed)
		if len(g.told) == 0 {
			c.byPoolErrors(g, o, failed)
		}
		return
	}
	if c.stopped() && len(c.Asks) > 0 {
		controls{c}.karpenterDown(g, o)
		if len(g.told) > 0 {
			return
		}
		c.bySilentPools(g, o, nil)
		if len(g.told) == 0 {
			c.byLimits(g, o)
		}
	}
}

// byNomination believes Karpenter's word for as long as a node may take.
func (c *Case) byNomination(g *Growth, n nominations) {
	g.Suits, g.Since = true, scaling.Begun(n.newest)
	if lost := gone(c.Cluster, n.claims); len(lost) > 0 && len(n.claims) > len(lost) || len(lost) > 1 {
		g.Since = n.since // one after the other was given up
	}
	g.By = g.Since.Add(promised)
	evidence := diagnosis.Fact(view.PodRef(c.Pod), n.newest.Reason+": "+n.newest.Message, diagnosis.Says(n.newest.Message))
	age := c.Cluster.State.Now.Sub(g.Since)
	if age <= promised {
		g.tell(diagnosis.ScalingUp, diagnosis.Likely, "an autoscaler is bringing a node", evidence)
		return
	}
	g.tell(diagnosis.ScaleUpStuck, diagnosis.Likely, fmt.Sprintf("an autoscaler promised a node %s ago, and none has come that helps", view.Age(age)), evidence)
}

// gone are the NodeClaims of those names that do not exist, where they were read.
func gone(w *view.Cluster, claims []string) []string {
	if w.State.Unread["NodeClaim"] != "" {
		return nil
	}
	var out []string
	for _, name := range claims {
		if w.Outlook().Claim(name) == nil && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// byClaims tells of the machines that were asked for with this pod in mind. arrived: one of
// them is there with all that it was to bring, so the promise was kept.
func (c *Case) byClaims(g *Growth, o *scaling.Outlook, n nominations) (arrived bool) {
	for i := range o.Claims {
		k := &o.Claims[i]
		named := slices.Contains(n.claims, k.Name) || k.Node != "" && slices.Contains(n.nodes, k.Node)
		if k.Leaving || !named && (k.Initialized.Met() || !c.meantFor(k)) {
			continue
		}
		if named && k.Initialized.Met() {
			arrived = true
			continue
		}
		m := &coming{w: c.Cluster, k: k, g: g}
		m.before, m.gaveUp = givenUp(c, n, k)
		m.tell()
	}
	return arrived
}

// givenUp is the NodeClaim that Karpenter asked for with the pod in mind before this one, and gave up when its machine had
// not registered in all the time that it may take (pkg/controllers/nodeclaim/lifecycle/liveness.go), and what tells of it;
// empty where none is known. One that the cloud refused is deleted at once.
func givenUp(c *Case, n nominations, now *scaling.Claim) (name string, evidence []diagnosis.Evidence) {
	for _, name := range gone(c.Cluster, n.claims) {
		lasted := now.Created.Sub(scaling.Begun(n.first[name]))
		if scaling.PoolOfClaim(name) == now.Pool && lasted >= promised-time.Minute && lasted < promised+3*time.Minute && !slices.ContainsFunc(c.Cluster.Outlook().Refused, func(r scaling.Refusal) bool { return r.Claim == name }) {
			text := n.first[name].Message
			return name, []diagnosis.Evidence{diagnosis.Fact(view.PodRef(c.Pod), n.first[name].Reason+": "+text, diagnosis.Says(text)), diagnosis.Fact("NodeClaim/"+name, "no such object was read", diagnosis.That("", "", diagnosis.Absent, ""))}
		}
	}
	return "", nil
}

// meantFor says whether a machine was asked for with what the pod asks, and takes it.
func (c *Case) meantFor(k *scaling.Claim) bool {
	if len(c.Asks) == 0 || !k.Created.IsZero() && k.Created.Add(promised).Before(c.Pod.CreationTimestamp.Time) || !k.Suits(c.Pod) {
		return false
	}
	return !slices.ContainsFunc(c.Asks, func(a view.Ask) bool {
		asked, has := k.Requests[a.Resource], k.Capacity[a.Resource]
		return asked.Value() < a.Count && has.Value() < a.Count
	})
}

func wordsOr(k scaling.Condition, none string) string {
	if w := k.Words(); w != "" {
		return view.Cut(w, 160)
	}
	return none
}

func conditionText(what string, k scaling.Condition) string {
	if k.Status == "" {
		return what
	}
	return fmt.Sprintf("%s: %s %s", what, k.Status, view.Cut(k.Words(), 300))
}

func onlySetup(codes []scaling.Code) bool {
	return !slices.ContainsFunc(codes, func(k scaling.Code) bool { return k.Ground != scaling.Setup })
}

// refusedMachine is the newest refusal of a machine that was asked for with this pod in
// mind: Karpenter deletes the NodeClaim at once, and the Event is all that is left.
func (c *Case) refusedMachine(o *scaling.Outlook, n nominations) *scaling.Refusal {
	for i := range o.Refused { // the newest first
		r := &o.Refused[i]
		if r.At.Add(promised).Before(c.Pod.CreationTimestamp.Time) {
			continue
		}
		mine := slices.Contains(n.claims, r.Claim)
		if p := o.Pool(r.Pool); !mine && p != nil {
			mine = p.Suits(c.Pod) == scaling.Yes || len(o.Pools) == 1 && p.Suits(c.Pod) == scaling.Maybe
		} else if !mine {
			mine = c.Cluster.State.Unread["NodePool"] != "" && len(c.Asks) > 0 && onlyPool(o, r.Pool)
		}
		if mine && !launchedSince(o, r) {
			return r
		}
	}
	return nil
}

// onlyPool says whether all refusals are of that pool, where NodePools were not read.
func onlyPool(o *scaling.Outlook, pool string) bool {
	return !slices.ContainsFunc(o.Refused, func(r scaling.Refusal) bool { return r.Pool != pool })
}

// launchedSince says whether the pool got a machine after all.
func launchedSince(o *scaling.Outlook, r *scaling.Refusal) bool {
	return slices.ContainsFunc(o.Claims, func(k scaling.Claim) bool { return k.Pool == r.Pool && k.Launched.Met() && k.Created.After(r.At) })
}

func (c *Case) tellRefused(g *Growth, r *scaling.Refusal) {
	g.Suits, g.Codes, g.Said, g.Pools = true, r.Codes, r.Text, poolsNamed(c.Cluster.Outlook(), []string{r.Pool})
	g.tell(diagnosis.CloudCapacityRefused, diagnosis.Likely, refusedSays("Karpenter the NodeClaim "+r.Claim, r.Codes), diagnosis.Fact("NodeClaim/"+r.Claim, "InsufficientCapacityError: "+view.Quotable(r.Text, 320), diagnosis.Says(r.Text)))
}

// refusedSays says what the cloud refuses, by its code: a stock-out and an account's quota
// arrive under one name.
func refusedSays(what string, codes []scaling.Code) string {
	if len(codes) == 0 {
		return "the cloud refuses " + what + ": no machine of the wanted types is available"
	}
	return fmt.Sprintf("the cloud refuses %s with %s: %s", what, scaling.Names(codes), scaling.Says(codes))
}

// poolsNamed are those of the names that were read.
func poolsNamed(o *scaling.Outlook, names []string) []scaling.Pool {
	var out []scaling.Pool
	for _, name := range names {
		if p := o.Pool(name); p != nil {
			out = append(out, *p)
		}
	}
	return out
}
