package service

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/unpend/unpend/cmd/internal/traces"
	"github.com/unpend/unpend/rca/cluster/live"
	"github.com/unpend/unpend/remediate/audit"
	"github.com/unpend/unpend/remediate/journal"
	"github.com/unpend/unpend/remediate/notice"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

// newTraces is nil where nobody is told.
func (s *Service) newTraces(ctx context.Context, version string) (*traces.Teller, error) {
	if s.config.Traces.URL == "" {
		return nil, nil
	}
	c, err := s.config.Outbound.Client()
	if err != nil {
		return nil, err
	}
	at, err := c.Parse("traces.url", s.config.Traces.URL)
	if err != nil {
		return nil, err
	}
	id, err := live.ID(ctx, s.client)
	if err != nil {
		return nil, err
	}
	return traces.New(traces.Options{URL: at.String(), Client: c.HTTP(), Version: version, Cluster: id}), nil
}

// traced tells of a plan once it has ended, from its journal: a process that was killed under way
// leaves no hole.
func (s *Service) traced(next journal.Observer) journal.Observer {
	if s.traces == nil {
		return next
	}
	return func(ctx context.Context, rem *v1alpha1.Remediation, e *v1alpha1.Entry, result audit.Result) error {
		err := next(ctx, rem, e, result)
		if e != nil || !rem.Status.Phase.Ended() {
			return err
		}
		var steps []traces.Step
		for _, entry := range rem.Status.Journal {
			step := traces.Step{Name: string(entry.Step), Began: entry.Began.Time, Failed: entry.Error}
			if entry.Ended != nil {
				step.Ended = entry.Ended.Time
			}
			steps = append(steps, step)
		}
		var failed error
		if rem.Status.Phase != v1alpha1.Succeeded {
			failed = errors.New(rem.Status.Message)
		}
		s.traces.Plan(traces.Wait{Incident: rem.Spec.Incident, Since: rem.Spec.Since.Time}, "carry out", steps, failed,
			map[string]string{"unpend.plan": rem.Name, "unpend.outcome": string(rem.Status.Phase)})
		return err
	}
}

// toldOf tells that people were told of an incident, or that they were not.
func (k *sink) toldOf(p notice.Proposal, began time.Time, err error) {
	if p.Finding != nil {
		k.traces.Did(traces.Wait{Incident: p.Incident, Since: p.Finding.Pods.Since}, "tell "+k.place, began, k.now(), err, map[string]string{"unpend.sink": k.name})
	}
}

// found tells of a diagnosis, the first of a wait or a later one.
func (p *publisher) found(w traces.Wait, began time.Time, first bool, cause string, waiting int) {
	if first {
		p.traces.Found(w, p.now(), map[string]string{"unpend.cause": cause})
	}
	p.traces.Did(w, "diagnose", began, p.now(), nil, map[string]string{"unpend.cause": cause, "unpend.waiting": strconv.Itoa(waiting)})
}
