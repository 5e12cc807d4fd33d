package fixes

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/changes"
	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/evict"
	"github.com/unpend/unpend/rca/view"
)

// candidate is a fix with what its ranking needs.
type candidate struct {
	fix     diagnosis.Fix
	node    *view.Node
	changes []edit.Change
	pods    int // of the incident, that it makes room for
	victims []*corev1.Pod
	// restarts are the pods that stop in any other way; rolling is how their workload
	// replaces them.
	restarts []*corev1.Pod
	rolling  *edit.Rolling
	cost     evict.Cost
	// places are the nodes of the incident's pods, by name, where they stay the pods they are.
	places map[string]string
	// thenWait are the pods that are stopped and find no place again; gone are those that
	// nobody makes again, for what lost says of the victims.
	thenWait, gone []*corev1.Pod
	lost           cluster.Lost
	// net is how many more pods run afterwards, those that do no GPU work below all others;
	// gains: more run than then wait, where that is seen by priority alone.
	net   net
	gains bool
	// stranded counts the victims that found no place on the copy.
	stranded int
	keeps    bool              // gives what was asked
	less     int64             // how many devices fewer than asked it gives
	cut      int64             // and how much less of what a machine has, in thousandths
	halves   bool              // it is to do with less than half of the memory or disk that it asks
	beside   bool              // offered whatever is done on the nodes
	removes  diagnosis.CauseID // the cause its most disruptive change removes
	failures int               // in how many percent of past uses such a fix did not help
	unknown  bool              // others may stop by it, and nobody can say who
	held     bool              // guard-rails keep it from being begun now
	astray   bool              // gives up where the pod is to run, which leaves it a node
	accepted bool              // the default scheduler's filters take the pod on the copy, whoever decides
}

func (c *Finder) candidate(n *view.Node, set []edit.Change) *candidate {
	f := &candidate{}
	set = admittedLast(recreatedLast(set))
	c.weigh(f, n, set)
	f.fix.Mechanism, f.fix.Risk, f.fix.Steps, f.fix.Commands = diagnosis.None, diagnosis.NoRisk, []string{}, []string{}
	f.fix.Kinds = make([]diagnosis.FixKind, 0, len(set))
	titles := make([]string, 0, len(set))
	for i := range set {
		ch := &set[i]
		if !slices.Contains(titles, ch.Title) { // one thing may remove two blockers
			f.fix.Kinds = append(f.fix.Kinds, ch.Kind)
			titles = append(titles, ch.Title)
		}
		f.fix.Risk = f.fix.Risk.With(ch.Risk)
		if ch.Relayout != nil {
			f.fix.Mechanism = diagnosis.MIGManager
		}
	}
	if r := f.rolling; r != nil && (r.AtOnce || len(r.Running) > 0) {
		at := len(titles)
		if len(set) > 1 && awaitsQueue(set[len(set)-1]) { // it is made again before it is waited for
			at--
		}
		titles = slices.Insert(titles, at, r.How+stopping(len(r.Running), len(r.Running)))
	}
	f.fix.Title = strings.Join(titles, "; ")
	return f
}

// stopping says how many of the running pods of a workload stop as it is rolled: fewer than all where it halts.
func stopping(n, of int) string {
	switch {
	case of == 0:
		return ""
	case n == of:
		return ", stopping " + view.CountOf(n, "running pod")
	case n == 0:
		return ", which halts before it stops " + view.CountOf(of, "running pod")
	}
	return fmt.Sprintf(", stopping %d of %s before it halts", n, view.CountOf(of, "running pod"))
}

// recreatedLast has a pod made again once the node is mended: before, it would be refused
// again.
func recreatedLast(set []edit.Change) []edit.Change {
	again := func(ch edit.Change) bool { return ch.Kind == diagnosis.RecreatePod }
	if len(set) < 2 || !slices.ContainsFunc(set, again) {
		return set
	}
	set = slices.Clone(set)
	slices.SortStableFunc(set, func(a, b edit.Change) int { return view.Rank(!again(a)) - view.Rank(!again(b)) })
	return set
}

// awaitsQueue says of a change that a queue is to admit the workload.
func awaitsQueue(ch edit.Change) bool {
	return ch.Kind == diagnosis.Wait && ch.Cause == diagnosis.QueueNotAdmitted
}

