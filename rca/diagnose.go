package rca

import (
	"cmp"
	"context"
	"log/slog"
	"slices"

	"github.com/unpend/unpend/knowledge"
	"github.com/unpend/unpend/rca/admission"
	"github.com/unpend/unpend/rca/causes"
	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/devices"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/evict"
	"github.com/unpend/unpend/rca/fixes"
	"github.com/unpend/unpend/rca/view"
	"github.com/unpend/unpend/rca/whatif"
	"github.com/unpend/unpend/watcher/incident"
)

// Options of a diagnosis; the zero value explains everything that waits.
type Options struct {
	// Only selects the incidents to explain; nil: all.
	Only func(incident.Incident) bool
	// Search finds what the team has said before about these words; nil: nothing.
	Search func(ctx context.Context, words []string) ([]knowledge.Hit, error)
	// Outcomes tells how past fixes turned out; nil: nobody knows.
	Outcomes func(ctx context.Context) ([]knowledge.Outcome, error)
	// Snapshot is a copy of st that the caller keeps up to date; nil: one is made.
	Snapshot *whatif.Snapshot
	// Measure tells which holders of GPUs are idle; nil: nobody can be asked. It is
	// asked at most once, and only where held GPUs are in the way.
	Measure diagnosis.Measure
	// Guard makes what says which fixes guard-rails would hold back in a state; nil: there
	// are none. Its error ends up in each diagnosis, of which nothing is then held back.
	Guard func(ctx context.Context, st *cluster.State) (diagnosis.Guard, error)
	// Logger is told, at level debug, of each fix that was tried ("fix tried", with the
	// Fix), refuted ones included; nil: nobody is.
	Logger *slog.Logger
}

// Diagnose explains every incident in st, by incident id. It changes nothing:
// fixes are tried on forks of the snapshot. The error is that of the scheduler's
// code refusing to run; what could not be read is in each diagnosis.
func Diagnose(ctx context.Context, st *cluster.State, opts Options) ([]diagnosis.Diagnosis, error) {
	s, err := Begin(ctx, st, opts)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	var out []diagnosis.Diagnosis
	for _, i := range s.Incidents {
		if opts.Only != nil && !opts.Only(i) {
			continue
		}
		d, err := s.Explain(ctx, i)
		if err != nil {
			return nil, err
		}
		out = append(out, d)
	}
	if len(out) > 1 {
		conflicts(s.run.ledger.Cluster, out)
	}
	return out, nil
}

// run is what the incidents of a Session share.
type run struct {
	ledger    *evict.Ledger
	inventory func() *devices.Inventory
	past      func() (outcomes []knowledge.Outcome, unread string)
	guard     func() (guard diagnosis.Guard, unread string)
	opts      Options
}

func (r *run) diagnose(ctx context.Context, i incident.Incident) (diagnosis.Diagnosis, error) {
	c, err := causes.Open(r.ledger, i)
	if err != nil {
		return diagnosis.Diagnosis{}, err
	}
	if err := c.Look(ctx, r.inventory, r.opts.Measure); err != nil {
		return diagnosis.Diagnosis{}, err
	}
	past, forgotten := r.past()
	guard, unguarded := r.guard()
	nodes, causes := c.Judge()
	fixes, err := fixes.New(c, past, guard, r.opts.Logger).Find(ctx, nodes, causes)
	if err != nil {
		return diagnosis.Diagnosis{}, err
	}
	d := written(c, nodes, orderCauses(c, nodes, causes, roots(c, fixes.Root())), fixes)
	c.Quote(d.Causes)
	d.Knowledge = pastHits(past, d.Causes)
	setRecords(past, d)
	for _, missing := range []string{forgotten, unguarded} {
		if missing != "" {
			d.Unread = append(d.Unread, missing)
		}
	}
	if r.opts.Search != nil {
		hits, err := r.opts.Search(ctx, d.Words())
		if err != nil {
			d.Unread = append(d.Unread, "knowledge: "+err.Error()+"; past incidents are not shown")
		}
		d.Knowledge = append(d.Knowledge, besides(past, hits)...)
	}
	return d, nil
}

// roots are the causes of which one is the root: those that the best fix removes, that for which it disturbs most
// first, or what is behind them. Where members of the workload wait for each other, that is why a node is short of what a smaller
// request or somebody's leaving would clear.
func roots(c *causes.Case, removed []diagnosis.CauseID) []diagnosis.CauseID {
	if one := cmp.Or(c.CameWithout(), c.WayOut()); one != "" {
		return []diagnosis.CauseID{one}
	}
	if c.IsOwn(diagnosis.WorkloadDeadlock) && !slices.ContainsFunc(removed[:min(1, len(removed))], c.IsOwn) {
		return []diagnosis.CauseID{diagnosis.WorkloadDeadlock}
	}
	return removed
}

