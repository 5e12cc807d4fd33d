// Package remediate takes a diagnosis' fix that somebody approved, proves it again
// on fresh state, applies it step by step on a journal that survives a crash, and
// verifies that the pod runs.
package remediate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/unpend/unpend/rca"
	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/audit"
	"github.com/unpend/unpend/remediate/v1alpha1"
	"github.com/unpend/unpend/watcher/incident"
)

// The outcomes a caller tells apart.
var (
	// ErrStale: the approved plan is no longer the plan. Nothing was written, or what
	// was written has been taken back, or the error names what stays.
	ErrStale = errors.New("plan is stale")
	// ErrRefused: the fix may not be applied; nothing was written.
	ErrRefused = errors.New("refused")
)

// Deps are what a plan is carried out with.
type Deps struct {
	Client  kubernetes.Interface
	Dynamic dynamic.Interface
	// As writes pods and workloads: as the approver, where that is another. Client
	// without it.
	As     kubernetes.Interface
	Now    func() time.Time
	Logger *slog.Logger
	// Measure tells which holders of GPUs are idle, when a plan is proved again; nil:
	// none is taken for idle.
	Measure diagnosis.Measure
	// DryRun sends every write as a server-side dry run and waits for nothing.
	DryRun bool
	// Poll is how often a wait looks again; 1 s by default.
	Poll time.Duration
	// Deadlines of the waits; the zero value takes the defaults.
	Deadlines Deadlines
	// Locks is the namespace of the lock leases of nodes; no such lock without it:
	// the mark on the node keeps others off.
	Locks string
	// Hold says, before every write, why nothing more may be begun (a kill switch);
	// nil: nothing. May be nil.
	Hold func(context.Context) error
	// Leads says who leads, with the generation of the lease, or why we do not. May
	// be nil.
	Leads func(context.Context) (holder string, generation int64, err error)
	// Save writes the journal. Without it the journal is in memory alone.
	Save func(context.Context, *v1alpha1.Remediation) error
	// Observe is told of every step before it is begun, which its error prevents, and of
	// its end; of the plan's without an entry. May be nil.
	Observe func(ctx context.Context, r *v1alpha1.Remediation, e *v1alpha1.Entry, result audit.Result) error
}

// Deadlines bound the waits of one fix.
type Deadlines struct {
	Evict   time.Duration // a budget that says no; 5 min
	Leave   time.Duration // victims that terminate; 5 min
	Manager time.Duration // MIG manager's work; 10 min
	Settle  time.Duration // the scheduler hears of a cordon; 1 s
	Notice  time.Duration // MIG manager looks at a label that changes nothing; 15 s
	Wedge   time.Duration // pending with paused operands; 6 min: its own wait is 5 per component
	Run     time.Duration // the pod comes to run; 5 min
}

func (d Deps) withDefaults() Deps {
	set := func(t *time.Duration, otherwise time.Duration) {
		if *t == 0 {
			*t = otherwise
		}
	}
	set(&d.Poll, time.Second)
	set(&d.Deadlines.Evict, 5*time.Minute)
	set(&d.Deadlines.Leave, 5*time.Minute)
	set(&d.Deadlines.Manager, 10*time.Minute)
	set(&d.Deadlines.Wedge, 6*time.Minute)
	set(&d.Deadlines.Settle, time.Second)
	set(&d.Deadlines.Notice, 15*time.Second)
	set(&d.Deadlines.Run, 5*time.Minute)
	if d.As == nil {
		d.As = d.Client
	}
	return d
}

// Step is one step of a fix as it goes on.
type Step struct {
	N, Of int
	Text  string
	Done  bool
	// Within which it has to be done; it counts as failed then.
	Within time.Duration
}

// Outcome is what became of an approved fix.
type Outcome struct {
	Incident string        `json:"incident"`
	Fix      diagnosis.Fix `json:"fix"`
	Pod      string        `json:"pod,omitempty"` // namespace/name that runs now
	Says     string        `json:"says"`          // what was achieved, one sentence
	Evicted  int           `json:"evicted"`
	Started  time.Time     `json:"started"`
	Ended    time.Time     `json:"ended"`
}

// Found is a fix as it is now, and the state it was proved on.
type Found struct {
	State     *cluster.State
	Diagnosis diagnosis.Diagnosis
	Fix       diagnosis.Fix
}

// Find re-reads the cluster, diagnoses the incident again, and returns the fix
// with that number or, when plan is not empty, with that plan.
func Find(ctx context.Context, d Deps, incident string, number int, plan string) (Found, error) {
	st, err := cluster.Read(ctx, d.Client, d.Dynamic, d.Now)
	if err != nil {
		return Found{}, err
	}
	diagnosis, fix, err := find(ctx, d, st, incident, number, plan)
	return Found{st, diagnosis, fix}, err
}

