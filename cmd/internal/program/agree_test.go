package program

import (
	"math/rand/v2"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/rca"
	"github.com/unpend/unpend/rca/capacity"
	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/rcatest"
	"github.com/unpend/unpend/rca/view"
	"github.com/unpend/unpend/watcher/incident"
)

// capacity and why are asked about the same pods of the same random clusters, and give one
// answer: whether it fits now, with nobody moving, and after moving how many. A GPU whose MIG
// is off is out of it: capacity names it, and counts on nobody to switch that on.
func TestCapacityAgreesWithWhy(t *testing.T) {
	clusters := 54
	if testing.Short() {
		clusters = 18
	}
	answers := map[string]int{}
	for n := range clusters {
		r := rand.New(rand.NewPCG(11, uint64(n)))
		st := rcatest.AlmostAlike(r, rcatest.Differences[n%len(rcatest.Differences)])
		if withoutMIG(st) {
			continue
		}
		for _, p := range st.Pods {
			asks := view.AsksOf(p)
			if p.Spec.NodeName == "" && len(asks) == 1 && asks[0].Count == 1 {
				answers[agree(t, st, p, asks[0])]++
			}
		}
	}
	t.Log(answers)
	for _, want := range []string{"now", "nobody moves", "somebody moves", "no"} {
		if answers[want] == 0 && !testing.Short() {
			t.Errorf("no cluster had the answer %q", want)
		}
	}
}

func withoutMIG(st *cluster.State) bool {
	for _, g := range st.Geometries {
		if slices.ContainsFunc(g.Report.GPUs, func(g nodeprobe.GPU) bool { return g.MIG == nil || !g.MIG.Current || !g.MIG.Pending }) {
			return true
		}
	}
	return false
}

func agree(t *testing.T, st *cluster.State, p *corev1.Pod, ask view.Ask) string {
	t.Helper()
	list, err := capacity.Capacity(t.Context(), st, []capacity.Ask{{Resource: string(ask.Resource), Count: 1}}, capacity.Guest{Like: p})
	must(t, err)
	id := incident.ID(incident.Topmost(p, st.Owner), incident.Requests(p))
	found, err := rca.Diagnose(t.Context(), st, rca.Options{Only: func(i incident.Incident) bool { return i.ID == id }})
	must(t, err)
	if len(found) != 1 {
		t.Fatalf("%d incidents", len(found))
	}
	i, d := list.Items[0], found[0]
	if i.Now > i.Repartition || i.Repartition > i.Hardware {
		t.Errorf("%+v does not rise", i)
	}
	fits := slices.ContainsFunc(d.Nodes, func(n diagnosis.NodeBlockers) bool { return len(n.Blockers) == 0 })
	least := -1 // evictions of the fixes that change no request and no node's taints
	for _, f := range d.Fixes {
		only := !slices.ContainsFunc(f.Kinds, func(k diagnosis.FixKind) bool { return k != diagnosis.RepartitionGPU && k != diagnosis.EvictPods })
		if e := len(f.Cost.Evictions); only && f.Proof.Verdict == diagnosis.Schedules && (least < 0 || e < least) {
			least = e
		}
	}
	is, says := "no", "no"
	switch {
	case i.Now > 0:
		is = "now"
	case i.Repartition > 0:
		is = "nobody moves"
	case i.Evict.Fits > 0:
		is = "somebody moves"
	}
	switch {
	case fits:
		says = "now"
	case least == 0:
		says = "nobody moves"
	case least > 0:
		says = "somebody moves"
	}
	if is != says || is == "somebody moves" && len(i.Evict.Evictions) != least {
		t.Errorf("%s of %s: capacity says %q (%+v), why %q, evicting %d: %s", ask.Resource, p.Name, is, i, says, least, d.Headline)
	}
	return is
}
