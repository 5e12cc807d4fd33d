package plan

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/unpend/unpend/remediate/v1alpha1"
)

// FieldManager is the name under which everything of ours is written: the API server keeps
// it beside every field.
const FieldManager = "unpend"

// Store reads and writes the API's Remediations and Approvals. It reads the API
// server itself, never a cache: a journal that is a second old has been written twice.
type Store struct{ Dynamic dynamic.Interface }

// Get reads one.
func (s Store) Get(ctx context.Context, plan string) (*v1alpha1.Remediation, error) {
	return as[v1alpha1.Remediation](s.Dynamic.Resource(v1alpha1.Remediations).Get(ctx, plan, metav1.GetOptions{}))
}

// List reads all, by name, without those that cannot be read and were never begun: who
// may record a plan must not be able to stop all others with it. Of one that a newer
// program has begun, and that cannot be read, it has what can be told.
func (s Store) List(ctx context.Context) ([]v1alpha1.Remediation, error) {
	list, err := s.Dynamic.Resource(v1alpha1.Remediations).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	out := make([]v1alpha1.Remediation, 0, len(list.Items))
	for i := range list.Items {
		rem, err := as[v1alpha1.Remediation](&list.Items[i], nil)
		if u, ok := errors.AsType[*Unreadable](err); ok {
			head := u.Head()
			if !head.Status.Phase.Begun() {
				continue
			}
			if head.Newer() {
				rem, err = head, nil
			}
		}
		if err != nil {
			return nil, err
		}
		out = append(out, *rem)
	}
	return out, nil
}

// names of what can be said of a plan.
func names(plan string) []string { return []string{plan, plan + v1alpha1.Second, plan + v1alpha1.No} }

// Approvals of a plan: the first person's, the second's, and a no to either, as far as
// they exist.
func (s Store) Approvals(ctx context.Context, plan string) ([]v1alpha1.Approval, error) {
	var out []v1alpha1.Approval
	for _, name := range names(plan) {
		a, err := as[v1alpha1.Approval](s.Dynamic.Resource(v1alpha1.Approvals).Get(ctx, name, metav1.GetOptions{}))
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read the approvals of plan %s: %w", plan, err)
		}
		out = append(out, *a)
	}
	return out, nil
}

// Record creates a plan. One that is recorded already is given back as it is, unless
// it has ended and left nothing, or was recorded to be carried out elsewhere and was not
// begun: then it is made again, for a plan is used once.
func (s Store) Record(ctx context.Context, rem *v1alpha1.Remediation) (*v1alpha1.Remediation, error) {
	return s.RecordAs(ctx, rem, s.Dynamic)
}

// RecordAs is Record, where another client than ours creates the plan: that of the person who
// asks for it.
func (s Store) RecordAs(ctx context.Context, rem *v1alpha1.Remediation, by dynamic.Interface) (*v1alpha1.Remediation, error) {
	for range 3 {
		made, err := Store{by}.create(ctx, v1alpha1.Remediations, rem)
		if !apierrors.IsAlreadyExists(err) {
			return as[v1alpha1.Remediation](made, err)
		}
		is, err := s.Get(ctx, rem.Name)
		switch {
		case apierrors.IsNotFound(err):
			continue
		case err != nil:
			return nil, err
		case is.Newer():
			return nil, newer(is)
		case !is.Status.Phase.Ended() && !elsewhere(is, rem) || is.Status.Phase == v1alpha1.Succeeded || is.Status.Phase == v1alpha1.Parked:
			return is, nil
		}
		if err := s.forget(ctx, is, metav1.Preconditions{UID: &is.UID, ResourceVersion: &is.ResourceVersion}); err != nil && !apierrors.IsConflict(err) {
			return nil, err
		}
	}
	return nil, fmt.Errorf("record plan %s: others delete it again and again", rem.Name)
}

// Forget deletes a plan and the decisions on it. An approver has no right to delete
// those: they are about the plan that is gone, and the executor clears them away.
func (s Store) Forget(ctx context.Context, rem *v1alpha1.Remediation) error {
	return s.forget(ctx, rem, metav1.Preconditions{UID: &rem.UID})
}

// elsewhere says whether a plan that is recorded, and not begun, cannot be begun by who
// records it again: a terminal's is begun by the process that recorded it, or by none.
func elsewhere(is, again *v1alpha1.Remediation) bool {
	return !is.Status.Phase.Begun() && (is.Spec.Carrier != "" || again.Spec.Carrier != "")
}

func (s Store) forget(ctx context.Context, rem *v1alpha1.Remediation, as metav1.Preconditions) error {
	for _, name := range names(rem.Name) {
		if err := s.Dynamic.Resource(v1alpha1.Approvals).Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) {
			return fmt.Errorf("delete approval %s: %w", name, err)
		}
	}
	err := s.Dynamic.Resource(v1alpha1.Remediations).Delete(ctx, rem.Name, metav1.DeleteOptions{Preconditions: &as})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete remediation %s: %w", rem.Name, err)
	}
	return nil
}

// Decide records a decision as the user of the client: the first person's under the
// plan's name, another's under the second. A person who has decided before has said all
// there is to say: that decision is given back, and stands. But a no can follow any yes,
// and one no is enough: it is given back to everybody who says another.
func (s Store) Decide(ctx context.Context, a *v1alpha1.Approval) (*v1alpha1.Approval, error) {
	return s.decide(ctx, a, s)
}

// Witness records the yes of somebody who carries a plan out themselves, and which nobody waits
// for. Where no executor leads nobody clears away what was said to an earlier plan of the name:
// that stays, and the plan itself says who carries it out. ErrRefused: they may not approve.
func (s Store) Witness(ctx context.Context, a *v1alpha1.Approval) error {
	a.Spec.Via = "kubectl"
	_, err := s.decideOnce(ctx, a, s)
	if _, earlier := errors.AsType[left](err); earlier {
		return nil
	}
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return err
}

