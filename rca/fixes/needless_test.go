package fixes

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
)

// A fix that does more than another, and brings no more, is not offered.
func TestNeedlessFixes(t *testing.T) {
	fix := func(v diagnosis.Verdict, runs int, titles ...string) *candidate {
		f := &candidate{fix: diagnosis.Fix{Proof: diagnosis.Proof{Verdict: v}}}
		for _, title := range titles {
			f.changes = append(f.changes, edit.Change{Title: title})
		}
		if v == diagnosis.Schedules {
			f.fix.Effect = &diagnosis.Effect{Runs: runs}
		}
		return f
	}
	held := func(f *candidate) *candidate { f.held = true; return f }
	untried := func(why string, f *candidate) *candidate { f.fix.Proof.Why = why; return f }
	taken := func(f *candidate) *candidate { f.accepted = true; return f }
	for name, tc := range map[string]struct {
		other, f *candidate
		want     bool
	}{
		"makes room that is there":             {fix(diagnosis.Waits, 0, "queue"), fix(diagnosis.Waits, 0, "queue", "evict"), true},
		"evicts, and as many run":              {fix(diagnosis.Schedules, 2, "tolerate"), fix(diagnosis.Schedules, 2, "tolerate", "evict"), true},
		"more run":                             {fix(diagnosis.Schedules, 1, "tolerate"), fix(diagnosis.Schedules, 2, "tolerate", "evict"), false},
		"waits for nothing any more":           {fix(diagnosis.Waits, 0, "wait"), fix(diagnosis.Schedules, 1, "wait", "evict"), false},
		"does something else":                  {fix(diagnosis.Waits, 0, "queue"), fix(diagnosis.Waits, 0, "quota", "evict"), false},
		"does the same":                        {fix(diagnosis.Waits, 0, "queue"), fix(diagnosis.Waits, 0, "queue", "queue"), false},
		"the smaller may not begin":            {held(fix(diagnosis.Schedules, 1, "a")), fix(diagnosis.Schedules, 1, "a", "b"), false},
		"neither may begin":                    {held(fix(diagnosis.Schedules, 1, "a")), held(fix(diagnosis.Schedules, 1, "a", "b")), true},
		"nobody knows what either brings":      {fix(diagnosis.Unproven, 0, "a"), fix(diagnosis.Unproven, 0, "a", "b"), false},
		"a part of it is proved":               {fix(diagnosis.Waits, 0, "a"), fix(diagnosis.Unproven, 0, "a", "b"), true},
		"a part of it was refused":             {fix(diagnosis.Refuted, 0, "a"), fix(diagnosis.Unproven, 0, "a", "b"), false},
		"neither can be tried, for one reason": {untried("a volume", fix(diagnosis.Unproven, 0, "a")), untried("a volume", fix(diagnosis.Unproven, 0, "a", "b")), true},
		"nor for different ones":               {untried("a volume", fix(diagnosis.Unproven, 0, "a")), untried("a log", fix(diagnosis.Unproven, 0, "a", "b")), false},
		"filters take both, another decides":   {taken(fix(diagnosis.Unproven, 0, "a")), taken(fix(diagnosis.Waits, 0, "a", "b")), true},
		"filters take the larger alone":        {fix(diagnosis.Unproven, 0, "a"), taken(fix(diagnosis.Waits, 0, "a", "b")), false},
		"what needs nothing is no part":        {fix(diagnosis.Schedules, 1), fix(diagnosis.Schedules, 1, "a"), false},
		"it is not a part of itself alone":     {fix(diagnosis.Waits, 0, "a", "b"), fix(diagnosis.Waits, 0, "a"), false},
	} {
		if got := tc.f.needless([]*candidate{tc.f, tc.other}); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// A Job is not made again for fewer pods than it stops, where waiting brings them too.
func TestAJobIsNotBegunAnewForFewOfItsPods(t *testing.T) {
	again := func(kind string, stops, runs int) *candidate {
		f := &candidate{fix: diagnosis.Fix{Kind: diagnosis.ChangeRequest, Proof: diagnosis.Proof{Verdict: diagnosis.Schedules}, Effect: &diagnosis.Effect{Runs: runs}}}
		for range stops {
			f.restarts = append(f.restarts, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{Kind: kind, Controller: new(true)}}}})
		}
		return f
	}
	wait := &candidate{fix: diagnosis.Fix{Kind: diagnosis.Wait, Proof: diagnosis.Proof{Verdict: diagnosis.Waits}}}
	other := &candidate{fix: diagnosis.Fix{Kind: diagnosis.EvictPods, Proof: diagnosis.Proof{Verdict: diagnosis.Waits}}}
	for name, tc := range map[string]struct {
		f, beside *candidate
		want      bool
	}{
		"more stop than run":        {again("Job", 3, 2), wait, true},
		"as many stop":              {again("Job", 2, 2), wait, false},
		"one stops, and none run":   {again("Job", 1, 0), wait, false},
		"a rollout brings them all": {again("ReplicaSet", 3, 2), wait, false},
		"waiting brings nothing":    {again("Job", 3, 2), other, false},
	} {
		if got := tc.f.dear([]*candidate{tc.f, tc.beside}); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// Beside what an autoscaler says that it lacks nobody asks less for all pods of a workload where as many wait in the end, nor has
// them elsewhere for some of them; and half of the memory is no proof.
func TestWhatIsOutdone(t *testing.T) {
	growth := []*candidate{{beside: true, fix: diagnosis.Fix{Kind: diagnosis.ScaleNodePool}}}
	for name, tc := range map[string]struct {
		f       candidate
		effect  diagnosis.Effect
		besides []*candidate
		want    diagnosis.Verdict // empty: it is not offered
	}{
		"less, and all run":                 {candidate{cut: 400}, diagnosis.Effect{Of: 2, Runs: 2, WaitingBefore: 2}, growth, diagnosis.Schedules},
		"less, and as many wait":            {candidate{cut: 100}, diagnosis.Effect{Of: 4, Runs: 1, WaitingBefore: 4, WaitingAfter: 4}, growth, ""},
		"less, and fewer wait":              {candidate{cut: 100}, diagnosis.Effect{Of: 4, Runs: 1, WaitingBefore: 4, WaitingAfter: 3}, growth, diagnosis.Schedules},
		"as many wait, and nothing is said": {candidate{cut: 100}, diagnosis.Effect{Of: 4, Runs: 1, WaitingBefore: 4, WaitingAfter: 4}, nil, diagnosis.Schedules},
		"as many wait, and it asks as much": {candidate{}, diagnosis.Effect{Of: 4, Runs: 1, WaitingBefore: 4, WaitingAfter: 4}, growth, diagnosis.Schedules},
		"elsewhere":                         {candidate{astray: true}, diagnosis.Effect{Of: 2, Runs: 2, WaitingBefore: 2}, growth, diagnosis.Schedules},
		"elsewhere, and some":               {candidate{astray: true}, diagnosis.Effect{Of: 4, Runs: 2, WaitingBefore: 4, WaitingAfter: 2}, growth, ""},
		"elsewhere, and less":               {candidate{astray: true, cut: 100}, diagnosis.Effect{Of: 1, Runs: 1, WaitingBefore: 1}, growth, ""},
		"less than half of its memory":      {candidate{cut: 600, halves: true}, diagnosis.Effect{Of: 1, Runs: 1, WaitingBefore: 1}, growth, diagnosis.Unproven},
		"half, and nothing is said":         {candidate{cut: 600, halves: true}, diagnosis.Effect{Of: 1, Runs: 1, WaitingBefore: 1}, nil, diagnosis.Schedules},
	} {
		f := tc.f
		f.fix.Proof.Verdict, f.fix.Effect = diagnosis.Schedules, &tc.effect
		got := diagnosis.Verdict("")
		for _, left := range outdone([]*candidate{&f}, tc.besides) {
			got = left.fix.Proof.Verdict
		}
		if got != tc.want || (f.fix.Effect == nil) != (tc.want == diagnosis.Unproven) || (f.fix.Proof.Why != "") != (tc.want == diagnosis.Unproven) {
			t.Errorf("%s: %q, %+v", name, got, f.fix)
		}
	}
}

// To see to a node that is not Ready is no alternative to a wait for somebody elsewhere: both are tried, and both are told.
func TestANodeThatIsNotReadyIsSeenToBesideOtherWaits(t *testing.T) {
	wait := func(cause diagnosis.CauseID, title string) *candidate {
		return &candidate{changes: []edit.Change{{Kind: diagnosis.Wait, Cause: cause, Title: title}},
			fix: diagnosis.Fix{Title: title, Kind: diagnosis.Wait, Kinds: []diagnosis.FixKind{diagnosis.Wait}, Proof: diagnosis.Proof{Verdict: diagnosis.Waits}}}
	}
	for name, c := range map[string]struct {
		a, b diagnosis.CauseID
		want int
	}{
		"it is not ready, and elsewhere somebody ends": {diagnosis.NodeNotReady, diagnosis.GPUsInUse, 2},
		"two are not ready":                            {diagnosis.NodeNotReady, diagnosis.NodeNotReady, 1},
		"somebody ends here or there":                  {diagnosis.GPUsInUse, diagnosis.GPUsInUse, 1},
	} {
		a, b := wait(c.a, "a"), wait(c.b, "b")
		if kept := bestOfKinds([]*candidate{a, b}); len(kept) != c.want || (a.kindsKey() != b.kindsKey()) != (c.want == 2) {
			t.Errorf("%s: %d are told; %q, %q", name, len(kept), a.kindsKey(), b.kindsKey())
		}
	}
}

// A workload that is changed is admitted by its queue after that, and pods leave only once it is.
func TestAQueueIsAskedAboutWhatIsChanged(t *testing.T) {
	wait := edit.Change{Kind: diagnosis.Wait, Cause: diagnosis.QueueNotAdmitted, Title: "wait"}
	leave := edit.Change{Kind: diagnosis.EvictPods, Title: "evict"}
	tolerate := edit.Change{Kind: diagnosis.AddToleration, Title: "tolerate", Rolling: &edit.Rolling{}}
	node := edit.Change{Kind: diagnosis.Wait, Cause: diagnosis.NodeNotReady, Title: "ready"}
	for _, tc := range []struct {
		set  []edit.Change
		want string
	}{
		{[]edit.Change{wait, tolerate}, "tolerate wait "},
		{[]edit.Change{wait, leave, tolerate}, "tolerate wait evict "},
		{[]edit.Change{wait, leave}, "wait evict "},
		{[]edit.Change{node, tolerate}, "ready tolerate "},
	} {
		got := ""
		for _, ch := range admittedLast(tc.set) {
			got += ch.Title + " "
		}
		if got != tc.want {
			t.Errorf("%s, want %s", got, tc.want)
		}
	}
}
