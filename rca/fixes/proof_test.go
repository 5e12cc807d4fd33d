package fixes

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/unpend/unpend/rca/causes"
	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/placement"
	"github.com/unpend/unpend/rca/rcatest"
	"github.com/unpend/unpend/rca/relayout"
	"github.com/unpend/unpend/rca/whatif"
)

// A fix that needs something first waits for all of it: what its changes name, and the budgets
// of who is evicted. Nobody asks a budget for those that the scheduler preempts.
func TestWhatAFixWaitsFor(t *testing.T) {
	c := finder(t, nil, "nvidia.com/gpu", func(st *cluster.State) {
		st.PDBs = []*policyv1.PodDisruptionBudget{rcatest.BudgetFor("x", 1)}
	})
	guarded := func(n int) []*corev1.Pod {
		var out []*corev1.Pod
		for i := range n {
			out = append(out, rcatest.Victim(fmt.Sprint("x", i), 0, 1, 0, "x"))
		}
		return out
	}
	for name, tc := range map[string]struct {
		kind    diagnosis.FixKind
		until   []string
		victims []*corev1.Pod
		want    string
	}{
		"nothing":              {diagnosis.EvictPods, nil, nil, "ok"},
		"an event":             {diagnosis.Wait, []string{"it ends"}, nil, "accepted on a copy once it ends"},
		"one that helps twice": {diagnosis.RepairDeviceStack, []string{"it ends", "it ends"}, nil, "accepted on a copy once it ends"},
		"two":                  {diagnosis.Wait, []string{"it ends", "", "it begins"}, nil, "accepted on a copy once it ends and it begins"},
		"as the budget allows": {diagnosis.EvictPods, nil, guarded(1), "ok"},
		"more than it does":    {diagnosis.EvictPods, nil, guarded(3), "accepted on a copy once PodDisruptionBudget x allows 2 more of these evictions"},
		"an event and that":    {diagnosis.EvictPods, []string{"it ends"}, guarded(2), "accepted on a copy once it ends and PodDisruptionBudget x allows 1 more of these evictions"},
		"by preemption":        {diagnosis.RaisePriority, nil, guarded(3), "ok"},
	} {
		f := &candidate{victims: tc.victims, fix: diagnosis.Fix{Kind: tc.kind, Proof: diagnosis.Proof{Verdict: diagnosis.Schedules, Why: "ok"}}}
		for _, u := range tc.until {
			f.changes = append(f.changes, edit.Change{Until: u})
		}
		c.until(f)
		if p := f.fix.Proof; strings.Replace(p.Why, "a/x", "x", 1) != tc.want || (p.Verdict == diagnosis.Waits) != (tc.want != "ok") {
			t.Errorf("%s: %s, %s; want %s", name, p.Verdict, p.Why, tc.want)
		}
	}
}

// The GPU that a proof names is one that the fix re-makes on the node where the pod is placed.
func TestWhichGPUAProofNames(t *testing.T) {
	c := finder(t, nil, "nvidia.com/mig-2g.10gb", nil)
	n := c.Node("a")
	layout := func(remade ...int) edit.Change {
		return edit.Change{Relayout: &relayout.Way{Node: n, Wanted: map[int]placement.Layout{0: {"2g.10gb": 3}}, Remade: remade}}
	}
	for name, tc := range map[string]struct {
		set    []edit.Change
		placed string
		want   bool
	}{
		"the one":         {[]edit.Change{{}, layout(0)}, "a", true},
		"another node":    {[]edit.Change{layout(0)}, "b", false},
		"none is re-made": {[]edit.Change{layout()}, "a", false},
		"no layout":       {[]edit.Change{{}}, "a", false},
	} {
		f := &candidate{node: n, changes: tc.set}
		if c.position(f, tc.placed); (f.fix.Proof.GPU != nil) != tc.want || tc.want && *f.fix.Proof.GPU != 0 {
			t.Errorf("%s: %v", name, f.fix.Proof.GPU)
		}
	}
}

