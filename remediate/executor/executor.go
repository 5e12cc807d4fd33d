package executor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/cluster/live"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/act"
	"github.com/unpend/unpend/remediate/audit"
	"github.com/unpend/unpend/remediate/journal"
	"github.com/unpend/unpend/remediate/notice"
	"github.com/unpend/unpend/remediate/plan"
	"github.com/unpend/unpend/remediate/v1alpha1"
	"github.com/unpend/unpend/watcher/incident"
)

// Options of an Executor.
type Options struct {
	// Deps are the executor's own: clients that act as itself, clock, logger, waits.
	Deps
	// Namespace of the guard-rails, the breaker and the locks of nodes.
	Namespace string
	// ActAs makes a client that acts as an approver. Nil: everything is written as the
	// executor itself.
	ActAs func(user string, groups []string) (kubernetes.Interface, error)
	// Groups that may be acted with; an approver's others are left out.
	Groups []string
	// Self is the executor's user name: it records the plans that take a stale one's
	// place.
	Self string
	// Publish hands on the end of every plan. It is called until it has returned nil, and may
	// be called with the same again. Nil: nobody is told.
	Publish func(context.Context, notice.Notice) error
	// Registerer of the executor's metrics. May be nil.
	Registerer prometheus.Registerer
	// Keep ended plans so long (24 h): guard-rails look back at them. One whose entry in a
	// team's layouts is still in use is kept until it is not, and the entry goes with it.
	Keep time.Duration
}

// Executor carries approved Remediations out. It is a reconciler: every call reads
// the plan, its approvals and the world again, goes as far as it can without waiting,
// and says when to come back. All it knows is in the API; what it holds in memory
// saves reading the journal again.
type Executor struct {
	Options
	store       plan.Store
	metrics     metrics
	carrierGone time.Duration
	logged      *logged
	retries     workqueue.TypedRateLimiter[reconcile.Request]

	mu       sync.Mutex
	machines map[string]*journal.Machine // of plans that are being carried out
	carried  map[string]moved            // plans that terminals carry out
	later    map[string]time.Time        // of plans the API server wants to be left alone with, until when; monotonic
}

// New makes one.
func New(o Options) *Executor {
	o.Deps = o.withDefaults()
	if o.Keep == 0 {
		o.Keep = 24 * time.Hour
	}
	o.Locks = o.Namespace
	return &Executor{Options: o, store: plan.Store{Dynamic: o.Dynamic}, metrics: newMetrics(), logged: newLogged(), retries: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry), machines: map[string]*journal.Machine{}, carried: map[string]moved{}, carrierGone: carrierGone, later: map[string]time.Time{}}
}

var _ reconcile.Reconciler = (*Executor)(nil)

// Reconcile looks at one plan, unless the API server wants to be left alone with it: a
// change of the plan, or of another's lease, is no reason to ask sooner.
func (x *Executor) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	if left := x.early(req.Name); left > 0 {
		return reconcile.Result{RequeueAfter: left}, nil
	}
	again, err := x.Look(ctx, req.Name)
	if delay := journal.DelayOf(err); delay > 0 {
		x.Logger.WarnContext(ctx, "the API server wants to be left alone", "plan", req.Name, "for", delay.String(), "error", err)
		again, err = delay, nil
		x.mu.Lock()
		x.later[req.Name] = time.Now().Add(delay)
		x.mu.Unlock()
	}
	if err != nil && ctx.Err() == nil {
		if x.logged.fails(req.Name, err) {
			x.Logger.ErrorContext(ctx, "a plan cannot be looked at, it is tried again", "plan", req.Name, "error", err)
		}
		return reconcile.Result{RequeueAfter: x.retries.When(req)}, nil
	}
	x.logged.works(req.Name)
	x.retries.Forget(req)
	return reconcile.Result{RequeueAfter: again}, err
}

// early is how long the API server is to be left alone with a plan.
func (x *Executor) early(name string) time.Duration {
	x.mu.Lock()
	defer x.mu.Unlock()
	left := time.Until(x.later[name])
	if left <= 0 {
		delete(x.later, name)
	}
	return left
}

// Look does for a plan what can be done now, and says when to look again; zero: when
// it, or its approvals, change.
func (x *Executor) Look(ctx context.Context, name string) (time.Duration, error) {
	rem, err := x.store.Get(ctx, name)
	if apierrors.IsNotFound(err) {
		x.drop(name)
		x.logged.forget(name)
		return 0, nil
	}
	unreadable, ok := errors.AsType[*plan.Unreadable](err)
	if ok {
		rem = unreadable.Head()
	} else if err != nil {
		return 0, fmt.Errorf("read plan %s: %w", name, err)
	}
	if rem.Newer() {
		x.drop(name)
		x.logNewer(ctx, rem)
		return 0, nil
	}
	if unreadable != nil {
		x.drop(name)
		return x.refuse(ctx, unreadable)
	}
	if rem.Status.Phase.Ended() {
		return x.ended(ctx, rem)
	}
	if err := x.leading(ctx); err != nil {
		return 0, err
	}
	if is := plan.Name(rem.Spec); is != rem.Name {
		return 0, x.broken(ctx, rem, fmt.Errorf("spec: the hash of its incident, since and actions is %.12s…, the plan is %.12s…: somebody has edited them", is, rem.Name))
	}
	if rem.Spec.Carrier == v1alpha1.Terminal {
		return x.atTerminal(ctx, rem)
	}
	if rem.Status.Phase.Begun() {
		return x.goOn(ctx, rem)
	}
	return x.begin(ctx, rem)
}

