package guard

import (
	"maps"
	"slices"
	"time"

	"github.com/unpend/unpend/remediate/v1alpha1"
)

// Figures are where the world stands against the limits, for a person to see.
type Figures struct {
	GPUNodes int      `json:"gpuNodes"`
	OutOfUse []string `json:"outOfUse"` // "gpu-1 cordoned"
	InFlight []string `json:"inFlight"` // nodes that are worked on
	Parked   []Parked `json:"parked"`
	// Quarantined nodes have sick hardware, and stay closed until a person opens them.
	Quarantined []Parked `json:"quarantined"`
	// EvictedLastHour are pods, by plans of the last hour; StoppedLastHour those, and the
	// ones that stopped because their workload was made again or rolled.
	EvictedLastHour int `json:"evictedLastHour"`
	StoppedLastHour int `json:"stoppedLastHour"`
	// FrozenUntil is the end of the freeze window that is open; zero when none is.
	FrozenUntil time.Time `json:"frozenUntil,omitzero"`
}

// Parked is a node that was left cordoned on purpose.
type Parked struct {
	Node string `json:"node"`
	Plan string `json:"plan"`
	Why  string `json:"why"`
}

// Figures counts.
func (l Limits) Figures(v View) Figures {
	q := &question{limits: l, view: v, plan: &v1alpha1.Remediation{}}
	p := q.survey()
	out := Figures{GPUNodes: p.size, OutOfUse: []string{}, InFlight: []string{}, Parked: []Parked{}, Quarantined: []Parked{}}
	for _, name := range slices.Sorted(maps.Keys(p.out)) {
		out.OutOfUse = append(out.OutOfUse, name+" "+p.out[name])
	}
	for _, n := range v.Nodes {
		switch op, err := mark(n); {
		case err != nil:
			out.InFlight = append(out.InFlight, n.Name)
		case op == nil:
		case op.Parked != "":
			out.Parked = append(out.Parked, Parked{n.Name, op.Plan, op.Parked})
		case op.Quarantined != "":
			out.Quarantined = append(out.Quarantined, Parked{n.Name, op.Plan, op.Quarantined})
		default:
			out.InFlight = append(out.InFlight, n.Name)
		}
	}
	for i := range v.Plans {
		if r := &v.Plans[i]; r.Status.Phase.Begun() || within(v.Now, endedAt(r), time.Hour) {
			out.EvictedLastHour += r.Status.Evicted
			out.StoppedLastHour += stopped(r)
		}
	}
	for i := range l.Freeze {
		if end, err := l.Freeze[i].end(v.Now); err == nil && end.After(out.FrozenUntil) {
			out.FrozenUntil = end
		}
	}
	return out
}
