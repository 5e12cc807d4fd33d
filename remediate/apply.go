// Package remediate takes a diagnosis' fix that somebody approved, proves it again
// on fresh state, applies it step by step, and verifies that the pod runs.
package remediate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/unpend/unpend/rca"
	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/watcher"
)

// The outcomes a caller tells apart.
var (
	// ErrStale: the approved plan is no longer the plan. Nothing was written, or what
	// was written has been taken back, or the error names what stays.
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
	// Measure tells which holders of GPUs are idle, when a plan is proved again; nil:
	// none is taken for idle.
	Measure rca.Measure
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
	Settle  time.Duration // the scheduler hears of a cordon; 1 s
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
	return find(ctx, d, st, incident, number, plan)
}

func find(ctx context.Context, d Deps, st *cluster.State, incident string, number int, plan string) (rca.Diagnosis, rca.Fix, error) {
	found, err := rca.Diagnose(ctx, st, rca.Options{Measure: d.Measure, Only: func(i watcher.Incident) bool { return i.ID == incident }})
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

// Apply proves the fix again on fresh state and carries it out. Before each write
// the object, and what the plan relies on, is read once more; the write carries the
// uid and the resourceVersion of that reading.
func Apply(ctx context.Context, d Deps, incident string, number int, plan string, report func(Step)) (Outcome, error) {
	d = d.withDefaults()
	out := Outcome{Incident: incident, Started: d.Now()}
	st, err := cluster.Read(ctx, d.Client, d.Dynamic, d.Now)
	if err != nil {
		return out, err
	}
	diagnosis, fix, err := find(ctx, d, st, incident, number, plan)
	if err != nil {
		return out, err
	}
	out.Fix = fix
	r := &runner{Deps: d, plan: fix.Plan, state: st, report: report, of: countSteps(fix)}
	r.nomination = r.nominationFor(diagnosis, fix)
	if err = r.carryOut(ctx, fix); err == nil && !d.DryRun {
		out.Pod, err = r.waitRunning(ctx, diagnosis)
	}
	if err != nil && !d.DryRun {
		undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), contention)
		defer cancel()
		err = errors.Join(err, r.nominate(undo, ""))
	}
	out.Evicted, out.Ended = r.evicted, d.Now()
	return out, err
}

// runner carries one fix out.
type runner struct {
	Deps
	plan    string
	state   *cluster.State // that the fix was proved on
	report  func(Step)
	n, of   int
	evicted int
	remade  rca.Target // the node whose GPUs have been re-made
	// nomination is for fixes that make room by evictions alone.
	nomination *nomination
}

// carryOut takes the actions in order. A failure names what stays done: a patched
// template is not patched back, for that would start its pods once more.
func (r *runner) carryOut(ctx context.Context, f rca.Fix) error {
	var stays []string
	for _, a := range inOrder(f.Actions) {
		if err := r.act(ctx, a); err != nil {
			if len(stays) > 0 {
				err = fmt.Errorf("%w (done before, and left so: %s)", err, strings.Join(stays, ", "))
			}
			return err
		}
		if a.Verb != rca.VerbRelayout && !r.DryRun {
			stays = append(stays, fmt.Sprintf("%s %s/%s", a.Verb, strings.ToLower(a.Target.Kind), a.Target.Name))
		}
	}
	return nil
}

// inOrder puts what happens to a node whose GPUs are re-made under that node's
// cordon: pods that must leave it besides would otherwise come back at once, and a
// node that a person closed opens only when all has gone well.
func inOrder(actions []rca.Action) []rca.Action {
	at := slices.IndexFunc(actions, func(a rca.Action) bool { return a.Relayout != nil })
	if at < 0 {
		return actions
	}
	saga := actions[at]
	how := *saga.Relayout
	how.Victims = slices.Clone(how.Victims)
	saga.Relayout = &how
	var before, after []rca.Action
	for i, a := range actions {
		switch {
		case i == at:
		case a.Verb == rca.VerbEvict && a.Relies["node"] == saga.Target.Name:
			how.Victims = append(how.Victims, a.Target)
		case a.Verb == rca.VerbUncordon && a.Target == saga.Target, i > at:
			after = append(after, a)
		default:
			before = append(before, a)
		}
	}
	return append(append(before, saga), after...)
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
		return r.step(evictText(a.Target), func() error {
			if n := r.nomination; n != nil && a.Relies["node"] == n.node {
				if err := r.nominate(ctx, n.node); err != nil {
					return err
				}
			}
			return r.evict(ctx, a.Target)
		})
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