// written writes down what was found.
func written(c *causes.Case, nodes []diagnosis.NodeBlockers, causes []diagnosis.Cause, fixes fixes.Found) diagnosis.Diagnosis {
	i := c.Incident
	return diagnosis.Diagnosis{
		Incident: i.ID, Workload: i.Workload, Requests: i.Requests, Causes: causes, Nodes: nodes,
		Pods:      diagnosis.WaitingPods{Waiting: i.Waiting, Names: podNames(i), Since: i.Since, Priority: admission.PriorityOf(i, c.Pod, c.Cluster.State.PriorityClasses), Placed: c.Placed()},
		Fixes:     fixes.Fixes(),
		Drawing:   drawing(c, causes, fixes),
		Claims:    c.Claims.Claimed(),
		Headline:  headline(c, causes),
		Unread:    unreadFacts(c, causes, fixes.Fixes()),
		Knowledge: []knowledge.Hit{},
	}
}

func podNames(i incident.Incident) []string {
	names := make([]string, len(i.Pods))
	for k, p := range i.Pods {
		names[k] = p.Name
	}
	return names
}

// orderCauses puts first what is proven and stands in front of all that the nodes could
// offer: without it the pod would run. Then come the causes that the best proved fix removes, of several that on
// most nodes first, and on as many that for which most is disturbed; then the others, those on most nodes first, proven
// before likely, ties in catalogue order. Unknown settles nothing and comes last, unless it is what keeps pods from existing.
func orderCauses(c *causes.Case, nodes []diagnosis.NodeBlockers, all []diagnosis.Cause, roots []diagnosis.CauseID) []diagnosis.Cause {
	leads, on, able := map[diagnosis.CauseID]bool{}, map[diagnosis.CauseID]reach{}, map[string]bool{}
	for _, n := range nodes {
		able[n.Name] = causes.HasAsked(c, n)
	}
	for _, a := range all {
		leads[a.ID], on[a.ID] = a.Certainty == diagnosis.Proven && leading(c, nodes, a.ID) || unjudged(c, nodes, a), reachOf(c, a, able, len(nodes))
	}
	slices.SortStableFunc(all, func(a, b diagnosis.Cause) int {
		return cmp.Or(
			view.Rank(leads[a.ID])-view.Rank(leads[b.ID]),
			view.Rank(slices.Contains(roots, a.ID))-view.Rank(slices.Contains(roots, b.ID)),
			view.Rank(settles(c, a.ID))-view.Rank(settles(c, b.ID)),
			on[b.ID].able-on[a.ID].able,
			on[b.ID].all-on[a.ID].all,
			view.Rank(len(roots) > 0 && a.ID == roots[0])-view.Rank(len(roots) > 0 && b.ID == roots[0]),
			view.Rank(a.Certainty == diagnosis.Proven)-view.Rank(b.Certainty == diagnosis.Proven),
		)
	})
	if len(roots) == 0 && len(all) > 1 && !leads[all[0].ID] && apart(c, all[0]) && all[1].ID != diagnosis.Unknown && all[1].Certainty == diagnosis.Proven {
		all[0], all[1] = all[1], all[0]
	}
	return all
}

// apart says of a taint that is not tolerated that all of its nodes are kept for the cluster itself: workloads are meant to be
// kept from them, and that is not why one waits.
func apart(c *causes.Case, a diagnosis.Cause) bool {
	return a.ID == diagnosis.UntoleratedTaint && !slices.ContainsFunc(a.Nodes, func(name string) bool { return !causes.SetApart(c, name) })
}

// reach is on how many nodes a cause is: of those that have GPUs, where such are asked, for the others would not take the
// pod without it either (control planes with their taints are more than they), and of all.
type reach struct{ able, all int }

// reachOf has what is the pod's own, and keeps it from every node, reach beyond those that are there: it keeps it from one that
// comes, too.
func reachOf(c *causes.Case, a diagnosis.Cause, able map[string]bool, nodes int) reach {
	if c.Everywhere[a.ID] {
		return reach{nodes + 1, nodes + 1}
	}
	r := reach{all: len(a.Nodes)}
	for _, name := range a.Nodes {
		if able[name] {
			r.able++
		}
	}
	return r
}

// unjudged says of a cause that the pod's claims could not be read, and nothing else keeps it from a node: what keeps it from
// others is then not known to be why it waits.
func unjudged(c *causes.Case, nodes []diagnosis.NodeBlockers, a diagnosis.Cause) bool {
	return a.ID == diagnosis.Unknown && a.Certainty == diagnosis.Possible && len(c.Pod.Spec.ResourceClaims) > 0 && c.Cluster.State.Unread["ResourceClaim"] != "" && slices.ContainsFunc(nodes, func(n diagnosis.NodeBlockers) bool {
		return slices.Contains(a.Nodes, n.Name) && !slices.ContainsFunc(n.Blockers, func(b diagnosis.Blocker) bool { return b.Cause != diagnosis.Unknown })
	})
}

func settles(c *causes.Case, id diagnosis.CauseID) bool {
	return id != diagnosis.Unknown || c.Everywhere[id]
}
