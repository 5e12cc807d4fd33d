// Package remediate takes a diagnosis' fix that somebody approved, proves it again
// on fresh state, applies it step by step, and verifies that the pod runs.
package remediate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/unpend/unpend/rca"
	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/watcher"
)

// The outcomes a caller tells apart.
var (
	// ErrStale: the approved plan is no longer the plan; nothing was written, or
	// what was written has been taken back.
	ErrStale = errors.New("plan is stale")
	// ErrRefused: the fix may not be applied; nothing was written.
	ErrRefused = errors.New("refused")
)

// Deps are what Apply works with.
type Deps struct {
	Client  kubernetes.Interface
	Dynamic dynamic.Interface
	Now     func() time.Time
	Logger  *slog.Logger
	// DryRun sends every write as a server-side dry run and waits for nothing.
	DryRun bool
	// Poll is how often a wait looks again; 1 s by default.
	Poll time.Duration
	// Deadlines of the waits; the zero value takes the defaults.
	Deadlines Deadlines
}

// Deadlines bound the waits of one fix.
type Deadlines struct {
	Evict   time.Duration // a budget that says no; 5 min
	Leave   time.Duration // victims that terminate; 5 min
	Manager time.Duration // MIG manager's work; 10 min
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
	set(&d.Deadlines.Run, 5*time.Minute)
	return d
}

// Step is one step of a fix as it goes on.
type Step struct {
	N, Of int
	Text  string
	Done  bool
}

// Outcome is what became of an approved fix.
type Outcome struct {
	Incident string    `json:"incident"`
	Fix      rca.Fix   `json:"fix"`
	Pod      string    `json:"pod,omitempty"` // namespace/name that runs now
	Evicted  int       `json:"evicted"`
	Started  time.Time `json:"started"`
	Ended    time.Time `json:"ended"`
}

// Find re-reads the cluster, diagnoses the incident again, and returns the fix
// with that number or, when plan is not empty, with that plan.
func Find(ctx context.Context, d Deps, incident string, number int, plan string) (rca.Diagnosis, rca.Fix, error) {
	st, err := cluster.Read(ctx, d.Client, d.Dynamic, d.Now)
	if err != nil {
		return rca.Diagnosis{}, rca.Fix{}, err
	}
	found, err := rca.Diagnose(ctx, st, rca.Options{Only: func(i watcher.Incident) bool { return i.ID == incident }})
	if err != nil {
		return rca.Diagnosis{}, rca.Fix{}, err
	}
	if len(found) == 0 {
		return rca.Diagnosis{}, rca.Fix{}, fmt.Errorf("%w: incident %s no longer waits", ErrStale, incident)
	}
	for _, f := range found[0].Fixes {
		if f.ID == number && (plan == "" || f.Plan == plan) {
			return found[0], f, permitted(f)
		}
	}
	for _, f := range found[0].Fixes {
		if f.Plan == plan && plan != "" {
			return found[0], f, permitted(f)
		}
	}
	return found[0], rca.Fix{}, fmt.Errorf("%w: the cluster has changed; %s", ErrStale, offer(found[0], number))
}

func offer(d rca.Diagnosis, number int) string {
	for _, f := range d.Fixes {
		if f.ID == number {
			return fmt.Sprintf("fix %d is now %q, plan %s", number, f.Title, f.Plan)
		}
	}
	return fmt.Sprintf("there is no fix %d any more", number)
}

// permitted refuses what cannot be applied or was not proved.
func permitted(f rca.Fix) error {
	switch {
	case !f.Automatic:
		return fmt.Errorf("%w: %q is for a person to do: %s", ErrRefused, f.Title, first(f.Commands))
	case f.Proof.Verdict != rca.Schedules:
		return fmt.Errorf("%w: %q was not proved to schedule the pod (%s)", ErrRefused, f.Title, f.Proof.Why)
	case len(f.Actions) == 0:
		return fmt.Errorf("%w: %q names nothing to write", ErrRefused, f.Title)
	}
	return nil
}

func first(list []string) string {
	if len(list) == 0 {
		return "no command is known"
	}
	return list[0]
}

// Apply proves the fix again on fresh state and carries it out. Every write
// carries the uid or resourceVersion read at that re-proof; an object that has
// changed since makes the plan stale.
func Apply(ctx context.Context, d Deps, incident string, number int, plan string, report func(Step)) (Outcome, error) {
	d = d.withDefaults()
	out := Outcome{Incident: incident, Started: d.Now()}
	diagnosis, fix, err := Find(ctx, d, incident, number, plan)
	if err != nil {
		return out, err
	}
	out.Fix = fix
	r := &runner{Deps: d, plan: fix.Plan, report: report, of: countSteps(fix)}
	for _, a := range fix.Actions {
		if err := r.act(ctx, a); err != nil {
			out.Evicted, out.Ended = r.evicted, d.Now()
			return out, err
		}
	}
	if !d.DryRun {
		out.Pod, err = r.waitRunning(ctx, diagnosis)
	}
	out.Evicted, out.Ended = r.evicted, d.Now()
	return out, err
}

// runner carries one fix out.
type runner struct {
	Deps
	plan    string
	report  func(Step)
	n, of   int
	evicted int
}

func countSteps(f rca.Fix) int {
	n := 1 // the pod runs
	for _, a := range f.Actions {
		if a.Relayout == nil {
			n++
			continue
		}
		n += len(a.Relayout.Victims) + 5 // cordon, empty, label, manager, verify
		if a.Relayout.ConfigMap != nil {
			n++
		}
	}
	return n
}

// step runs one step and tells of its beginning and end.
func (r *runner) step(text string, do func() error) error {
	r.n++
	n := r.n
	r.report(Step{n, r.of, text, false})
	if err := do(); err != nil {
		return fmt.Errorf("step %d of %d, %s: %w", n, r.of, text, err)
	}
	r.report(Step{n, r.of, text, true})
	return nil
}

func (r *runner) act(ctx context.Context, a rca.Action) error {
	switch a.Verb {
	case rca.VerbEvict:
		return r.evictStep(ctx, a.Target)
	case rca.VerbUncordon:
		return r.uncordon(ctx, a)
	case rca.VerbPatch:
		return r.patch(ctx, a)
	case rca.VerbRecreate:
		return r.recreate(ctx, a)
	case rca.VerbRelayout:
		return r.relayout(ctx, a)
	}
	return fmt.Errorf("%w: action %q is not known", ErrRefused, a.Verb)
}
