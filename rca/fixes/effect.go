package fixes

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/admission"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/view"
	"github.com/unpend/unpend/rca/whatif"
	"github.com/unpend/unpend/watcher/incident"
)

// maxProved bounds the pods of one incident that a fix is proved for, one after the other.
const maxProved = 64

// cheapLoss is how much work a pod that comes to an end may lose before a fix is no longer of
// low risk.
const cheapLoss = time.Hour

// outcome is what became, on the fork, of the incident's pods and of their workload.
type outcome struct {
	node    string // of the first pod that has one; empty: none has
	runs    int    // how many more pods of the workload have a node than before
	pending int    // pods of it that still wait
	// stopped are the running pods of the workload that were stopped on the way.
	stopped []*corev1.Pod
}

// waits are the pods of the incident that wait, the one that stands for them first. Those
// that do not exist yet look like it, and have a name that no pod has.
func (c *Finder) waits() []*corev1.Pod {
	if c.waiting != nil {
		return c.waiting
	}
	c.waiting = append([]*corev1.Pod{c.Pod}, c.Fellows()...)
	for n := len(c.waiting); n < c.wanted(); n++ {
		p := c.Pod.DeepCopy()
		p.Name, p.UID = fmt.Sprintf("%s-?%d", c.Pod.Name, n), ""
		c.waiting = append(c.waiting, p)
	}
	return c.waiting
}

// wanted is how many pods of the incident are wanted and do not run: those that wait, those
// that were refused, and those that an ordered StatefulSet makes only after the one that
// waits.
func (c *Finder) wanted() int {
	n := max(1, c.Incident.Waiting)
	if rest := c.StillToCome(); rest > n {
		n = rest
	}
	return n
}

// play makes what the changes bring, on a fork where they are made: the workload replaces
// its pods, or those that wait are placed. pod is the first of them, as the changes leave it.
func (c *Finder) play(ctx context.Context, s *whatif.Snapshot, f *candidate, pod *corev1.Pod) (outcome, error) {
	if r := f.rolling; c.rolls(f) {
		return c.replace(ctx, s, r, func(name string) *corev1.Pod {
			next := pod.DeepCopy()
			next.Name, next.UID, next.Spec.NodeName = name, "", ""
			return next
		})
	}
	var o outcome
	node, err := s.Place(ctx, pod)
	if err != nil || node == "" {
		return o, err
	}
	o.node, o.runs = node, 1
	f.places = map[string]string{pod.Name: node}
	return o, nil
}

// rolls says whether the fix has the workload replace its pods; those of a gang that has
// none running are placed as they are.
func (c *Finder) rolls(f *candidate) bool {
	return f.rolling != nil && (len(f.rolling.Running) > 0 || c.Gang == nil)
}

// playRest places the pods of the incident that the first one stands for, without those
// that are placed already.
func (c *Finder) playRest(ctx context.Context, s *whatif.Snapshot, f *candidate, placed map[string]bool) (runs int, _ error) {
	var rest []*corev1.Pod
	all := c.waits()
	for _, p := range all[1:min(len(all), maxProved)] {
		if placed[p.Name] {
			runs++
			continue
		}
		m := c.changed(p, f).DeepCopy()
		m.Spec.NodeName = ""
		rest = append(rest, m)
	}
	nodes, err := placeAll(ctx, s, rest)
	if err != nil {
		return 0, fmt.Errorf("place the incident's pods: %w", err)
	}
	for i, node := range nodes {
		if node != "" {
			runs++
			f.places[rest[i].Name] = node
		}
	}
	return runs, nil
}

// placeAll places pods one after the other, those that are alike together, and returns the
// node of each; empty for one that has none.
func placeAll(ctx context.Context, s *whatif.Snapshot, pods []*corev1.Pod) ([]string, error) {
	groups, order := map[[sha256.Size]byte][]int{}, [][sha256.Size]byte{}
	for i, p := range pods {
		key := incident.Alike(p)
		if groups[key] == nil {
			order = append(order, key)
		}
		groups[key] = append(groups[key], i)
	}
	out := make([]string, len(pods))
	for _, key := range order {
		alike := make([]*corev1.Pod, len(groups[key]))
		for n, i := range groups[key] {
			alike[n] = pods[i]
		}
		nodes, err := s.PlaceAlike(ctx, alike)
		if err != nil {
			return nil, err
		}
		for n, node := range nodes {
			out[groups[key][n]] = node
		}
	}
	return out, nil
}

