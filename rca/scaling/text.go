package scaling

import (
	"regexp"
	"strconv"
	"strings"
)

// The plain text of a status, of versions before 1.30: groups stand below a line of their own, each from its name on
// (clusterstate/api/utils.go, GetReadableString).
var (
	textName   = regexp.MustCompile(`^\s*Name:\s+(\S+)\s*$`)
	textHealth = regexp.MustCompile(`^\s*Health:\s+(\w+)\s+(\(.*\))\s*$`)
	textGrowth = regexp.MustCompile(`^\s*(ScaleUp:\s+(\w+)\s.*?)\s*$`)
	textNumber = regexp.MustCompile(`(\w+)=(\d+)`)
)

// readText reads the groups of such a text, and nothing else of it; nil where it has none.
func readText(text string) *Status {
	_, groups, is := strings.Cut(text, "NodeGroups:")
	if !is {
		return nil
	}
	s := &Status{}
	for line := range strings.Lines(groups) {
		if m := textName.FindStringSubmatch(line); m != nil {
			s.Groups = append(s.Groups, Group{Name: m[1]})
			continue
		}
		if len(s.Groups) == 0 {
			continue
		}
		g := &s.Groups[len(s.Groups)-1]
		if m := textHealth.FindStringSubmatch(line); m != nil {
			g.Health.Status, g.Text = m[1], append(g.Text, m[2])
			g.count(m[2])
		}
		if m := textGrowth.FindStringSubmatch(line); m != nil {
			g.ScaleUp.Status, g.Text = m[2], append(g.Text, m[1])
		}
	}
	if len(s.Groups) == 0 {
		return nil
	}
	return s
}

// count takes the numbers of a line of health over.
func (g *Group) count(health string) {
	h := &g.Health
	into := map[string]*int{
		"ready": &h.NodeCounts.Registered.Ready, "unready": &h.NodeCounts.Registered.Unready.Total, "resourceUnready": &h.NodeCounts.Registered.Unready.ResourceUnready, "notStarted": &h.NodeCounts.Registered.NotStarted,
		"registered": &h.NodeCounts.Registered.Total, "longUnregistered": &h.NodeCounts.LongUnregistered, "cloudProviderTarget": &h.Target, "minSize": &h.MinSize, "maxSize": &h.MaxSize,
	}
	for _, m := range textNumber.FindAllStringSubmatch(health, -1) {
		if n, err := strconv.Atoi(m[2]); err == nil && into[m[1]] != nil {
			*into[m[1]] = n
		}
	}
}
