package slack

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	api "github.com/slack-go/slack"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/drawing"
	"github.com/unpend/unpend/remediate/notice"
)

// scale is how much a message says.
type scale struct{ text, fixes int }

// scales are tried until a message is within Slack's limits; the last always is.
var scales = []scale{{500, 3}, {250, 3}, {120, 2}, {60, 1}}

// finding is an incident's message.
func (s *Slack) finding(r *record, p notice.Proposal) message {
	var m message
	for _, at := range scales {
		m = message{text: s.fallback(p), blocks: s.blocks(r, p, at)}
		if size(m.blocks) <= maxMessage {
			break
		}
	}
	return m
}

func (s *Slack) blocks(r *record, p notice.Proposal, at scale) []api.Block {
	state := s.state(p, at)
	if z := r.Snoozed; !z.Until.IsZero() {
		state.br().bold("snoozed by " + z.By).plain(" until ").at(z.Until)
	}
	out := []api.Block{header(headline(p)), state.block()}
	d := p.Finding
	if d == nil || !p.Resolved.IsZero() {
		return append(out, s.footer(p))
	}
	out = append(out, why(*d, at).block())
	if d.Drawing != nil {
		out = append(out, pre(picture(*d)))
	}
	for _, f := range d.Fixes[:min(at.fixes, len(d.Fixes))] {
		out = append(out, fix(f, at).block())
	}
	if rest := len(d.Fixes) - at.fixes + d.LeftOut["fixes"]; rest > 0 && len(d.Fixes) > 0 {
		out = append(out, (&rich{most: at.text}).plain(fmt.Sprintf("and %d more: ", rest)).code("kubectl unpend show "+p.Incident).block())
	}
	if len(d.Fixes) == 0 {
		out = append(out, (&rich{most: at.text}).plain(nothing(*d)).block())
	}
	if b := s.buttons(r, p); b != nil {
		out = append(out, b)
	}
	return append(out, s.footer(p))
}

func nothing(d diagnosis.Summary) string {
	if d.Alike != "" {
		return "The same keeps it waiting as " + d.Alike + ": its fixes stand there."
	}
	return "No fix is known."
}

// headline is who waits and for what; of an incident that is over it says so first.
func headline(p notice.Proposal) string {
	text := "incident " + p.Incident
	if p.Finding != nil && strings.TrimSpace(clean(p.Finding.Headline)) != "" {
		text = p.Finding.Headline
	}
	if !p.Resolved.IsZero() {
		return "✔ Resolved: " + text
	}
	return text
}

// fallback is what screen readers, phones and notifications have.
func (s *Slack) fallback(p notice.Proposal) string {
	text := headline(p)
	if n := p.Plan(); n != nil && p.Resolved.IsZero() {
		text += " (plan: " + n.What + ")"
	}
	return escape.Replace(fit(clean(text), maxFallback/5)) // an escaped character is five
}

// state is who waits since when, and where the plan stands.
func (s *Slack) state(p notice.Proposal, at scale) *rich {
	t := &rich{most: at.text}
	if d := p.Finding; d != nil && p.Resolved.IsZero() {
		if t.plain(waiting(*d)); !d.Pods.Since.IsZero() {
			t.plain(" since ").at(d.Pods.Since)
		}
		t.plain(", wants " + wants(*d))
	}
	if !p.Resolved.IsZero() {
		t.plain("Nobody of it waits any more since ").at(p.Resolved)
	}
	if n := p.Plan(); n != nil {
		s.plan(t.br(), *n)
	}
	if t.n == 0 {
		t.plain("It waits.")
	}
	return t
}

func waiting(d diagnosis.Summary) string {
	who := strings.TrimPrefix(d.Workload.Namespace+"/"+d.Workload.Name, "/") + " (" + d.Workload.Kind + ")"
	if d.Pods.Waiting == 1 {
		return who + ": 1 pod waits"
	}
	return fmt.Sprintf("%s: %d pods wait", who, d.Pods.Waiting)
}

// wants lists devices before CPU and memory.
func wants(d diagnosis.Summary) string {
	var devices, others []string
	for _, c := range d.Claims {
		count := "all"
		if c.Count > 0 {
			count = fmt.Sprint(c.Count)
		}
		devices = append(devices, strings.TrimSuffix(count+" × "+cmp.Or(c.Class, "devices of "+c.Claim), " × "))
	}
	for _, name := range slices.Sorted(maps.Keys(d.Requests)) {
		if strings.Contains(name, "/") {
			devices = append(devices, d.Requests[name]+" × "+name)
		} else {
			others = append(others, name+" "+d.Requests[name])
		}
	}
	return cmp.Or(strings.Join(append(devices, others...), ", "), "no particular resource")
}

// verbs are how a plan's state is told.
var verbs = map[string]string{
	notice.Pending: "is recorded, and nobody has decided", notice.Queued: "waits for a guard-rail", notice.Running: "is being carried out", notice.Undoing: "is being taken back",
	notice.Succeeded: "is done", notice.Failed: "has failed, and was taken back", notice.Stopped: "was stopped, and taken back", notice.Parked: "left its node cordoned, on purpose: somebody has to come",
	notice.Stale: "was stale: nothing was written", notice.Expired: "has expired: nobody decided in time", notice.Refused: "was refused", notice.Rejected: "was rejected", notice.Superseded: "gave way to a newer one",
}