// admittedLast has a workload that is changed wait for its queue after that: the queue is asked again for what it then is.
// Pods leave only once it is admitted.
func admittedLast(set []edit.Change) []edit.Change {
	edits := func(ch edit.Change) bool { return ch.Rolling != nil }
	if len(set) < 2 || !slices.ContainsFunc(set, awaitsQueue) || !slices.ContainsFunc(set, edits) {
		return set
	}
	set = slices.Clone(set)
	slices.SortStableFunc(set, func(a, b edit.Change) int { return view.Rank(edits(a)) - view.Rank(edits(b)) })
	return set
}

// weigh fills in what a candidate is ordered by.
func (c *Finder) weigh(f *candidate, n *view.Node, set []edit.Change) {
	f.node, f.changes, f.keeps, f.fix.Automatic, f.fix.Cost.Nodes = n, set, true, true, []string{}
	touches := false
	var cost *evict.Cost
	for i := range set {
		ch := &set[i]
		f.fix.Automatic = f.fix.Automatic && !ch.Manual
		if ch.Until == "" || !slices.ContainsFunc(set[:i], func(before edit.Change) bool { return before.Title == ch.Title && before.Until == ch.Until }) { // it is done once
			f.fix.Cost.Minutes += ch.Minutes
		}
		f.less += ch.Less
		f.cut += ch.Cut
		f.halves = f.halves || ch.Halves
		if ch.Rolling != nil {
			f.rolling = ch.Rolling
		}
		f.unknown = f.unknown || ch.StopsUnknown
		for _, p := range ch.Drained {
			if !slices.Contains(f.restarts, p) {
				f.restarts = append(f.restarts, p)
			}
		}
		f.keeps = f.keeps && (ch.Adds || ch.Kind != diagnosis.ChangeRequest && ch.Kind != diagnosis.FixClaim && !ch.Settles)
		if ch.Kind == diagnosis.Wait {
			continue
		}
		touches = touches || ch.Node != nil || ch.Relayout != nil || len(ch.Victims) > 0
		if ch.Cost != nil && len(f.victims) == 0 {
			f.victims, cost = ch.Victims, ch.Cost
			continue
		}
		for _, v := range ch.Victims { // two causes may take the same pod
			if !slices.Contains(f.victims, v) {
				f.victims, cost = append(f.victims, v), nil
			}
		}
	}
	if touches {
		f.fix.Cost.Nodes = touched(n, f.victims)
	}
	f.lost = c.Cluster.State.LostBy(f.victims)
	for _, p := range c.Cluster.State.LostBy(slices.Concat(f.victims, f.restarts)).With { // also of who leaves by hand
		if !slices.Contains(f.restarts, p) {
			f.restarts = append(f.restarts, p)
		}
	}
	if f.rolling != nil && len(f.rolling.Running) > 0 {
		f.restarts = append(f.restarts, f.rolling.Running...)
	}
	if len(f.restarts) > 0 {
		cost = nil
	}
	kind := mostDisruptive(set)
	f.fix.Kind = kind
	f.removes = set[slices.IndexFunc(set, func(ch edit.Change) bool { return ch.Kind == kind })].Cause
	f.failures = c.failures(f.removes, kind)
	if cost == nil {
		all := c.CostOf(append(slices.Clone(f.victims), losing(f.restarts)...))
		cost = &all
	}
	f.cost = *cost
	f.held = c.heldOn(f)
}

// losing are those of the pods that lose something when they are made again: a DaemonSet's that holds no GPU, as a device
// plugin or a volume driver does not, is back on its node at once. It is told that it stops, and makes no fix dearer.
func losing(pods []*corev1.Pod) []*corev1.Pod {
	return slices.DeleteFunc(slices.Clone(pods), func(p *corev1.Pod) bool {
		o := metav1.GetControllerOfNoCopy(p)
		return o != nil && o.Kind == "DaemonSet" && !view.HoldsGPU(view.PodRequests(p))
	})
}

// touched are the nodes that a fix changes: the one it is about, else those that its
// victims leave.
func touched(n *view.Node, victims []*corev1.Pod) []string {
	if n != nil {
		return []string{n.Name}
	}
	nodes := map[string]bool{}
	for _, v := range victims {
		nodes[v.Spec.NodeName] = true
	}
	return slices.Sorted(maps.Keys(nodes))
}

