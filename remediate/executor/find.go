package executor

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/unpend/unpend/rca"
	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/remediate/act"
	"github.com/unpend/unpend/remediate/plan"
	"github.com/unpend/unpend/watcher"
)

// Find re-reads the cluster, diagnoses the incident again, and returns the fix
// with that number or, when the hash is not empty, with that plan.
func Find(ctx context.Context, d Deps, incident string, number int, hash string) (plan.Found, error) {
	st, err := cluster.Read(ctx, d.Client, d.Dynamic, d.Now)
	if err != nil {
		return plan.Found{}, err
	}
	diagnosis, fix, err := find(ctx, d, st, incident, number, hash)
	return plan.Found{State: st, Diagnosis: diagnosis, Fix: fix}, err
}

func find(ctx context.Context, d Deps, st *cluster.State, incident string, number int, hash string) (rca.Diagnosis, rca.Fix, error) {
	found, err := rca.Diagnose(ctx, st, rca.Options{Measure: d.Measure, Outcomes: plan.Store{Dynamic: d.Dynamic}.Outcomes, Only: func(i watcher.Incident) bool { return i.ID == incident }})
	if err != nil {
		return rca.Diagnosis{}, rca.Fix{}, err
	}
	if why := st.Unread["Pod"]; len(found) == 0 && why != "" {
		return rca.Diagnosis{}, rca.Fix{}, fmt.Errorf("%w: whether a pod of incident %s waits cannot be told: %s", plan.ErrRefused, incident, why)
	}
	if len(found) == 0 {
		return rca.Diagnosis{}, rca.Fix{}, fmt.Errorf("%w: no pod of incident %s waits any more", plan.ErrStale, incident)
	}
	for _, f := range found[0].Fixes {
		if f.ID == number && (hash == "" || f.Plan == hash) {
			return found[0], f, cmp.Or(permitted(f), act.Check(st, f.Actions, found[0].Pods.Names))
		}
	}
	for _, f := range found[0].Fixes {
		if f.Plan == hash && hash != "" {
			return found[0], f, cmp.Or(permitted(f), act.Check(st, f.Actions, found[0].Pods.Names))
		}
	}
	return found[0], rca.Fix{}, fmt.Errorf("%w: the cluster has changed; %s", plan.ErrStale, offer(found[0], number))
}

func offer(d rca.Diagnosis, number int) string {
	for _, f := range d.Fixes {
		if f.ID == number {
			return fmt.Sprintf("fix %d is now %q, plan %s", number, f.Title, f.Plan)
		}
	}
	return fmt.Sprintf("there is no fix %d any more", number)
}

// permitted refuses what cannot be applied or was not proved.
func permitted(f rca.Fix) error {
	switch {
	case !f.Automatic:
		return fmt.Errorf("%w: %q is for a person to do: %s", plan.ErrRefused, f.Title, first(f.Commands))
	case f.Proof.Verdict != rca.Schedules && (f.Proof.Verdict != rca.Unproven || !plan.Mends(f.Kinds)) && !bringsAbout(f):
		return fmt.Errorf("%w: %q was not proved to schedule the pod (%s)", plan.ErrRefused, f.Title, f.Proof.Why)
	case len(f.Actions) == 0:
		return fmt.Errorf("%w: %q names nothing to write", plan.ErrRefused, f.Title)
	}
	return nil
}

// bringsAbout says that a fix that waits for an event has it happen itself: a device plugin
// that starts again registers its devices.
func bringsAbout(f rca.Fix) bool {
	return f.Proof.Verdict == rca.Waits && slices.Contains(f.Kinds, rca.RestartDevicePlugin) && len(f.Cost.Evictions) == 0
}

func first(list []string) string {
	if len(list) == 0 {
		return "no command is known"
	}
	return list[0]
}
