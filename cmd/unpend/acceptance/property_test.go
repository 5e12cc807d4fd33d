package acceptance

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca"
	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/cluster/dump"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/whatif/insitu"
	"github.com/unpend/unpend/testdata/controlplane"
	"github.com/unpend/unpend/watcher/incident"
)

// judged counts what the real scheduler had a say in.
type judged struct{ bound, refused, schedules, refuted, waits, unproven, effects atomic.Int64 }

// On random clusters the real scheduler, run in this process, does what the
// diagnosis says: it binds where no blocker is told, it refuses where every node
// has one; once the change of a fix is really made it binds if that was proved, and
// refuses if it was refuted; and it binds once what a fix waits for has happened.
func TestTheSchedulerAgreesWithDiagnoses(t *testing.T) {
	t.Parallel()
	clusters := controlplane.Of(250, 500)
	if testing.Short() {
		clusters = 30
	}
	const workers = 16 // each mostly waits
	var n judged
	t.Run("clusters", func(t *testing.T) {
		for w := range workers {
			t.Run(fmt.Sprint(w), func(t *testing.T) {
				t.Parallel()
				for i := w; i < clusters && !t.Failed(); i += workers {
					(&gamble{r: rand.New(rand.NewPCG(29, uint64(i))), n: &n, seed: i}).play(t)
				}
			})
		}
	})
	t.Logf("%d clusters: %d pods bound as they were, %d refused; verdicts judged: %d schedules, %d refuted, %d waits; %d unproven were told so; %d effects were what was said",
		clusters, n.bound.Load(), n.refused.Load(), n.schedules.Load(), n.refuted.Load(), n.waits.Load(), n.unproven.Load(), n.effects.Load())
	least := int64(clusters / 5)
	if n.bound.Load() < least/2 || n.refused.Load() < least || n.schedules.Load() < least || n.refuted.Load() < least || n.waits.Load() < least {
		t.Errorf("fewer than %d verdicts of a kind", least)
	}
}

// gamble is one random cluster.
type gamble struct {
	r    *rand.Rand
	n    *judged
	seed int
	told told
}

// tried collects the fixes that a diagnosis has tried, refuted ones included.
type tried struct {
	slog.Handler
	fixes []diagnosis.Fix
}

func (h *tried) Enabled(context.Context, slog.Level) bool { return true }

func (h *tried) Handle(_ context.Context, r slog.Record) error {
	r.Attrs(func(a slog.Attr) bool {
		if f, ok := a.Value.Any().(diagnosis.Fix); ok {
			h.fixes = append(h.fixes, f)
		}
		return true
	})
	return nil
}

func (g *gamble) play(t *testing.T) {
	t.Helper()
	g.fill()
	path := dumpOf(t, g.told)
	st, err := dump.Read([]string{path}, nil)
	must(t, err)
	var log tried
	found, err := rca.Diagnose(t.Context(), st, rca.Options{Logger: slog.New(&log), Only: func(i incident.Incident) bool { return i.Workload.Name == "waiting" }})
	must(t, err)
	if len(found) != 1 {
		t.Fatalf("cluster %d: %d incidents", g.seed, len(found))
	}
	d := found[0]
	g.addsUp(t, d, path)
	free := slices.ContainsFunc(d.Nodes, func(n diagnosis.NodeBlockers) bool { return len(n.Blockers) == 0 })
	if node := g.schedule(t, g.objects(t, st, nil), free); (node != "") != free {
		t.Fatalf("cluster %d: the scheduler chose %q; told was %+v", g.seed, node, d.Nodes)
	}
	if free {
		g.n.bound.Add(1)
		return
	}
	g.n.refused.Add(1)
	for _, f := range d.Fixes {
		g.listed(t, st, f)
	}
	for _, f := range log.fixes {
		if f.Proof.Verdict != diagnosis.Refuted || len(f.Actions) == 0 {
			continue // what only a person can do is not done here
		}
		if node := g.schedule(t, g.objects(t, st, &f), false); node != "" {
			t.Fatalf("cluster %d: %q was refuted (%s); the scheduler binds to %s", g.seed, f.Title, f.Proof.Why, node)
		}
		g.n.refuted.Add(1)
	}
}

