package diagnosis

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

const (
	// maxSaid bounds what others said that is searched for: more of it would outweigh the
	// cause.
	maxSaid = 3
	// maxPhrase is the longest phrase, in characters; the end of a long one is a list.
	maxPhrase = 200
)

var (
	// An Event's reason or a refusal, before its message.
	othersSay = regexp.MustCompile(`^[A-Z][a-z]+[A-Z]\w*: |\bsays \w+: |last refusal: `)
	// Which resource is short stands in the requests.
	shortOf = regexp.MustCompile(`^Insufficient \S+/\S+$`)
)

// Words are what past incidents like this one would share, in phrases, those that say most
// first: the root cause by its id, by our words and by those of people, and what it says;
// what the scheduler and others said of it; the devices asked for and the GPU; the other
// causes. No person chooses them: so they are the same for the same matter.
func (d Diagnosis) Words() []string {
	var words []string
	add := func(w string) {
		if r := []rune(w); len(r) > maxPhrase {
			w = string(r[:maxPhrase])
		}
		if w != "" && !slices.Contains(words, w) {
			words = append(words, w)
		}
	}
	if len(d.Causes) > 0 {
		root := d.Causes[0]
		for _, w := range []string{string(root.ID), root.ID.Words(), root.Says, phrases[root.ID]} {
			add(w)
		}
	}
	for _, s := range d.said() {
		add(s)
	}
	for _, name := range slices.Sorted(maps.Keys(d.Requests)) {
		if strings.Contains(name, "/") { // all ask for CPU and memory
			add(name)
		}
	}
	for _, c := range d.Claims {
		add(c.Class)
	}
	if d.Drawing != nil {
		add(d.Drawing.Product)
	}
	for n, c := range d.Causes {
		if n > 0 && c.ID != Unknown {
			add(c.Says)
		}
	}
	return words
}

// said is what the scheduler's plugins and others said of the root cause.
func (d Diagnosis) said() (out []string) {
	if len(d.Causes) == 0 {
		return nil
	}
	add := func(s string) {
		if len(out) < maxSaid && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	for _, e := range d.Causes[0].Evidence {
		if at := othersSay.FindStringIndex(e.Fact); at != nil {
			if before, after, ok := strings.Cut(e.Fact, "last refusal: "); ok && before != "" {
				e.Fact = after
			}
			add(e.Fact)
		}
	}
	for _, n := range d.Nodes {
		for _, b := range n.Blockers {
			if b.Cause == d.Causes[0].ID && !shortOf.MatchString(b.Reason) {
				add(b.Reason)
			}
		}
	}
	return out
}

// Words are those of the diagnosis that was summed up, as far as it travelled.
func (s Summary) Words() []string {
	d := Diagnosis{Requests: s.Requests, Claims: s.Claims, Drawing: s.Drawing}
	for _, c := range s.Causes {
		d.Causes = append(d.Causes, Cause{ID: c.ID, Says: c.Says, Evidence: c.Evidence})
	}
	for _, n := range s.Nodes {
		d.Nodes = append(d.Nodes, NodeBlockers{Blockers: n.Blockers})
	}
	return d.Words()
}
