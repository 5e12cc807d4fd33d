package whatif

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/unpend/unpend/rca/whatif/insitu"
)

// crowd is a random cluster whose pods differ in priority, with budgets, and a pod
// that fits nowhere as it is. No two pods began at once; or many did, all ask the same and
// no budget guards them.
func crowd(r *rand.Rand, together bool) (nodes []*corev1.Node, pods []*corev1.Pod, budgets []*policyv1.PodDisruptionBudget, asks *corev1.Pod) {
	for n := range 1 + r.IntN(3) {
		name := fmt.Sprintf("n%d", n)
		nodes = append(nodes, node(name, 8, 0))
		for left := int64(8); left > 0; {
			cpu := min(left, 1+r.Int64N(4))
			if together {
				cpu = 2
			}
			left -= cpu
			p := prioritised(pod(fmt.Sprintf("held-%d-%d", n, left), cpu, 0), int32(10*r.IntN(4)))
			at := metav1.NewTime(time.Unix(1_790_000_000+int64(len(pods))*61+r.Int64N(60), 0))
			if together {
				at = metav1.NewTime(time.Unix(1_790_000_000+r.Int64N(2), 0))
			}
			p.Labels, p.Status = map[string]string{"team": fmt.Sprint(r.IntN(4))}, corev1.PodStatus{Phase: corev1.PodRunning, StartTime: &at}
			pods = append(pods, on(p, name))
		}
	}
	for team := range r.IntN(3) {
		if together {
			break
		}
		budgets = append(budgets, &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: fmt.Sprint("team-", team)},
			Spec:   policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": fmt.Sprint(team)}}},
			Status: policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: int32(r.IntN(2))}})
	}
	asks = prioritised(pod("asks", 1+r.Int64N(8), 0), int32(10*r.IntN(5)))
	if r.IntN(6) == 0 {
		never := corev1.PreemptNever
		asks.Spec.PreemptionPolicy = &never
	}
	return nodes, pods, budgets, asks
}

func prioritised(p *corev1.Pod, priority int32) *corev1.Pod {
	p.UID, p.Spec.Priority, p.Spec.SchedulerName = types.UID(p.Name), &priority, corev1.DefaultSchedulerName
	p.Spec.Containers[0].Resources.Requests = p.Spec.Containers[0].Resources.Limits
	return p
}

// On random clusters the real scheduler, run in this process, takes the pods that
// Preempt names from the node that it names, and nobody's where it names none. Where pods
// began together it may take others: those that Preempt names as well.
func TestPreemptsLikeTheScheduler(t *testing.T) {
	const clusters, workers = 72, 12
	takes, others := make([]int, workers), make([]int, workers)
	t.Run("clusters", func(t *testing.T) {
		for w := range workers {
			t.Run(fmt.Sprint(w), func(t *testing.T) {
				t.Parallel()
				for seed := w; seed < clusters; seed += workers {
					nodes, pods, budgets, asks := crowd(rand.New(rand.NewPCG(5, uint64(seed))), seed%3 == 2)
					p, err := snapshot(t, Objects{Nodes: nodes, Pods: pods}).Preempt(t.Context(), asks, budgets)
					if err != nil {
						t.Fatal(err)
					}
					if seed%3 != 2 && len(p.Or) > 0 {
						t.Errorf("cluster %d: no two began at once, and it may take others: %v", seed, p.Or)
					}
					node, gone := preempts(t, nodes, pods, budgets, asks)
					if want := victims(p, nil); len(p.Or) == 0 && (node != p.Node || !slices.Equal(gone, want)) {
						t.Errorf("cluster %d: %q from %q, the scheduler takes %q from %q", seed, want, p.Node, gone, node)
					}
					if may := victims(p, p.Or); len(gone) != len(p.Victims) || slices.ContainsFunc(gone, func(name string) bool { return !slices.Contains(may, name) }) {
						t.Errorf("cluster %d: %d of %q, the scheduler takes %q", seed, len(p.Victims), may, gone)
					}
					takes[w] += len(gone)
					others[w] += len(p.Or)
				}
			})
		}
	})
	n, or := 0, 0
	for w := range workers {
		n, or = n+takes[w], or+others[w]
	}
	if n < clusters/2 || or < 6 {
		t.Errorf("%d victims and %d others in %d clusters: too few to tell", n, or, clusters)
	}
}

func victims(p Preemption, or []*corev1.Pod) []string {
	out := []string{}
	for _, v := range slices.Concat(p.Victims, or) {
		out = append(out, v.Name)
	}
	slices.Sort(out)
	return out
}

// preempts runs the real scheduler until it has bound the pod, refused it, or named a
// node for it and taken the pods that it said.
func preempts(t *testing.T, nodes []*corev1.Node, pods []*corev1.Pod, budgets []*policyv1.PodDisruptionBudget, asks *corev1.Pod) (node string, gone []string) {
	t.Helper()
	var objects []runtime.Object
	for _, o := range nodes {
		objects = append(objects, o.DeepCopy())
	}
	for _, o := range append(slices.Clone(pods), asks) {
		objects = append(objects, o.DeepCopy())
	}
	for _, o := range budgets {
		objects = append(objects, o.DeepCopy())
	}
	client := fake.NewSimpleClientset(objects...) //nolint:staticcheck // NewClientset tracks field ownership, which nothing here reads
	bound := make(chan string, 1)
	client.PrependReactor("create", "pods", func(a k8stesting.Action) (bool, runtime.Object, error) {
		if a.GetSubresource() != "binding" {
			return false, nil, nil
		}
		binding := a.(k8stesting.CreateAction).GetObject().(*corev1.Binding)
		bound <- binding.Target.Name
		return true, binding, nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- insitu.Run(ctx, client, ready) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	<-ready
	if err := wait.PollUntilContextTimeout(ctx, 2*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		select {
		case to := <-bound:
			// It writes conditions beside its work: who is bound soon after the
			// victims are gone never gets the one that names the node.
			if gone = deleted(client); len(gone) > 0 {
				node = to
			}
			return true, nil
		default:
		}
		p, err := client.CoreV1().Pods("ml").Get(ctx, "asks", metav1.GetOptions{})
		if err != nil || len(p.Status.Conditions) == 0 {
			return false, err
		}
		// How many it takes it says before they are gone.
		_, says, _ := strings.Cut(p.Status.Conditions[0].Message, "preempting ")
		victims := 0
		if _, err := fmt.Sscanf(says, "%d victims", &victims); err != nil && p.Status.NominatedNodeName != "" {
			return false, fmt.Errorf("%q: %w", says, err)
		}
		node, gone = p.Status.NominatedNodeName, deleted(client)
		return len(gone) >= victims, nil
	}); err != nil {
		t.Fatalf("the scheduler says nothing: %v", err)
	}
	return node, gone
}

// deleted lists the pods that were.
func deleted(client *fake.Clientset) []string {
	gone := []string{}
	for _, a := range client.Actions() {
		if d, ok := a.(k8stesting.DeleteAction); ok && a.GetResource().Resource == "pods" {
			gone = append(gone, d.GetName())
		}
	}
	slices.Sort(gone)
	return slices.Compact(gone)
}