// listed holds a fix that is shown to its verdict.
func (g *gamble) listed(t *testing.T, st *cluster.State, f diagnosis.Fix) {
	t.Helper()
	if f.Proof.Why == "" {
		t.Errorf("cluster %d: fix %q is %q, and nothing says why", g.seed, f.Title, f.Proof.Verdict)
	}
	count := &g.n.schedules
	switch f.Proof.Verdict {
	case diagnosis.Schedules:
	case diagnosis.Waits:
		count = &g.n.waits
	case diagnosis.Unproven:
		if f.Proof.Node != "" {
			t.Errorf("cluster %d: fix %q is unproven, and names node %s", g.seed, f.Title, f.Proof.Node)
		}
		g.n.unproven.Add(1)
		return
	default:
		t.Fatalf("cluster %d: fix %q is listed as %q", g.seed, f.Title, f.Proof.Verdict)
	}
	if f.Effect != nil {
		g.effect(t, st, f)
		count.Add(1)
		return
	}
	if node := g.schedule(t, g.objects(t, st, &f), true); node == "" {
		t.Fatalf("cluster %d: %q is told %s for %s: %s; the scheduler refuses it", g.seed, f.Title, f.Proof.Verdict, f.Proof.Node, f.Proof.Why)
	}
	count.Add(1)
}

// effect holds a fix to what it brings to everybody: the pod that waits has the room that was
// made for it, those who were evicted are made again, and as many wait as was said.
func (g *gamble) effect(t *testing.T, st *cluster.State, f diagnosis.Fix) {
	t.Helper()
	objects := g.objects(t, st, &f)
	pending := []string{"waiting"}
	for _, o := range objects {
		if p, ok := o.(*corev1.Pod); ok && p.Name == "waiting" {
			p.Status.NominatedNodeName = f.Proof.Node
		}
	}
	for _, v := range f.Cost.Evictions {
		p := st.Pod(v.Namespace, v.Name).DeepCopy()
		if metav1.GetControllerOf(p) == nil {
			continue // nobody makes it again
		}
		p.Name, p.UID, p.Spec.NodeName, p.Status = p.Name+"-again", p.UID+"-again", "", corev1.PodStatus{Phase: corev1.PodPending}
		p.Spec.SchedulerName, p.CreationTimestamp = corev1.DefaultSchedulerName, metav1.NewTime(st.Now.Add(time.Minute))
		defaulted(p)
		objects, pending = append(objects, p), append(pending, p.Name)
	}
	bound := g.settle(t, objects, pending)
	if e := f.Effect; (bound["waiting"] != "") != (e.Runs == 1) || len(pending)-len(bound) != e.WaitingAfter || e.WaitingAfter != e.Of-e.Runs+len(e.ThenWait) {
		t.Fatalf("cluster %d: %q was to bring %s; of %v the scheduler bound %v", g.seed, f.Title, effectText(f), pending, bound)
	}
	g.n.effects.Add(1)
}