// left is that a decision on an earlier plan of the name is still there.
type left struct{ error }

func (l left) Unwrap() error { return l.error }

// clearing is how long an executor has to clear such a decision away.
const clearing = 5 * time.Second

// decide is Decide, where another client than ours writes.
func (s Store) decide(ctx context.Context, a *v1alpha1.Approval, by Store) (*v1alpha1.Approval, error) {
	for began := time.Now(); ; {
		made, err := s.decideOnce(ctx, a, by)
		if _, waits := errors.AsType[left](err); !waits || time.Since(began) > clearing {
			return made, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(clearing / 20):
		}
	}
}

func (s Store) decideOnce(ctx context.Context, a *v1alpha1.Approval, by Store) (*v1alpha1.Approval, error) {
	plan, otherwise := a.Spec.Plan, v1alpha1.Second
	no := a.Spec.Decision == v1alpha1.Reject
	if no {
		otherwise = v1alpha1.No
	}
	for _, name := range []string{plan, plan + otherwise} {
		a.Name = name
		made, err := by.create(ctx, v1alpha1.Approvals, a)
		if !apierrors.IsAlreadyExists(err) {
			return as[v1alpha1.Approval](made, err)
		}
		is, err := as[v1alpha1.Approval](s.Dynamic.Resource(v1alpha1.Approvals).Get(ctx, name, metav1.GetOptions{}))
		if apierrors.IsNotFound(err) {
			return nil, left{fmt.Errorf("read approval %s: %w", name, err)} // until just now
		}
		if err != nil {
			return nil, fmt.Errorf("read approval %s: %w", name, err)
		}
		switch said := is.Spec; {
		case said.Remediation != a.Spec.Remediation:
			return nil, left{fmt.Errorf("%w: %s has said %s to an earlier plan of that name: approval %s has to be deleted first", ErrRefused, said.Approver, said.Decision, name)}
		case no && said.Decision == v1alpha1.Reject, !no && said.Approver == a.Spec.Approver:
			return is, nil
		}
	}
	return nil, fmt.Errorf("%w: two others have decided on plan %s already", ErrRefused, plan)
}

// Save writes the journal on the version it was read at; what another program of the same
// schema has written besides stays. ErrNewer: one of a newer schema has, and nothing is
// written.
func (s Store) Save(ctx context.Context, rem *v1alpha1.Remediation) error {
	rem.Status.ObservedGeneration = rem.Generation
	conclude(rem)
	made, err := s.save(ctx, rem)
	if err != nil {
		return fmt.Errorf("write the journal of plan %s: %w", rem.Name, err)
	}
	rem.ResourceVersion = made.GetResourceVersion()
	return nil
}

func (s Store) save(ctx context.Context, rem *v1alpha1.Remediation) (*unstructured.Unstructured, error) {
	plans := s.Dynamic.Resource(v1alpha1.Remediations)
	stored, err := plans.Get(ctx, rem.Name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	if head := (&Unreadable{object: stored}).Head(); head.Newer() {
		return nil, newer(head)
	}
	if stored.GetResourceVersion() != rem.ResourceVersion || stored.GetUID() != rem.UID {
		return nil, apierrors.NewConflict(v1alpha1.Remediations.GroupResource(), rem.Name, errors.New("somebody else has written it since it was read"))
	}
	rem.Status.Schema = v1alpha1.Schema
	u, err := kept(stored, rem)
	if err != nil {
		return nil, err
	}
	return plans.UpdateStatus(ctx, u, metav1.UpdateOptions{FieldManager: FieldManager})
}

// conclude has the condition say what the phase says: Complete is true when the pod
// runs, false when it will not by this plan.
func conclude(rem *v1alpha1.Remediation) {
	phase := rem.Status.Phase
	c := metav1.Condition{Type: "Complete", Status: metav1.ConditionUnknown, Reason: string(phase), Message: rem.Status.Message, ObservedGeneration: rem.Generation}
	switch {
	case phase == "":
		return
	case phase == v1alpha1.Succeeded:
		c.Status = metav1.ConditionTrue
	case phase.Ended():
		c.Status = metav1.ConditionFalse
	}
	meta.SetStatusCondition(&rem.Status.Conditions, c)
}

func (s Store) create(ctx context.Context, gvr schema.GroupVersionResource, o any) (*unstructured.Unstructured, error) {
	u, err := plain(o)
	if err != nil {
		return nil, err
	}
	return s.Dynamic.Resource(gvr).Create(ctx, u, metav1.CreateOptions{FieldManager: FieldManager})
}

func plain(o any) (*unstructured.Unstructured, error) {
	text, err := json.Marshal(o) // apimachinery's converter cannot take patches, which are JSON as it is
	if err != nil {
		return nil, fmt.Errorf("write a %T: %w", o, err)
	}
	var u unstructured.Unstructured
	return &u, u.UnmarshalJSON(text)
}

func as[T any](u *unstructured.Unstructured, err error) (*T, error) {
	if err != nil {
		return nil, err
	}
	var o T
	text, err := u.MarshalJSON()
	if err == nil {
		err = json.Unmarshal(text, &o)
	}
	if err != nil {
		return nil, &Unreadable{u, err}
	}
	return &o, nil
}

// Withdraw deletes a decision as it was read; one that is gone, or another by now, is no error.
func (s Store) Withdraw(ctx context.Context, a *v1alpha1.Approval) error {
	err := s.Dynamic.Resource(v1alpha1.Approvals).Delete(ctx, a.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &a.UID}})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}
