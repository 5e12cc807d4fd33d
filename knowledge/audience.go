package knowledge

import (
	"slices"
	"strings"
)

// Rule says where what some channels, projects and folders say is told, and that it is told
// nowhere else.
type Rule struct {
	Of []string // the parts, by id or by what people call them
	To []string // the places: a kind of them, or one (slack, slack/C0123456789)
}

// Audience says where documents may be told: at search, and again when a place quotes a hit.
// What is private is told in its own channel alone, unless a rule names it; what no rule names
// and is not private is told everywhere.
type Audience struct {
	Rules []Rule
	// Private are channels that are private whatever their documents say: one may have become
	// so after they were read.
	Private []string
}

// origin is what decides who may be told.
type origin struct {
	source, part, name string
	private            bool
}

// In is what may be told in a place. An empty place is any: what everybody may be told.
func (a Audience) In(place string) Allowed {
	return func(d Document) bool { return a.tells(origin{d.Source, d.Part, d.PartName, d.Private}, place) }
}

// Quotes are those of some hits that may be told in a place.
func (a Audience) Quotes(place string, hits []Hit) []Hit {
	out := make([]Hit, 0, len(hits))
	for _, h := range hits {
		if a.tells(origin{h.Source, h.Part, h.Where, h.Private}, place) {
			out = append(out, h)
		}
	}
	return out
}

// Opens says whether a place may be told of more than everybody.
func (a Audience) Opens(place string) bool {
	return place != "" && (strings.HasPrefix(place, "slack/") && len(a.Private) > 0 ||
		slices.ContainsFunc(a.Rules, func(r Rule) bool { return r.leads(place) }))
}

func (a Audience) tells(from origin, place string) bool {
	ruled := false
	for _, r := range a.Rules {
		if among(r.Of, from) {
			if ruled = true; r.leads(place) {
				return true
			}
		}
	}
	if from.part != "" && place == from.source+"/"+from.part { // its readers have read it
		return true
	}
	return !ruled && !from.private && !among(a.Private, from)
}

func among(parts []string, from origin) bool {
	return slices.ContainsFunc(parts, func(p string) bool {
		p = strings.TrimPrefix(p, "#")
		return from.part != "" && p == from.part || from.name != "" && strings.EqualFold(p, strings.TrimPrefix(from.name, "#"))
	})
}

// leads says whether a rule lets a place be told.
func (r Rule) leads(place string) bool {
	kind, _, _ := strings.Cut(place, "/")
	return place != "" && (slices.Contains(r.To, place) || slices.Contains(r.To, kind))
}