// A node that a fix changes several times is changed once, on a copy.
func TestNodesThatAFixEdits(t *testing.T) {
	c := finder(t, nil, "nvidia.com/gpu", nil)
	n := c.Node("a")
	label := func(key string) edit.Change {
		return edit.Change{Node: func(o *corev1.Node) { o.Labels[key] = "x" }}
	}
	f := &candidate{node: n, changes: []edit.Change{label("p"), {}, label("q")}}
	got := f.edited()
	if len(got) != 1 || got[0].Labels["p"]+got[0].Labels["q"] != "xx" || n.Labels["p"] != "" {
		t.Errorf("%v", got)
	}
	if got := (&candidate{node: n, changes: []edit.Change{{}}}).edited(); len(got) != 0 {
		t.Errorf("%v", got)
	}
}

// What the API server would refuse after a fix as well is no fix: for the requests, the limits
// and the quotas as the fix leaves them. A person's own doing is taken as done.
func TestWhatTheAPIServerRefusesStill(t *testing.T) {
	hard := func(n string) corev1.ResourceList { return corev1.ResourceList{"pods": resource.MustParse(n)} }
	holder := rcatest.Victim("h", 0, 0, 0, "h")
	for name, tc := range map[string]struct {
		exists bool
		set    []edit.Change
		edit   func(*corev1.Pod)
		want   string // a part of it; empty: it would take it
	}{
		"as it is":               {false, nil, nil, "quota"},
		"it exists":              {true, nil, nil, ""},
		"more quota":             {false, []edit.Change{{Hard: map[string]corev1.ResourceList{"q": hard("2")}}}, nil, ""},
		"too little of it":       {false, []edit.Change{{Hard: map[string]corev1.ResourceList{"q": hard("1")}}}, nil, "quota"},
		"of another":             {false, []edit.Change{{Hard: map[string]corev1.ResourceList{"p": hard("2")}}}, nil, "quota"},
		"who holds it leaves":    {false, []edit.Change{{Kind: diagnosis.Wait, Victims: []*corev1.Pod{holder}}}, nil, ""},
		"who is evicted is back": {false, []edit.Change{{Kind: diagnosis.EvictPods, Victims: []*corev1.Pod{holder}}}, nil, "quota"},
		"a person sees to it":    {false, []edit.Change{{Kind: diagnosis.Manual}}, nil, ""},
		"a cut device": {false, []edit.Change{{Hard: map[string]corev1.ResourceList{"q": hard("2")}}}, func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("500m")}
		}, "cannot be cut"},
		"no limit":               {false, []edit.Change{{Hard: map[string]corev1.ResourceList{"q": hard("2")}}}, func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Limits = nil }, "has no limit of it"},
		"more than a LimitRange": {false, []edit.Change{{Hard: map[string]corev1.ResourceList{"q": hard("2")}}}, func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Requests["memory"] = resource.MustParse("9Gi") }, "memory"},
	} {
		t.Run(name, func(t *testing.T) {
			c := finder(t, nil, "nvidia.com/gpu", func(st *cluster.State) {
				p := st.Pods[0]
				p.Spec.Containers[0].Resources.Limits = p.Spec.Containers[0].Resources.Requests.DeepCopy()
				st.Pods = append(st.Pods, holder)
				st.Quotas = []*corev1.ResourceQuota{{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "q"}, Spec: corev1.ResourceQuotaSpec{Hard: hard("1")}, Status: corev1.ResourceQuotaStatus{Hard: hard("1"), Used: hard("1")}}}
				st.LimitRanges = []*corev1.LimitRange{{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "l"}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer, Max: corev1.ResourceList{"memory": resource.MustParse("8Gi")}}}}}}
			})
			c.Unborn = !tc.exists
			c.Cluster.State.Pods = []*corev1.Pod{holder}
			p := c.Pod.DeepCopy()
			p.Spec.Containers[0].Resources.Limits["memory"], p.Spec.Containers[0].Resources.Requests["memory"] = resource.MustParse("1Gi"), resource.MustParse("1Gi")
			if tc.edit != nil {
				tc.edit(p)
			}
			got := c.refusedStill(&candidate{changes: tc.set}, p)
			if (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

// Each blocker of a node is cleared once: what keeps the pod by a policy, and what the node
// lacks; what is the pod's own is cleared for it everywhere.
func TestEveryBlockerIsCleared(t *testing.T) {
	taint := corev1.Taint{Key: "team", Value: "x", Effect: corev1.TaintEffectNoSchedule}
	fit := func(cause diagnosis.CauseID) diagnosis.Blocker {
		return diagnosis.Blocker{Plugin: "NodeResourcesFit", Cause: cause}
	}
	policy := func(cause diagnosis.CauseID) diagnosis.Blocker {
		return diagnosis.Blocker{Plugin: "TaintToleration", Cause: cause}
	}
	for name, tc := range map[string]struct {
		nodes []diagnosis.NodeBlockers
		own   []causes.PodRule
		want  []string
	}{
		"a taint":         {[]diagnosis.NodeBlockers{{Name: "a", Blockers: []diagnosis.Blocker{policy(diagnosis.UntoleratedTaint)}}}, nil, []string{"AddToleration"}},
		"told twice":      {[]diagnosis.NodeBlockers{{Name: "a", Blockers: []diagnosis.Blocker{policy(diagnosis.UntoleratedTaint), policy(diagnosis.UntoleratedTaint)}}}, nil, []string{"AddToleration"}},
		"and a cordon":    {[]diagnosis.NodeBlockers{{Name: "a", Blockers: []diagnosis.Blocker{policy(diagnosis.UntoleratedTaint), policy(diagnosis.NodeCordoned)}}}, nil, []string{"AddToleration UncordonNode"}},
		"on two nodes":    {[]diagnosis.NodeBlockers{{Name: "a", Blockers: []diagnosis.Blocker{policy(diagnosis.NodeCordoned)}}, {Name: "b", Blockers: []diagnosis.Blocker{policy(diagnosis.NodeCordoned)}}}, nil, []string{"UncordonNode", "UncordonNode"}},
		"the same edit":   {[]diagnosis.NodeBlockers{{Name: "a", Blockers: []diagnosis.Blocker{policy(diagnosis.UntoleratedTaint)}}, {Name: "b", Blockers: []diagnosis.Blocker{policy(diagnosis.UntoleratedTaint)}}}, nil, []string{"AddToleration"}},
		"and it lacks":    {[]diagnosis.NodeBlockers{{Name: "a", Blockers: []diagnosis.Blocker{policy(diagnosis.NodeCordoned), fit(diagnosis.MIGConfigInProgress)}}}, nil, []string{"UncordonNode Wait"}},
		"no way":          {[]diagnosis.NodeBlockers{{Name: "a", Blockers: []diagnosis.Blocker{policy(diagnosis.NodeCordoned), policy(diagnosis.MIGFull)}}}, nil, nil},
		"nothing":         {[]diagnosis.NodeBlockers{{Name: "a"}}, nil, nil},
		"its own, too":    {[]diagnosis.NodeBlockers{{Name: "a", Blockers: []diagnosis.Blocker{policy(diagnosis.NodeCordoned)}}}, []causes.PodRule{{ID: diagnosis.NoNodes}}, []string{"ScaleNodePool UncordonNode"}},
		"its own alone":   {nil, []causes.PodRule{{ID: diagnosis.NoNodes}}, []string{"ScaleNodePool"}},
		"told of a node":  {[]diagnosis.NodeBlockers{{Name: "a", Blockers: []diagnosis.Blocker{policy(diagnosis.NoNodes)}}}, []causes.PodRule{{ID: diagnosis.NoNodes}}, []string{"ScaleNodePool"}},
		"of its own none": {[]diagnosis.NodeBlockers{{Name: "a", Blockers: []diagnosis.Blocker{policy(diagnosis.NodeCordoned)}}}, []causes.PodRule{{ID: diagnosis.MIGFull}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			c := finder(t, nil, "nvidia.com/mig-1g.5gb", func(st *cluster.State) {
				for _, n := range st.Nodes {
					n.Spec.Taints = []corev1.Taint{taint}
				}
			})
			c.Own = tc.own
			var got []string
			for _, f := range c.candidates(tc.nodes) {
				var kinds []string
				for _, ch := range f.changes {
					kinds = append(kinds, string(ch.Kind))
				}
				got = append(got, strings.Join(kinds, " "))
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

// The kind of a fix is that of its change that disturbs most, and the cause that it removes is
// that change's.
func TestWhatDisturbsMost(t *testing.T) {
	set := func(kinds ...diagnosis.FixKind) []edit.Change {
		var out []edit.Change
		for _, k := range kinds {
			out = append(out, edit.Change{Kind: k, Cause: diagnosis.CauseID("for " + string(k))})
		}
		return out
	}
	c := finder(t, nil, "nvidia.com/gpu", nil)
	for _, kinds := range [][]diagnosis.FixKind{{diagnosis.AddToleration, diagnosis.RepartitionGPU}, {diagnosis.RepartitionGPU, diagnosis.AddToleration}, {diagnosis.Wait, diagnosis.EvictPods, diagnosis.Wait}, {diagnosis.Wait}} {
		most := kinds[0]
		for _, k := range kinds {
			if k.Disturbs() > most.Disturbs() {
				most = k
			}
		}
		f := c.candidate(nil, set(kinds...))
		if f.fix.Kind != most || f.removes != diagnosis.CauseID("for "+string(most)) {
			t.Errorf("%v: %s for %s", kinds, f.fix.Kind, f.removes)
		}
	}
}

// What becomes of victims is part of the proof: all land, some wait, some never come back; pods
// that were to move and find no place refute it.
func TestWhatBecomesOfVictims(t *testing.T) {
	for name, tc := range map[string]struct {
		kind     diagnosis.FixKind
		big      int // victims that fill a node, of which one is free
		nobodys  bool
		verdict  diagnosis.Verdict
		victims  diagnosis.Victims
		stranded int
		becomes  diagnosis.FixKind
		risk     diagnosis.Risk
		why      string
	}{
		"nobody leaves":     {diagnosis.EvictPods, 0, false, diagnosis.Schedules, "", 0, diagnosis.EvictPods, diagnosis.LowRisk, "ok"},
		"one lands":         {diagnosis.EvictPods, 1, false, diagnosis.Schedules, diagnosis.VictimsLand, 0, diagnosis.MovePods, diagnosis.LowRisk, "ok; each evicted pod was placed again"},
		"one of two lands":  {diagnosis.EvictPods, 2, false, diagnosis.Schedules, diagnosis.VictimsWait, 1, diagnosis.EvictPods, diagnosis.MediumRisk, "ok; victims will wait: 1 of 2"},
		"one is nobody's":   {diagnosis.EvictPods, 1, true, diagnosis.Schedules, diagnosis.VictimsGone, 1, diagnosis.EvictPods, diagnosis.HighRisk, "ok; victims that do not come back, having no controller: 1 of 1"},
		"both were to move": {diagnosis.MovePods, 2, false, diagnosis.Refuted, "", 1, diagnosis.MovePods, diagnosis.LowRisk, "no other place for 1 of the 2 pods that were to move"},
		"one moves":         {diagnosis.MovePods, 1, false, diagnosis.Schedules, diagnosis.VictimsLand, 0, diagnosis.MovePods, diagnosis.LowRisk, "ok; each evicted pod was placed again"},
	} {
		t.Run(name, func(t *testing.T) {
			c := finder(t, nil, "nvidia.com/mig-1g.5gb", func(st *cluster.State) { st.Nodes[1].Spec.Unschedulable = true })
			f := &candidate{changes: []edit.Change{{Kind: tc.kind}}, fix: diagnosis.Fix{Kind: tc.kind, Kinds: []diagnosis.FixKind{tc.kind}, Risk: diagnosis.LowRisk, Proof: diagnosis.Proof{Verdict: diagnosis.Schedules, Why: "ok"}}}
			for i := range tc.big {
				v := filling(fmt.Sprint("v", i))
				if tc.nobodys {
					v.OwnerReferences = nil
				}
				f.victims = append(f.victims, v)
			}
			f.lost = c.Cluster.State.LostBy(f.victims)
			if err := whatif.Try(c.Cluster.Snapshot, func(s *whatif.Snapshot) error { return c.proveVictims(t.Context(), s, f) }); err != nil {
				t.Fatal(err)
			}
			if p := f.fix.Proof; p.Verdict != tc.verdict || p.Victims != tc.victims || p.Why != tc.why || f.stranded != tc.stranded || f.fix.Kind != tc.becomes || f.fix.Kinds[0] != tc.becomes || f.fix.Risk != tc.risk {
				t.Errorf("%+v, %d stranded, %s, %s risk", p, f.stranded, f.fix.Kind, f.fix.Risk)
			}
		})
	}
}

// Who is evicted, or leaves by hand, ends a Job that stands no more failures: its other pods stand among those that stop.
func TestWhoStopsWithAJob(t *testing.T) {
	of := func(name, job string) *corev1.Pod {
		p := rcatest.Victim(name, 0, 1, 0, "x")
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: job, UID: types.UID(job), Controller: new(true)}}
		p.Spec.NodeName, p.Status.Phase = "b", corev1.PodRunning
		return p
	}
	frail, stands, far := of("a1", "frail"), of("s1", "stands"), of("a2", "frail")
	c := finder(t, nil, "nvidia.com/gpu", func(st *cluster.State) {
		st.Pods = append(st.Pods, frail, stands, far, of("s2", "stands"))
		for name, limit := range map[string]int32{"frail": 0, "stands": 6} {
			st.Jobs = append(st.Jobs, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: far.Namespace, Name: name, UID: types.UID(name)}, Spec: batchv1.JobSpec{BackoffLimit: &limit}})
		}
	})
	for name, k := range map[string]struct {
		change edit.Change
		stop   []*corev1.Pod
	}{
		"evicted":            {edit.Change{Kind: diagnosis.EvictPods, Victims: []*corev1.Pod{frail}}, []*corev1.Pod{far}},
		"drained by hand":    {edit.Change{Kind: diagnosis.RebootNode, Drained: []*corev1.Pod{frail, stands}}, []*corev1.Pod{frail, stands, far}},
		"of one that stands": {edit.Change{Kind: diagnosis.EvictPods, Victims: []*corev1.Pod{stands}}, nil},
	} {
		if f := c.candidate(nil, []edit.Change{k.change}); !slices.Equal(f.restarts, k.stop) {
			t.Errorf("%s: %v", name, podNames(f.restarts))
		}
	}
	f := &candidate{lost: c.Cluster.State.LostBy([]*corev1.Pod{frail})}
	if got, want := f.whyGone(), ", as job/frail stands no more failures (backoffLimit 0) and an eviction counts as one; that ends 1 other pod, too"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// Quotas have room for as many pods as they have, by the one that has least.
func TestForHowManyQuotasHaveRoom(t *testing.T) {
	quota := func(name, hard, used string) *corev1.ResourceQuota {
		q := func(n string) corev1.ResourceList { return corev1.ResourceList{"pods": resource.MustParse(n)} }
		return &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name}, Spec: corev1.ResourceQuotaSpec{Hard: q(hard)}, Status: corev1.ResourceQuotaStatus{Hard: q(hard), Used: q(used)}}
	}
	for name, tc := range map[string]struct {
		quotas []*corev1.ResourceQuota
		want   int // of five
	}{
		"none limits":    {nil, 5},
		"enough":         {[]*corev1.ResourceQuota{quota("q", "6", "1")}, 5},
		"one":            {[]*corev1.ResourceQuota{quota("q", "3", "1")}, 2},
		"the least":      {[]*corev1.ResourceQuota{quota("p", "9", "1"), quota("q", "3", "1"), quota("r", "5", "1")}, 2},
		"none is left":   {[]*corev1.ResourceQuota{quota("q", "3", "3")}, 0},
		"less than none": {[]*corev1.ResourceQuota{quota("q", "3", "4")}, 0},
	} {
		c := finder(t, nil, "nvidia.com/gpu", func(st *cluster.State) { st.Quotas = tc.quotas })
		c.Cluster.State.Pods = nil
		if got := c.admits(&candidate{}, c.Pod, 5); got != tc.want {
			t.Errorf("%s: %d, want %d", name, got, tc.want)
		}
	}
}
