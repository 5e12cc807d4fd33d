package fixes

import (
	"cmp"
	"maps"
	"slices"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// class is that of a fix once it was tried.
func (f *candidate) class() diagnosis.Class {
	e := f.fix.Effect
	switch v := f.fix.Proof.Verdict; {
	case v == diagnosis.Waits && f.beside && f.removes == diagnosis.ScalingUp:
		return diagnosis.StopsNobody
	case v == diagnosis.Waits && (!f.astray || !f.endless()):
		return diagnosis.WaitsForMore
	case v == diagnosis.Refuted:
		return refuted
	case v != diagnosis.Schedules || e == nil || f.fix.Kind == diagnosis.Manual:
		return diagnosis.NotProved
	case len(f.thenWait) == 0 && e.Runs > 0 && !f.stays() && !f.ends():
		if f.keeps && !f.elsewhere() && len(f.victims)+len(f.restarts) == 0 && e.Runs == e.Of {
			return diagnosis.StopsNobody
		}
		return diagnosis.HarmsNobody
	case f.gains && !f.stays():
		return diagnosis.HarmsLess
	case f.astray:
		return diagnosis.NotProved
	}
	return diagnosis.MusicalChair
}

// stays says that some run, and as many wait as before: what its rollout adds does.
func (f *candidate) stays() bool {
	e := f.fix.Effect
	return e != nil && e.Runs < e.Of && e.WaitingAfter >= e.WaitingBefore && len(f.thenWait) == 0
}

// elsewhere says that it takes the pod to nodes that are kept for others by their labels and by their taints.
func (f *candidate) elsewhere() bool {
	return f.astray && slices.Contains(f.fix.Kinds, diagnosis.AddToleration)
}

// ends says that it takes the room of pods that nobody makes again and that would come to their end by themselves: their work is
// lost for good, where all that it saves is waiting for that.
func (f *candidate) ends() bool {
	return f.fix.Kind == diagnosis.EvictPods && slices.ContainsFunc(f.gone, view.EndsAlone)
}

// net counts pods by priority.
type net map[int64]int

// gains says whether more pods run than then wait, at the highest priority at which these
// are not as many.
func (n net) gains() bool { return n.compare(nil) < 0 }

// compare puts first what has more pods running, net of those who then wait, at the
// highest priority at which the two differ.
func (n net) compare(m net) int {
	for _, priority := range slices.Backward(slices.Sorted(maps.Keys(n.with(m)))) {
		if d := m[priority] - n[priority]; d != 0 {
			return d
		}
	}
	return 0
}

// with has the priorities of both.
func (n net) with(m net) net {
	out := maps.Clone(m)
	if out == nil {
		out = net{}
	}
	maps.Copy(out, n)
	return out
}

// refuted comes behind all classes: it is shown to nobody.
const refuted diagnosis.Class = "G"

// order sorts fixes: those that help, then what is waited for, then musical chairs, then
// what is not proved · those that guard-rails let be begun now · by class · those that give
// what was asked · by the pods that run, net of those who then wait · automatic · what it
// costs those who stop · those that give more of what was asked · what ends some time that is known · nodes · minutes · what
// failed less often · catalogue order.
// Without judged, of candidates that have not been tried yet, what only a proof tells is
// left out.
func (f *candidate) order(g *candidate, judged bool) int {
	byProof, byClass, byNet, stranding := 0, 0, 0, 0
	if judged {
		a, b := f.class(), g.class()
		byClass = cmp.Compare(a, b)
		if !a.Helps() || !b.Helps() {
			byProof = byClass
		}
		byNet = f.net.compare(g.net)
		stranding = f.stranded - g.stranded // also of what waits for a budget, so that it stays the same fix
	}
	return cmp.Or(
		byProof,
		view.Rank(!f.held)-view.Rank(!g.held),
		byClass,
		view.Rank(f.keeps && !f.astray)-view.Rank(g.keeps && !g.astray),
		byNet,
		view.Rank(f.fix.Automatic)-view.Rank(g.fix.Automatic),
		stranding,
		f.cost.Compare(g.cost),
		cmp.Compare(f.less, g.less),
		cmp.Compare(f.cut, g.cut),
		view.Rank(!f.endless())-view.Rank(!g.endless()),
		len(f.fix.Cost.Nodes)-len(g.fix.Cost.Nodes),
		f.fix.Cost.Minutes-g.fix.Cost.Minutes,
		f.failures-g.failures,
		f.fix.Kind.Order()-g.fix.Kind.Order(),
	)
}

// best says whether nothing tried later, which costs no less, can be better: as many run as
// it makes room for, and nobody is left waiting. What cannot be tried is better than nothing alone.
func (f *candidate) best() bool {
	e := f.fix.Effect
	return f.fix.Proof.Verdict != diagnosis.Unproven && f.stranded == 0 && !f.held && (e == nil || e.Runs >= min(e.Of, max(1, f.pods)) && len(f.thenWait) == 0)
}

// better says whether a candidate of the same kinds, tried later and so no cheaper, is
// worth its cost.
func (f *candidate) better(b *candidate) bool { return f.order(b, true) < 0 }
