package guard

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

func TestPromise(t *testing.T) {
	t.Run("R15", promiseR15)
	t.Run("R18", func(t *testing.T) { promiseR20(t, true) })
	t.Run("R19", promiseR19)
	t.Run("R20", func(t *testing.T) { promiseR20(t, false) })
	t.Run("R21", promiseR21)
	t.Run("R22", promiseR22)
}

// The older of two plans is refused once it is approved, a plan is once it has
// expired, and so is one that was carried out: 100 of each.
func promiseR15(t *testing.T) {
	for i := range 100 {
		s := quiet()
		s.plan.Status.Phase = v1alpha1.Queued
		r := planFor(2+i, "gpu-1")
		r.CreationTimestamp = metav1.NewTime(s.plan.CreationTimestamp.Add(time.Duration(i) * time.Second))
		s.add(r)
		if got := s.judge(); got.Decision != Refuse || got.Phase != v1alpha1.Superseded {
			t.Fatalf("%d, older: %+v", i, got)
		}
		s = quiet()
		s.view.Now = s.plan.Spec.Expires.Add(time.Duration(i) * time.Second)
		if got := s.judge(); got.Decision != Refuse || got.Phase != v1alpha1.Expired {
			t.Fatalf("%d, late: %+v", i, got)
		}
		late := v1alpha1.Approval{ObjectMeta: metav1.ObjectMeta{Name: s.plan.Name, CreationTimestamp: metav1.NewTime(s.view.Now)},
			Spec: v1alpha1.ApprovalSpec{Plan: s.plan.Name, Remediation: string(s.plan.UID), Decision: v1alpha1.Approve, Approver: fmt.Sprint("p", i)}}
		if ok, by, _ := Approved(s.plan, []v1alpha1.Approval{late}, 1); ok || by != nil {
			t.Fatalf("%d: approved by %v after it had expired", i, by)
		}
	}
}

// Plans of every kind that are complete, each then with something of it emptied, or
// made a pattern: refused, all of them, although nothing else is against them.
func promiseR19(t *testing.T) {
	refused := 0
	rapid.Check(t, func(r *rapid.T) {
		s := quiet()
		s.plan.Spec.Actions = rapid.SliceOfN(rapid.Custom(anAction), 1, 4).Draw(r, "actions")
		s.plan.Spec.Nodes = rapid.SliceOfN(rapid.SampledFrom([]string{"gpu-1", "gpu-2", "gpu-3.example"}), 0, 3).Draw(r, "nodes")
		if err := complete(s.plan); err != nil {
			r.Fatalf("a complete plan is refused: %v", err)
		}
		pattern := rapid.SampledFrom([]string{"", " ", "*", "gpu-*", "?", "gpu-1,gpu-2", "app=web", "all nodes", "!gpu-1", ".*", ".", "[a-z]+", "{}", "a/b", "%", "\n", "-", "gpu-1 "}).Draw(r, "pattern")
		action := rapid.IntRange(0, len(s.plan.Spec.Actions)-1).Draw(r, "action")
		whole := s.plan
		for _, what := range slices.Sorted(maps.Keys(spoilers(r, whole, action, pattern))) {
			s.plan = whole.DeepCopy()
			spoilers(r, s.plan, action, pattern)[what]()
			if got := s.judge(); got.Decision != Refuse || got.Rule != "target" || got.Phase != v1alpha1.Refused {
				text, _ := json.Marshal(s.plan.Spec)
				r.Fatalf("%s: got %+v of %s", what, got, text)
			}
			refused++
		}
	})
	t.Logf("%d plans refused", refused)
}

// anAction draws one that names all that it writes to.
func anAction(r *rapid.T) diagnosis.Action {
	target := func(kinds ...string) diagnosis.Target {
		out := diagnosis.Target{Kind: rapid.SampledFrom(kinds).Draw(r, "kind"), Name: rapid.StringMatching(`[a-z0-9]([a-z0-9-]{0,8}[a-z0-9])?(\.[a-z0-9]+)?`).Draw(r, "name"), UID: rapid.StringMatching(`[0-9a-f]{8}-[0-9a-f]{4}`).Draw(r, "uid")}
		if out.Kind != "Node" {
			out.Namespace = rapid.StringMatching(`[a-z0-9]{1,8}`).Draw(r, "namespace")
		}
		return out
	}
	verb := rapid.SampledFrom([]string{diagnosis.VerbEvict, diagnosis.VerbUncordon, diagnosis.VerbPatch, diagnosis.VerbRecreate, diagnosis.VerbRelayout}).Draw(r, "verb")
	a := diagnosis.Action{Verb: verb}
	a.Target = target(a.Kinds()...)
	switch verb {
	case diagnosis.VerbPatch, diagnosis.VerbRecreate:
		a.Patch = json.RawMessage(`{"spec":{"tolerations":[{"$patch":"replace"}]}}`)
	case diagnosis.VerbRelayout:
		gpu := rapid.IntRange(0, 7).Draw(r, "gpu")
		a.Relayout = &diagnosis.Relayout{Config: "all-1g.5gb", GPUs: []int{gpu}, Layouts: map[int]map[string]int{gpu: {"1g.5gb": 7}}}
		for range rapid.IntRange(0, 3).Draw(r, "victims") {
			a.Relayout.Victims = append(a.Relayout.Victims, target("Pod"))
		}
		if rapid.Bool().Draw(r, "custom") {
			a.Relayout.ConfigMap, a.Relayout.Entry = new(target("ConfigMap")), json.RawMessage(`[{"devices":[0]}]`)
		}
	}
	return a
}