func (x *Executor) leading(ctx context.Context) error {
	if x.Leads == nil {
		return nil
	}
	_, _, err := x.Leads(ctx)
	return err
}

// ended forgets a plan once nobody looks back at it.
func (x *Executor) ended(ctx context.Context, rem *v1alpha1.Remediation) (time.Duration, error) {
	x.drop(rem.Name)
	x.logged.forget(rem.Name)
	x.mu.Lock()
	delete(x.carried, rem.Name)
	x.mu.Unlock()
	if rem.Status.Ended == nil {
		return 0, nil
	}
	if left := x.Keep - x.Now().Sub(rem.Status.Ended.Time); left > 0 {
		return left, nil
	}
	if x.Publish != nil && !meta.IsStatusConditionTrue(rem.Status.Conditions, v1alpha1.Told) {
		return time.Minute, nil // the bus is away
	}
	if rem.Status.Phase == v1alpha1.Parked {
		if parked, err := x.marked(ctx, rem); err != nil || parked {
			return time.Hour, err // until a person has seen to it
		}
	}
	if done, err := x.swept(ctx, rem); err != nil || !done {
		return sweepAgain, err
	}
	return 0, x.store.Forget(ctx, rem)
}

// marked says whether a node still has the mark of a plan.
func (x *Executor) marked(ctx context.Context, rem *v1alpha1.Remediation) (bool, error) {
	nodes, err := x.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return false, fmt.Errorf("list the nodes that are parked: %w", err)
	}
	return slices.ContainsFunc(nodes.Items, func(n corev1.Node) bool {
		mark, err := diagnosis.OperationOn(&n)
		return err == nil && mark != nil && mark.ID == rem.UID
	}), nil
}

// goOn carries on a plan that was begun.
func (x *Executor) goOn(ctx context.Context, rem *v1alpha1.Remediation) (time.Duration, error) {
	m, err := x.machine(ctx, rem)
	if err != nil || m == nil {
		return 0, err
	}
	wait, err := m.Advance(ctx)
	if err != nil {
		x.drop(rem.Name) // the journal tells where it stands
		return 0, err
	}
	if m.Phase().Ended() {
		x.drop(rem.Name)
		return x.Keep, nil
	}
	return wait, nil
}

// machine is the one that has written the journal last, or one made from it.
func (x *Executor) machine(ctx context.Context, rem *v1alpha1.Remediation) (*journal.Machine, error) {
	x.mu.Lock()
	m := x.machines[rem.Name]
	x.mu.Unlock()
	if m != nil && m.Wrote(rem) {
		return m, nil
	}
	acting := x.acting()
	if rem.Spec.Carrier == v1alpha1.Terminal {
		acting.Locks = "" // it takes none
	}
	program, opts := act.New(acting, rem), x.journaling()
	opts.Save, opts.Hold = x.save, func(ctx context.Context) error { return x.hold(ctx, rem) }
	m, err := journal.New(opts, rem, program)
	if err != nil {
		return nil, x.broken(ctx, rem, err)
	}
	if program.As, err = x.approver(ctx, rem); err != nil {
		return nil, err
	}
	x.logCarried(ctx, "a plan goes on", rem)
	x.mu.Lock()
	x.machines[rem.Name] = m
	x.mu.Unlock()
	return m, nil
}

func (x *Executor) drop(name string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.machines, name)
}

// approver is the client that writes pods and workloads as who approved the plan.
func (x *Executor) approver(ctx context.Context, rem *v1alpha1.Remediation) (kubernetes.Interface, error) {
	if x.ActAs == nil {
		return x.As, nil
	}
	approvals, err := x.store.Approvals(ctx, rem.Name)
	if err != nil {
		return nil, err
	}
	if a := actor(rem.UID, approvals); a != nil {
		return x.ActAs(a.Spec.Approver, x.groupsOf(a))
	}
	return x.As, nil // Hold says so before anything is written
}

func (x *Executor) groupsOf(a *v1alpha1.Approval) []string {
	return slices.DeleteFunc(slices.Clone(a.Spec.Groups), func(g string) bool { return !slices.Contains(x.Groups, g) })
}

