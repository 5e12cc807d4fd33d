package rca

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"github.com/unpend/unpend/knowledge"
	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/whatif"
	"github.com/unpend/unpend/watcher"
)

// Options of a diagnosis; the zero value explains everything that waits.
type Options struct {
	// Only selects the incidents to explain; nil: all.
	Only func(watcher.Incident) bool
	// Search finds what the team has said before about these words; nil: nothing.
	Search func(ctx context.Context, words []string) ([]knowledge.Hit, error)
	// Outcomes tells how past fixes turned out; nil: nobody knows.
	Outcomes func(ctx context.Context) ([]knowledge.Outcome, error)
	// Snapshot is a copy of st that the caller keeps up to date; nil: one is made.
	Snapshot *whatif.Snapshot
	// Measure tells which holders of GPUs are idle; nil: nobody can be asked. It is
	// asked at most once, and only where held GPUs are in the way.
	Measure Measure
	// Logger is told, at level debug, of each fix that was tried ("fix tried", with the
	// Fix), refuted ones included; nil: nobody is.
	Logger *slog.Logger
}

// Diagnose explains every incident in st, by incident id. It changes nothing:
// fixes are tried on forks of the snapshot. The error is that of the scheduler's
// code refusing to run; what could not be read is in each diagnosis.
func Diagnose(ctx context.Context, st *cluster.State, opts Options) ([]Diagnosis, error) {
	refusals := Refusals(st)
	incidents := slices.DeleteFunc(watcher.Group(watcher.WithKubelet(st.Pods, st.Events), st.Owner, refusals...), func(i watcher.Incident) bool {
		return opts.Only != nil && !opts.Only(i)
	})
	if len(incidents) == 0 {
		return nil, nil
	}
	w, done, err := newWorld(ctx, st, opts.Snapshot)
	if err != nil {
		return nil, err
	}
	defer done()
	w.refusals = refusals
	r := newRun(w, opts)
	out := make([]Diagnosis, 0, len(incidents))
	for _, i := range incidents {
		d, err := r.diagnose(ctx, i)
		if err != nil {
			return nil, fmt.Errorf("diagnose %s %s/%s: %w", i.Workload.Kind, i.Workload.Namespace, i.Workload.Name, err)
		}
		out = append(out, d)
	}
	return out, nil
}

// Objects is what the scheduler's plugins look at in a state.
func Objects(st *cluster.State) whatif.Objects {
	objs := whatif.Objects{Nodes: st.Nodes, Pods: st.Pods}
	for _, o := range st.Namespaces {
		objs.Others = append(objs.Others, o)
	}
	for _, o := range st.PVCs {
		objs.Others = append(objs.Others, o)
	}
	for _, o := range st.PVs {
		objs.Others = append(objs.Others, o)
	}
	for _, o := range st.StorageClasses {
		objs.Others = append(objs.Others, o)
	}
	for _, o := range st.CSINodes {
		objs.Others = append(objs.Others, o)
	}
	for _, o := range st.ReplicaSets {
		objs.Others = append(objs.Others, o)
	}
	for _, o := range st.StatefulSets {
		objs.Others = append(objs.Others, o)
	}
	for _, o := range st.ResourceSlices {
		objs.Others = append(objs.Others, o)
	}
	for _, o := range st.ResourceClaims {
		objs.Others = append(objs.Others, o)
	}
	for _, o := range st.DeviceClasses {
		objs.Others = append(objs.Others, o)
	}
	return objs
}

// run is one call of Diagnose: what its incidents share.
type run struct {
	ledger    *Ledger
	inventory func() *inventory
	opts      Options
}

func newRun(w *world, opts Options) *run {
	return &run{ledger: newLedger(w), inventory: sync.OnceValue(func() *inventory { return takeInventory(w.state) }), opts: opts}
}

func (r *run) diagnose(ctx context.Context, i watcher.Incident) (Diagnosis, error) {
	c, err := openCase(r.ledger, i)
	if err != nil {
		return Diagnosis{}, err
	}
	if err := c.look(ctx, r.inventory, r.opts.Measure); err != nil {
		return Diagnosis{}, err
	}
	past, forgotten := remember(ctx, r.opts.Outcomes)
	nodes, causes := c.judge()
	fixes, err := newFinder(c, past, r.opts.Logger).fixes(ctx, nodes, causes)
	if err != nil {
		return Diagnosis{}, err
	}
	d := diagnosis(c, nodes, orderCauses(c, causes, fixes.Root()), fixes)
	c.quote(d.Causes)
	d.Knowledge = pastHits(past, d.Causes)
	if forgotten != "" {
		d.Unread = append(d.Unread, forgotten)
	}
	if r.opts.Search != nil {
		hits, err := r.opts.Search(ctx, searchWords(d))
		if err != nil {
			d.Unread = append(d.Unread, "knowledge: "+err.Error()+"; past incidents are not shown")
		}
		d.Knowledge = append(d.Knowledge, hits...)
	}
	return d, nil
}