// spoilers each make one thing of a plan, about one of its actions, empty or a pattern.
func spoilers(r *rapid.T, plan *v1alpha1.Remediation, action int, pattern string) map[string]func() {
	a := &plan.Spec.Actions[action]
	targets := []*diagnosis.Target{&a.Target}
	out := map[string]func(){
		"no actions":    func() { plan.Spec.Actions = nil },
		"empty actions": func() { plan.Spec.Actions = []diagnosis.Action{} },
		"a node":        func() { plan.Spec.Nodes = append(plan.Spec.Nodes, pattern) },
		"the name":      func() { plan.Name = "" },
		"the uid":       func() { plan.UID = "" },
		"the verb": func() {
			a.Verb = rapid.SampledFrom([]string{"", "*", "delete", "drain", "evictAll", "Evict"}).Draw(r, "verb")
		},
		"the kind": func() {
			a.Target.Kind = rapid.SampledFrom([]string{"", "*", "Namespace", "PodList", "node", "Secret", "ClusterRole"}).Draw(r, "kind")
		},
		"a layout too many": func() {
			if a.Relayout == nil {
				a.Relayout = &diagnosis.Relayout{}
			} else {
				a.Relayout = nil
			}
		},
	}
	if a.Verb == diagnosis.VerbPatch || a.Verb == diagnosis.VerbRecreate {
		out["the patch"] = func() {
			a.Patch = json.RawMessage(rapid.SampledFrom([]string{"", "{}", "null", "[]", `"*"`, `{"$patch":"delete"}`, `{"$patch":"replace","spec":{}}`, "{"}).Draw(r, "patch"))
		}
	}
	if l := a.Relayout; l != nil {
		gpu := l.GPUs[0]
		maps.Copy(out, map[string]func(){
			"no GPU":       func() { l.GPUs = nil },
			"all GPUs":     func() { l.GPUs = []int{-1} },
			"GPU twice":    func() { l.GPUs = []int{gpu, gpu} },
			"the config":   func() { l.Config = rapid.SampledFrom([]string{"", "*", "all *", "-", "a/b"}).Draw(r, "config") },
			"no layouts":   func() { l.Layouts = nil },
			"empty layout": func() { l.Layouts = map[int]map[string]int{gpu: {"1g.5gb": 0}} },
			"no profile":   func() { l.Layouts[gpu][""] = 1 },
			"minus":        func() { l.Layouts[gpu]["1g.5gb"] = -1 },
		})
		for i := range l.Victims {
			targets = append(targets, &l.Victims[i])
			out[fmt.Sprint("victim's kind ", i)] = func() { l.Victims[i].Kind = "Node" }
		}
		if l.ConfigMap != nil {
			targets = append(targets, l.ConfigMap)
			out["no entry"] = func() { l.Entry = nil }
			out["empty entry"] = func() { l.Entry = json.RawMessage("[]") }
			out["no ConfigMap"] = func() { l.ConfigMap = nil }
		}
	}
	for i, t := range targets {
		out[fmt.Sprint("name ", i)] = func() { t.Name = pattern }
		out[fmt.Sprint("uid ", i)] = func() { t.UID = rapid.SampledFrom([]string{"", " ", "*", "a,b", "a b", "?"}).Draw(r, "uid") }
		if t.Kind != "Node" {
			out[fmt.Sprint("namespace ", i)] = func() { t.Namespace = pattern }
		} else {
			out[fmt.Sprint("namespace ", i)] = func() { t.Namespace = "default" }
		}
	}
	return out
}

