package fixes

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/rcatest"
)

// What a fix brings counts the incident's pods and everybody it stops: who then waits, at
// whose cost, with what risk, and what is said of it.
func TestWhatIsReckoned(t *testing.T) {
	serving := func(name string, priority int32) *corev1.Pod {
		return rcatest.Victim(name, priority, 1, 90*time.Hour, "serve")
	}
	job := func(name string, ran time.Duration) *corev1.Pod {
		p := rcatest.Victim(name, 0, 1, ran, "job")
		p.Spec.RestartPolicy = corev1.RestartPolicyNever
		return p
	}
	rolled := func(f *candidate, running ...*corev1.Pod) {
		f.rolling, f.restarts = &edit.Rolling{How: "rolls deployment/w", Running: running}, running
	}
	for name, tc := range map[string]struct {
		waits int
		f     func(*candidate)
		o     outcome
		want  string // runs/of before>after who then waits; gains; risk; what is added to why
	}{
		"it runs":                       {1, func(*candidate) {}, outcome{runs: 1}, "1/1 1>0 []; gains; low; "},
		"two of three":                  {3, func(*candidate) {}, outcome{runs: 2}, "2/3 3>1 []; gains; low; ; 2 of 3 run"},
		"more than are wanted":          {2, func(*candidate) {}, outcome{runs: 5}, "2/2 2>0 []; gains; low; ; 2 of 2 run"},
		"as many as are tried":          {64, func(*candidate) {}, outcome{runs: 64}, "64/64 64>0 []; gains; low; ; 64 of 64 run"},
		"more than are tried":           {100, func(*candidate) {}, outcome{runs: 64}, "64/100 100>36 []; gains; low; ; 64 of 100 run, of which the first 64 were tried"},
		"one of its own then waits":     {1, func(f *candidate) { f.thenWait = []*corev1.Pod{serving("v", 0)} }, outcome{runs: 1}, "1/1 1>1 [v]; no gain; low; "},
		"one below it then waits":       {1, func(f *candidate) { f.thenWait = []*corev1.Pod{serving("v", -5)} }, outcome{runs: 1}, "1/1 1>1 [v]; gains; low; "},
		"one above it then waits":       {2, func(f *candidate) { f.thenWait = []*corev1.Pod{serving("v", 5)} }, outcome{runs: 2}, "2/2 2>1 [v]; no gain; low; ; 2 of 2 run"},
		"two run and one then waits":    {2, func(f *candidate) { f.thenWait = []*corev1.Pod{serving("v", 0)} }, outcome{runs: 2}, "2/2 2>1 [v]; gains; low; ; 2 of 2 run"},
		"one is gone":                   {1, func(f *candidate) { f.gone = []*corev1.Pod{serving("v", 0)} }, outcome{runs: 1}, "1/1 1>0 []; no gain; low; "},
		"minutes of a Job are lost":     {1, func(f *candidate) { f.victims = []*corev1.Pod{job("v", 50*time.Minute)} }, outcome{runs: 1}, "1/1 1>0 []; gains; low; "},
		"hours of a Job are lost":       {1, func(f *candidate) { f.victims = []*corev1.Pod{job("v", 2*time.Hour)} }, outcome{runs: 1}, "1/1 1>0 []; gains; medium; "},
		"a server that ran for days":    {1, func(f *candidate) { f.victims = []*corev1.Pod{serving("v", 0)} }, outcome{runs: 1}, "1/1 1>0 []; gains; low; "},
		"a rollout that ends":           {1, func(f *candidate) { rolled(f, serving("r", 0)) }, outcome{runs: 1, stopped: []*corev1.Pod{serving("r", 0)}}, "1/1 1>0 []; gains; low; "},
		"a rollout that does not":       {1, func(f *candidate) { rolled(f, serving("r", 0)) }, outcome{runs: 1, pending: 2}, "1/1 1>2 []; gains; low; ; rolls deployment/w, which leaves 2 pods waiting"},
		"a rollout that loses one":      {1, func(f *candidate) { rolled(f, serving("q", 0), serving("r", 0)) }, outcome{runs: -1, pending: 2, stopped: []*corev1.Pod{serving("q", 0), serving("r", 0)}}, "0/1 1>2 [r]; no gain; low; ; rolls deployment/w, which leaves 2 pods waiting"},
		"made again, and nothing gains": {1, func(f *candidate) { rolled(f, serving("r", 0)) }, outcome{runs: 0, pending: 1, stopped: []*corev1.Pod{serving("r", 0)}}, "0/1 1>1 []; no gain; low; ; rolls deployment/w, which leaves 1 pod waiting"},
	} {
		t.Run(name, func(t *testing.T) {
			c := finder(t, nil, "nvidia.com/mig-1g.5gb", nil)
			c.Incident.Waiting = tc.waits
			f := &candidate{fix: diagnosis.Fix{Risk: diagnosis.LowRisk}}
			tc.f(f)
			c.reckon(f, tc.o, c.Pod)
			e := f.fix.Effect
			var waits []string
			for _, p := range e.ThenWait {
				waits = append(waits, p.Name)
			}
			gains := "no gain"
			if f.gains {
				gains = "gains"
			}
			if got := fmt.Sprintf("%d/%d %d>%d %v; %s; %s; %s", e.Runs, e.Of, e.WaitingBefore, e.WaitingAfter, waits, gains, f.fix.Risk, f.fix.Proof.Why); got != tc.want {
				t.Errorf("%s\nwant %s", got, tc.want)
			}
		})
	}
}

