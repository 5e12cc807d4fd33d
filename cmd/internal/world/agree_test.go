package world

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/whatif"
)

var (
	agreeProfiles = []string{"1g.5gb", "2g.10gb", "3g.20gb"}
	agreeTaint    = corev1.Taint{Key: "team", Value: "x", Effect: corev1.TaintEffectNoSchedule}
)

// The copy and the scheduler agree on every pod: it has a node on the copy exactly
// when the scheduler binds it, and to one of the nodes that the copy names.
func TestTheCopyAgreesWithTheScheduler(t *testing.T) {
	t.Parallel() // it waits
	const seed, clusters = 11, 25
	r := rand.New(rand.NewPCG(seed, 0))
	bound, waits := 0, 0
	for range clusters {
		b, w := agreeOnce(t, r)
		bound, waits = bound+b, waits+w
	}
	t.Logf("%d clusters: %d pods fit and were bound, %d did not and waited", clusters, bound, waits)
	if bound == 0 || waits == 0 {
		t.Error("one of the two never happened")
	}
}

func agreeOnce(t *testing.T, r *rand.Rand) (bound, waits int) {
	t.Helper()
	w, err := New(t.Context(), Options{Now: time.Now, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}()
	for i := range 1 + r.IntN(3) {
		if err := w.AddNode(t.Context(), agreeNode(r, i), time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 6 {
		p := agreePod(r, i)
		fits := copyFits(t, w, p)
		if _, err := w.Client().CoreV1().Pods(p.Namespace).Create(t.Context(), p, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		node := judged(t, w, p.Name, len(fits) > 0)
		switch {
		case node == "" && len(fits) == 0:
			waits++
		case slices.Contains(fits, node):
			bound++
		default:
			t.Fatalf("pod %d: the copy says %q, the scheduler %q\npod %+v", i, fits, node, p.Spec)
		}
	}
	return bound, waits
}

func agreeNode(r *rand.Rand, i int) sim.Node {
	n := sim.Node{Name: fmt.Sprint("gpu-", i), Model: "A100-40GB", CPU: fmt.Sprint(2 + r.IntN(6)), Cordoned: r.IntN(6) == 0,
		Layouts: [][]sim.Placed{sim.All("A100-40GB", agreeProfiles[r.IntN(len(agreeProfiles))])}, Labels: map[string]string{"zone": fmt.Sprint("z", r.IntN(2))}}
	if r.IntN(3) == 0 {
		n.Taints = []corev1.Taint{agreeTaint}
	}
	return n
}

func agreePod(r *rand.Rand, i int) *corev1.Pod {
	limits := corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(1+r.Int64N(3), resource.DecimalSI),
		corev1.ResourceName("nvidia.com/mig-" + agreeProfiles[r.IntN(len(agreeProfiles))]): *resource.NewQuantity(1+r.Int64N(2), resource.DecimalSI)}
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: fmt.Sprint("p", i), Labels: map[string]string{"app": fmt.Sprint("a", r.IntN(2))}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "x", Resources: corev1.ResourceRequirements{Limits: limits}}}}}
	if r.IntN(3) == 0 {
		p.Spec.NodeSelector = map[string]string{"zone": fmt.Sprint("z", r.IntN(2))}
	}
	if r.IntN(2) == 0 {
		p.Spec.Tolerations = []corev1.Toleration{{Key: agreeTaint.Key, Operator: corev1.TolerationOpExists}}
	}
	if r.IntN(3) == 0 {
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			LabelSelector: &metav1.LabelSelector{MatchLabels: p.Labels}, TopologyKey: corev1.LabelHostname}}}}
	}
	return p
}

// copyFits asks a copy of the world as it is now.
func copyFits(t *testing.T, w *World, p *corev1.Pod) []string {
	t.Helper()
	nodes, err := w.Client().CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pods, err := w.Client().CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var objs whatif.Objects
	for i := range nodes.Items {
		objs.Nodes = append(objs.Nodes, &nodes.Items[i])
	}
	for i := range pods.Items {
		objs.Pods = append(objs.Pods, &pods.Items[i])
	}
	s, err := whatif.New(t.Context(), objs)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	fits, err := s.Fits(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	return fits
}

// judged waits for the scheduler's word on a pod; empty when it found no node. Its
// first word may be older than a node it has not heard of yet, so where the copy
// knows a node, the scheduler's last word counts: it tries again.
func judged(t *testing.T, w *World, name string, fits bool) string {
	t.Helper()
	node := ""
	eventually(t, "the scheduler's word on "+name, func() bool {
		p, err := w.Client().CoreV1().Pods("ml").Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		node = p.Spec.NodeName
		refused := slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse
		})
		return node != "" || refused && !fits
	})
	return node
}
