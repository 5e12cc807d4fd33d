package web

import (
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/unpend/unpend/remediate/notice"
	"github.com/unpend/unpend/remediate/wording"
)

// saidView is what somebody has said of an incident in another place. It decides nothing.
type saidView struct {
	Text string
	When moment
}

func saidOf(p notice.Proposal, now time.Time) (out []saidView) {
	if text := wording.Taken(p); text != "" {
		out = append(out, saidView{clean(text), at(p.Taken.At, now)})
	}
	if text := wording.Snoozed(p); text != "" {
		out = append(out, saidView{clean(text), at(p.Snoozed.At, now)})
	}
	return out
}

func (v saidView) node() g.Node {
	text := g.Group{g.Text(v.Text)}
	if v.When.Stamp != "" {
		text = append(text, g.Text(", "), when(v.When), g.Text(" ago"))
	}
	return h.P(h.Class("said"), text)
}
