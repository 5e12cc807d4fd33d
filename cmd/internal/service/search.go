package service

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/unpend/unpend/cmd/internal/bus"
	"github.com/unpend/unpend/cmd/internal/library"
	"github.com/unpend/unpend/cmd/internal/service/settings"
	"github.com/unpend/unpend/knowledge"
	"github.com/unpend/unpend/remediate/plan"
)

// Finder finds what the team has said that is like a query, at most n, best first.
type Finder func(ctx context.Context, query string, n int) ([]knowledge.Hit, error)

// placeFinder is a Finder of what may be told in a place.
type placeFinder func(ctx context.Context, place, query string, n int) ([]knowledge.Hit, error)

// search finds what the team has said and may be told in a place, once it has been read: here,
// or, where this process reads nothing, by another.
func (s *Service) search(ctx context.Context, place, query string, n int) ([]knowledge.Hit, error) {
	find := s.finder.Load()
	switch {
	case find != nil:
		return (*find)(ctx, place, query, n)
	case !s.config.Knowledge.Given():
		return nil, fmt.Errorf("%w: nothing that the team has said is read: set knowledge.folder, knowledge.slack or knowledge.jira", plan.ErrRefused)
	case s.bus != nil:
		return nil, fmt.Errorf("%w: this process has not yet read what the team has said: try again in a minute", plan.ErrRefused)
	case !s.hasBus():
		return nil, fmt.Errorf("%w: this process reads nothing that the team has said, and has no bus to ask the one that does: set bus.url, that of a NATS that both reach", plan.ErrRefused)
	}
	b, err := s.late.get(ctx)
	if err != nil {
		return nil, err
	}
	hits, err := library.Ask(ctx, b, place, query, n)
	if errors.Is(err, bus.ErrNobody) {
		return nil, fmt.Errorf("%w: no process that has read what the team has said is there, try again in a minute", plan.ErrRefused)
	}
	return hits, err
}

// searchOnPage is search for readers of the page.
func (s *Service) searchOnPage(ctx context.Context, query string, n int) ([]knowledge.Hit, error) {
	return s.search(ctx, settings.OnPage, query, n)
}

// bindSearch has searches answered by find from now on.
func (s *Service) bindSearch(find placeFinder) { s.finder.Store(&find) }

// SearchAs is what of it somebody may see, by a client of theirs: nothing where they may read
// the pods of no namespace, and what plans came to only where they may read those of all.
func (s *Service) SearchAs(ctx context.Context, as kubernetes.Interface, query string, n int) ([]knowledge.Hit, error) {
	all, err := mayGetPods(ctx, as, "")
	if err != nil {
		return nil, err
	}
	if !all {
		some, err := s.mayGetSomePods(ctx, as)
		if err != nil {
			return nil, err
		}
		if !some {
			return nil, fmt.Errorf("%w: you may read the pods of no namespace, and so not what is said of them", plan.ErrRefused)
		}
	}
	hits, err := s.search(ctx, settings.OnMCP, query, n)
	if !all {
		hits = withoutOutcomes(hits)
	}
	return hits, err
}

func withoutOutcomes(hits []knowledge.Hit) []knowledge.Hit {
	return slices.DeleteFunc(hits, func(h knowledge.Hit) bool { return h.Source == library.Outcome })
}

// mostSpaces are asked about one by one until somebody may read the pods of one.
const mostSpaces = 100

func (s *Service) mayGetSomePods(ctx context.Context, as kubernetes.Interface) (bool, error) {
	spaces, err := s.namespaces(ctx)
	if err != nil {
		return false, err
	}
	for _, space := range spaces[:min(mostSpaces, len(spaces))] {
		if yes, err := mayGetPods(ctx, as, space); yes || err != nil {
			return yes, err
		}
	}
	return false, nil
}

func mayGetPods(ctx context.Context, as kubernetes.Interface, namespace string) (bool, error) {
	what := authorizationv1.ResourceAttributes{Verb: "get", Resource: "pods", Namespace: namespace}
	review, err := as.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &what}}, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("ask the API server which pods may be read: %w", err)
	}
	return review.Status.Allowed, nil
}

// searchInSlack answers who asks in a channel that findings are told in: with what these quote
// there, for every reader of it.
func (s *Service) searchInSlack(ctx context.Context, channel, query string) (string, error) {
	hits, err := s.search(ctx, "slack/"+channel, query, library.MostHits)
	if err != nil {
		return "", err
	}
	if hits = withoutOutcomes(hits); len(hits) == 0 {
		return "Nothing that the team has said is like it.", nil
	}
	var out []string
	for _, h := range hits {
		from := []string{h.Source}
		if h.Where != "" {
			from = append(from, h.Where)
		}
		if !h.At.IsZero() {
			from = append(from, h.At.UTC().Format(time.DateOnly))
		}
		out = append(out, "• “"+oneLine(h.Title)+"” ("+oneLine(strings.Join(from, ", "))+")", "    "+oneLine(h.Quote))
		if strings.HasPrefix(h.URL, "https://") {
			out = append(out, "    "+oneLine(h.URL))
		}
	}
	return strings.Join(out, "\n"), nil
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
