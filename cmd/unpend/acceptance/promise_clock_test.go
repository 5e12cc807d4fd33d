package acceptance

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/executor"
	"github.com/unpend/unpend/remediate/plan"
	"github.com/unpend/unpend/remediate/v1alpha1"
	"github.com/unpend/unpend/testdata/controlplane"
)

// promiseR18: clocks are wrong. Whose lease says another hour leads for as long as it
// renews it, and is replaced by our own clock's count from its last renewal. The lock
// of a node is held by a plan that has not ended, whatever its time. Two executors
// whose clocks jump by an hour never both work.
func promiseR18(t *testing.T) {
	needsControlPlane(t)
	p := newPool(t, 7)
	var held, of int
	play := func(name string, f func(t *testing.T)) {
		of++
		if t.Run(name, f) {
			held++
		}
	}
	var least, most time.Duration
	play("leases", func(t *testing.T) { least, most = p.skewedLeaders(t) })
	var jumps string
	play("jumps", func(t *testing.T) { jumps = p.jumps(t) })
	play("locks", p.skewedLocks) // leaves a plan under way
	report(t, held, of, fmt.Sprintf("4 leases an hour off, taken %.1f to %.1f s after their last renewal (or ours first look), none before; locks an hour off: held by a plan that goes on, taken from one that ended; %s; unproven: a jump of the machine's own clock under the processes",
		least.Seconds(), most.Seconds(), jumps))
}

// leader is the lease of an executor that is not there, as this test renews it.
type leader struct {
	*lane
	ns   string
	skew time.Duration
}

func (f *leader) lease() *coordinationv1.Lease {
	at, name, held, none := metav1.NewMicroTime(time.Now().Add(f.skew)), "other", int32(15), int32(0)
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: executor.LeaderLease},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &name, LeaseDurationSeconds: &held, AcquireTime: &at, RenewTime: &at, LeaseTransitions: &none}}
}

func (f *leader) create(t *testing.T) {
	t.Helper()
	_, err := f.Client().CoordinationV1().Leases(f.ns).Create(t.Context(), f.lease(), metav1.CreateOptions{})
	must(t, err)
}

func (f *leader) read(t *testing.T) *coordinationv1.Lease {
	t.Helper()
	l, err := f.Client().CoordinationV1().Leases(f.ns).Get(t.Context(), executor.LeaderLease, metav1.GetOptions{})
	must(t, err)
	return l
}

// renew writes it, on the version that is there; false when another has it.
func (f *leader) renew(t *testing.T) bool {
	t.Helper()
	l := f.read(t)
	if *l.Spec.HolderIdentity != "other" {
		return false
	}
	l.Spec.RenewTime = f.lease().Spec.RenewTime
	_, err := f.Client().CoordinationV1().Leases(f.ns).Update(t.Context(), l, metav1.UpdateOptions{})
	return err == nil
}

// taken waits until the executor has the lease.
func (f *leader) taken(t *testing.T) {
	t.Helper()
	controlplane.Eventually(t, 40*time.Second, "the lease is taken over", func() (bool, string) {
		l := f.read(t)
		return *l.Spec.HolderIdentity == "executor-0" && *l.Spec.LeaseTransitions == 1, *l.Spec.HolderIdentity
	})
}

// skewedLeaders has leaders an hour ahead and behind, that renew and that do not,
// each followed by an executor. It returns the shortest and the longest time that the
// executors took after the last renewal, or after they had started.
func (p *pool) skewedLeaders(t *testing.T) (least, most time.Duration) {
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, skew := range []time.Duration{-time.Hour, time.Hour} {
		for _, renews := range []bool{true, false} {
			all.Go(func() {
				t.Run(fmt.Sprintf("%s %v", skew, renews), func(t *testing.T) {
					took := p.skewedLeader(t, skew, renews)
					mu.Lock()
					defer mu.Unlock()
					if most = max(most, took); least == 0 || took < least {
						least = took
					}
				})
			})
		}
	}
	all.Wait()
	return least, most
}