// detail writes out what is done, for the fixes that are shown.
func (f *candidate) detail(c *changes.Bench) {
	f.fix.Cost.Evictions, f.fix.Cost.Restarts = podNames(f.victims), podNames(f.restarts)
	if f.unknown {
		f.fix.Cost.RestartsKnown = new(false)
	}
	for _, ch := range c.OneEdit(f.changes) {
		if ch.Detail != nil {
			ch.Detail(&ch)
		}
		f.fix.Steps = append(f.fix.Steps, ch.Steps...)
		for _, command := range ch.Commands { // a StatefulSet's pod is deleted once for all that is changed of it
			if !slices.ContainsFunc(f.fix.Commands, func(given string) bool { return uncommented(given) == uncommented(command) }) {
				f.fix.Commands = append(f.fix.Commands, command)
			}
		}
		if len(ch.Or) > 0 {
			f.fix.Cost.Alternates = podNames(ch.Or)
		}
		f.fix.Actions = append(f.fix.Actions, ch.Actions...)
		if ch.Hardware != nil {
			f.fix.HardwareEvictions = ch.Hardware
		}
	}
}

// uncommented is a command without what is said of it; a line that is nothing but that stays as it is.
func uncommented(command string) string {
	bare, _, _ := strings.Cut(command, "  # ")
	return bare
}

func podNames(pods []*corev1.Pod) []diagnosis.PodName {
	out := make([]diagnosis.PodName, len(pods))
	for i, p := range pods {
		out[i] = diagnosis.PodName{Namespace: p.Namespace, Name: p.Name}
	}
	return out
}

// kindsKey tells sets of kinds apart, and for how many pods they make room.
func (f *candidate) kindsKey() string {
	if f.pods > 1 {
		return fmt.Sprintf("%s× %d", kindsKey(f.changes, ""), f.pods)
	}
	return kindsKey(f.changes, "")
}

// kindsKey names the kinds of a set of changes, and one more. Where a node is not ready, that is apart from who is to end
// elsewhere: somebody has to see to it, and is offered that beside any other wait.
func kindsKey(set []edit.Change, more diagnosis.FixKind) string {
	key := make([]byte, 0, 64)
	for _, ch := range set {
		key = append(append(key, ch.Kind...), ' ')
		if unopened(ch) {
			key = append(append(key, ch.Cause...), ' ')
		}
	}
	if more != "" {
		key = append(append(key, more...), ' ')
	}
	return string(key)
}

// unopened says of a change that a node is to be Ready, or opened, for it.
func unopened(ch edit.Change) bool {
	return ch.Kind == diagnosis.Wait && ch.Cause == diagnosis.NodeNotReady
}

// Enough says whether so many candidates of the kinds cost nobody anything that no more
// will be tried: nodes come by name, and of equal cost the first are.
func (c *Finder) Enough(sets [][]edit.Change, more diagnosis.FixKind) bool {
	return len(sets) == 1 && c.victimless[kindsKey(sets[0], more)] >= maxTries
}

// rank keeps a candidate if it is one of the cheapest of its kinds so far.
func (c *Finder) rank(kinds string, f *candidate) {
	first := c.first[kinds]
	at, _ := slices.BinarySearchFunc(first, f, func(other, f *candidate) int { return cmp.Or(other.order(f, false), -1) })
	if at < maxTries {
		first = slices.Insert(first, at, f)
		c.first[kinds] = first[:min(len(first), maxTries)]
	}
}

// Pointless says whether so many candidates of the same kinds cost less than what is
// changed beside the only set there is that it will not be tried. Titles, which tell
// equals apart, are not asked for.
func (c *Finder) Pointless(n *view.Node, sets [][]edit.Change, ch *edit.Change) bool {
	if len(sets) != 1 {
		return false
	}
	first := c.first[kindsKey(sets[0], ch.Kind)]
	if len(first) < maxTries {
		return false
	}
	var f candidate
	c.weigh(&f, n, append(append(c.weighed[:0], sets[0]...), *ch))
	c.weighed = f.changes
	return f.order(first[maxTries-1], false) > 0
}

func mostDisruptive(set []edit.Change) diagnosis.FixKind {
	most := set[0].Kind
	for i := range set {
		if set[i].Kind.Disturbs() > most.Disturbs() {
			most = set[i].Kind
		}
	}
	return most
}
