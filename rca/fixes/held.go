package fixes

import (
	"slices"
	"strings"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/view"
)

// heldOn says whether guard-rails would hold back what is done to the nodes of a candidate,
// as far as that can be told before its actions are written out. What holds back every fix
// tells none from another.
func (c *Finder) heldOn(f *candidate) bool {
	if c.guard == nil || c.halted || !f.fix.Automatic {
		return false
	}
	closes := slices.ContainsFunc(f.changes, func(ch edit.Change) bool {
		return ch.Relayout != nil || ch.Kind == diagnosis.QuarantineGPU
	})
	nodes := f.fix.Cost.Nodes
	key := strings.Join(nodes, " ")
	if closes {
		key += " " + string(f.fix.Kind)
	}
	held, known := c.heldNodes[key]
	if !known {
		fix := diagnosis.Fix{Kind: f.fix.Kind, Cost: diagnosis.Cost{Nodes: nodes}}
		for _, name := range nodes {
			if closes {
				fix.Actions = append(fix.Actions, diagnosis.Action{Verb: diagnosis.VerbRelayout, Target: diagnosis.Target{Kind: "Node", Name: name}})
			}
		}
		held = c.guard(c.Incident, fix).Why != ""
		c.heldNodes[key] = held
	}
	return held
}

// hold asks about a fix that was proved, with all that it does: budgets about those who stop
// by it, then guard-rails, where there are any. One that is refused is no longer offered to be
// carried out; of one that would wait for its turn that is said. Nobody is asked before a
// person does it by hand, so that person is told.
func (c *Finder) hold(f *candidate) {
	if f.fix.Proof.Verdict == diagnosis.Refuted {
		return
	}
	if !f.fix.Automatic {
		if pod := c.Cluster.Guarded(f.restarts); pod != "" {
			f.fix.Proof.Why += "; a PodDisruptionBudget would not let " + pod + " be evicted now"
		}
		return
	}
	if c.guard == nil && len(c.Cluster.State.PDBs) == 0 {
		return
	}
	whole := *f
	whole.detail(c.Bench)
	held := diagnosis.Held{}
	if spared := view.SparedBy(c.Cluster.State, whole.fix.Actions); spared != "" {
		held = diagnosis.Held{Why: spared, Refused: true}
	} else if c.guard != nil {
		held = c.guard(c.Incident, whole.fix)
	}
	f.held = held.Why != "" && !c.halted
	if held.Why == "" {
		return
	}
	says := "held back now: "
	if held.Refused {
		f.fix.Automatic, says = false, "refused now: "
	}
	f.fix.Held = held.Why
	f.fix.Proof.Why += "; " + says + held.Why
}
