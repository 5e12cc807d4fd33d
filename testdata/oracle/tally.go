package oracle

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Tally counts the sentences of a cause, and those that nothing can be held against.
type Tally struct {
	Claims    int `json:"-"`
	Sentences int `json:"-"`
	// Bare are sentences without a claim, or about a node that no claim is about; Loose
	// sentences have claims, and a number that none of them has.
	Bare  int `json:"bare"`
	Loose int `json:"loose"`
	// Left are those sentences, with what they lack.
	Left []string `json:"-"`
}

// Add counts the sentences of a cause: what it says, and each fact.
func (t *Tally) Add(c Cause) {
	var all []Claim
	for _, e := range c.Evidence {
		all = append(all, e.Claims...)
		t.sentence(e.Fact, e.Claims, nil)
	}
	t.sentence(c.Says, all, c.Nodes)
	t.Claims += len(all)
}

func (t *Tally) sentence(text string, claims []Claim, nodes []string) {
	t.Sentences++
	about := func(node string) bool {
		if slices.ContainsFunc(claims, func(c Claim) bool { return c.everywhere(text) }) {
			return true
		}
		return slices.ContainsFunc(claims, func(c Claim) bool {
			return c.Ref == "Node/"+node || c.Ref == "NodeGeometry/"+node || c.Value == node || strings.HasSuffix(c.Path, "["+node+"]") || strings.HasSuffix(c.Path, ","+node+"]")
		})
	}
	strange := slices.IndexFunc(nodes, func(n string) bool { return !about(n) })
	unclaimed := slices.DeleteFunc(numbers(text), func(n string) bool {
		return slices.ContainsFunc(claims, func(c Claim) bool { return c.has(n) }) || slices.Contains(oneByOne(claims), n)
	})
	switch {
	case len(claims) == 0:
		t.Bare++
		t.Left = append(t.Left, fmt.Sprintf("%q claims nothing", text))
	case strange >= 0:
		t.Bare++
		t.Left = append(t.Left, fmt.Sprintf("%q claims nothing of node %s", text, nodes[strange]))
	case len(unclaimed) > 0:
		t.Loose++
		t.Left = append(t.Left, fmt.Sprintf("%q has %s, and no claim has", text, strings.Join(unclaimed, ", ")))
	}
}

// which is what tells the objects of one kind of claim apart.
var which = regexp.MustCompile(`\[[^\]]*\]`)

// oneByOne are the numbers, from two on, of objects of which the same is claimed of each: by the place alone, and by
// what stands there.
func oneByOne(claims []Claim) []string {
	objects := map[string]map[string]bool{}
	for _, c := range claims {
		kind, _, _ := strings.Cut(c.Ref, "/")
		for _, same := range []string{kind + " " + which.ReplaceAllString(c.Path, "[]") + " " + c.Op, kind + " " + c.Path + " " + c.Op + " " + c.Value} {
			if objects[same] == nil {
				objects[same] = map[string]bool{}
			}
			objects[same][c.Ref+" "+c.Path] = true
		}
	}
	var out []string
	for _, each := range objects {
		if len(each) > 1 {
			out = append(out, strconv.Itoa(len(each)))
		}
	}
	return out
}

// everywhere says whether a claim is so for every node, and is what the text says: that an
// object which it names is not there, or what no object of a kind has.
func (c Claim) everywhere(text string) bool {
	name := c.Ref[strings.LastIndex(c.Ref, "/")+1:]
	if c.Path == "" && c.Op == "absent" {
		return name == "*" || strings.Contains(text, name)
	}
	return name == "*" && c.Value != "" && strings.Contains(text, c.Value)
}

var (
	// Moments and ages are told by the clock, too, and left out.
	moment = regexp.MustCompile(`\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d)?)?|\d\d:\d\d(:\d\d)?|\b\d+ (s|min|h|d)\b`)
	number = regexp.MustCompile(`^\d+(\.\d+)?([KMGT]i?)?$`)
)

// numbers are those of a text that are no part of a name or a time.
func numbers(text string) []string {
	var out []string
	for _, word := range strings.FieldsFunc(moment.ReplaceAllString(text, " "), func(r rune) bool { return strings.ContainsRune(" ,;:()=/\"'×%", r) }) {
		if word = strings.TrimSuffix(word, "."); number.MatchString(word) {
			out = append(out, word)
		}
	}
	return out
}

func (c Claim) has(number string) bool {
	return sameAmount(c.Value, number) || slices.Contains(numbers(c.Value), number) || strings.Contains(c.Path, "="+number+"]") || strings.Contains(c.Path, "["+number+"]")
}