// replace plays how a workload replaces its pods. How many pods it has at any time, and in
// which order they go, is its controller's rule.
func (c *Finder) replace(ctx context.Context, s *whatif.Snapshot, r *edit.Rolling, next func(name string) *corev1.Pod) (outcome, error) {
	p := replacing{Rolling: r, s: s, next: next, old: slices.Clone(r.Running), behind: r.Behind}
	var err error
	switch {
	case r.AtOnce:
		err = p.atOnce(ctx)
	case r.InTurn:
		err = p.inTurn(ctx)
	default:
		err = p.rolling(ctx)
	}
	if err != nil {
		return outcome{}, fmt.Errorf("replace the pods of %s: %w", c.WorkloadName(), err)
	}
	return outcome{node: p.first, runs: len(p.old) + p.placed + p.kept - len(r.Running), pending: p.pending + len(p.behind), stopped: p.stopped}, nil
}

// replacing is a workload on its way from old pods to new ones.
type replacing struct {
	*edit.Rolling
	s       *whatif.Snapshot
	next    func(name string) *corev1.Pod
	old     []*corev1.Pod // that still run
	stopped []*corev1.Pod
	made    int
	placed  int
	pending int // new ones, and old ones that are left, without a node
	first   string
	// behind still wait as they are; of kept, who did, too, has found a node.
	behind []*corev1.Pod
	kept   int
}

// stop stops the first of the old pods.
func (p *replacing) stop() {
	p.s.DeletePod(p.old[0].Namespace, p.old[0].Name)
	p.stopped = append(p.stopped, p.old[0])
	p.old = p.old[1:]
}

// make makes so many new pods, and says whether all of them have a node.
func (p *replacing) make(ctx context.Context, n int) (bool, error) {
	pods := make([]*corev1.Pod, n)
	for i := range pods {
		p.made++
		pods[i] = p.next(fmt.Sprintf("new-%d", p.made))
	}
	nodes, err := p.s.PlaceAlike(ctx, pods)
	if err != nil {
		return false, err
	}
	if len(nodes) > 0 && p.first == "" {
		p.first = nodes[0]
	}
	p.placed += len(nodes)
	return len(nodes) == n, nil
}

// atOnce stops all before the first new one is made.
func (p *replacing) atOnce(ctx context.Context) error {
	for len(p.old) > 0 {
		p.stop()
	}
	_, err := p.make(ctx, min(p.Wanted, len(p.stopped)+maxProved))
	p.pending = p.Wanted - p.placed
	return err
}

// rolling is a Deployment's: as many new pods as the surge allows, then old ones go, those
// that wait first, as far as enough pods are available.
func (p *replacing) rolling(ctx context.Context) error {
	waiting := len(p.Pending)
	for {
		up := min(p.Wanted-p.made, p.Wanted+p.Surge-len(p.old)-waiting-p.made, maxProved+len(p.Running)-p.made)
		if up > 0 {
			if _, err := p.make(ctx, up); err != nil {
				return err
			}
		}
		gone, stop := p.down(waiting)
		waiting -= gone
		for range stop {
			p.stop()
		}
		if stop > 0 { // who waits may have the room that is left
			n := p.made - p.placed
			p.made = p.placed
			if _, err := p.make(ctx, n); err != nil {
				return err
			}
		}
		p.pending = waiting + p.made - p.placed
		if up <= 0 && gone == 0 && stop == 0 {
			return nil
		}
	}
}

