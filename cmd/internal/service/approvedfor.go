package service

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/unpend/unpend/cmd/internal/bus"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/notice"
	"github.com/unpend/unpend/remediate/plan"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

// approvedFor is where the bus keeps, under a plan's hash, the finding that people decided on
// it for: of an incident it keeps the newest diagnosis alone, and a plan that is carried out
// changes what that says.
const approvedFor = "approved"

// keep keeps the finding that is about to be replaced, for each plan of it that somebody has
// recorded and the next finding offers no more.
func (p *publisher) keep(ctx context.Context, next diagnosis.Diagnosis) error {
	body, at, err := p.bus.Newest(ctx, bus.Diagnoses, next.Incident)
	if err != nil || body == nil {
		return err
	}
	was := notice.Found{Read: at}
	if json.Unmarshal(body, &was.Finding) != nil {
		return nil // it says nothing to people either
	}
	for _, f := range was.Finding.Fixes {
		still := slices.ContainsFunc(next.Fixes, func(n diagnosis.Fix) bool { return n.Plan == f.Plan })
		if f.Plan == "" || still || !p.recorded.has(ctx, p.Service, f.Plan) {
			continue
		}
		text, err := json.Marshal(was)
		if err != nil {
			return fmt.Errorf("keep what plan %.12s was approved for: %w", f.Plan, err)
		}
		if err := (memory{p.bus, approvedFor}).save(ctx, f.Plan, text); err != nil {
			return err
		}
	}
	return nil
}

// recordedFor is how long a list of plans is gone by: nobody records one and carries out its
// first step in so short a time, and a storm of diagnoses is no storm of lists.
const recordedFor = time.Second

// recorded are the plans that have not ended, or have done what was wanted.
type recorded struct {
	mu    sync.Mutex
	at    time.Time
	plans map[string]bool
	err   error
}

// has says whether a plan is one of them. Where that cannot be read
// it may be.
func (r *recorded) has(ctx context.Context, s *Service, hash string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := s.now(); r.at.IsZero() || now.Sub(r.at) >= recordedFor {
		r.at, r.plans = now, map[string]bool{}
		all, err := plan.Store{Dynamic: s.custom}.List(ctx)
		for i := range all {
			phase := all[i].Status.Phase
			r.plans[all[i].Name] = !phase.Ended() || phase == v1alpha1.Succeeded
		}
		if r.err = err; apierrors.IsNotFound(err) {
			r.err = nil // nobody can record one
		}
	}
	return r.err != nil || r.plans[hash]
}

// approved is the finding that was kept for a plan; nil where none was.
func (k *sink) approved(ctx context.Context, hash string) (*notice.Found, error) {
	body, err := memory{k.bus, approvedFor}.load(ctx, hash)
	if err != nil || body == nil {
		return nil, err
	}
	var f notice.Found
	if json.Unmarshal(body, &f) != nil {
		return nil, nil // the newest finding is told
	}
	return &f, nil
}
