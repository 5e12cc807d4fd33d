package service

import (
	"context"
	"time"

	"github.com/unpend/unpend/cmd/internal/service/analyst"
	"github.com/unpend/unpend/rca"
	"github.com/unpend/unpend/rca/cluster/live"
	"github.com/unpend/unpend/remediate/kubectl"
)

const (
	// betweenAnswers is the pause after each: who may annotate a pod may ask, and each
	// question costs a diagnosis.
	betweenAnswers = time.Second
	// tooYoung is how old an object is of which nobody waits before that is said of it: its pods
	// may be on their way.
	tooYoung = 5 * time.Second
	// answerTries is after how many failures a question is given up, until it is asked again.
	answerTries = 5
)

// answerPeople answers who asks by an annotation, for as long as this process leads.
func (s *Service) answerPeople(ctx context.Context, f *live.Follower, opts rca.Options) error {
	k, err := s.kubectl("kubectl-asked")
	if err != nil {
		return err
	}
	a := analyst.NewAsked()
	if err := f.OnAnnotated(kubectl.Why, a.See); err != nil {
		return err
	}
	for {
		term, err := s.lead.Wait(ctx)
		if err != nil {
			return nil // it ends
		}
		q, found := a.Next()
		var due <-chan time.Time
		if found {
			s.answer(term, k, f, opts, a, q)
			due = time.After(betweenAnswers)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-due:
		case <-wakes(a.Woken, found):
		}
	}
}

// wakes is nil while a pause has to pass first.
func wakes(woken <-chan struct{}, pause bool) <-chan struct{} {
	if pause {
		return nil
	}
	return woken
}

func (s *Service) answer(ctx context.Context, k *kubectl.Kubectl, f *live.Follower, opts rca.Options, a *analyst.Asked, q analyst.Question) {
	says, known, err := analyst.Answer(ctx, f.State(ctx), opts, q.Question)
	if err == nil && !known && s.now().Sub(q.Made) < tooYoung {
		a.Again(q)
		return
	}
	if err == nil {
		err = k.Answer(ctx, q.Question, says)
	}
	if err == nil || ctx.Err() != nil {
		return
	}
	if q.Tries++; q.Tries < answerTries {
		a.Again(q)
		return
	}
	s.logger.ErrorContext(ctx, "a question is not answered until it is asked again", "kind", q.About.Kind, "namespace", q.About.Namespace, "name", q.About.Name, "error", err)
}
