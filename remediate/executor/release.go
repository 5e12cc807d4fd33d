package executor

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/act"
	"github.com/unpend/unpend/remediate/plan"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

// Held is a node with a mark of ours, and what is known of who set it.
type Held struct {
	Node *corev1.Node
	Mark *diagnosis.Operation // nil: it cannot be read
	// Plan that the mark is of, where it is on record.
	Plan *v1alpha1.Remediation
	// Says who set it, and what became of them.
	Says string
	// Lost: a terminal has begun the plan and is gone, so that the plan can be taken back.
	Lost bool
}

// Holding looks who holds a marked node. plan.ErrRefused: its owner is alive, who finishes
// or takes back what was begun; nil: the node has no mark.
func Holding(ctx context.Context, d Deps, namespace string, n *corev1.Node) (*Held, error) {
	if _, marked := n.Annotations[diagnosis.OperationAnnotation]; !marked {
		return nil, nil
	}
	h := &Held{Node: n, Says: "nobody can tell who set its mark"}
	mark, err := diagnosis.OperationOn(n)
	if newer, ok := errors.AsType[*diagnosis.NewerError](err); ok {
		return nil, fmt.Errorf("%w: %w", plan.ErrRefused, newer)
	}
	if err != nil || mark == nil {
		return h, nil
	}
	h.Mark = mark
	rem, err := plan.Store{Dynamic: d.Dynamic}.Get(ctx, mark.Plan)
	switch {
	case apierrors.IsNotFound(err) || err == nil && rem.UID != mark.ID:
		h.Says = fmt.Sprintf("plan %.12s, which has set its mark, is not on record any more", mark.Plan)
	case err != nil:
		return nil, fmt.Errorf("%w: whether plan %.12s is under way cannot be told: %w", plan.ErrRefused, mark.Plan, err)
	default:
		h.Plan = rem
		return h, h.ask(ctx, d, namespace)
	}
	return h, nil
}

// ask finds out whether who carries the plan out is alive.
func (h *Held) ask(ctx context.Context, d Deps, namespace string) error {
	rem := h.Plan
	switch {
	case h.Mark.Parked != "":
		h.Says = "it is parked: " + h.Mark.Parked
	case h.Mark.Quarantined != "":
		h.Says = "it is quarantined: " + h.Mark.Quarantined
	case !rem.Status.Phase.Begun():
		h.Says = fmt.Sprintf("plan %.12s has ended as %s", rem.Name, rem.Status.Phase)
	case rem.Spec.Carrier == v1alpha1.Terminal:
		gone, err := Gone(ctx, d, rem)
		if err != nil {
			return err
		}
		if !gone {
			return fmt.Errorf("%w: plan %.12s is carried out on node %s at a terminal of %s (step %s): 'unpend reject %.12s' stops it and takes it back", plan.ErrRefused, rem.Name, h.Node.Name, rem.Spec.Requester, rem.Status.Progress, rem.Name)
		}
		h.Lost, h.Says = true, lostTerminal(rem)
	default:
		lease, err := Leader(ctx, d, namespace)
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("%w: whether an executor carries plan %.12s out cannot be told: %w", plan.ErrRefused, rem.Name, err)
		}
		if lease != nil {
			return fmt.Errorf("%w: the executor in namespace %s carries plan %.12s out on node %s (step %s): 'unpend reject %.12s' stops it and takes it back", plan.ErrRefused, namespace, rem.Name, h.Node.Name, rem.Status.Progress, rem.Name)
		}
		h.Says = fmt.Sprintf("plan %.12s was begun by an executor, and none leads in namespace %s", rem.Name, namespace)
	}
	return nil
}

// Releasing says what there is to do to give a held node back.
func Releasing(ctx context.Context, d Deps, namespace string, h *Held) (*act.Release, error) {
	d = d.withDefaults()
	d.Locks = namespace
	return act.NewRelease(ctx, d.acting(), h.Node)
}