// settle runs the real scheduler until each of the pods that wait is bound or refused.
func (g *gamble) settle(t *testing.T, objects []runtime.Object, pending []string) map[string]string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	client := fake.NewSimpleClientset(objects...) //nolint:staticcheck // NewClientset tracks field ownership, which nothing here reads
	bindings := make(chan *corev1.Binding, len(pending))
	client.PrependReactor("create", "pods", func(a k8stesting.Action) (bool, runtime.Object, error) {
		if a.GetSubresource() != "binding" {
			return false, nil, nil
		}
		b := a.(k8stesting.CreateAction).GetObject().(*corev1.Binding)
		bindings <- b
		return true, b, nil
	})
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- insitu.Run(ctx, client, ready) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	<-ready
	bound := map[string]string{}
	err := wait.PollUntilContextTimeout(ctx, 2*time.Millisecond, 20*time.Second, true, func(ctx context.Context) (bool, error) {
		for len(bindings) > 0 {
			b := <-bindings
			bound[b.Name] = b.Target.Name
		}
		for _, name := range pending {
			p, err := client.CoreV1().Pods("demo").Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return false, err
			}
			refused := slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
				return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse
			})
			if bound[name] == "" && !refused {
				return false, nil
			}
		}
		return true, nil
	})
	if err != nil {
		t.Fatalf("cluster %d: the scheduler has not spoken of all of %v: %v", g.seed, pending, err)
	}
	return bound
}

var branch = regexp.MustCompile(`[├└]─ +(\d+) nodes? `)

// addsUp holds the diagnosis to what every one owes: a short headline, every node
// once, a cause for every blocker and its nodes, counts that add up to all nodes.
func (g *gamble) addsUp(t *testing.T, d diagnosis.Diagnosis, path string) {
	t.Helper()
	if n := utf8.RuneCountInString(d.Headline); n == 0 || n > 80 {
		t.Errorf("cluster %d: headline of %d characters", g.seed, n)
	}
	if len(d.Nodes) != len(g.told.nodes) || len(d.Causes) == 0 || len(d.Fixes) == 0 {
		t.Errorf("cluster %d: %d of %d nodes, %d causes, %d fixes", g.seed, len(d.Nodes), len(g.told.nodes), len(d.Causes), len(d.Fixes))
	}
	nodes := map[diagnosis.CauseID][]string{}
	for _, n := range d.Nodes {
		for _, b := range n.Blockers {
			if !slices.Contains(nodes[b.Cause], n.Name) {
				nodes[b.Cause] = append(nodes[b.Cause], n.Name)
			}
		}
	}
	for _, c := range d.Causes {
		if !slices.Equal(nodes[c.ID], c.Nodes) && len(nodes[c.ID])+len(c.Nodes) > 0 {
			t.Errorf("cluster %d: cause %s is told of %v, blockers of %v", g.seed, c.ID, c.Nodes, nodes[c.ID])
		}
		delete(nodes, c.ID)
	}
	if len(nodes) > 0 {
		t.Errorf("cluster %d: blockers of causes that are not told: %v", g.seed, nodes)
	}
	_, out, _ := call(t, "why", "-f", path)
	sum := 0
	for _, m := range branch.FindAllStringSubmatch(out, -1) {
		n, err := strconv.Atoi(m[1])
		must(t, err)
		sum += n
	}
	if sum != len(d.Nodes) {
		t.Errorf("cluster %d: %d nodes are told of, there are %d:\n%s", g.seed, sum, len(d.Nodes), out)
	}
}