func (p *pool) skewedLeader(t *testing.T, skew time.Duration, renews bool) time.Duration {
	f := &leader{p.lane, p.Namespace(t), skew}
	f.install(t, f.ns, approver, requester)
	f.create(t)
	proxy := newFaultProxy(t, p.lane, f.ns, "executor-"+f.ns)
	last := time.Now()
	startExecutor(t, "executor-0", executorConfig(t, f.ns, ""), proxy)
	if renews {
		for i := range 10 { // every 2 s, as an elector does
			<-time.After(2 * time.Second)
			if !f.renew(t) {
				t.Fatalf("it was taken %s after it had been renewed, renewal %d", time.Since(last), i)
			}
			last = time.Now()
			if i == 5 {
				f.shown(t)
			}
		}
	}
	f.taken(t)
	took := time.Since(last)
	if took < 14*time.Second || took > 25*time.Second {
		t.Errorf("taken after %s", took)
	}
	if made := proxy.made(); len(made) != 0 {
		t.Errorf("written: %v", made)
	}
	return took
}

// shown wants a person to be told that somebody leads: else what they approve would be
// applied beside the executor.
func (f *leader) shown(t *testing.T) {
	t.Helper()
	renewed := make(chan struct{})
	go func() {
		defer close(renewed)
		<-time.After(time.Second)
		f.renew(t)
	}()
	code, out, errs := call(t, "status", "--executor-namespace", f.ns, "--kubeconfig", f.Kubeconfig())
	<-renewed
	if code != 0 || !strings.Contains(out, "approve: other leads") {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
}

// skewedLocks has nodes locked by another plan: two hours ago by one that goes on, an
// hour ahead by one that has ended.
func (p *pool) skewedLocks(t *testing.T) {
	for _, node := range p.nodes[:4] {
		p.waits(t, node, "2g.10gb", 1)
	}
	plans := p.plans(t, p.nodes[:4]...)
	ended := plans[p.nodes[3]]
	_, err := p.approvers.Decide(t.Context(), plan.NewApproval(ended, approver, nil, v1alpha1.Reject))
	must(t, err)
	lock := func(node string, by *v1alpha1.Remediation, skew time.Duration) {
		at, long := metav1.NewMicroTime(time.Now().Add(skew)), int32(3600)
		_, err := p.Client().CoordinationV1().Leases(p.ns).Create(t.Context(), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "unpend-node-" + node},
			Spec: coordinationv1.LeaseSpec{HolderIdentity: &by.Name, LeaseDurationSeconds: &long, AcquireTime: &at, RenewTime: &at}}, metav1.CreateOptions{})
		must(t, err)
	}
	under := plans[p.nodes[2]]
	p.stack.SetFaults(p.nodes[2], sim.Faults{Slow: 5 * time.Minute})                          // so it goes on
	p.guards(t, "{nodesInFlight: 3, poolUnavailablePercent: 100, breaker: {failures: 1000}}") // of what fails where clocks jump, nothing is to be held against these
	lock(p.nodes[0], under, -2*time.Hour)
	lock(p.nodes[1], ended, time.Hour)
	x := startExecutor(t, "executor-0", executorConfig(t, p.ns, ""), newFaultProxy(t, p.lane, p.ns, "executor-"+p.ns))
	p.end(t, time.Minute, map[string]*v1alpha1.Remediation{"rejected": ended})
	p.approve(t, map[string]*v1alpha1.Remediation{p.nodes[2]: under})
	controlplane.Eventually(t, time.Minute, "a plan is under way", func() (bool, string) {
		now, err := p.store().Get(t.Context(), under.Name)
		must(t, err)
		return slices.ContainsFunc(now.Status.Journal, func(e v1alpha1.Entry) bool { return e.Step == "0/manager" }), fmt.Sprintf("%s %s %s", now.Status.Phase, now.Status.Progress, now.Status.Message)
	})
	two := map[string]*v1alpha1.Remediation{p.nodes[0]: plans[p.nodes[0]], p.nodes[1]: plans[p.nodes[1]]}
	p.approve(t, two)
	p.end(t, time.Minute, two)
	if s := two[p.nodes[0]].Status; s.Phase != v1alpha1.Refused || !strings.Contains(s.Message, "is locked by plan "+under.Name) {
		t.Errorf("locked by a plan that goes on: %s: %s", s.Phase, s.Message)
	}
	if s := two[p.nodes[1]].Status; s.Phase != v1alpha1.Succeeded {
		t.Errorf("locked by a plan that has ended: %s: %s", s.Phase, s.Message)
	}
	x.kill()
}

// jumpy is a clock that jumps by an hour, to and fro, every second or so, while a node
// is worked on: a plan that is begun with a wrong clock is stale or expired at once.
type jumpy struct {
	busy func() bool
	mu   sync.Mutex
	r    *rand.Rand
	next time.Time
	off  time.Duration
	n    int
}

