package web_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/unpend/unpend/knowledge"
	"github.com/unpend/unpend/remediate/plan"
	"github.com/unpend/unpend/remediate/web"
)

// shelf answers every search alike, and notes them.
type shelf struct {
	hits  []knowledge.Hit
	err   error
	asked []string
}

func (s *shelf) search(_ context.Context, query string, n int) ([]knowledge.Hit, error) {
	s.asked = append(s.asked, fmt.Sprint(query, " ", n))
	return s.hits, s.err
}

// Who may read the pods of a namespace searches what the team has said, and sees no name of
// another namespace in it; who may read none finds nothing, and nothing is looked for.
func TestSearch(t *testing.T) {
	k := &shelf{hits: []knowledge.Hit{{Source: "slack", Title: "2g waits <b>", Quote: "team-a/big-0 held it, and team-b/small-0", URL: "https://wiki.example.com/p1", At: noon.Add(-48 * time.Hour)}, {Source: "doc", Title: "evil", URL: "javascript:alert(1)"}}}
	s := newSite(t, func(o *web.Options) { o.Search = k.search })
	search := func(token, query string) (int, string) {
		got := s.browser(t).signIn(t, token).get(t, "/search?q="+url.QueryEscape(query))
		return got.StatusCode, got.body
	}
	code, body := search(adas, " 2g.10gb \"pending\" ")
	for _, want := range []string{`value="2g.10gb &#34;pending&#34;"`, `<a href="https://wiki.example.com/p1" rel="noreferrer noopener">2g waits &lt;b&gt;</a>`, "team-a/big-0 held it", "2 days</time> ago", `aria-current="page">Search</a>`} {
		if code != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%d: %s is not in %s", code, want, body)
		}
	}
	if strings.Contains(body, "javascript:") || inline.MatchString(body) {
		t.Errorf("%s", body)
	}
	if _, body := search(bobs, "x"); strings.Contains(body, "team-a") || strings.Contains(body, "big-0") || !strings.Contains(body, "team-b/small-0") {
		t.Errorf("bob reads %s", body)
	}
	k.asked = nil
	if _, body := search(carls, "x"); !strings.Contains(body, "You may read the pods of no namespace") || strings.Contains(body, "2g waits") || k.asked != nil {
		t.Errorf("carl reads %s", body)
	}
	if _, body := search(adas, strings.Repeat("x", 500)); !strings.Contains(body, "too long") || k.asked != nil {
		t.Errorf("%s", body)
	}
	if _, body := search(adas, ""); !strings.Contains(body, `type="search"`) || strings.Contains(body, "Nothing") || k.asked != nil {
		t.Errorf("%s", body)
	}
	k.hits = nil
	if _, body := search(adas, "x"); !strings.Contains(body, "Nothing that the team has said is like it.") {
		t.Errorf("%s", body)
	}
	k.err = fmt.Errorf("%w: nothing is read yet", plan.ErrRefused)
	if _, body := search(adas, "x"); !strings.Contains(body, "nothing is read yet") {
		t.Errorf("%s", body)
	}
	k.err = errors.New("disk canary")
	if code, body := search(adas, "x"); code != http.StatusServiceUnavailable || strings.Contains(body, "canary") {
		t.Errorf("%d %s", code, body)
	}
}

// Nobody searches who is not signed in, or where there is nothing to search.
func TestNoSearch(t *testing.T) {
	k := &shelf{}
	s := newSite(t, func(o *web.Options) { o.Search = k.search })
	if got := s.browser(t).get(t, "/search?q=x"); got.StatusCode != http.StatusSeeOther || k.asked != nil {
		t.Errorf("%s", got.Status)
	}
	b := newSite(t).browser(t).signIn(t, adas)
	if got := b.get(t, "/search?q=x"); got.StatusCode != http.StatusNotFound {
		t.Errorf("%s", got.Status)
	}
	if got := b.get(t, "/"); strings.Contains(got.body, "/search") {
		t.Errorf("%s", got.body)
	}
}
