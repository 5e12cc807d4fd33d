package service

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"

	"github.com/unpend/unpend/remediate/notice"
)

// route says where people are told of some incidents. The first that fits counts; what none
// fits is told everywhere.
type route struct {
	// Namespaces of the workload, as shell patterns (team-*); empty: any.
	Namespaces []string `json:"namespaces"`
	// Causes are ids of the root cause; empty: any.
	Causes []string `json:"causes"`
	// To names places; empty: nobody is told.
	To []string `json:"to"`
}

// check says what is wrong with routes.
func checkRoutes(routes []route) error {
	var all []error
	for i, r := range routes {
		for _, name := range r.To {
			if !slices.ContainsFunc(places, func(p place) bool { return p.name == name }) {
				all = append(all, fmt.Errorf("routes[%d].to: there is no place %q", i, name))
			}
		}
		for _, pattern := range r.Namespaces {
			if _, err := path.Match(pattern, ""); err != nil {
				all = append(all, fmt.Errorf("routes[%d].namespaces: %q is no pattern", i, pattern))
			}
		}
	}
	return errors.Join(all...)
}

// fits says whether a route is for an incident. One whose finding is not known is of no
// namespace and no cause.
func (r route) fits(p notice.Proposal) bool {
	namespace, cause := "", ""
	if d := p.Finding; d != nil {
		namespace = d.Workload.Namespace
		if len(d.Causes) > 0 {
			cause = string(d.Causes[0].ID)
		}
	}
	return (len(r.Namespaces) == 0 || slices.ContainsFunc(r.Namespaces, func(pattern string) bool {
		ok, err := path.Match(pattern, namespace)
		return err == nil && ok
	})) && (len(r.Causes) == 0 || slices.Contains(r.Causes, cause))
}

// routed tells of an incident, if it is for this place: by the routes, or because people
// were told of it here before, who would wait for its end otherwise.
func (k *sink) routed(ctx context.Context, p notice.Proposal) error {
	i := slices.IndexFunc(k.config.Routes, func(r route) bool { return r.fits(p) })
	if i >= 0 && p.Alarm == "" && k.name != onPage && !slices.Contains(k.config.Routes[i].To, k.name) {
		told, err := memory{k.bus, k.name}.load(ctx, p.Incident)
		if err != nil || told == nil {
			return err
		}
	}
	return k.Notify(ctx, p)
}