// Released ends the plan of a node that was given back, where that is still under way for
// nobody; what cannot be done for want of a right is said.
func Released(ctx context.Context, d Deps, h *Held, r *act.Release) (lacks error) {
	lacks = r.Unlock(ctx)
	if h.Plan == nil || !h.Plan.Status.Phase.Begun() || d.DryRun {
		return lacks
	}
	rem, err := plan.Store{Dynamic: d.Dynamic}.Get(ctx, h.Plan.Name)
	if err == nil && rem.Status.Phase.Begun() {
		err = d.carries(rem).end(ctx, rem, v1alpha1.Stopped, "a person has released its node by hand; "+h.Says)
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("plan %.12s is still told of as under way: %w", h.Plan.Name, err)
	}
	return lacks
}

// MayRelease is plan.ErrRefused for who may not write nodes.
func MayRelease(ctx context.Context, d Deps, node string) error {
	lacks, err := d.firstLacking(ctx, []right{{Verb: "patch", Resource: "nodes", Name: node}})
	if err == nil && lacks != "" {
		err = fmt.Errorf("%w: nothing was written: you may not %s; who may is your cluster's administrator", plan.ErrRefused, lacks)
	}
	return err
}

// Orphan is a node, or a plan without one, that nobody works on any more.
type Orphan struct {
	Node string `json:"node,omitempty"`
	Plan string `json:"plan"`
	Why  string `json:"why"`
	// Release is the command that gives it back.
	Release string `json:"release"`
}

// quiet is how long after the last sign of a terminal it is told to be gone; who releases
// its node watches it first.
const quiet = time.Minute

// orphans are the nodes and plans of which nobody seems to be in charge; leads says
// whether an executor does carry plans out.
func orphans(nodes []*corev1.Node, plans []v1alpha1.Remediation, leads bool, now time.Time) []Orphan {
	out := []Orphan{}
	begun, marked := map[string]*v1alpha1.Remediation{}, map[string]bool{}
	for i := range plans {
		if plans[i].Status.Phase.Begun() {
			begun[string(plans[i].UID)] = &plans[i]
		}
	}
	for _, n := range nodes {
		mark, err := diagnosis.OperationOn(n)
		if _, newer := errors.AsType[*diagnosis.NewerError](err); newer {
			continue
		}
		if err != nil {
			out = append(out, Orphan{Node: n.Name, Why: err.Error(), Release: "unpend release " + n.Name})
		}
		if mark == nil || mark.Kept() {
			continue
		}
		rem := begun[string(mark.ID)]
		marked[string(mark.ID)] = true
		why := "its plan is not under way any more"
		if rem != nil {
			why = leftBy(rem, leads, now)
		}
		if why != "" {
			out = append(out, Orphan{Node: n.Name, Plan: mark.Plan, Why: why, Release: "unpend release " + n.Name})
		}
	}
	for i := range plans {
		rem := &plans[i]
		if why := leftBy(rem, leads, now); why != "" && !rem.Newer() && !marked[string(rem.UID)] {
			out = append(out, Orphan{Plan: rem.Name, Why: why, Release: fmt.Sprintf("unpend release %.12s", rem.Name)})
		}
	}
	return out
}

// leftBy says why nobody seems to carry a plan on that was begun; empty when somebody does.
func leftBy(rem *v1alpha1.Remediation, leads bool, now time.Time) string {
	switch {
	case !rem.Status.Phase.Begun():
		return ""
	case rem.Spec.Carrier == v1alpha1.Terminal:
		last := lastSign(rem)
		if now.Sub(last) < quiet {
			return ""
		}
		return fmt.Sprintf("a terminal of %s has begun it, and was last heard of at %s", rem.Spec.Requester, last.UTC().Format(time.RFC3339))
	case !leads:
		return "an executor has begun it, and none leads"
	}
	return ""
}

// lastSign is when a terminal has last written its journal.
func lastSign(rem *v1alpha1.Remediation) time.Time {
	last := rem.CreationTimestamp.Time
	later := func(t time.Time) {
		if t.After(last) {
			last = t
		}
	}
	for _, e := range rem.Status.Journal {
		later(e.Began.Time)
		if e.Ended != nil {
			later(e.Ended.Time)
		}
	}
	if rem.Status.Renewed != nil {
		later(rem.Status.Renewed.Time)
	}
	return last
}
