package desk

import (
	"context"
	"fmt"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/unpend/unpend/remediate/executor"
	"github.com/unpend/unpend/remediate/plan"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

// Desk is where people come to.
type Desk struct {
	// Deps read the cluster, its plans and what was said of them. Their Guard is the desk's own.
	executor.Deps
	// Namespace of the guard-rails.
	Namespace string
}

// Visitor is a person at the desk.
type Visitor struct {
	// User and Groups, as the API server knows them.
	User   string
	Groups []string

	desk Desk
	as   dynamic.Interface // writes as the person
	say  func(ctx context.Context, rem *v1alpha1.Remediation, says v1alpha1.Decision, reason string) (*v1alpha1.Approval, error)
}

// Known is who a place knows by an id. plan.ErrRefused: nobody says which user that is.
func (d Desk) Known(by plan.Decider, c plan.Caller) (Visitor, error) {
	who, err := by.Identities.Of(c)
	if err != nil {
		return Visitor{}, err
	}
	as, err := by.ActAs(who.User, who.Groups)
	if err != nil {
		return Visitor{}, err
	}
	v := Visitor{User: who.User, Groups: who.Groups, desk: d.guarded(), as: as}
	v.say = func(ctx context.Context, rem *v1alpha1.Remediation, says v1alpha1.Decision, reason string) (*v1alpha1.Approval, error) {
		return by.Decide(ctx, plan.Word{Caller: c, Plan: rem.Name, Remediation: rem.UID, Decision: says, Reason: reason})
	}
	return v, nil
}

// Self is who the API server takes the owner of these clients for; via is the place that they
// come by. The desk still reads with its own, which may be the same.
func (d Desk) Self(ctx context.Context, client kubernetes.Interface, custom dynamic.Interface, via string) (Visitor, error) {
	user, groups, err := WhoAmI(ctx, client)
	if err != nil {
		return Visitor{}, err
	}
	v := Visitor{User: user, Groups: groups, desk: d.guarded(), as: custom}
	v.say = func(ctx context.Context, rem *v1alpha1.Remediation, says v1alpha1.Decision, reason string) (*v1alpha1.Approval, error) {
		a := plan.NewApproval(rem, user, groups, says)
		a.Spec.Via, a.Spec.Reason = via, reason
		return plan.Store{Dynamic: custom}.Say(ctx, a)
	}
	return v, nil
}

// WhoAmI asks the API server, which decides by that name too. Groups are those that somebody
// else can act for a person with.
func WhoAmI(ctx context.Context, client kubernetes.Interface) (user string, groups []string, err error) {
	me, err := client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return "", nil, fmt.Errorf("ask who you are: %w", err)
	}
	groups = slices.DeleteFunc(me.Status.UserInfo.Groups, func(g string) bool { return strings.HasPrefix(g, "system:") })
	return me.Status.UserInfo.Username, groups, nil
}

// guarded tells of every fix what the guard-rails would say now.
func (d Desk) guarded() Desk {
	d.Guard = executor.GuardOf(d.Deps, d.Namespace, 0)
	return d
}

func (d Desk) store() plan.Store { return plan.Store{Dynamic: d.Dynamic} }
