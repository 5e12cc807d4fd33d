package narrate

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/drawing"
)

// names are what tenants call things. The model reads NAME1 and NAME2 instead: it needs to
// know which is which, not how they are called, and a name can be a sentence to it.
type names struct {
	all   []string // NAME1 is all[0]
	known *regexp.Regexp
}

// mostNames are covered; of an incident with more the rest is counted, not named.
const mostNames = 400

func namesOf(d diagnosis.Summary) names {
	var all []string
	pod := func(namespace, name string) { all = append(all, namespace+"/"+name, namespace, name) }
	pod(d.Workload.Namespace, d.Workload.Name)
	for _, name := range d.Pods.Names {
		pod(d.Workload.Namespace, name)
	}
	for _, f := range d.Fixes {
		stopped := slices.Concat(f.Cost.Evictions, f.Cost.Restarts)
		if f.Effect != nil {
			stopped = append(stopped, f.Effect.ThenWait...)
		}
		for _, p := range stopped {
			pod(p.Namespace, p.Name)
		}
	}
	if d.Drawing != nil {
		for _, s := range slices.Concat(d.Drawing.Before, d.Drawing.After) {
			namespace, name, _ := strings.Cut(s.Holder, "/")
			pod(namespace, name)
		}
	}
	var n names
	for _, name := range all {
		name = strings.Join(strings.Fields(drawing.Clean(name, false)), " ")
		if strings.Trim(name, "/?") != "" {
			n.all = append(n.all, name)
		}
	}
	slices.SortFunc(n.all, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	n.all = slices.Compact(n.all)
	n.all = n.all[:min(mostNames, len(n.all))]
	quoted := make([]string, len(n.all))
	for i, name := range n.all {
		quoted[i] = regexp.QuoteMeta(name)
	}
	if len(quoted) > 0 {
		n.known = regexp.MustCompile(strings.Join(quoted, "|"))
	}
	return n
}

// cover puts NAMEn where a name stands, the longest first.
func (n names) cover(text string) string {
	if n.known == nil {
		return text
	}
	var out strings.Builder
	at := 0
	for at < len(text) {
		m := n.known.FindStringIndex(text[at:])
		if m == nil {
			break
		}
		from, to := at+m[0], at+m[1]
		before, _ := utf8.DecodeLastRuneInString(text[:from])
		behind, _ := utf8.DecodeRuneInString(text[to:])
		if partOfName(before) || partOfName(behind) { // of a longer word
			_, size := utf8.DecodeRuneInString(text[from:])
			out.WriteString(text[at : from+size])
			at = from + size
			continue
		}
		out.WriteString(text[at:from])
		fmt.Fprintf(&out, "NAME%d", slices.Index(n.all, text[from:to])+1)
		at = to
	}
	out.WriteString(text[at:])
	return out.String()
}

func partOfName(r rune) bool {
	return r == '-' || r == '_' || r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r))
}

var placeholder = regexp.MustCompile(`NAME[0-9]+`)

// apiName is what the API server takes for a name; a dump may hold anything.
var apiName = regexp.MustCompile(`^[A-Za-z0-9]([-A-Za-z0-9._:]*[A-Za-z0-9])?(/[A-Za-z0-9]([-A-Za-z0-9._:]*[A-Za-z0-9])?)?$`)

// uncover puts the names back, for people.
func (n names) uncover(text string) string {
	return placeholder.ReplaceAllStringFunc(text, func(p string) string {
		i, err := strconv.Atoi(strings.TrimPrefix(p, "NAME"))
		switch {
		case err != nil || i < 1 || i > len(n.all):
			return p
		case !apiName.MatchString(n.all[i-1]):
			return "(a name)"
		}
		return n.all[i-1]
	})
}
