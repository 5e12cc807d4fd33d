package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca"
	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/whatif/insitu"
)

// judged counts what the real scheduler had a say in.
type judged struct{ bound, refused, proved atomic.Int64 }

// On random clusters the real scheduler, run in this process, does what the
// diagnosis says: it binds where no blocker is told, it refuses where every node
// has one, and it binds once the change of a fix is made that was proved.
func TestTheSchedulerAgreesWithDiagnoses(t *testing.T) {
	clusters := 500
	if testing.Short() {
		clusters = 30
	}
	const workers = 8
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
	t.Logf("%d clusters: %d pods bound as they were, %d refused, %d proved fixes made and bound", clusters, n.bound.Load(), n.refused.Load(), n.proved.Load())
	if least := int64(clusters / 5); n.bound.Load() < least/2 || n.refused.Load() < least || n.proved.Load() < least {
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

func (g *gamble) play(t *testing.T) {
	t.Helper()
	g.fill()
	path := dumpOf(t, g.told)
	d := why(t, "-f", path)
	if n := utf8.RuneCountInString(d.Headline); n == 0 || n > 80 {
		t.Errorf("cluster %d: headline of %d characters", g.seed, n)
	}
	if len(d.Nodes) != len(g.told.nodes) || len(d.Causes) == 0 || len(d.Fixes) == 0 {
		t.Errorf("cluster %d: %d of %d nodes, %d causes, %d fixes", g.seed, len(d.Nodes), len(g.told.nodes), len(d.Causes), len(d.Fixes))
	}
	free := slices.ContainsFunc(d.Nodes, func(n rca.NodeBlockers) bool { return len(n.Blockers) == 0 })
	if node := g.schedule(t, g.objects(t, path, nil), free); (node != "") != free {
		t.Fatalf("cluster %d: the scheduler chose %q; told was %+v", g.seed, node, d.Nodes)
	}
	if free {
		g.n.bound.Add(1)
		return
	}
	g.n.refused.Add(1)
	for _, f := range d.Fixes {
		if f.Proof.Verdict == "" || f.Proof.Why == "" || f.Proof.Verdict == rca.Refuted {
			t.Errorf("cluster %d: fix %q is %q because of %q", g.seed, f.Title, f.Proof.Verdict, f.Proof.Why)
		}
		if f.Proof.Verdict != rca.Schedules {
			continue
		}
		if node := g.schedule(t, g.objects(t, path, f.Actions), true); node == "" {
			t.Fatalf("cluster %d: %q was proved for %s; the scheduler refuses it", g.seed, f.Title, f.Proof.Node)
		}
		g.n.proved.Add(1)
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
			n.Taints = []corev1.Taint{{Key: "team", Value: "x", Effect: corev1.TaintEffectNoSchedule}}
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
	cpu := resource.NewQuantity(1+g.r.Int64N(6), resource.DecimalSI)
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

// objects are those of the dump, with the actions carried out.
func (g *gamble) objects(t *testing.T, path string, actions []rca.Action) []runtime.Object {
	t.Helper()
	st, err := cluster.FromFiles([]string{path}, nil)
	if err != nil {
		t.Fatal(err)
	}
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
	for _, a := range actions {
		carryOut(t, a, nodes, pods)
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

func carryOut(t *testing.T, a rca.Action, nodes map[string]*corev1.Node, pods map[string]*corev1.Pod) {
	t.Helper()
	switch a.Verb {
	case rca.VerbEvict:
		delete(pods, a.Target.Name)
	case rca.VerbUncordon:
		n := nodes[a.Target.Name]
		n.Spec.Unschedulable = false
		n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeUnschedulable })
	case rca.VerbPatch, rca.VerbRecreate:
		pods[a.Target.Name] = patched(t, pods[a.Target.Name], a.Patch)
	case rca.VerbRelayout:
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
	after, err := jsonpatch.MergePatch(before, patch)
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
