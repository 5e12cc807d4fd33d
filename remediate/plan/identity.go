package plan

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// The places that decisions come from; of each person the place knows an id of its own.
const (
	ViaSlack     = "slack"
	ViaPagerDuty = "pagerduty"
	ViaWeb       = "web"
)

// Identity says which Kubernetes user somebody is that another place knows by an id.
type Identity struct {
	// Slack is a member's id (U012AB3CD), PagerDuty a user's (PXPGF42), Web the name that
	// the page's login gives. At least one is set; they are compared as they stand.
	Slack     string `json:"slack,omitempty"`
	PagerDuty string `json:"pagerduty,omitempty"`
	Web       string `json:"web,omitempty"`
	// User and Groups that they decide as: RBAC says what those may.
	User   string   `json:"user"`
	Groups []string `json:"groups,omitempty"`
	// Line of the configuration that it begins on, for errors.
	Line int `json:"-"`
}

// Caller is a person as the place knows them that their decision comes from.
type Caller struct{ Via, ID string }

func (c Caller) String() string { return c.Via + " " + c.ID }

// callers are all that an identity maps.
func (i Identity) callers() []Caller {
	all := []Caller{{ViaSlack, i.Slack}, {ViaPagerDuty, i.PagerDuty}, {ViaWeb, i.Web}}
	return slices.DeleteFunc(all, func(c Caller) bool { return c.ID == "" })
}

// Identities says of each id who that is. It is written by people and guesses nothing: who
// is not in it is nobody.
type Identities struct{ of map[Caller]Identity }

// NewIdentities holds a map to what it must be; the error names every line that is not.
func NewIdentities(list []Identity) (Identities, error) {
	m := Identities{of: map[Caller]Identity{}}
	var wrong []error
	for _, i := range list {
		if err := i.check(); err != nil {
			wrong = append(wrong, fmt.Errorf("line %d: %w", i.Line, err))
		}
		for _, c := range i.callers() {
			if other, twice := m.of[c]; twice {
				wrong = append(wrong, fmt.Errorf("lines %d and %d: both say who %s is: %s, and %s", other.Line, i.Line, c, other.User, i.User))
				continue
			}
			m.of[c] = i
		}
	}
	return m, errors.Join(wrong...)
}

func (i Identity) check() error {
	if len(i.callers()) == 0 {
		return errors.New("it names nobody: give slack, pagerduty or web")
	}
	for _, c := range i.callers() {
		switch {
		case strings.ContainsFunc(c.ID, func(r rune) bool { return r <= ' ' || r == 0x7f }):
			return fmt.Errorf("%s id %q has a space in it", c.Via, c.ID)
		case c.Via != ViaWeb && strings.Contains(c.ID, "@"):
			return fmt.Errorf("%s id %q is an e-mail address, which others can take: write the id", c.Via, c.ID)
		}
	}
	if i.User == "" {
		return errors.New("user is missing")
	}
	for _, name := range append([]string{i.User}, i.Groups...) {
		if name == "" || name == "*" || name != strings.TrimSpace(name) || strings.HasPrefix(name, "system:") {
			return fmt.Errorf("%q is not a user or a group that people are", name)
		}
	}
	return nil
}

// Of is who a caller is. ErrRefused: nobody knows.
func (m Identities) Of(c Caller) (Identity, error) {
	i, ok := m.of[c]
	if !ok {
		return i, fmt.Errorf("%w: %s is nobody: remediate.identities of the configuration says of each id which Kubernetes user it is", ErrRefused, c)
	}
	return i, nil
}