func find(ctx context.Context, d Deps, st *cluster.State, about string, number int, plan string) (diagnosis.Diagnosis, diagnosis.Fix, error) {
	found, err := rca.Diagnose(ctx, st, rca.Options{Measure: d.Measure, Outcomes: Store{d.Dynamic}.Outcomes, Only: func(i incident.Incident) bool { return i.ID == about }})
	if err != nil {
		return diagnosis.Diagnosis{}, diagnosis.Fix{}, err
	}
	if why := st.Unread["Pod"]; len(found) == 0 && why != "" {
		return diagnosis.Diagnosis{}, diagnosis.Fix{}, fmt.Errorf("%w: whether a pod of incident %s waits cannot be told: %s", ErrRefused, about, why)
	}
	if len(found) == 0 {
		return diagnosis.Diagnosis{}, diagnosis.Fix{}, fmt.Errorf("%w: no pod of incident %s waits any more", ErrStale, about)
	}
	for _, f := range found[0].Fixes {
		if f.ID == number && (plan == "" || f.Plan == plan) {
			return found[0], f, cmp.Or(permitted(f), outdated(st, f.Actions, found[0].Pods.Names))
		}
	}
	for _, f := range found[0].Fixes {
		if f.Plan == plan && plan != "" {
			return found[0], f, cmp.Or(permitted(f), outdated(st, f.Actions, found[0].Pods.Names))
		}
	}
	return found[0], diagnosis.Fix{}, fmt.Errorf("%w: the cluster has changed; %s", ErrStale, offer(found[0], number))
}

func offer(d diagnosis.Diagnosis, number int) string {
	for _, f := range d.Fixes {
		if f.ID == number {
			return fmt.Sprintf("fix %d is now %q, plan %s", number, f.Title, f.Plan)
		}
	}
	return fmt.Sprintf("there is no fix %d any more", number)
}

// permitted refuses what cannot be applied or was not proved.
func permitted(f diagnosis.Fix) error {
	switch {
	case !f.Automatic:
		return fmt.Errorf("%w: %q is for a person to do: %s", ErrRefused, f.Title, first(f.Commands))
	case f.Proof.Verdict != diagnosis.Schedules && (f.Proof.Verdict != diagnosis.Unproven || !mends(f.Kinds)) && !bringsAbout(f):
		return fmt.Errorf("%w: %q was not proved to schedule the pod (%s)", ErrRefused, f.Title, f.Proof.Why)
	case len(f.Actions) == 0:
		return fmt.Errorf("%w: %q names nothing to write", ErrRefused, f.Title)
	}
	return nil
}

// bringsAbout says that a fix that waits for an event has it happen itself: a device plugin
// that starts anew registers its devices.
func bringsAbout(f diagnosis.Fix) bool {
	return f.Proof.Verdict == diagnosis.Waits && slices.Contains(f.Kinds, diagnosis.RestartDevicePlugin) && len(f.Cost.Evictions) == 0
}

func first(list []string) string {
	if len(list) == 0 {
		return "no command is known"
	}
	return list[0]
}

// Apply proves the fix again on fresh state and carries it out, with a journal in
// memory. Before each write the object, and what the plan relies on, is read once
// more; the write carries the uid and the resourceVersion of that reading. When the
// context ends, what was begun is taken back.
func Apply(ctx context.Context, d Deps, incident string, number int, plan string, report func(Step)) (Outcome, error) {
	d = d.withDefaults()
	out := Outcome{Incident: incident, Started: d.Now()}
	found, err := Find(ctx, d, incident, number, plan)
	if err != nil {
		return out, err
	}
	out.Fix = found.Fix
	rem := Propose(found, "", d.Now())
	rem.UID = uuid.NewUUID()
	r := &runner{Deps: d, rem: rem, report: report}
	r.proved(found.State)
	m, err := r.machine()
	if err != nil {
		return out, err
	}
	err = m.toTheEnd(ctx)
	out.Pod, out.Says, out.Evicted, out.Ended = rem.Status.Pod, rem.Status.Message, rem.Status.Evicted, d.Now()
	return out, err
}

// runner carries one plan out.
type runner struct {
	Deps
	rem    *v1alpha1.Remediation
	report func(Step)
}

// proved puts what the plan rests on into the journal: the targets as the state has
// them, and the workload's pods that are as young as the plan.
func (r *runner) proved(st *cluster.State) {
	status := &r.rem.Status
	began := metav1.NewMicroTime(r.Now())
	status.Began, status.Phase = &began, v1alpha1.Running
	for _, a := range r.rem.Spec.Actions {
		targets := []diagnosis.Target{a.Target}
		if a.Relayout != nil {
			targets = append(targets, a.Relayout.Victims...)
		}
		for _, t := range targets {
			if p := provedTarget(st, t); p != nil {
				status.Proved = append(status.Proved, *p)
			}
		}
	}
	for _, p := range st.Pods {
		if p.Namespace == r.rem.Spec.Workload.Namespace && !p.CreationTimestamp.Time.Before(began.Truncate(time.Second)) {
			status.Present = append(status.Present, p.UID)
		}
	}
}

func provedTarget(st *cluster.State, t diagnosis.Target) *v1alpha1.Proved {
	if p := st.Pod(t.Namespace, t.Name); t.Kind == "Pod" && p != nil {
		return &v1alpha1.Proved{UID: t.UID, Generation: p.Generation, Node: p.Spec.NodeName}
	}
	if owner, ok := st.Owner(t.Kind, t.Namespace, t.Name); ok {
		return &v1alpha1.Proved{UID: t.UID, Generation: owner.GetGeneration()}
	}
	return nil
}
