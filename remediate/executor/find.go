package executor

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/unpend/unpend/rca"
	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/cluster/live"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/act"
	"github.com/unpend/unpend/remediate/plan"
	"github.com/unpend/unpend/watcher/incident"
)

// Find re-reads the cluster, diagnoses the incident again, and returns the fix
// with that number or, when the hash is not empty, with that plan; number 0 is none.
func Find(ctx context.Context, d Deps, id string, number int, hash string) (plan.Found, error) {
	st, err := live.Read(ctx, d.Client, d.Dynamic, d.Now, d.Owners)
	if err != nil {
		return plan.Found{}, err
	}
	return find(ctx, d, st, id, number, hash)
}

func find(ctx context.Context, d Deps, st *cluster.State, id string, number int, hash string) (plan.Found, error) {
	out := plan.Found{State: st}
	found, err := rca.Diagnose(ctx, st, rca.Options{Measure: d.Measure, Guard: d.Guard, Outcomes: plan.Store{Dynamic: d.Dynamic}.Outcomes, Only: func(i incident.Incident) bool { return i.ID == id }})
	if err != nil {
		return out, err
	}
	if why := st.Unread["Pod"]; len(found) == 0 && why != "" {
		return out, fmt.Errorf("%w: whether a pod of incident %s waits cannot be told: %s", plan.ErrRefused, id, why)
	}
	if len(found) == 0 {
		return out, fmt.Errorf("%w: no pod of incident %s waits any more", plan.ErrStale, id)
	}
	out.Diagnosis = found[0]
	for _, is := range []func(diagnosis.Fix) bool{
		func(f diagnosis.Fix) bool { return f.ID == number && (hash == "" || f.Plan == hash) },
		func(f diagnosis.Fix) bool { return f.Plan == hash && hash != "" },
	} {
		if i := slices.IndexFunc(found[0].Fixes, is); i >= 0 {
			out.Fix = found[0].Fixes[i]
			return out, cmp.Or(permitted(out.Fix), act.Check(st, out.Fix.Actions, found[0].Pods.Names))
		}
	}
	if err := act.Check(st, d.Shown, found[0].Pods.Names); err != nil {
		return out, fmt.Errorf("%w; %s", err, offer(found[0], number))
	}
	return out, fmt.Errorf("%w: the cluster has changed%s; %s", plan.ErrStale, taken(st), offer(found[0], number))
}

// taken names the first node that somebody has marked: no fix is for such a one. Empty where
// there is none.
func taken(st *cluster.State) string {
	for _, n := range st.Nodes {
		switch mark, err := diagnosis.OperationOn(n); {
		case err != nil:
			return ": " + err.Error()
		case mark != nil:
			return fmt.Sprintf(": node %s is marked by plan %.8s", n.Name, mark.Plan)
		}
	}
	return ""
}

// offer says what the fix of a number is now; without a number, the best.
func offer(d diagnosis.Diagnosis, number int) string {
	for _, f := range d.Fixes {
		if f.ID == number || number == 0 {
			return fmt.Sprintf("fix %d is now %q, plan %s", f.ID, f.Title, f.Plan)
		}
	}
	if number == 0 {
		return "there is no fix any more"
	}
	return fmt.Sprintf("there is no fix %d any more", number)
}

// permitted refuses what cannot be applied or was not proved.
func permitted(f diagnosis.Fix) error {
	switch {
	case !f.Automatic && f.Held != "":
		return fmt.Errorf("%w: %q is refused now: %s", plan.ErrRefused, f.Title, f.Held)
	case !f.Automatic:
		return fmt.Errorf("%w: %q is for a person to do: %s", plan.ErrRefused, f.Title, first(f.Commands))
	case f.Proof.Verdict != diagnosis.Schedules && (f.Proof.Verdict != diagnosis.Unproven || !plan.Mends(f.Kinds)) && !bringsAbout(f):
		return fmt.Errorf("%w: %q was not proved to schedule the pod (%s)", plan.ErrRefused, f.Title, f.Proof.Why)
	case len(f.Actions) == 0:
		return fmt.Errorf("%w: %q names nothing to write", plan.ErrRefused, f.Title)
	}
	return nil
}

// bringsAbout says that a fix that waits for an event has it happen itself: a device plugin
// that starts again registers its devices.
func bringsAbout(f diagnosis.Fix) bool {
	return f.Proof.Verdict == diagnosis.Waits && slices.Contains(f.Kinds, diagnosis.RestartDevicePlugin) && len(f.Cost.Evictions) == 0
}

func first(list []string) string {
	if len(list) == 0 {
		return "no command is known"
	}
	return list[0]
}
