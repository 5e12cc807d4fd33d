package web

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/notice"
	"github.com/unpend/unpend/remediate/wording"
)

// perPage is how many incidents one page lists.
const perPage = 200

// listPage is what it shows.
type listPage struct {
	Rows       []row
	Waiting    int // incidents that are not over
	Namespaces []string
	Namespace  string // that is shown alone
	From, To   int
	All        int
	Prev, Next string
	Seen       string // what the event stream compares with
	Query      string
}

// row is one incident of the list.
type row struct {
	ID, Headline, Workload, Kind string
	Cause, Certainty             string
	Since                        moment
	Pods                         string
	Fix, Price                   string
	State, Progress              string
	Said                         []saidView
	Over                         bool
}

// list shows what waits, the longest first, and after that what is over.
func (p *Page) list(w http.ResponseWriter, r *http.Request, who *reader) {
	all, err := p.visible(r.Context(), who)
	if err != nil {
		p.trouble(w, r, err)
		return
	}
	body := listPage{Namespace: r.URL.Query().Get("namespace"), Seen: digest(all)}
	spaces := map[string]bool{}
	for _, i := range all {
		spaces[namespaceOf(i)] = true
	}
	body.Namespaces = slices.Sorted(maps.Keys(spaces))
	if body.Namespace != "" {
		all = slices.DeleteFunc(all, func(i notice.Proposal) bool { return namespaceOf(i) != body.Namespace })
	}
	for _, i := range all {
		if i.Resolved.IsZero() {
			body.Waiting++
		}
	}
	body.Query = r.URL.RequestURI()
	shown := body.cut(all, r.URL.Query().Get("page"))
	v, err := p.veil(r.Context(), who, shown)
	if err != nil {
		p.trouble(w, r, err)
		return
	}
	for _, i := range shown {
		if brief, ok := v.proposal(brief(i)); ok {
			body.Rows = append(body.Rows, p.row(brief))
		}
	}
	if v.err != nil {
		p.trouble(w, r, v.err)
		return
	}
	p.render(w, r, http.StatusOK, head{Title: "Incidents", User: who.user, At: "incidents", Refresh: 30}, body.node())
}

// cut is one page of all.
func (b *listPage) cut(all []notice.Proposal, page string) []notice.Proposal {
	n, err := strconv.Atoi(page)
	if err != nil || n < 1 || (n-1)*perPage >= len(all) {
		n = 1
	}
	b.All = len(all)
	shown := all[(n-1)*perPage : min(n*perPage, len(all))]
	b.From, b.To = (n-1)*perPage+min(1, len(shown)), (n-1)*perPage+len(shown)
	link := func(to int) string {
		q := url.Values{"page": {strconv.Itoa(to)}}
		if b.Namespace != "" {
			q.Set("namespace", b.Namespace)
		}
		return "/?" + q.Encode()
	}
	if n > 1 {
		b.Prev = link(n - 1)
	}
	if n*perPage < len(all) {
		b.Next = link(n + 1)
	}
	return shown
}

// mostAsked namespaces are asked about side by side.
const mostAsked = 8

// visible are the incidents of the namespaces that the reader may read, in the order that they
// are listed in. Their texts are not covered yet.
func (p *Page) visible(ctx context.Context, who *reader) ([]notice.Proposal, error) {
	all := p.board.list()
	may := map[string]*bool{}
	for _, i := range all {
		may[namespaceOf(i)] = new(bool)
	}
	if _, err := who.mayRead(ctx, ""); err != nil {
		return nil, err
	}
	ask, asking := errgroup.WithContext(ctx)
	ask.SetLimit(mostAsked)
	for namespace, yes := range may {
		ask.Go(func() (err error) {
			*yes, err = who.mayRead(asking, namespace)
			return err
		})
	}
	if err := ask.Wait(); err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(i notice.Proposal) bool { return !*may[namespaceOf(i)] })
	slices.SortFunc(all, func(a, b notice.Proposal) int {
		if a.Resolved.IsZero() != b.Resolved.IsZero() {
			return a.Resolved.Compare(b.Resolved) // zero is before all
		}
		return cmp.Or(b.Resolved.Compare(a.Resolved), since(a).Compare(since(b)), cmp.Compare(a.Incident, b.Incident))
	})
	return all, nil
}

// since when somebody waits.
func since(p notice.Proposal) time.Time {
	if p.Finding != nil {
		return p.Finding.Pods.Since
	}
	return p.Read
}

// brief is what a row is made from: what it does not show need not be covered.
func brief(p notice.Proposal) notice.Proposal {
	if p.Finding == nil {
		return p
	}
	d := diagnosis.Summary{Workload: p.Finding.Workload, Pods: p.Finding.Pods, Headline: p.Finding.Headline}
	d.Pods.Names = nil
	for _, c := range p.Finding.Causes[:min(1, len(p.Finding.Causes))] {
		d.Causes = []diagnosis.CauseSummary{{ID: c.ID, Certainty: c.Certainty}}
	}
	for _, f := range p.Finding.Fixes[:min(1, len(p.Finding.Fixes))] {
		f.Steps, f.Commands = nil, nil
		d.Fixes = []diagnosis.FixSummary{f}
	}
	p.Finding = &d
	return p
}

func (p *Page) row(i notice.Proposal) row {
	r := row{ID: i.Incident, Headline: headline(i), Said: saidOf(i, p.opts.Now()), Over: !i.Resolved.IsZero(), Since: at(since(i), p.opts.Now())}
	if r.Over {
		r.Since = at(i.Resolved, p.opts.Now())
	}
	if d := i.Finding; d != nil {
		r.Workload, r.Kind, r.Pods = clean(d.Workload.Namespace+"/"+d.Workload.Name), clean(d.Workload.Kind), count(d.Pods.Waiting, "pod", "pods")
		if len(d.Causes) > 0 {
			r.Cause = string(d.Causes[0].ID)
			if d.Causes[0].Certainty != diagnosis.Proven {
				r.Certainty = string(d.Causes[0].Certainty)
			}
		}
		if len(d.Fixes) > 0 && !r.Over {
			f := d.Fixes[0]
			r.Fix, r.Price = clean(f.Title), clean(wording.Bill(f))
		}
	}
	if n := i.Plan(); n != nil {
		r.State, r.Progress = cmp.Or(states[n.What], n.What), clean(n.Progress)
	}
	return r
}