// A node's layout goes from one to the next; a plan that would bring back one that
// was replaced within 24 h is refused, any other may begin.
func promiseR21(t *testing.T) {
	refused, begun := 0, 0
	rapid.Check(t, func(r *rapid.T) {
		s := quiet()
		s.limits.CoolDown = 0
		s.view.Plans = nil
		layouts := []map[string]int{{"1g.5gb": 7}, {"2g.10gb": 3}, {"3g.20gb": 2}, {"7g.40gb": 1}, {}}
		written := []string{"1g.5gb@0 1g.5gb@1 1g.5gb@2 1g.5gb@3 1g.5gb@4 1g.5gb@5 1g.5gb@6", "2g.10gb@0 2g.10gb@2 2g.10gb@4", "3g.20gb@0 3g.20gb@4", "7g.40gb@0", "empty"}
		now, is := noon, 0
		replaced := map[int]time.Time{} // layout → when it was last replaced
		for i := range rapid.IntRange(2, 12).Draw(r, "plans") {
			now = now.Add(time.Duration(rapid.IntRange(0, 12*60).Draw(r, "minutes")) * time.Minute)
			to := rapid.IntRange(0, 3).Draw(r, "to") // never to no instance at all
			plan := planFor(i, "gpu-1")
			s.plan = plan
			s.at(now)
			l := &plan.Spec.Actions[0]
			l.Relies = map[string]string{"mig": "unpend-x success mixed", "gpu0": written[is]}
			l.Relayout.Config, l.Relayout.Layouts = fmt.Sprintf("unpend-%d", i), map[int]map[string]int{0: layouts[to]}
			at, was := replaced[to]
			back := was && now.Sub(at) < 24*time.Hour
			got := s.judge()
			if back != (got.Decision == Refuse && got.Rule == "opposite") || !back && got.Decision != Allow {
				r.Fatalf("at %s to %d, which was replaced at %s: got %+v", now, to, at, got)
			}
			if back {
				refused++
				continue
			}
			begun++
			in(plan, v1alpha1.Succeeded, now)
			s.add(plan)
			replaced[is] = now
			is = to
		}
	})
	if refused == 0 || begun == 0 {
		t.Errorf("%d refused, %d begun", refused, begun)
	}
}

// A quarter of the nodes lost at once: nothing begins from the next judgement on,
// not when they are back either, until a person has said so.
func promiseR22(t *testing.T) {
	s := quiet()
	for _, n := range s.view.Nodes[5:10] {
		notReady(n, noon)
	}
	if got := s.judge(); got.Decision != Wait || got.Rule != "breaker" {
		t.Fatalf("at once: %+v", got)
	}
	why, open := s.limits.Tripped(s.view, time.Time{})
	state, err := ReadBreaker(BreakerState{Open: open, Since: noon, Why: why}.Data()) // a restart
	if err != nil {
		t.Fatal(err)
	}
	s.view.Nodes, s.view.Breaker = gpuNodes(20), state
	s.at(noon.AddDate(0, 0, 7))
	if got := s.judge(); got.Decision != Wait || got.Rule != "breaker" {
		t.Fatalf("a week later: %+v", got)
	}
	s.view.Breaker = BreakerState{ResetAt: s.view.Now}
	if got := s.judge(); got.Decision != Allow {
		t.Fatalf("reset: %+v", got)
	}
}

func promiseR20(t *testing.T, jumps bool) {
	runs, begun := 0, 0
	rapid.Check(t, func(r *rapid.T) { runs, begun = runs+1, begun+simulate(r, jumps) })
	t.Logf("%d plans began in %d runs", begun, runs)
	if begun < runs {
		t.Errorf("only %d plans began in %d runs", begun, runs)
	}
}

// simulate has many approved plans judged every 100 ms while some of them run, each
// for a time of its own: never more than one node is worked on, never more of the
// pool out of use than may be, whatever the clock does. It says how many began.
func simulate(r *rapid.T, jumps bool) (begun int) {
	const tick, most = 100 * time.Millisecond, 1200
	w, limits := newTurmoil(r), Defaults()
	if jumps { // that the plans expire by them is another test's
		limits.PlanTTL = 24 * time.Hour
		for i := range w.plans {
			w.plans[i].Spec.Expires = metav1.NewTime(noon.Add(24 * time.Hour))
		}
	}
	for i := range most {
		now := noon.Add(time.Duration(i) * tick)
		if jumps {
			now = now.Add(rapid.SampledFrom([]time.Duration{0, 0, 0, time.Hour, -time.Hour}).Draw(r, "jump"))
		}
		w.goOn(now)
		before := begun
		for _, j := range w.order {
			p := &w.plans[j]
			if p.Status.Phase != v1alpha1.Queued {
				continue
			}
			v := limits.Judge(View{Now: now, Nodes: w.nodes, Plans: w.plans}, p)
			if w.heed(p, v); v.Decision == Allow {
				begun++
			}
		}
		w.check(r)
		if begun == before && !w.underWay() {
			break // all that is left waits for a person, or an hour
		}
	}
	if left := w.left(); !jumps && w.out == 0 && !w.troubled && left > 0 {
		r.Fatalf("%d plans never began nor ended", left)
	}
	return begun
}