// diagnosis writes down what was found.
func diagnosis(c *Case, nodes []NodeBlockers, causes []Cause, fixes Found) Diagnosis {
	i := c.Incident
	return Diagnosis{
		Incident: i.ID, Workload: i.Workload, Requests: i.Requests, Causes: causes, Nodes: nodes,
		Pods:      WaitingPods{Waiting: i.Waiting, Names: podNames(i), Since: i.Since},
		Fixes:     fixes.Fixes(),
		Drawing:   drawing(c, causes, fixes),
		Claims:    c.claims.claimed(),
		Headline:  headline(c, causes),
		Unread:    unreadFacts(c),
		Knowledge: []knowledge.Hit{},
	}
}

func podNames(i watcher.Incident) []string {
	names := make([]string, len(i.Pods))
	for k, p := range i.Pods {
		names[k] = p.Name
	}
	return names
}

// orderCauses puts first the cause that the best proved fix removes, then those
// that are the pod's own and so hold on every node, then the others by the number
// of nodes, ties in catalogue order. Unknown settles
// nothing and comes last.
func orderCauses(c *Case, causes []Cause, root CauseID) []Cause {
	slices.SortStableFunc(causes, func(a, b Cause) int {
		if r := rank(a.ID == root) - rank(b.ID == root); r != 0 {
			return r
		}
		if r := rank(a.ID != Unknown) - rank(b.ID != Unknown); r != 0 {
			return r
		}
		if r := rank(c.everywhere[a.ID]) - rank(c.everywhere[b.ID]); r != 0 {
			return r
		}
		return len(b.Nodes) - len(a.Nodes)
	})
	return causes
}

// rank sorts what is true before what is not.
func rank(first bool) int {
	if first {
		return 0
	}
	return 1
}

// unreadFacts lists what could not be read, with what it leaves open.
func unreadFacts(c *Case) []string {
	out := []string{}
	for _, n := range c.world.sortedNodes() {
		if n.doubt != "" && len(c.asks) > 0 {
			out = append(out, fmt.Sprintf("geometry of %s: %s; nothing there is read as free", n.Name, n.doubt))
		}
	}
	kinds := make([]string, 0, len(c.world.state.Unread))
	for kind, why := range c.world.state.Unread {
		open, ok := leavesOpen[kind]
		if ok && (len(c.asks) > 0 || !open.gpuOnly) && (c.claims != nil || !open.devices) && (len(c.refusals) > 0 || !open.refusedOnly) {
			kinds = append(kinds, fmt.Sprintf("%s: %s; %s", kind, why, open.says))
		}
	}
	if c.gang != nil && c.gangUnread() != "" {
		kinds = append(kinds, fmt.Sprintf("PodGroup.%s: %s; how many pods its gang takes is not known", c.gang.kind.api, c.gangUnread()))
	}
	slices.Sort(kinds)
	if c.world.unmeasured == noMeasure { // nobody asked for it: what else is missing comes first
		return append(append(out, kinds...), c.unmeasured()...)
	}
	return slices.Insert(append(out, kinds...), 0, c.unmeasured()...)
}

// leavesOpen says what a diagnosis lacks when a kind was not read.
var leavesOpen = map[string]struct {
	says        string
	gpuOnly     bool
	devices     bool // only for pods that claim devices
	refusedOnly bool
}{
	"Node":                  {says: "no node can be judged"},
	"Pod":                   {says: "use of the nodes is not known"},
	"PodDisruptionBudget":   {says: "an eviction may be refused"},
	"NodeGeometry":          {says: "positions of MIG instances are not known", gpuOnly: true},
	"ConfigMap":             {says: "the names of MIG layouts are taken from what the operator generates", gpuOnly: true},
	"ClusterPolicy":         {says: "only existing MIG layouts are offered", gpuOnly: true},
	"PersistentVolumeClaim": {says: "volumes are not judged"},
	"ResourceClaim":         {says: "whether its claims exist and who holds devices is not known", devices: true},
	"ResourceClaimTemplate": {says: "templates of claims are not judged", devices: true},
	"ResourceSlice":         {says: "which devices exist is not known", devices: true},
	"DeviceClass":           {says: "which classes of devices exist is not known", devices: true},
	"Namespace":             {says: "namespace selectors are not judged"},
	"ResourceQuota":         {says: "quotas that refuse its pods are not judged", refusedOnly: true},
	"LimitRange":            {says: "LimitRanges that default or refuse its pods are not judged", refusedOnly: true},
}