func (j *jumpy) now() time.Time {
	j.mu.Lock()
	defer j.mu.Unlock()
	now := time.Now()
	if now.After(j.next) {
		off := time.Duration(j.r.IntN(3)-1) * time.Hour
		if !j.busy() {
			off = 0
		}
		if off != j.off {
			j.n++
		}
		j.off, j.next = off, now.Add(time.Duration(300+j.r.IntN(700))*time.Millisecond)
	}
	return now.Add(j.off)
}

// jumps has two executors, in this process with clocks of their own, carry plans out,
// the leader ended every few seconds.
func (p *pool) jumps(t *testing.T) string {
	ns := p.Namespace(t)
	p.install(t, ns, approver, requester)
	setGuards(t, p.lane, ns, "{planTTL: 24h, poolUnavailablePercent: 100, breaker: {failures: 1000}}") // a jump over a deadline parks a node
	nodes := p.nodes[4:]
	for _, node := range nodes {
		p.waits(t, node, "2g.10gb", 1)
	}
	p.ahead = 3 * time.Hour // that plans expire by a jump is told elsewhere
	plans := p.plans(t, nodes...)
	p.approve(t, plans)
	seen := p.census(t)
	clocks := [2]*jumpy{{busy: seen.busy, r: rand.New(rand.NewPCG(18, 0))}, {busy: seen.busy, r: rand.New(rand.NewPCG(18, 1))}}
	var all sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	for i, clock := range clocks {
		all.Go(func() { p.tour(ctx, t, ns, fmt.Sprint("jumpy-", i), clock, time.Duration(6+3*i)*time.Second) })
	}
	p.end(t, 90*time.Second, plans)
	cancel()
	all.Wait()
	_, _, worked, _ := seen.seen(t)
	if worked > 1 {
		t.Errorf("%d nodes were worked on at once", worked)
	}
	terms := map[int64]string{}
	for node, rem := range plans {
		p.one(t, node, rem, terms)
	}
	count := phases(t, plans, v1alpha1.Succeeded, v1alpha1.Failed, v1alpha1.Stale, v1alpha1.Parked)
	if len(terms) == 0 { // a jump in the middle may make any of them stale
		t.Error("none was begun")
	}
	return fmt.Sprintf("%d jumps of ±1 h under two executors, %d terms, at most %d node worked on at once, %d plans: %v", clocks[0].n+clocks[1].n, len(terms), worked, len(plans), count)
}

// tour serves as one of the executors, leaves, and comes back.
func (p *pool) tour(ctx context.Context, t *testing.T, ns, name string, clock *jumpy, stays time.Duration) {
	config, err := clientcmd.BuildConfigFromFlags("", p.Kubeconfig())
	if err != nil {
		t.Error(err)
		return
	}
	config.Wrap(executor.OneWrite)
	for ctx.Err() == nil {
		x := executor.New(executor.Options{Namespace: ns, Self: name, Deps: executor.Deps{Client: kubernetes.NewForConfigOrDie(config), Dynamic: dynamic.NewForConfigOrDie(config),
			Now: clock.now, Poll: 100 * time.Millisecond}})
		turn, leave := context.WithTimeout(ctx, stays)
		if err := x.Run(turn, config, name); err != nil && ctx.Err() == nil {
			t.Error(err)
		}
		leave()
	}
}

// one holds a plan's journal to one leader a term, in the order of the terms, and its
// node to have been left open, or parked.
func (p *pool) one(t *testing.T, node string, rem *v1alpha1.Remediation, terms map[int64]string) {
	t.Helper()
	var last int64
	for _, e := range rem.Status.Journal {
		if e.Generation < last {
			t.Errorf("%s: step %s is of term %d, after one of %d", node, e.Step, e.Generation, last)
		}
		last = e.Generation
		if who := terms[e.Generation]; who != "" && who != e.Leader {
			t.Errorf("term %d is of %s and of %s", e.Generation, who, e.Leader)
		}
		terms[e.Generation] = e.Leader
	}
	n, err := p.Client().CoreV1().Nodes().Get(t.Context(), node, metav1.GetOptions{})
	must(t, err)
	op, err := diagnosis.OperationOn(n)
	must(t, err)
	parked := rem.Status.Phase == v1alpha1.Parked
	if n.Spec.Unschedulable != parked || (op != nil) != parked || parked && op.Parked == "" {
		t.Errorf("%s: %s, unschedulable %v, mark %+v; taints %v", node, rem.Status.Phase, n.Spec.Unschedulable, op, slices.DeleteFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeUnschedulable }))
	}
}