// down is how many old pods a rolling Deployment takes away: of those that wait, and of
// those that run (reconcileOldReplicaSets in rolling.go).
func (p *replacing) down(waiting int) (gone, stop int) {
	least := p.Wanted - p.Unavailable
	spare := len(p.old) + waiting + p.made - least - (p.made - p.placed)
	return max(0, min(spare, waiting)), max(0, min(len(p.old)+p.placed-least, len(p.old)))
}

// reckon writes down what a proved fix brings, for the incident and everybody it stops.
func (c *Finder) reckon(f *candidate, o outcome, pod *corev1.Pod) {
	of := c.wanted()
	runs := max(0, min(o.runs, of))
	if c.Unborn {
		runs = min(runs, c.admits(f, pod, of))
	}
	rolled := c.rolls(f)
	e := &diagnosis.Effect{Runs: runs, Of: of, WaitingBefore: of}
	if rolled {
		if lost := -o.runs; lost > 0 {
			f.thenWait = append(f.thenWait, o.stopped[len(o.stopped)-min(lost, len(o.stopped)):]...)
		}
		if all := len(f.rolling.Running); len(o.stopped) < all && o.pending > 0 && of <= maxProved { // beyond, it was not tried to its end
			f.fix.Title = strings.Replace(f.fix.Title, stopping(all, all), stopping(len(o.stopped), all), 1)
		}
		f.restarts = append(slices.DeleteFunc(f.restarts, func(p *corev1.Pod) bool { return slices.Contains(f.rolling.Running, p) }), o.stopped...)
	}
	e.ThenWait = podNames(f.thenWait)
	e.WaitingAfter = of - runs + len(f.thenWait)
	if rolled {
		e.WaitingAfter = max(e.WaitingAfter, o.pending+len(f.thenWait)-max(0, -o.runs))
	}
	mine := view.PriorityOf([]*corev1.Pod{c.Pod}) // as it was: by being raised nobody matters more
	byPriority := net{mine: runs}
	f.net = net{mine: runs}
	for _, p := range slices.Concat(f.victims, f.restarts) {
		if c.Cluster.Use(p).Stalled != nil {
			e.WaitingBefore++ // it does not run either
		}
	}
	for _, p := range slices.Concat(f.thenWait, f.gone) {
		if c.Cluster.Use(p).Stalled != nil {
			continue
		}
		priority := view.PriorityOf([]*corev1.Pod{p})
		if f.below() {
			priority = min(priority, mine-1)
		}
		byPriority[priority]--
		if c.AllIdle([]*corev1.Pod{p}) {
			priority = math.MinInt64
		}
		f.net[priority]--
	}
	f.gains = byPriority.gains()
	f.fix.Effect = e
	for _, p := range slices.Concat(f.victims, f.restarts) {
		if view.EndsAlone(p) && c.Cluster.TraitsOf(p).Lost > cheapLoss {
			f.fix.Risk = f.fix.Risk.With(diagnosis.MediumRisk) // it runs again, from its beginning
		}
	}
	p := &f.fix.Proof
	if len(f.places) > 1 && len(f.victims) > 0 && !c.Unborn {
		p.Places = f.places
	}
	if of > 1 {
		p.Why += fmt.Sprintf("; %d of %d run", runs, of)
		if of > maxProved {
			p.Why += fmt.Sprintf(", of which the first %d were tried", maxProved)
		}
	}
	if rolled && o.pending > 0 {
		p.Why += fmt.Sprintf("; %s, which leaves %s waiting", f.rolling.How, view.CountOf(o.pending, "pod"))
	}
}

// below says whether those who stop matter less than the pod by the word of the queue that they are in.
func (f *candidate) below() bool {
	return slices.ContainsFunc(f.changes, func(ch edit.Change) bool { return ch.Below })
}

// admits is for how many such pods the quotas have room after the fix.
func (c *Finder) admits(f *candidate, pod *corev1.Pod, of int) int {
	hard, leave := f.limits()
	n := of
	for _, q := range admission.Quotas(c.Cluster.State, pod, hard, leave) {
		for n > 0 && len(q.ExceededBy(n)) > 0 {
			n--
		}
	}
	return n
}