// Only the pods of a rollout that were stopped on the way are told as stopped, beside those
// that a person drains.
func TestWhoIsToldAsStopped(t *testing.T) {
	a, b, drained := rcatest.Victim("a", 0, 1, 0, "w"), rcatest.Victim("b", 0, 1, 0, "w"), rcatest.Victim("d", 0, 1, 0, "x")
	c := finder(t, nil, "nvidia.com/mig-1g.5gb", nil)
	f := &candidate{rolling: &edit.Rolling{Running: []*corev1.Pod{a, b}}, restarts: []*corev1.Pod{drained, a, b}}
	c.reckon(f, outcome{runs: 1, stopped: []*corev1.Pod{b}}, c.Pod)
	if got := fmt.Sprint(podNames(f.restarts)); got != "[{a d} {a b}]" {
		t.Errorf("%s", got)
	}
}

// Each of several pods that room is made for is told its node; where nobody leaves, or the
// pods are not there yet, none is.
func TestWhichPodGoesWhere(t *testing.T) {
	places := map[string]string{"w": "a", "x": "b"}
	for name, tc := range map[string]struct {
		edit func(*Finder, *candidate)
		want int
	}{
		"room is made": {func(_ *Finder, f *candidate) { f.victims = []*corev1.Pod{rcatest.Victim("v", 0, 1, 0, "x")} }, 2},
		"nobody goes":  {func(*Finder, *candidate) {}, 0},
		"one pod": {func(_ *Finder, f *candidate) {
			f.victims, f.places = []*corev1.Pod{rcatest.Victim("v", 0, 1, 0, "x")}, map[string]string{"w": "a"}
		}, 0},
		"not there yet": {func(c *Finder, f *candidate) {
			f.victims, c.Unborn = []*corev1.Pod{rcatest.Victim("v", 0, 1, 0, "x")}, true
		}, 0},
	} {
		c := finder(t, nil, "nvidia.com/mig-1g.5gb", nil)
		f := &candidate{places: places}
		tc.edit(c, f)
		c.reckon(f, outcome{runs: 1}, c.Pod)
		if len(f.fix.Proof.Places) != tc.want {
			t.Errorf("%s: %v", name, f.fix.Proof.Places)
		}
	}
}

