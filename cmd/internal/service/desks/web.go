package desks

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/unpend/unpend/remediate/desk"
	"github.com/unpend/unpend/remediate/executor"
	"github.com/unpend/unpend/remediate/plan"
	"github.com/unpend/unpend/remediate/web"
)

// Web has what readers of the page decide done as themselves: with their tokens, not ours.
type Web struct {
	desk.Desk
	As func(token string) (kubernetes.Interface, dynamic.Interface, error) // a reader's clients
}

// visitor is a reader at the desk.
func (d Web) visitor(ctx context.Context, token string) (desk.Visitor, error) {
	client, custom, err := d.As(token)
	if err != nil {
		return desk.Visitor{}, err
	}
	v, err := d.Self(ctx, client, custom, plan.ViaWeb)
	if apierrors.IsUnauthorized(err) {
		err = fmt.Errorf("%w: your token is no longer taken: sign in again", plan.ErrRefused)
	}
	return v, err
}

// led says why nobody would carry a plan out.
func (d Web) led(ctx context.Context) error {
	lease, err := executor.Leader(ctx, d.Deps, d.Namespace)
	if apierrors.IsNotFound(err) || err == nil && lease == nil {
		return fmt.Errorf("%w: no executor leads in namespace %s, so nobody would carry it out: install with mode=approve, or approve at a terminal, by kubectl unpend approve", plan.ErrRefused, d.Namespace)
	}
	return err
}

// Try implements web.Desk.
func (d Web) Try(ctx context.Context, token, incident, name string) (web.Trial, error) {
	v, err := d.visitor(ctx, token)
	if err = errors.Join(err, d.led(ctx)); err != nil {
		return web.Trial{}, err
	}
	t, err := v.DryRun(ctx, incident, name)
	if err != nil {
		return web.Trial{}, err
	}
	out := web.Trial{Steps: t.Steps, Held: t.Held}
	if t.Persons > 1 {
		out.Persons = fmt.Sprintf("%d persons have to approve it: %s", t.Persons, t.Why)
	}
	return out, nil
}

// Approve implements web.Desk.
func (d Web) Approve(ctx context.Context, token, incident, name string) (string, error) {
	v, err := d.visitor(ctx, token)
	if err = errors.Join(err, d.led(ctx)); err != nil {
		return "", err
	}
	a, err := v.Approve(ctx, incident, name)
	if err == nil && a.Approval == nil {
		return "two others have to (" + a.Why + ")", nil
	}
	return "", err
}

// Reject implements web.Desk.
func (d Web) Reject(ctx context.Context, token, incident, name, reason string) error {
	v, err := d.visitor(ctx, token)
	if err == nil {
		_, err = v.Reject(ctx, incident, name, reason)
	}
	return err
}
