package executor

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"

	"github.com/unpend/unpend/remediate/guard"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

// Standing is how carrying out stands in a cluster: who does it, within which limits,
// and what is against the next plan.
type Standing struct {
	Mode       string         `json:"mode"` // approve where an executor leads, observe where none does, else unknown
	Leader     string         `json:"leader,omitempty"`
	Generation int64          `json:"generation,omitempty"` // of the leader's lease
	Paused     bool           `json:"paused"`               // the kill switch
	GuardsGone bool           `json:"guardsGone,omitempty"` // it is on because its ConfigMap was deleted
	Breaker    Breaker        `json:"breaker"`
	Limits     guard.Limits   `json:"limits"`
	Figures    guard.Figures  `json:"figures"`
	Plans      map[string]int `json:"plans"` // by phase
	// Orphans are marked nodes, and plans under way, that nobody seems to be in charge of.
	Orphans []Orphan `json:"orphans"`
	// Newer are the plans and the marked nodes that only a newer unpend can go on with.
	Newer []Newer `json:"newer"`
	// GuardsRead says that the kill switch, the breaker and the limits could be read,
	// FiguresRead that nodes, plans and waiting pods could: else what is here of them says
	// nothing.
	GuardsRead  bool `json:"guardsRead"`
	FiguresRead bool `json:"figuresRead"`
	// GuardsUnclear says what is wrong with limits that cannot be gone by, and because of
	// which nothing is begun; the kill switch and the breaker are as they are.
	GuardsUnclear string `json:"guardsUnclear,omitempty"`
	// Unread says what could not be read, and why.
	Unread []string `json:"unread"`
}

// Breaker is the breaker as a person sees it.
type Breaker struct {
	Open  bool      `json:"open"`
	Since time.Time `json:"since,omitzero"`
	Why   string    `json:"why,omitempty"`
	// Reset is the command that closes it.
	Reset string `json:"reset,omitempty"`
}

// Stand reads how carrying out stands. What may not be read is said so.
func Stand(ctx context.Context, d Deps, namespace string) (Standing, error) {
	g := railsOf(d, namespace)
	s := Standing{Mode: "observe", Plans: map[string]int{}, Limits: guard.Defaults(), Orphans: []Orphan{}, Newer: []Newer{}, Unread: []string{}}
	// read is false for what may not be read; what is not installed is nowhere.
	read := func(err error) (bool, error) {
		if err != nil && (apierrors.IsForbidden(err) || apierrors.IsNotFound(err)) {
			s.Unread = append(s.Unread, err.Error())
			return apierrors.IsNotFound(err), nil
		}
		return true, err
	}
	lease, err := Leader(ctx, d, namespace)
	switch {
	case err == nil && lease != nil:
		s.Mode, s.Leader, s.Generation = "approve", *lease.Spec.HolderIdentity, int64(ptr.Deref(lease.Spec.LeaseTransitions, 0))
	case apierrors.IsNotFound(err):
	case apierrors.IsForbidden(err):
		s.Mode, s.Unread = "unknown", append(s.Unread, err.Error())
	case err != nil:
		return s, err
	}
	r, err := g.read(ctx)
	if u, ok := errors.AsType[*unclear](err); ok {
		s.GuardsUnclear = u.Error()
	} else if s.GuardsRead, err = read(err); err != nil {
		return s, err
	}
	s.Limits, s.Paused, s.GuardsGone = r.limits, r.paused, r.gone
	s.Breaker = Breaker{Open: r.breaker.Open, Since: r.breaker.Since, Why: r.breaker.Why}
	if s.Breaker.Open {
		s.Breaker.Reset = guard.ResetCommand(namespace)
	}
	view, err := g.view(ctx, r, &v1alpha1.Remediation{})
	if s.FiguresRead, err = read(err); err != nil {
		return s, err
	}
	s.Figures = s.Limits.Figures(view)
	s.Orphans = orphans(view.Nodes, view.Plans, s.Mode != "observe", d.Now())
	s.Newer = newerOf(view.Nodes, view.Plans)
	for _, p := range view.Plans {
		phase := p.Status.Phase
		if phase == "" {
			phase = v1alpha1.Pending
		}
		s.Plans[string(phase)]++
	}
	return s, nil
}