// fill lays nodes out, has pods hold some of it, and lets a pod ask for more.
func (g *gamble) fill() {
	profiles := []string{"1g.5gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb"}
	g.told = told{held: map[string][]sim.Placed{}}
	for i := range 1 + g.r.IntN(3) {
		layout := sim.All(a100, profiles[g.r.IntN(3)])
		n := sim.Node{Name: fmt.Sprint("gpu-", i+1), Model: a100, Layouts: [][]sim.Placed{layout}, CPU: fmt.Sprint(2 + g.r.IntN(8)), Cordoned: g.r.IntN(6) == 0, Labels: map[string]string{"zone": fmt.Sprint("z", g.r.IntN(2))}}
		if g.r.IntN(4) == 0 {
			n.Taints = append(n.Taints, corev1.Taint{Key: "team", Value: "x", Effect: corev1.TaintEffectNoSchedule})
		}
		if g.r.IntN(8) == 0 {
			n.Taints = append(n.Taints, corev1.Taint{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule})
		}
		for _, p := range layout {
			if g.r.IntN(3) > 0 {
				g.told.held[n.Name] = append(g.told.held[n.Name], p)
			}
		}
		g.told.nodes = append(g.told.nodes, n)
	}
	g.told.ask, g.told.count = "nvidia.com/mig-"+profiles[g.r.IntN(len(profiles))], 1+g.r.Int64N(2)
	if g.r.IntN(2) == 0 { // what a node has: held or not
		g.told.ask = "nvidia.com/mig-" + g.told.nodes[0].Layouts[0][0].Profile
	}
	cpu := resource.NewQuantity(1+g.r.Int64N(9), resource.DecimalSI)
	if g.r.IntN(4) == 0 {
		g.told.extra = append(g.told.extra, &policyv1.PodDisruptionBudget{TypeMeta: metav1.TypeMeta{APIVersion: "policy/v1", Kind: "PodDisruptionBudget"}, ObjectMeta: metav1.ObjectMeta{Namespace: "demo", Name: "holders"},
			Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{}}, Status: policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: g.r.Int32N(3)}})
	}
	selects, tolerates := g.r.IntN(3) == 0, g.r.IntN(3) == 0
	g.told.edit = func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: *cpu}
		if selects {
			p.Spec.NodeSelector = map[string]string{"zone": "z0"}
		}
		if tolerates {
			p.Spec.Tolerations = []corev1.Toleration{{Key: "team", Operator: corev1.TolerationOpExists}}
		}
	}
}

// objects are those of the state once a fix is carried out, and what it waits for has
// happened.
func (g *gamble) objects(t *testing.T, st *cluster.State, f *diagnosis.Fix) []runtime.Object {
	t.Helper()
	nodes, pods := map[string]*corev1.Node{}, map[string]*corev1.Pod{}
	for _, n := range st.Nodes {
		nodes[n.Name] = n.DeepCopy()
	}
	for _, p := range st.Pods {
		p = p.DeepCopy()
		if p.Spec.SchedulerName == "" {
			p.Spec.SchedulerName = corev1.DefaultSchedulerName
		}
		p.Status.Conditions = nil
		pods[p.Name] = p
	}
	if f != nil {
		for _, a := range f.Actions {
			carryOut(t, a, nodes, pods)
		}
		if f.Proof.Verdict == diagnosis.Waits {
			happen(t, *f, nodes, pods)
		}
	}
	for _, p := range pods {
		defaulted(p)
	}
	var out []runtime.Object
	for _, name := range slices.Sorted(maps.Keys(nodes)) {
		out = append(out, nodes[name])
	}
	for _, name := range slices.Sorted(maps.Keys(pods)) {
		out = append(out, pods[name])
	}
	return out
}

// defaulted does what the API server does to what a person has written.
func defaulted(p *corev1.Pod) {
	for i := range p.Spec.Containers {
		r := &p.Spec.Containers[i].Resources
		for name, q := range r.Limits {
			if _, ok := r.Requests[name]; !ok {
				if r.Requests == nil {
					r.Requests = corev1.ResourceList{}
				}
				r.Requests[name] = q
			}
		}
	}
}

var (
	watched = regexp.MustCompile(`^kubectl -n demo get pod (\S+) -w$`)
	ready   = regexp.MustCompile(`(\S+) is Ready again`)
	end     = regexp.MustCompile(` on gpu-\d ends?( |;|$)`)
	allows  = regexp.MustCompile(`PodDisruptionBudget demo/holders allows \d+ more of these evictions`)
)

