package fixes

import (
	"cmp"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/evict"
)

// The order of the contract, each line worse than the one before it for the one
// reason that is named.
func TestOrderOfFixes(t *testing.T) {
	low, same := pod("low", -1), pod("same", 0)
	good := func(change func(*candidate)) *candidate {
		f := &candidate{keeps: true, cost: evict.NoVictims, victims: []*corev1.Pod{same}, net: net{0: 2}, fix: diagnosis.Fix{Kind: diagnosis.EvictPods, Automatic: true,
			Proof: diagnosis.Proof{Verdict: diagnosis.Schedules}, Effect: &diagnosis.Effect{Runs: 2, Of: 2}, Cost: diagnosis.Cost{Nodes: []string{"a"}, Minutes: 1}}}
		change(f)
		return f
	}
	list := []struct {
		reason string
		fix    *candidate
	}{
		{"a node is coming", good(func(f *candidate) {
			f.beside, f.removes, f.fix.Proof.Verdict, f.fix.Effect, f.net, f.victims = true, diagnosis.ScalingUp, diagnosis.Waits, nil, net{0: 3}, nil
		})},
		{"stops nobody", good(func(f *candidate) { f.victims = nil })},
		{"stops somebody who lands", good(func(*candidate) {})},
		{"later in the catalogue", good(func(f *candidate) { f.fix.Kind = diagnosis.RepartitionGPU })},
		{"more minutes", good(func(f *candidate) { f.fix.Cost.Minutes = 2 })},
		{"more nodes", good(func(f *candidate) { f.fix.Cost.Nodes = []string{"a", "b"} })},
		{"fewer devices than asked", good(func(f *candidate) { f.less = 1 })},
		{"more work lost", good(func(f *candidate) { f.cost = evict.Cost{Lost: time.Minute} })},
		{"more victims", good(func(f *candidate) { f.cost = evict.Cost{Number: 1} })},
		{"higher sum", good(func(f *candidate) { f.cost = evict.Cost{Sum: 1} })},
		{"higher priority", good(func(f *candidate) { f.cost = evict.Cost{Highest: 1} })},
		{"work that goes on", good(func(f *candidate) { f.cost = evict.Cost{Working: 1} })},
		{"beyond a budget", good(func(f *candidate) { f.cost = evict.Cost{Beyond: 1} })},
		{"by hand", good(func(f *candidate) { f.fix.Automatic = false })},
		{"one of two runs", good(func(f *candidate) {
			f.fix.Effect, f.net = &diagnosis.Effect{Runs: 1, Of: 2, WaitingBefore: 2, WaitingAfter: 1}, net{0: 1}
		})},
		{"gives something else", good(func(f *candidate) { f.keeps = false })},
		{"gives something else, stopping nobody", good(func(f *candidate) { f.keeps, f.victims, f.net = false, nil, net{0: 1} })},
		{"two run and one then waits", good(func(f *candidate) { f.thenWait, f.gains, f.net = []*corev1.Pod{same}, true, net{0: 1} })},
		{"one runs and one that matters less then waits", good(func(f *candidate) { f.thenWait, f.gains, f.net = []*corev1.Pod{low}, true, net{0: 1, -1: -1} })},
		{"helps, and guard-rails hold it", good(func(f *candidate) { f.held = true })},
		{"waits", good(func(f *candidate) { f.fix.Proof.Verdict, f.fix.Effect = diagnosis.Waits, nil })},
		{"as many wait", good(func(f *candidate) { f.thenWait, f.net = []*corev1.Pod{same}, net{0: 0} })},
		{"nobody runs", good(func(f *candidate) { f.fix.Effect, f.net = &diagnosis.Effect{Runs: 0, Of: 2}, net{0: -1} })},
		{"unproven", good(func(f *candidate) { f.fix.Proof.Verdict = diagnosis.Unproven })},
		{"waits where it was not to run", good(func(f *candidate) {
			f.fix.Proof.Verdict, f.fix.Effect, f.astray, f.changes = diagnosis.Waits, nil, true, []edit.Change{{Kind: diagnosis.Wait}}
		})},
		{"refuted", good(func(f *candidate) { f.fix.Proof.Verdict = diagnosis.Refuted })},
	}
	for i := range list {
		for j := range list {
			if got := list[i].fix.order(list[j].fix, true); (got < 0) != (i < j) || (got == 0) != (i == j) {
				t.Errorf("%q against %q: %d", list[i].reason, list[j].reason, got)
			}
		}
	}
}

func pod(name string, priority int32) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{Priority: &priority}}
}

// Two of the same priority are worth no more than one that matters more, and who runs at a
// higher priority is worth any number of others.
func TestNetIsComparedFromTheHighestPriority(t *testing.T) {
	for _, tc := range []struct {
		a, b net
		want int // of a's place
	}{
		{net{0: 1}, net{0: 2}, 1}, {net{5: 1}, net{0: 9}, -1}, {net{5: 1, 0: -3}, net{5: 1, 0: -2}, 1}, {net{-1: -1}, nil, 1}, {net{0: 1}, net{0: 1, 3: 0}, 0},
	} {
		if got := cmp.Compare(tc.a.compare(tc.b), 0); got != tc.want || cmp.Compare(tc.b.compare(tc.a), 0) != -tc.want {
			t.Errorf("%v against %v: %d", tc.a, tc.b, got)
		}
	}
	for want, all := range map[bool][]net{true: {{0: 1}, {0: 1, -5: -4}}, false: {{}, {0: 0}, {0: 1, 1: -1}, {0: -1}}} {
		for _, n := range all {
			if n.gains() != want {
				t.Errorf("%v gains: %v", n, !want)
			}
		}
	}
}
