package sources

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/unpend/unpend/cmd/internal/program/console"
	"github.com/unpend/unpend/rca/admission"
	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/cluster/live"
	"github.com/unpend/unpend/remediate/executor"
	"github.com/unpend/unpend/remediate/plan"
	"github.com/unpend/unpend/watcher/incident"
)

// Ref is how a person names an incident, or a fix of it: by what `why` prints, by
// what `-o name` does, and by the id with the mark of its cluster.
type Ref struct {
	ID   string
	Mark string // of the cluster that it is of; empty where that was not said
	Fix  int    // 0: none
}

// NamePrefix comes before an incident where it is named as -o name does.
const NamePrefix = "incident.unpend.dev/"

// IncidentID is the id of an incident and, behind a point, the mark of its cluster.
var IncidentID = regexp.MustCompile(`^(gpu-[0-9a-f]{10})(?:\.([0-9a-f]{8}))?$`)

// ParseIncident reads INCIDENT or INCIDENT#N.
func ParseIncident(arg string) (Ref, error) {
	name, number, numbered := strings.Cut(strings.TrimPrefix(arg, NamePrefix), "#")
	r := Ref{}
	if numbered {
		n, err := strconv.Atoi(number)
		if err != nil || n < 1 {
			return r, console.Usage("%q names no fix: write INCIDENT#N, as 'unpend why' shows it", arg)
		}
		r.Fix = n
	}
	m := IncidentID.FindStringSubmatch(name)
	if m == nil {
		return r, console.Usage("%q is not the id of an incident, such as gpu-7f3a01c9be: 'unpend incidents' lists them", name)
	}
	r.ID, r.Mark = m[1], m[2]
	return r, nil
}

// ParseFix reads INCIDENT#N.
func ParseFix(arg string) (Ref, error) {
	if !strings.Contains(arg, "#") {
		return Ref{}, console.Usage("%q names no fix: write INCIDENT#N, as 'unpend why' shows it", arg)
	}
	return ParseIncident(arg)
}

// CheckMark is an error where an incident is another cluster's than this, whose mark is
// given, or empty where nobody can tell.
func (k *KubeFlags) CheckMark(r Ref, here string) error {
	switch {
	case r.Mark == "" || r.Mark == here:
		return nil
	case here == "":
		return console.Exit(console.ExitUnknown, fmt.Errorf("incident %s is of cluster %s, and which cluster this is cannot be told: namespace kube-system was not read", r.ID, r.Mark))
	}
	where := "this"
	if context := k.context(); context != "" {
		where = "context " + context
	}
	return console.Exit(console.ExitRefused, fmt.Errorf("%w: incident %s is of cluster %s, and %s is cluster %s: choose the other by --context", plan.ErrRefused, r.ID, r.Mark, where, here))
}

// OfThisCluster asks the API server which cluster it is of, where the incident names one.
func (s *Source) OfThisCluster(ctx context.Context, d executor.Deps, r Ref) error {
	if r.Mark == "" {
		return nil
	}
	uid, err := live.ID(ctx, d.Client)
	if err != nil {
		return Unreachable(err)
	}
	return s.Kube.CheckMark(r, uid[:min(len(uid), markLength)])
}

// Waits are the ids of all that waits in a state.
func Waits(st *cluster.State) map[string]incident.Incident {
	out := map[string]incident.Incident{}
	for _, i := range incident.Group(incident.WithKubelet(st.Pods, st.Events, st.Now), st.Owner, admission.Refusals(st)...) {
		out[i.ID] = i
	}
	return out
}