// The pods of an incident that wait are all those of the workload that do, and stand-ins for
// those that are not made yet.
func TestWhoWaits(t *testing.T) {
	c := finder(t, nil, "nvidia.com/mig-1g.5gb", func(st *cluster.State) {
		first := st.Pods[0]
		first.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
		for name, edit := range map[string]func(*corev1.Pod){
			"x":         func(*corev1.Pod) {},
			"bound":     func(p *corev1.Pod) { p.Spec.NodeName = "a" },
			"elsewhere": func(p *corev1.Pod) { p.Namespace = "b" },
			"others":    func(p *corev1.Pod) { p.OwnerReferences[0].Name = "other" },
		} {
			p := first.DeepCopy()
			p.Name = name
			edit(p)
			st.Pods = append(st.Pods, p)
		}
	})
	c.Incident.Waiting = 3
	c.Incident.ID = c.Cluster.IncidentOf(c.Pod)
	var names []string
	for _, p := range c.waits() {
		names = append(names, p.Name)
	}
	if got := strings.Join(names, " "); got != "w x w-?2" || len(c.waits()) != 3 || c.wanted() != 3 {
		t.Errorf("%s, %d wanted", got, c.wanted())
	}
}

// Of a gang's members those of the incident are changed by its fix, and no others.
func TestOnlyTheIncidentsMembersAreChanged(t *testing.T) {
	c := finder(t, nil, "nvidia.com/gpu", nil)
	c.Incident.ID = c.Cluster.IncidentOf(c.Pod)
	f := &candidate{changes: []edit.Change{{}, {Pod: func(p *corev1.Pod) { p.Spec.SchedulerName = "changed" }}}}
	ours, other := c.Pod.DeepCopy(), c.Pod.DeepCopy()
	ours.Name, other.OwnerReferences = "x", nil
	if got := c.changed(ours, f); got.Spec.SchedulerName != "changed" || got.Name != "x" || ours.Spec.SchedulerName == "changed" {
		t.Errorf("%s by %s, and %s", got.Name, got.Spec.SchedulerName, ours.Spec.SchedulerName)
	}
	if got := c.changed(other, f); got != other || other.Spec.SchedulerName == "changed" {
		t.Errorf("%s by %s", got.Name, got.Spec.SchedulerName)
	}
}

// A gang of which nothing runs is placed member by member; else the workload is played as
// its controller replaces its pods.
func TestWhenAWorkloadIsPlayed(t *testing.T) {
	c := finder(t, nil, "nvidia.com/mig-1g.5gb", nil)
	running := &edit.Rolling{Running: []*corev1.Pod{rcatest.Victim("a", 0, 1, 0, "w")}}
	for i, tc := range []struct {
		r    *edit.Rolling
		want bool
	}{{nil, false}, {&edit.Rolling{}, true}, {running, true}} {
		if got := c.rolls(&candidate{rolling: tc.r}); got != tc.want {
			t.Errorf("%d: %v", i, got)
		}
	}
}

