package live

import (
	"context"
	"slices"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// rights are the ConfigMaps of one namespace that we may get. The zero value says
// that nobody could tell: then asking for one tells.
type rights struct {
	known bool
	all   bool
	names []string
	until time.Time
}

func (r rights) get(name string) bool { return !r.known || r.all || slices.Contains(r.names, name) }

// first is what may be got of some names; where nobody could tell, what rules that are
// known allow comes first.
func (r rights) first(names []string) []string {
	var named, rest []string
	for _, name := range names {
		switch {
		case slices.Contains(r.names, name):
			named = append(named, name)
		case r.get(name):
			rest = append(rest, name)
		}
	}
	return append(named, rest...)
}

// mayGet asks the API server once for all names, in place of one refusal for each.
// Every user who has logged in may ask (system:basic-user).
func (l *layouts) mayGet(ctx context.Context, namespace string) rights {
	if r, ok := l.rights[namespace]; ok && l.now().Before(r.until) {
		return r
	}
	before := l.rights[namespace]
	r := rights{until: l.now().Add(freshRights)}
	review := &authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: namespace}}
	said, err := l.client.AuthorizationV1().SelfSubjectRulesReviews().Create(ctx, review, metav1.CreateOptions{})
	// Not every authorizer can list its rules, and one that can lists the right to ask.
	if err == nil {
		r.known = !said.Status.Incomplete && len(said.Status.ResourceRules) > 0
		for _, rule := range said.Status.ResourceRules {
			if has(rule.Verbs, "get") && has(rule.APIGroups, "") && has(rule.Resources, "configmaps") {
				r.all = r.all || len(rule.ResourceNames) == 0
				r.names = append(r.names, rule.ResourceNames...)
			}
		}
	} else if !Refused(err) { // nobody can tell now
		l.fail(err)
		r = before
		r.until = l.now().Add(freshError)
	}
	l.rights[namespace] = r
	return r
}

func has(list []string, one string) bool {
	return slices.Contains(list, one) || slices.Contains(list, "*")
}