// hold says why nothing more may be begun.
func (x *Executor) hold(ctx context.Context, rem *v1alpha1.Remediation) error {
	if err := x.rails().halted(ctx); err != nil {
		return err
	}
	approvals, err := x.store.Approvals(ctx, rem.Name)
	if err != nil {
		return err
	}
	// One that is about another plan would keep a no from being said.
	if _, err := x.clear(ctx, rem, approvals); err != nil {
		return err
	}
	if no := rejection(rem, approvals); no != "" {
		return fmt.Errorf("%w: %s", plan.ErrHalted, no)
	}
	if actor(rem.UID, approvals) == nil {
		return fmt.Errorf("%w: the approval was taken back", plan.ErrHalted)
	}
	return nil
}

// finish ends a plan without a step more.
func (x *Executor) finish(ctx context.Context, rem *v1alpha1.Remediation, phase v1alpha1.Phase, message string) error {
	now := metav1.NewMicroTime(x.Now())
	rem.Status.Phase, rem.Status.Message, rem.Status.Ended = phase, message, &now
	x.drop(rem.Name)
	x.Observe.Remark(ctx, x.Logger, rem, nil, journal.ResultOf(phase))
	return x.save(ctx, rem)
}

// save writes the journal, and counts and logs a plan that has come to its end by it.
func (x *Executor) save(ctx context.Context, rem *v1alpha1.Remediation) error {
	err := x.store.Save(ctx, rem)
	if err == nil && rem.Status.Phase.Ended() {
		x.metrics.end(&rem.Status)
		x.logEnd(ctx, rem)
	}
	return err
}

// misstated says what the recorded plan says of itself that is not so: the hash holds
// the actions alone, and who has to agree, what they agree to, and what the guard-rails
// take for the plan's own goes by the rest too.
func misstated(st *cluster.State, rem, is *v1alpha1.Remediation) string {
	said, found := rem.Spec, is.Spec
	switch {
	case said.Kind != found.Kind:
		return fmt.Sprintf("spec.kind is %s, the plan is %s", said.Kind, found.Kind)
	case !slices.Equal(said.Kinds, found.Kinds):
		return fmt.Sprintf("spec.kinds are %s, the plan takes %s", said.Kinds, found.Kinds)
	case said.Title != found.Title:
		return fmt.Sprintf("spec.title is %q, the plan is to %s", said.Title, found.Title)
	case said.Workload != found.Workload:
		return fmt.Sprintf("spec.workload is %v, the plan is for %v", said.Workload, found.Workload)
	case said.Priority != found.Priority:
		return fmt.Sprintf("spec.priority is %d, the pods that wait have %d", said.Priority, found.Priority)
	case said.VictimPriority != found.VictimPriority:
		return fmt.Sprintf("spec.victimPriority is %d, the pods that stop have %d", said.VictimPriority, found.VictimPriority)
	case !slices.Equal(said.Nodes, found.Nodes):
		return fmt.Sprintf("spec.nodes are %q, the plan changes %q", said.Nodes, found.Nodes)
	case (said.Node == "") != (found.Node == ""):
		return fmt.Sprintf("spec.node is %q, the pod was proved to fit %q", said.Node, found.Node)
	}
	for _, p := range st.Pods {
		waits := slices.ContainsFunc(said.Waiting, func(w v1alpha1.Pod) bool { return w.UID == p.UID })
		if waits && incident.Topmost(p, st.Owner) != found.Workload {
			return fmt.Sprintf("spec.waiting has pod %s/%s, which is not of the plan's workload", p.Namespace, p.Name)
		}
	}
	return ""
}

// start proves the plan once more on fresh state and begins it.
func (x *Executor) start(ctx context.Context, rem *v1alpha1.Remediation) (time.Duration, error) {
	st, err := live.Read(ctx, x.Client, x.Dynamic, x.Now, x.Owners)
	if err != nil {
		return 0, err
	}
	found, err := find(ctx, x.Deps, st, rem.Spec.Incident, rem.Spec.Fix, rem.Name)
	switch {
	case errors.Is(err, plan.ErrStale) || permitted(found.Fix) != nil && found.Fix.Automatic: // its proof no longer holds
		return 0, x.becameStale(ctx, found, rem)
	case errors.Is(err, plan.ErrRefused):
		return 0, x.finish(ctx, rem, v1alpha1.Refused, err.Error())
	case err != nil:
		return 0, err
	}
	if wrong := misstated(st, rem, plan.Propose(found, rem.Spec.Requester, x.Now())); wrong != "" {
		return 0, x.finish(ctx, rem, v1alpha1.Refused, wrong)
	}
	act.Begin(rem, st, found.Fix, x.Now())
	rem.Status.Message = ""
	if err := x.Observe.Tell(ctx, rem, nil, audit.Approved); err != nil {
		return 0, err
	}
	if err := x.crowdOut(ctx, rem); err != nil {
		return 0, err
	}
	if err := x.store.Save(ctx, rem); err != nil {
		return 0, err
	}
	x.logCarried(ctx, "a plan begins", rem)
	return x.goOn(ctx, rem)
}