// A class tells what a fix brings, by its proof.
func TestClasses(t *testing.T) {
	same := pod("same", 0)
	for name, tc := range map[string]struct {
		f    candidate
		want diagnosis.Class
	}{
		"stops nobody, and it is as asked": {candidate{keeps: true, fix: diagnosis.Fix{Proof: diagnosis.Proof{Verdict: diagnosis.Schedules}, Effect: &diagnosis.Effect{Runs: 1, Of: 1}}}, diagnosis.StopsNobody},
		"something else is asked":          {candidate{fix: diagnosis.Fix{Proof: diagnosis.Proof{Verdict: diagnosis.Schedules}, Effect: &diagnosis.Effect{Runs: 1, Of: 1}}}, diagnosis.HarmsNobody},
		"not all run":                      {candidate{keeps: true, fix: diagnosis.Fix{Proof: diagnosis.Proof{Verdict: diagnosis.Schedules}, Effect: &diagnosis.Effect{Runs: 1, Of: 2, WaitingBefore: 2, WaitingAfter: 1}}}, diagnosis.HarmsNobody},
		"not all run, and as many wait":    {candidate{keeps: true, gains: true, fix: diagnosis.Fix{Proof: diagnosis.Proof{Verdict: diagnosis.Schedules}, Effect: &diagnosis.Effect{Runs: 1, Of: 2, WaitingBefore: 2, WaitingAfter: 2}}}, diagnosis.MusicalChair},
		"not all run, and more wait":       {candidate{keeps: true, gains: true, fix: diagnosis.Fix{Proof: diagnosis.Proof{Verdict: diagnosis.Schedules}, Effect: &diagnosis.Effect{Runs: 1, Of: 2, WaitingBefore: 2, WaitingAfter: 3}}}, diagnosis.MusicalChair},
		"of lower priority, as many wait":  {candidate{keeps: true, gains: true, thenWait: []*corev1.Pod{same}, fix: diagnosis.Fix{Proof: diagnosis.Proof{Verdict: diagnosis.Schedules}, Effect: &diagnosis.Effect{Runs: 1, Of: 2, WaitingBefore: 2, WaitingAfter: 2}}}, diagnosis.HarmsLess},
		"one is restarted":                 {candidate{keeps: true, restarts: []*corev1.Pod{same}, fix: diagnosis.Fix{Proof: diagnosis.Proof{Verdict: diagnosis.Schedules}, Effect: &diagnosis.Effect{Runs: 1, Of: 1}}}, diagnosis.HarmsNobody},
		"nobody runs":                      {candidate{keeps: true, fix: diagnosis.Fix{Proof: diagnosis.Proof{Verdict: diagnosis.Schedules}, Effect: &diagnosis.Effect{Of: 1}}}, diagnosis.MusicalChair},
		"by hand, whatever it is":          {candidate{keeps: true, fix: diagnosis.Fix{Kind: diagnosis.Manual, Proof: diagnosis.Proof{Verdict: diagnosis.Schedules}, Effect: &diagnosis.Effect{Runs: 1, Of: 1}}}, diagnosis.NotProved},
		"nothing is known of it":           {candidate{fix: diagnosis.Fix{Proof: diagnosis.Proof{Verdict: diagnosis.Schedules}}}, diagnosis.NotProved},
		"a promise":                        {candidate{beside: true, removes: diagnosis.ScalingUp, fix: diagnosis.Fix{Proof: diagnosis.Proof{Verdict: diagnosis.Waits}}}, diagnosis.StopsNobody},
		"a promise that is stuck":          {candidate{beside: true, removes: diagnosis.ScaleUpStuck, fix: diagnosis.Fix{Proof: diagnosis.Proof{Verdict: diagnosis.Waits}}}, diagnosis.WaitsForMore},
		"a wait on a node":                 {candidate{removes: diagnosis.ScalingUp, fix: diagnosis.Fix{Proof: diagnosis.Proof{Verdict: diagnosis.Waits}}}, diagnosis.WaitsForMore},
	} {
		if got := tc.f.class(); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
	for class, helps := range map[diagnosis.Class]bool{diagnosis.StopsNobody: true, diagnosis.HarmsLess: true, diagnosis.WaitsForMore: false, diagnosis.MusicalChair: false} {
		if class.Helps() != helps {
			t.Errorf("class %s helps: %v", class, !helps)
		}
	}
}

// Nothing dearer is tried once as many run as room was made for, with nobody left waiting.
func TestWhatIsGoodEnough(t *testing.T) {
	for name, tc := range map[string]struct {
		f    candidate
		want bool
	}{
		"all run":                          {candidate{fix: diagnosis.Fix{Effect: &diagnosis.Effect{Runs: 3, Of: 3}}}, true},
		"one of three, as it was for one":  {candidate{fix: diagnosis.Fix{Effect: &diagnosis.Effect{Runs: 1, Of: 3}}}, true},
		"one of three, and it was for two": {candidate{pods: 2, fix: diagnosis.Fix{Effect: &diagnosis.Effect{Runs: 1, Of: 3}}}, false},
		"two of two, and it was for four":  {candidate{pods: 4, fix: diagnosis.Fix{Effect: &diagnosis.Effect{Runs: 2, Of: 2}}}, true},
		"nobody runs":                      {candidate{fix: diagnosis.Fix{Effect: &diagnosis.Effect{Of: 3}}}, false},
		"one then waits":                   {candidate{thenWait: []*corev1.Pod{pod("v", 0)}, fix: diagnosis.Fix{Effect: &diagnosis.Effect{Runs: 3, Of: 3}}}, false},
		"one is stranded":                  {candidate{stranded: 1}, false},
		"guard-rails hold it":              {candidate{held: true}, false},
		"no effect is told":                {candidate{}, true},
	} {
		if got := tc.f.best(); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
