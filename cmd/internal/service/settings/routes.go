package settings

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/notice"
)

// Route says where people are told of some incidents. The first that fits counts; what none
// fits is told in every place.
type Route struct {
	// Namespaces of the workload, as shell patterns (team-*); empty: any.
	Namespaces []string `json:"namespaces"`
	// Causes are ids of the root cause; empty: any.
	Causes []string `json:"causes"`
	// MinPriority is the least that the highest priority of the waiting pods has to be; one
	// that nobody can tell may be as high. Not given: any.
	MinPriority *int32 `json:"minPriority"`
	// To names places; empty: nobody is told.
	To []string `json:"to"`
	// At names, by a place of To, what people are told in there instead of what its own
	// configuration names: the id of a Slack channel, the key of a Jira project, the file
	// that holds the key of another service in PagerDuty or team in Opsgenie.
	At map[string]string `json:"at"`
}

// CheckRoutes says what is wrong with routes.
func (c Config) CheckRoutes() error {
	var all []error
	for i, r := range c.Routes {
		wrong := func(field, format string, of ...any) {
			all = append(all, fmt.Errorf("routes[%d].%s: "+format, append([]any{i, field}, of...)...))
		}
		for _, name := range r.To {
			switch at := slices.IndexFunc(Places, func(p place) bool { return p.Name == name }); {
			case at < 0:
				wrong("to", "there is no place %q", name)
			case !Places[at].wanted(c):
				wrong("to", "%s is not configured: nobody would be told there", name)
			}
		}
		for _, pattern := range r.Namespaces {
			if _, err := path.Match(pattern, ""); err != nil {
				wrong("namespaces", "%q is no pattern", pattern)
			}
		}
		for _, id := range r.Causes {
			if !slices.Contains(diagnosis.Catalogue(), diagnosis.CauseID(id)) {
				wrong("causes", "there is no cause %q", id)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(r.At)) {
			if err := c.checkAt(r, name); err != nil {
				wrong("at."+name, "%w", err)
			}
		}
	}
	return errors.Join(all...)
}

// checkAt says what is wrong with what a route names in a place.
func (c Config) checkAt(r Route, name string) error {
	i := slices.IndexFunc(Places, func(p place) bool { return p.Name == name && p.at != nil })
	switch {
	case i < 0:
		var could []string
		for _, p := range Places {
			if p.at != nil {
				could = append(could, p.Name)
			}
		}
		return fmt.Errorf("it has to be one of %s", strings.Join(could, ", "))
	case !slices.Contains(r.To, name):
		return fmt.Errorf("the route does not lead there: list %s in its to", name)
	case r.At[name] == "":
		return errors.New("it names nothing")
	}
	if c.check() != nil {
		return nil // that is told
	}
	Places[i].at(&c, r.At[name])
	return c.check()
}

// Fits says whether a route is for an incident. One whose finding is not known is of no
// namespace, no cause and no priority.
func (r Route) Fits(p notice.Proposal) bool {
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
	})) && (len(r.Causes) == 0 || slices.Contains(r.Causes, cause)) && (r.MinPriority == nil || p.Finding != nil && p.Finding.Pods.AtLeast(*r.MinPriority))
}
