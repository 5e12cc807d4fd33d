package rca

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/rcatest"
	"github.com/unpend/unpend/rca/view"
)

// On random clusters no fix re-makes a sick GPU, evicts who is on one alone (but for a gang,
// which leaves whole), or anybody from a node that somebody has taken, or was proved by a place on such a node or on one whose GPUs are all sick; and the
// drawing shows no sick GPU as it would be.
func TestSickGPUsAreInNoPlan(t *testing.T) {
	clusters := 60
	if testing.Short() {
		clusters = 15
	}
	plans := map[string]int{}
	for seed := range clusters {
		r := rand.New(rand.NewPCG(11, uint64(seed)))
		st := rcatest.ManyAlike(r)
		taken := spoil(r, st)
		found, err := Diagnose(t.Context(), st, Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range found {
			for _, f := range d.Fixes {
				if n := f.Proof.Node; f.Proof.Verdict == diagnosis.Schedules && (taken[n] || d.Requests["cpu"] == "" && allSick(st.Geometries[n])) {
					t.Errorf("cluster %d: %q was proved on %s", seed, f.Title, n)
				}
				for _, a := range f.Actions {
					plans[a.Verb]++
					checkAction(t, st, taken, f, a)
				}
			}
			if g := d.Drawing; g != nil && g.After != nil && !healthy(st.Geometries[g.Node], g.GPU) {
				t.Errorf("cluster %d: GPU %d of %s is drawn", seed, g.GPU, g.Node)
			}
		}
	}
	if plans[diagnosis.VerbRelayout] < clusters/2 || plans[diagnosis.VerbEvict] < clusters/2 {
		t.Errorf("too few plans say anything: %v", plans)
	}
}

// spoil makes GPUs sick and nodes somebody's, and says which nodes.
func spoil(r *rand.Rand, st *cluster.State) map[string]bool {
	taken := map[string]bool{}
	for _, n := range st.Nodes {
		if geo := st.Geometries[n.Name]; geo != nil {
			for i := range geo.Report.GPUs {
				geo.Report.GPUs[i].Healthy = geo.Report.GPUs[i].Healthy && r.IntN(3) > 0
			}
		}
		mark := []string{`{"op":"x","id":"y","parked":"it failed"}`, `{"op":"x","id":"y"}`, "mine"}
		if k := r.IntN(12); k < len(mark) {
			n.Annotations, n.Spec.Unschedulable, taken[n.Name] = map[string]string{diagnosis.OperationAnnotation: mark[k]}, k == 0 || n.Spec.Unschedulable, true
		}
	}
	return taken
}

func checkAction(t *testing.T, st *cluster.State, taken map[string]bool, f diagnosis.Fix, a diagnosis.Action) {
	t.Helper()
	if a.Target.Kind == "Node" && taken[a.Target.Name] {
		t.Errorf("%q is about %s, which somebody has taken", f.Title, a.Target.Name)
	}
	if a.Verb == diagnosis.VerbRelayout && slices.ContainsFunc(a.Relayout.GPUs, func(gpu int) bool { return !healthy(st.Geometries[a.Target.Name], gpu) }) {
		t.Errorf("%q re-makes a sick GPU", f.Title)
	}
	if p := st.Pod(a.Target.Namespace, a.Target.Name); a.Verb == diagnosis.VerbEvict && p != nil && a.Relies[diagnosis.RemadeBy] == "" && (taken[p.Spec.NodeName] || onSick(st, p) && view.GangOf(p) == "" && offersAll(st, p.Spec.NodeName)) {
		t.Errorf("%q evicts %s from %s", f.Title, p.Name, p.Spec.NodeName)
	}
}

// offersAll says whether the device plugin of a node offers all that is reported: else it may
// have withdrawn what is sick, and the scheduler counts who is on it against the others.
func offersAll(st *cluster.State, node string) bool {
	devices, offered := int64(0), int64(0)
	for _, g := range st.Geometries[node].Report.GPUs {
		devices += max(int64(len(g.Instances)), 1)
		if len(g.Instances) == 0 && g.MIG != nil && g.MIG.Current {
			devices--
		}
	}
	for _, n := range st.Nodes {
		for name, q := range n.Status.Allocatable {
			if n.Name == node && strings.HasPrefix(string(name), "nvidia.com/") {
				offered += q.Value()
			}
		}
	}
	return offered >= devices
}

func healthy(geo *nodeprobe.NodeGeometry, gpu int) bool {
	return slices.ContainsFunc(geo.Report.GPUs, func(g nodeprobe.GPU) bool { return g.Index == gpu && g.Healthy })
}

func allSick(geo *nodeprobe.NodeGeometry) bool {
	return geo != nil && !slices.ContainsFunc(geo.Report.GPUs, func(g nodeprobe.GPU) bool { return g.Healthy })
}

// onSick says whether all that a pod holds of GPUs is on sick ones.
func onSick(st *cluster.State, p *corev1.Pod) bool {
	geo := st.Geometries[p.Spec.NodeName]
	if known, _ := st.HoldersKnown(p.Spec.NodeName); geo == nil || !known {
		return false // who is on which GPU nobody can tell
	}
	holds, sick := 0, 0
	is := func(h *nodeprobe.Holder) bool { return h != nil && h.Namespace == p.Namespace && h.Pod == p.Name }
	for _, g := range geo.Report.GPUs {
		mine := 0
		for i := range g.Holders {
			if is(&g.Holders[i]) {
				mine++
			}
		}
		for _, in := range g.Instances {
			if is(in.Holder) {
				mine++
			}
		}
		if holds += mine; !g.Healthy {
			sick += mine
		}
	}
	return holds > 0 && sick == holds
}