// turmoil is a pool with plans at work in it.
type turmoil struct {
	nodes    []*corev1.Node
	plans    []v1alpha1.Remediation
	order    []int
	lasts    []int // ticks that a plan still takes
	marksAt  []int // how many of these it has left when it marks its node
	ends     []v1alpha1.Phase
	out      int  // nodes that others have closed
	troubled bool // some plan fails
}

func newTurmoil(r *rapid.T) *turmoil {
	const plans = 20
	w := &turmoil{nodes: gpuNodes(rapid.SampledFrom([]int{20, 40, 30, 25, 10, 9, 2, 1}).Draw(r, "nodes")), out: rapid.SampledFrom([]int{0, 0, 0, 1, 2, 3}).Draw(r, "out"), troubled: rapid.Bool().Draw(r, "troubled")}
	w.out = min(w.out, len(w.nodes)-1)
	for _, n := range w.nodes[:w.out] {
		cordon(n, noon.AddDate(0, 0, -1))
	}
	ends := []v1alpha1.Phase{v1alpha1.Succeeded}
	if w.troubled {
		ends = append(ends, v1alpha1.Failed, v1alpha1.Parked)
	}
	open := len(w.nodes) - w.out
	for i := range plans {
		n := i
		if rapid.Bool().Draw(r, "any") {
			n = rapid.IntRange(0, open-1).Draw(r, "node")
		}
		p := planFor(i, w.nodes[w.out+n%open].Name)
		p.Status.Phase = v1alpha1.Queued
		w.plans = append(w.plans, *p)
		w.lasts = append(w.lasts, rapid.IntRange(1, 40).Draw(r, "lasts"))
		w.marksAt = append(w.marksAt, rapid.IntRange(0, w.lasts[i]).Draw(r, "marks"))
		w.ends = append(w.ends, rapid.SampledFrom(ends).Draw(r, "ends"))
		w.order = append(w.order, i)
	}
	w.order = rapid.Permutation(w.order).Draw(r, "order")
	return w
}

func (w *turmoil) node(p *v1alpha1.Remediation) *corev1.Node {
	return w.nodes[slices.IndexFunc(w.nodes, func(n *corev1.Node) bool { return n.Name == p.Spec.Nodes[0] })]
}

// goOn moves the plans under way by one tick.
func (w *turmoil) goOn(now time.Time) {
	for i := range w.plans {
		p := &w.plans[i]
		if !p.Status.Phase.Begun() {
			continue
		}
		w.lasts[i]--
		if w.lasts[i] == w.marksAt[i] {
			marked(w.node(p), p, "")
		}
		if w.lasts[i] > 0 {
			continue
		}
		n := w.node(p)
		n.Annotations, n.Spec.Unschedulable = nil, false
		if w.ends[i] == v1alpha1.Parked {
			marked(n, p, "stuck")
		}
		in(p, w.ends[i], now)
	}
}

// heed does what a verdict says.
func (w *turmoil) heed(p *v1alpha1.Remediation, v Verdict) {
	if v.Decision == Allow {
		p.Status.Began, p.Status.Journal = new(metav1.NewMicroTime(noon)), []v1alpha1.Entry{{Step: "0/cordon"}}
	}
	p.Status.Phase = v.Phase
}

func (w *turmoil) left() (n int) {
	for i := range w.plans {
		if !w.plans[i].Status.Phase.Ended() {
			n++
		}
	}
	return n
}

func (w *turmoil) underWay() bool {
	return slices.ContainsFunc(w.plans, func(p v1alpha1.Remediation) bool { return p.Status.Phase.Begun() })
}

func (w *turmoil) check(r *rapid.T) {
	working, running, out := 0, 0, 0
	for _, n := range w.nodes {
		op, err := diagnosis.OperationOn(n)
		if err != nil {
			r.Fatal(err)
		}
		if op != nil && op.Parked == "" {
			working++
		}
		if n.Spec.Unschedulable {
			out++
		}
	}
	for i := range w.plans {
		if w.plans[i].Status.Phase.Begun() {
			running++
		}
	}
	if working > 1 || running > 1 {
		r.Fatalf("%d nodes are worked on by %d plans", working, running)
	}
	most := max(1, len(w.nodes)/10, w.out)
	if w.out <= max(1, len(w.nodes)/10) { // then one of ours may come to those that others closed
		most = max(most, w.out+1)
	}
	if out > most {
		r.Fatalf("%d of %d nodes are out of use, %d may be", out, len(w.nodes), most)
	}
}
