package web

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// believed is how long an answer about a right is: so long somebody still reads who may no
// more, or whose token was revoked.
const believed = time.Minute

// asked bounds a question to the API server.
const asked = 10 * time.Second

// errNobody is of a token that the API server does not take.
var errNobody = errors.New("the API server does not take this token")

// reader is a person with a token, and what they may read.
type reader struct {
	user   string
	token  string // never shown, never logged
	client kubernetes.Interface
	now    func() time.Time

	mu   sync.Mutex
	says map[authorizationv1.ResourceAttributes]answer
}

type answer struct {
	yes  bool
	till time.Time
}

// know finds out who has a token. errNobody: nobody has it.
func (p *Page) know(ctx context.Context, token string) (*reader, error) {
	if token == "" || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return nil, errNobody // it makes no request; the API server would not be asked as anybody
	}
	select { // a flood of guesses waits here, not at the API server
	case p.asking <- struct{}{}:
		defer func() { <-p.asking }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	client, err := p.opts.As(token)
	if err != nil {
		return nil, fmt.Errorf("make a client for a reader: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, asked)
	defer cancel()
	who, err := client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	switch {
	case apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err):
		return nil, errNobody
	case err != nil:
		return nil, fmt.Errorf("ask the API server whose token this is: %w", err)
	}
	if name := who.Status.UserInfo.Username; name != "" && name != anonymous {
		return &reader{user: name, token: token, client: client, now: p.opts.Now, says: map[authorizationv1.ResourceAttributes]answer{}}, nil
	}
	return nil, errNobody
}

// anonymous is who the API server takes for nobody.
const anonymous = "system:anonymous"

// mayRead says whether the reader may read the pods of a namespace.
func (r *reader) mayRead(ctx context.Context, namespace string) (bool, error) {
	if all, err := r.may(ctx, authorizationv1.ResourceAttributes{Verb: "get", Resource: "pods"}); all || err != nil {
		return all, err
	}
	if namespace == "" {
		return false, nil
	}
	return r.may(ctx, authorizationv1.ResourceAttributes{Verb: "get", Resource: "pods", Namespace: namespace})
}

// maySeeNodes says whether the reader may list nodes.
func (r *reader) maySeeNodes(ctx context.Context) (bool, error) {
	return r.may(ctx, authorizationv1.ResourceAttributes{Verb: "list", Resource: "nodes"})
}

// may asks the API server with the reader's token. An error is no right.
func (r *reader) may(ctx context.Context, what authorizationv1.ResourceAttributes) (bool, error) {
	r.mu.Lock()
	known, ok := r.says[what]
	r.mu.Unlock()
	if ok && r.now().Before(known.till) {
		return known.yes, nil
	}
	ctx, cancel := context.WithTimeout(ctx, asked)
	defer cancel()
	review, err := r.client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &what}}, metav1.CreateOptions{})
	if apierrors.IsUnauthorized(err) {
		return false, errNobody
	}
	if err != nil {
		return false, fmt.Errorf("ask the API server what %s may read: %w", r.user, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.says[what] = answer{review.Status.Allowed, r.now().Add(believed)}
	return review.Status.Allowed, nil
}