// plan tells where a plan stands: approved by X → step 3/9 → done in 4m12s.
func (s *Slack) plan(t *rich, n notice.Notice) {
	if len(n.Approvers) > 0 {
		t.bold("approved by " + strings.Join(n.Approvers, ", ")).plain(" → ")
	}
	switch {
	case n.What == notice.Running && n.Progress != "":
		t.bold("step " + n.Progress).plain(": " + n.Step)
	case n.What == notice.Succeeded && !n.Began.IsZero():
		t.bold("done in " + n.Since.Sub(n.Began).Round(time.Second).String()).plain(": " + n.Title)
	default:
		t.bold(fmt.Sprintf("plan %.12s %s", n.Plan, cmp.Or(verbs[n.What], n.What))).plain(": " + n.Title)
	}
	if n.Reason != "" && n.What != notice.Running {
		t.br().plain(n.Reason)
	}
	if n.What == notice.Parked {
		t.br().code("kubectl unpend release " + n.Node)
	}
}

// reason is nodes that the same causes keep the pod from.
type reason struct {
	causes []diagnosis.CauseID
	count  int
	names  []string
}

// reasons parts all nodes by their causes, the root cause's first; the counts add up to the
// number of nodes. A cause of 0 nodes is of the pod, or of the cluster.
func reasons(d diagnosis.Summary) (out []reason, rest int) {
	rank := func(id diagnosis.CauseID) int {
		if i := slices.IndexFunc(d.Causes, func(c diagnosis.CauseSummary) bool { return c.ID == id }); i >= 0 {
			return i
		}
		return len(d.Causes)
	}
	for _, c := range d.Causes {
		if c.NodeCount == 0 {
			out = append(out, reason{causes: []diagnosis.CauseID{c.ID}})
		}
	}
	by, rest := map[string]int{}, d.NodeCount
	for _, g := range d.Nodes {
		rest -= g.Count
		var causes []diagnosis.CauseID
		for _, b := range g.Blockers {
			causes = append(causes, b.Cause)
		}
		slices.SortFunc(causes, func(a, b diagnosis.CauseID) int { return cmp.Or(rank(a)-rank(b), cmp.Compare(a, b)) })
		causes = slices.Compact(causes)
		i, known := by[fmt.Sprint(causes)]
		if !known {
			i = len(out)
			by[fmt.Sprint(causes)] = i
			out = append(out, reason{causes: causes})
		}
		out[i].count += g.Count
		out[i].names = append(out[i].names, g.Names...)
	}
	first := func(r reason) int {
		if len(r.causes) == 0 {
			return len(d.Causes) + 1
		}
		return rank(r.causes[0])
	}
	slices.SortStableFunc(out, func(a, b reason) int {
		return cmp.Or(min(1, a.count)-min(1, b.count), first(a)-first(b), b.count-a.count)
	})
	return out, rest
}

// mostReasons are told one by one; the others are counted.
const mostReasons = 4

func why(d diagnosis.Summary, at scale) *rich {
	t := &rich{most: at.text}
	all, rest := reasons(d)
	shown := all
	if len(all) > mostReasons {
		shown = all[:mostReasons-1]
	}
	for _, r := range shown {
		t.br().plain("• ")
		if r.count > 0 {
			t.bold(nodes(r.count)).plain("  ")
		}
		t.plain(says(d, r))
		if len(r.names) == 1 && r.count == 1 {
			t.plain(" ").code(r.names[0])
		}
	}
	others := rest
	for _, r := range all[len(shown):] {
		others += r.count
	}
	if others > 0 {
		t.br().plain("• ").bold(nodes(others)).plain("  for other reasons")
	}
	if t.n == 0 {
		t.plain("No node could be judged.")
	}
	return t
}

func nodes(n int) string {
	if n == 1 {
		return "1 node"
	}
	return fmt.Sprintf("%d nodes", n)
}

// says is what keeps the pod away; what is not proven is marked.
func says(d diagnosis.Summary, r reason) string {
	if len(r.causes) == 0 {
		return "nothing keeps the pod away"
	}
	var out []string
	for _, id := range r.causes {
		text := string(id)
		if i := slices.IndexFunc(d.Causes, func(c diagnosis.CauseSummary) bool { return c.ID == id }); i >= 0 {
			c := d.Causes[i]
			mark := ""
			if c.Certainty != diagnosis.Proven {
				mark = ", " + string(c.Certainty)
			}
			text = fmt.Sprintf("%s (%s%s)", c.Says, id, mark)
		}
		out = append(out, text)
	}
	return strings.Join(out, "; also ")
}

// chat is how many columns a drawing has on a phone.
const chat = 40

// picture is the one GPU that matters, before and after.
func picture(d diagnosis.Summary) []string {
	g := *d.Drawing
	out := []string{fit(clean(fmt.Sprintf("%s/GPU %d", g.Node, g.GPU)), chat), drawing.Bar(g.Slices, g.Before, chat, false)}
	if g.Note != "" {
		out = append(out, fit(clean(g.Note), 2*chat))
	}
	if len(g.After) > 0 {
		out = append(out, after(d), drawing.Bar(g.Slices, g.After, chat, false))
	}
	return append(out, legend)
}

// legend says what the marks of a drawing mean.
const legend = "* or ·pod: held, [1g ] idle, [ ] none"

// after names the fix that makes the second picture true.
func after(d diagnosis.Summary) string {
	for _, f := range d.Fixes {
		if f.Proof.Node == d.Drawing.Node && slices.ContainsFunc(f.Kinds, func(k diagnosis.FixKind) bool { return k == diagnosis.RepartitionGPU }) {
			return fmt.Sprintf("after fix %d", f.ID)
		}
	}
	return "after"
}