// happen makes the events that a fix waits for: pods end, a node is Ready. That a
// budget allows evictions changes nothing but that they may be made.
func happen(t *testing.T, f diagnosis.Fix, nodes map[string]*corev1.Node, pods map[string]*corev1.Pod) {
	t.Helper()
	why := f.Proof.Why
	events := len(allows.FindAllString(why, -1))
	for _, m := range ready.FindAllStringSubmatch(why, -1) {
		n := nodes[m[1]]
		n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeNotReady })
		events++
	}
	for range end.FindAllString(why, 1) {
		events++
		for _, c := range f.Commands {
			if m := watched.FindStringSubmatch(c); m != nil {
				delete(pods, m[1])
			}
		}
	}
	if named := 1 + strings.Count(why, " and "); events != named {
		t.Fatalf("%q waits for %d events, %d of them known: %s", f.Title, named, events, why)
	}
}

func carryOut(t *testing.T, a diagnosis.Action, nodes map[string]*corev1.Node, pods map[string]*corev1.Pod) {
	t.Helper()
	switch a.Verb {
	case diagnosis.VerbEvict:
		delete(pods, a.Target.Name)
	case diagnosis.VerbUncordon:
		n := nodes[a.Target.Name]
		n.Spec.Unschedulable = false
		n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeUnschedulable })
	case diagnosis.VerbPatch, diagnosis.VerbRecreate:
		pods[a.Target.Name] = patched(t, pods[a.Target.Name], a.Patch)
	case diagnosis.VerbRelayout:
		for _, v := range a.Relayout.Victims {
			delete(pods, v.Name)
		}
		layOut(nodes[a.Target.Name], a.Relayout.Layouts)
	default:
		t.Fatalf("action %q", a.Verb)
	}
}

func patched(t *testing.T, p *corev1.Pod, patch []byte) *corev1.Pod {
	t.Helper()
	before, err := json.Marshal(p)
	must(t, err)
	after, err := strategicpatch.StrategicMergePatch(before, patch, corev1.Pod{}) // as the API server does: containers by name
	must(t, err)
	out := &corev1.Pod{}
	must(t, json.Unmarshal(after, out))
	return out
}

// layOut is what MIG manager and the device plugin make of a node.
func layOut(n *corev1.Node, layouts map[int]map[string]int) {
	for name := range n.Status.Allocatable {
		if strings.HasPrefix(string(name), "nvidia.com/mig-") {
			n.Status.Allocatable[name] = resource.Quantity{}
		}
	}
	for _, layout := range layouts {
		for profile, count := range layout {
			name := corev1.ResourceName("nvidia.com/mig-" + strings.ReplaceAll(profile, "+", "."))
			q := n.Status.Allocatable[name]
			q.Add(*resource.NewQuantity(int64(count), resource.DecimalSI))
			n.Status.Allocatable[name] = q
		}
	}
}

// schedule runs the real scheduler over the objects until it has bound the waiting
// pod, or refused it; where a binding is expected, only that ends it.
func (g *gamble) schedule(t *testing.T, objects []runtime.Object, expected bool) (node string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	client := fake.NewSimpleClientset(objects...) //nolint:staticcheck // NewClientset tracks field ownership, which nothing here reads
	bound := make(chan string, 1)
	client.PrependReactor("create", "pods", func(a k8stesting.Action) (bool, runtime.Object, error) {
		if a.GetSubresource() != "binding" {
			return false, nil, nil
		}
		b := a.(k8stesting.CreateAction).GetObject().(*corev1.Binding)
		bound <- b.Target.Name
		return true, b, nil
	})
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- insitu.Run(ctx, client, ready) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	<-ready
	last := ""
	err := wait.PollUntilContextTimeout(ctx, 2*time.Millisecond, 20*time.Second, true, func(ctx context.Context) (bool, error) {
		select {
		case node = <-bound:
			return true, nil
		default:
		}
		p, err := client.CoreV1().Pods("demo").Get(ctx, "waiting", metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		refused := slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse
		})
		last = fmt.Sprint(p.Status.Conditions)
		return refused && !expected, nil
	})
	if expected && err != nil {
		t.Logf("cluster %d: not bound: %s", g.seed, last)
	}
	if err != nil && !expected {
		t.Fatalf("cluster %d: the scheduler says nothing: %v", g.seed, err)
	}
	return node
}
