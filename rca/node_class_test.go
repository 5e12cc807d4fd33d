package rca

import (
	"encoding/json"
	"math/rand/v2"
	"testing"

	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/rcatest"
	"github.com/unpend/unpend/rca/view"
	"github.com/unpend/unpend/testdata/controlplane"
	"github.com/unpend/unpend/watcher/incident"
)

// What is worked out once for nodes that are alike is what each of them says alone.
func TestNodesOfAClassAsIfAlone(t *testing.T) {
	clusters := controlplane.Of(40, 120)
	if testing.Short() {
		clusters = 12
	}
	nodes, classes, fixes := 0, 0, 0
	for seed := range clusters {
		r := rand.New(rand.NewPCG(uint64(seed), 11))
		for i, st := range []*cluster.State{rcatest.ManyAlike(r), rcatest.AlmostAlike(r, rcatest.Differences[seed%len(rcatest.Differences)])} {
			shared, w := diagnosed(t, st, func(*view.Cluster) {})
			alone, _ := diagnosed(t, st, (*view.Cluster).Unshared)
			if w.ClassCount() > len(st.Nodes) {
				t.Fatalf("seed %d: %d classes of %d nodes", seed, w.ClassCount(), len(st.Nodes))
			}
			for k := range shared {
				got, want := asJSON(t, shared[k]), asJSON(t, alone[k])
				if got != want {
					t.Fatalf("seed %d, cluster %d, %s: together\n%s\nalone\n%s", seed, i, shared[k].Workload.Name, got, want)
				}
				fixes += len(shared[k].Fixes)
			}
			nodes, classes = nodes+len(st.Nodes), classes+w.ClassCount()
		}
	}
	if classes*4 > nodes*3 {
		t.Errorf("%d nodes are of %d classes: next to nothing was shared", nodes, classes)
	}
	t.Logf("%d clusters, %d nodes of %d classes, %d fixes", clusters, nodes, classes, fixes)
}

func diagnosed(t *testing.T, st *cluster.State, edit func(*view.Cluster)) ([]diagnosis.Diagnosis, *view.Cluster) {
	t.Helper()
	w, done, err := view.Open(t.Context(), st, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	edit(w)
	var out []diagnosis.Diagnosis
	for _, i := range incident.Group(st.Pods, st.Owner) {
		d, err := newRun(t.Context(), w, Options{}).diagnose(t.Context(), i)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, d)
	}
	return out, w
}

func asJSON(t *testing.T, d diagnosis.Diagnosis) string {
	t.Helper()
	b, err := json.MarshalIndent(d, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
