package program

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/unpend/unpend/rca/admission"
	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/remediate/executor"
	"github.com/unpend/unpend/remediate/plan"
	"github.com/unpend/unpend/watcher/incident"
)

// incidentRef is how a person names an incident, or a fix of it: by what `why` prints, by
// what `-o name` does, and by the id with the mark of its cluster.
type incidentRef struct {
	id   string
	mark string // of the cluster that it is of; empty where that was not said
	fix  int    // 0: none
}

const namePrefix = "incident.unpend.dev/"

var incidentID = regexp.MustCompile(`^(gpu-[0-9a-f]{10})(?:\.([0-9a-f]{8}))?$`)

// parseIncident reads INCIDENT or INCIDENT#N.
func parseIncident(arg string) (incidentRef, error) {
	name, number, numbered := strings.Cut(strings.TrimPrefix(arg, namePrefix), "#")
	r := incidentRef{}
	if numbered {
		n, err := strconv.Atoi(number)
		if err != nil || n < 1 {
			return r, usage("%q names no fix: write INCIDENT#N, as 'unpend why' shows it", arg)
		}
		r.fix = n
	}
	m := incidentID.FindStringSubmatch(name)
	if m == nil {
		return r, usage("%q is not the id of an incident, such as gpu-7f3a01c9be: 'unpend incidents' lists them", name)
	}
	r.id, r.mark = m[1], m[2]
	return r, nil
}

// parseFix reads INCIDENT#N.
func parseFix(arg string) (incidentRef, error) {
	if !strings.Contains(arg, "#") {
		return incidentRef{}, usage("%q names no fix: write INCIDENT#N, as 'unpend why' shows it", arg)
	}
	return parseIncident(arg)
}

// checkMark is an error where an incident is another cluster's than this, whose mark is
// given, or empty where nobody can tell.
func (k *kubeFlags) checkMark(r incidentRef, here string) error {
	switch {
	case r.mark == "" || r.mark == here:
		return nil
	case here == "":
		return &codedError{exitUnknown, fmt.Errorf("incident %s is of cluster %s, and which cluster this is cannot be told: namespace kube-system was not read", r.id, r.mark)}
	}
	where := "this"
	if context := k.context(); context != "" {
		where = "context " + context
	}
	return &codedError{exitRefused, fmt.Errorf("%w: incident %s is of cluster %s, and %s is cluster %s: choose the other by --context", plan.ErrRefused, r.id, r.mark, where, here)}
}

// ofThisCluster asks the API server which cluster it is of, where the incident names one.
func (s *source) ofThisCluster(ctx context.Context, d executor.Deps, r incidentRef) error {
	if r.mark == "" {
		return nil
	}
	uid, err := cluster.ID(ctx, d.Client)
	if err != nil {
		return unreachable(err)
	}
	return s.kube.checkMark(r, uid[:min(len(uid), markLength)])
}

// absent says of an incident of which nobody waits whether it is over (exit 5), cannot be
// told (6), or was never heard of (1).
func (s *source) absent(ctx context.Context, st *cluster.State, d *executor.Deps, id string) error {
	if why := st.Unread["Pod"]; why != "" {
		return &codedError{exitUnknown, fmt.Errorf("whether a pod of incident %s waits cannot be told: pods are unread (%s)", id, why)}
	}
	gone := func(why string) error {
		return &codedError{exitStale, fmt.Errorf("incident %s is over: no pod of it waits any more%s", id, why)}
	}
	for _, p := range st.Pods {
		if incident.ID(incident.Topmost(p, st.Owner), incident.Requests(p)) == id {
			return gone(fmt.Sprintf(" (%s/%s is %s)", p.Namespace, p.Name, p.Status.Phase))
		}
	}
	if d != nil {
		plans, _ := plan.Store{Dynamic: d.Dynamic}.List(ctx) // where they cannot be read nobody knows of one
		if rem := telling(plans)[id]; rem != nil {
			return gone(fmt.Sprintf("; its plan %.12s is %s", rem.Name, standingOf(rem).State))
		}
	}
	where, hint := "the dump", ""
	if st.Live {
		where = "this cluster (" + s.kube.where(st) + ")"
	}
	if st.Live && len(s.kube.ownerKinds) == 0 { // then what the service names otherwise has another id here
		hint = "; where the service is told of kinds of owners (rca.ownerKinds), name the same with --owner-kinds"
	}
	return fmt.Errorf("no incident %s is known: nothing in %s has that id, nor has it had one that is on record; 'unpend incidents' lists those that wait%s", id, where, hint)
}

// waits are the ids of all that waits in a state.
func waits(st *cluster.State) map[string]incident.Incident {
	out := map[string]incident.Incident{}
	for _, i := range incident.Group(incident.WithKubelet(st.Pods, st.Events), st.Owner, admission.Refusals(st)...) {
		out[i.ID] = i
	}
	return out
}

// refine tells of a plan that was not found because its incident is gone, or never was.
func (o *approveOptions) refine(ctx context.Context, d executor.Deps, found plan.Found, id string, err error) error {
	if found.State == nil || found.Diagnosis.Incident != "" || !errors.Is(err, plan.ErrStale) {
		return err
	}
	return o.absent(ctx, found.State, &d, id)
}
