package plan

import (
	"context"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/unpend/unpend/knowledge"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

// Outcomes reads how past plans turned out: those that were carried out. A cluster
// without Remediations has none.
func (s Store) Outcomes(ctx context.Context) ([]knowledge.Outcome, error) {
	plans, err := s.List(ctx)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []knowledge.Outcome
	for i := range plans {
		if o, ok := outcomeOf(&plans[i]); ok {
			out = append(out, o)
		}
	}
	return out, nil
}

// outcomeOf is what became of a plan; false when nothing was tried.
func outcomeOf(p *v1alpha1.Remediation) (knowledge.Outcome, bool) {
	s := &p.Status
	tried := s.Phase == v1alpha1.Succeeded || s.Phase == v1alpha1.Failed || s.Phase == v1alpha1.Parked
	claimed := s.Phase != v1alpha1.Succeeded || !SchedulesNobody(p) // else no pod was to run
	if !tried || !claimed || s.Began == nil || s.Ended == nil {
		return knowledge.Outcome{}, false
	}
	o := knowledge.Outcome{Incident: p.Spec.Incident, Cause: string(p.Spec.Cause), Fix: string(p.Spec.Kind), Title: p.Spec.Title, Plan: p.Name,
		Headline: p.Spec.Headline, By: s.ApprovedBy,
		Runs: s.Phase == v1alpha1.Succeeded, Took: s.Ended.Sub(s.Began.Time), Evicted: s.Evicted, At: s.Ended.Time}
	if w := p.Spec.Workload; w.Name != "" {
		o.Workload = w.Kind + " " + w.Namespace + "/" + w.Name
	}
	for _, a := range p.Spec.Actions {
		if was, _, _ := strings.Cut(a.Relies["mig"], " "); a.Relayout != nil {
			o.Layouts = append(o.Layouts, knowledge.Layout{Node: a.Target.Name, Was: was, Became: a.Relayout.Config})
		}
	}
	if !o.Runs {
		o.Why = s.Message
	}
	return o, true
}
