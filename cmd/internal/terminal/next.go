package terminal

import (
	"fmt"
	"regexp"
	"strings"

	"charm.land/lipgloss/v2"

	"github.com/unpend/unpend/rca/diagnosis"
)

// Again says how a command finds the same cluster, and in it the same fixes, as the one
// that prints it.
type Again struct {
	Flags string // which cluster, and as who: kubectl takes them too
	Find  string // with which commands that diagnose find the same fixes
	Mark  string // of the cluster, for ids that leave it; empty where it is not known
	// Offline: what was found is of a dump. Files are the flags that read it again; empty
	// where nobody can, as of stdin.
	Offline bool
	Files   string
	Shown   bool // everything behind the finding
	// Gone: the cluster ends with the command (the demo's).
	Gone bool
}

// ID is an incident's id as it is written outside the cluster.
func (a Again) ID(incident string) string {
	if a.Mark == "" {
		return incident
	}
	return incident + "." + a.Mark
}

// join sets words beside each other, without those that are empty.
func join(words ...string) string {
	return strings.Join(strings.Fields(strings.Join(words, " ")), " ")
}

// unpend is a command of ours, with the flags that make it find the same.
func (a Again) unpend(words ...string) string {
	return join("kubectl unpend", join(words...), a.Files, a.Find, a.Flags)
}

var aKubectl = regexp.MustCompile(`(^|[|;&]\s*|\bthen )kubectl `)

// kubectl is a command of kubectl's, for the same cluster.
func (a Again) kubectl(command string) string {
	if a.Flags == "" {
		return command
	}
	return aKubectl.ReplaceAllString(command, "${1}kubectl "+strings.ReplaceAll(a.Flags, "$", "$$")+" ")
}

// next is the one command that leads on; it is never shortened.
func (o findingText) next(d diagnosis.Diagnosis) string {
	command, hint := o.following(d)
	if command == "" {
		return "Next: " + o.faint(hint)
	}
	if hint != "" {
		hint = "   (" + hint + ")"
	}
	return "Next: " + o.tint(lipgloss.Cyan, command) + o.faint(hint)
}

func (o findingText) following(d diagnosis.Diagnosis) (command, hint string) {
	a, id := o.Again, o.clean(d.Incident)
	switch {
	case a.Gone:
		return "", "on a cluster of yours, reading only: kubectl unpend why -A"
	case a.Offline && (a.Files == "" || a.Shown):
		return "", "run 'kubectl unpend why' on the cluster itself: a dump changes nothing"
	case a.Offline:
		return a.unpend("show", id), "a dump: approve on its own cluster"
	case len(d.Fixes) > 0 && d.Fixes[0].Automatic && d.Fixes[0].Held == "" && d.Fixes[0].Class == diagnosis.MusicalChair:
		return a.unpend("show", fmt.Sprintf("%s#%d", a.ID(id), d.Fixes[0].ID)), "as many would wait afterwards: see who"
	case len(d.Fixes) > 0 && d.Fixes[0].Automatic && d.Fixes[0].Held == "":
		f := d.Fixes[0]
		plan := ""
		if f.Plan != "" {
			plan = "--plan " + o.clean(f.Plan)
		}
		return a.unpend("approve", fmt.Sprintf("%s#%d", a.ID(id), f.ID), plan), "dry run: add --dry-run"
	case len(d.Fixes) > 0 && d.Fixes[0].Held != "":
		return join("kubectl unpend status", a.Flags), "what the guard-rails say"
	case len(d.Fixes) > 0 && len(d.Fixes[0].Commands) > 0:
		command, hint := firstOf(d.Fixes[0].Commands)
		return a.kubectl(clean(command, false)), clean(hint, false)
	}
	if a.Shown {
		return a.unpend("why", a.ID(id)), ""
	}
	return a.unpend("show", a.ID(id)), ""
}

// firstOf is the first of commands that does something; what is said before it, in a line of
// its own, is a hint.
func firstOf(commands []string) (command, hint string) {
	for _, c := range commands {
		said, remark := strings.CutPrefix(c, "# ")
		if !remark {
			return c, hint
		}
		hint = strings.TrimSuffix(said, ":")
	}
	return commands[0], ""
}

// more says where the rest is.
func more(n int) string { return fmt.Sprintf("%d more, see unpend show", n) }
