package decisions

import (
	"context"
	"fmt"

	"github.com/unpend/unpend/cmd/internal/program/console"
	"github.com/unpend/unpend/cmd/internal/program/sources"
	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/remediate/executor"
	"github.com/unpend/unpend/remediate/plan"
	"github.com/unpend/unpend/watcher/incident"
)

// Absent says of an incident of which nobody waits whether it is over (exit 5), cannot be
// told (6), or was never heard of (1).
func Absent(ctx context.Context, s *sources.Source, st *cluster.State, d *executor.Deps, id string) error {
	if why := st.Unread["Pod"]; why != "" {
		return console.Exit(console.ExitUnknown, fmt.Errorf("whether a pod of incident %s waits cannot be told: pods are unread (%s)", id, why))
	}
	gone := func(why string) error {
		return console.Exit(console.ExitStale, fmt.Errorf("incident %s is over: no pod of it waits any more%s", id, why))
	}
	for _, p := range st.Pods {
		if incident.ID(incident.Topmost(p, st.Owner), incident.Requests(p)) == id {
			return gone(fmt.Sprintf(" (%s/%s is %s)", p.Namespace, p.Name, p.Status.Phase))
		}
	}
	if d != nil {
		plans, _ := plan.Store{Dynamic: d.Dynamic}.List(ctx) // where they cannot be read nobody knows of one
		if rem := Telling(plans)[id]; rem != nil {
			return gone(fmt.Sprintf("; its plan %.12s is %s", rem.Name, StandingOf(rem).State))
		}
	}
	where, hint := "the dump", ""
	if st.Live {
		where = "this cluster (" + s.Kube.Where(st) + ")"
	}
	if st.Live && len(s.Kube.OwnerKinds) == 0 { // then what the service names otherwise has another id here
		hint = "; where the service is told of kinds of owners (rca.ownerKinds), name the same with --owner-kinds"
	}
	return fmt.Errorf("no incident %s is known: nothing in %s has that id, nor has it had one that is on record; 'unpend incidents' lists those that wait%s", id, where, hint)
}
