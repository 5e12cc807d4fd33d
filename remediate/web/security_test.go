package web_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/notice"
	"github.com/unpend/unpend/remediate/plan"
	"github.com/unpend/unpend/remediate/web"
	"github.com/unpend/unpend/watcher/incident"
)

// hash of a plan.
const hash = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// waiting is an incident of a namespace, whose fix stops a pod of another, with the names of
// both in every text there is.
func waiting(id, ns, other string) notice.Proposal {
	pod := other + "-secret-0"
	d := &diagnosis.Summary{Incident: id, Workload: incident.Ref{Kind: "Job", Namespace: ns, Name: ns + "-job"}, Headline: ns + "/" + ns + "-job waits: held by " + other + "/" + pod,
		Pods: diagnosis.WaitingPods{Waiting: 1, Names: []string{ns + "-job-0"}, Since: noon.Add(-time.Hour)}, Requests: map[string]string{"nvidia.com/gpu": "1"}, NodeCount: 1,
		Drawing: &diagnosis.Drawing{Node: "gpu-1", Slices: 8, Before: []diagnosis.DrawnSlot{{Profile: "2g.10gb", Start: 0, Size: 2, Holder: other + "/" + pod}}, Note: pod + " is in the way"},
		Causes:  []diagnosis.CauseSummary{{ID: diagnosis.GPUsInUse, Certainty: diagnosis.Proven, Says: "held by " + pod, NodeCount: 1, Evidence: []diagnosis.Evidence{{Ref: "Pod/" + other + "/" + pod, Fact: "of " + other + " holds it (" + pod + ".)"}}}},
		Nodes:   []diagnosis.NodeGroup{{Names: []string{"gpu-1"}, Count: 1, Blockers: []diagnosis.Blocker{{Plugin: "NodeResourcesFit", Reason: "Insufficient nvidia.com/gpu: " + other + "/" + pod, Cause: diagnosis.GPUsInUse}}}},
		Fixes: []diagnosis.FixSummary{{ID: 1, Kind: diagnosis.EvictPods, Kinds: []diagnosis.FixKind{diagnosis.EvictPods}, Title: "evict " + other + "/" + pod + " from gpu-1", Automatic: true, Class: diagnosis.HarmsNobody, Plan: hash, EvictionCount: 1,
			Cost: diagnosis.Cost{Evictions: []diagnosis.PodName{{Namespace: other, Name: pod}}, Restarts: []diagnosis.PodName{}}, Effect: &diagnosis.Effect{Runs: 1, Of: 1, ThenWait: []diagnosis.PodName{{Namespace: other, Name: pod}}},
			Risk: diagnosis.LowRisk, Proof: diagnosis.Proof{Verdict: diagnosis.Schedules, Why: pod + " is placed again"}, Steps: []string{"evict " + pod}, Commands: []string{"kubectl -n " + other + " delete pod x", "kubectl get pods -n " + ns}}},
		Unread: []string{"events of " + other + ".", "http://x." + other + ".svc.cluster.local did not answer"}}
	words := &diagnosis.Wording{Model: "small", Sentences: []diagnosis.Sentence{{Says: other + "/" + pod + " holds it.", From: []string{"Pod/" + other + "/" + pod}}}}
	return notice.Proposal{Incident: id, Finding: d, Wording: words, Plans: []notice.Notice{{What: notice.Failed, Incident: id, Plan: hash, Workload: d.Workload, Title: d.Fixes[0].Title, Reason: pod + " did not leave", Since: noon.Add(-time.Minute)}}}
}

// promiseS09: who may read one namespace sees no name of another on any page, and no incident of it;
// who may read both sees both.
func promiseS09(t *testing.T) {
	s := newSite(t, func(o *web.Options) {
		o.Desk = &desk{trial: web.Trial{Steps: []string{"evict team-a/team-a-secret-0", "wait for team-a-secret-0"}}}
	})
	s.tell(t, waiting("gpu-aaaaaaaaaa", "team-a", "team-b"), waiting("gpu-bbbbbbbbbb", "team-b", "team-a"))
	geometries(t, s)
	s.api.change(func() {
		bob := s.api.people[bobs]
		bob.nodes, bob.approves = true, true
		s.api.people[bobs] = bob
	})
	bob, ada := s.browser(t).signIn(t, bobs), s.browser(t).signIn(t, adas)
	pages := []string{"/", "/?namespace=team-a", "/incidents/gpu-aaaaaaaaaa", "/incidents/gpu-bbbbbbbbbb", "/incidents/gpu-bbbbbbbbbb/fixes/1?plan=" + hash, "/incidents/gpu-aaaaaaaaaa/fixes/1?plan=" + hash, "/cluster"}
	theirs := regexp.MustCompile(`team-a|gpu-aaaaaaaaaa`)
	own, all, held := 0, 0, 0
	for _, page := range pages {
		got := bob.get(t, page)
		broken := false
		if asked, _ := url.Parse(page); got.StatusCode == http.StatusOK {
			if seen := theirs.FindString(strings.ReplaceAll(got.body, asked.RequestURI(), "")); seen != "" && !strings.Contains(page, "team-a") {
				broken = true
				t.Errorf("%s shows %q:\n%s", page, seen, got.body)
			}
		}
		if strings.Contains(page, "aaaa") && (got.StatusCode != http.StatusNotFound || theirs.MatchString(got.body)) {
			broken = true
			t.Errorf("%s: %s, as if it were there:\n%s", page, got.Status, got.body)
		}
		if !broken {
			held++
		}
		own += strings.Count(got.body, "team-b")
		all += strings.Count(ada.get(t, page).body, "team-a-secret-0")
	}
	if own < 10 || all < 10 {
		t.Errorf("their own is shown %d times, everything to who may %d times: the test looks at nothing", own, all)
	}
	got := bob.get(t, "/incidents/gpu-bbbbbbbbbb").body
	for _, part := range []string{"(another namespace)", "kubectl get pods -n team-b", "1 more name a namespace", "gpu-1"} {
		if !strings.Contains(got, part) {
			t.Errorf("their own incident lacks %q:\n%s", part, got)
		}
	}
	if carl := s.browser(t).signIn(t, carls).get(t, "/"); !strings.Contains(carl.body, "Nothing waits") || strings.Contains(carl.body, "team-") {
		t.Errorf("who may read nothing: %s\n%s", carl.Status, carl.body)
	}
	report(t, held, len(pages), fmt.Sprintf("pages without a name of a namespace that is not the reader's; the reader's own stands there %d times, and the other %d times for who may", own, all))
}

// Where the API server does not say what somebody may read, nothing is shown.
func TestWithoutAnAnswerNothingIsShown(t *testing.T) {
	s := newSite(t)
	s.tell(t, waiting("gpu-bbbbbbbbbb", "team-b", "team-a"))
	b := s.browser(t).signIn(t, bobs)
	s.api.change(func() { s.api.down = true })
	for _, page := range []string{"/", "/incidents/gpu-bbbbbbbbbb", "/cluster"} {
		if got := b.get(t, page); got.StatusCode != http.StatusServiceUnavailable || strings.Contains(got.body, "team-") {
			t.Errorf("%s: %s\n%s", page, got.Status, got.body)
		}
	}
	s.api.change(func() { s.api.down = false; delete(s.api.people, bobs) }) // it was revoked
	if got := b.get(t, "/"); got.StatusCode != http.StatusSeeOther || got.Header.Get("Location") != "/sign-in" {
		t.Errorf("a token that was revoked: %s to %s", got.Status, got.Header.Get("Location"))
	}
	s.api.change(func() { s.api.people = people() })
	if got := b.get(t, "/"); got.StatusCode != http.StatusSeeOther {
		t.Errorf("its session goes on: %s", got.Status)
	}
}

// refusals are what is refused, with nothing shown and nothing done: how many of how many are.
func refusals(t *testing.T) (held, of int) {
	d := &desk{}
	s := newSite(t, func(o *web.Options) { o.Desk = d })
	s.tell(t, waiting("gpu-aaaaaaaaaa", "team-a", "team-b"))
	ada, bob := s.browser(t).signIn(t, adas), s.browser(t).signIn(t, bobs)
	approve := url.Values{"plan": {hash}, "decision": {"approve"}}.Encode()
	const fix = "/incidents/gpu-aaaaaaaaaa/fixes/1"
	header := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	for name, tc := range map[string]struct {
		who          *browser
		method, path string
		body         string
		edit         func(*http.Request)
		want         int
	}{
		"reading without a token":            {s.browser(t), "GET", "/", "", nil, 303},
		"an incident without a token":        {s.browser(t), "GET", "/incidents/gpu-aaaaaaaaaa", "", nil, 303},
		"the map without a token":            {s.browser(t), "GET", "/cluster", "", nil, 303},
		"events without a token":             {s.browser(t), "GET", "/events", "", nil, 401},
		"no such page without a token":       {s.browser(t), "GET", "/admin", "", nil, 303},
		"approving without a token":          {s.browser(t), "POST", fix, approve, nil, 303},
		"a session nobody has":               {s.browser(t), "GET", "/", "", header("Cookie", "unpend=AAAAAAAAAAAAAAAAAAAAAAAAAA"), 303},
		"a token nobody has":                 {s.browser(t), "GET", "/", "", header("Authorization", "Bearer forged"), 401},
		"a token with a line break":          {s.browser(t), "POST", "/sign-in", "token=a%0Ab", nil, 401},
		"no token":                           {s.browser(t), "POST", "/sign-in", "token=", nil, 401},
		"a forged token":                     {s.browser(t), "POST", "/sign-in", "token=forged", nil, 401},
		"another's incident":                 {bob, "GET", "/incidents/gpu-aaaaaaaaaa", "", nil, 404},
		"another's fix":                      {bob, "GET", fix + "?plan=" + hash, "", nil, 404},
		"approving another's":                {bob, "POST", fix, approve, nil, 404},
		"from another site's form":           {ada, "POST", fix, approve, header("Sec-Fetch-Site", "cross-site"), 403},
		"from a sibling's form":              {ada, "POST", fix, approve, header("Sec-Fetch-Site", "same-site"), 403},
		"from another origin":                {ada, "POST", fix, approve, header("Origin", "http://evil.example"), 403},
		"from nowhere":                       {ada, "POST", fix, approve, header("Origin", "null"), 403},
		"signing in from elsewhere":          {s.browser(t), "POST", "/sign-in", "token=" + adas, header("Origin", "http://evil.example"), 403},
		"signing out from elsewhere":         {ada, "POST", "/sign-out", "", header("Sec-Fetch-Site", "cross-site"), 403},
		"a name that was rebound":            {ada, "GET", "/", "", func(r *http.Request) { r.Host = "evil.example" }, 421},
		"a name that begins as ours":         {ada, "GET", "/", "", func(r *http.Request) { r.Host = "127.0.0.1.evil.example:8080" }, 421},
		"no name":                            {ada, "GET", "/", "", func(r *http.Request) { r.Host = "[::]" }, 421},
		"a huge form":                        {ada, "POST", fix, approve + "&x=" + strings.Repeat("x", 1<<20), nil, 413},
		"a huge token":                       {s.browser(t), "POST", "/sign-in", "token=" + strings.Repeat("x", 1<<20), nil, 413},
		"a huge header":                      {ada, "GET", "/", "", header("X-Long", strings.Repeat("x", 1<<20)), 431},
		"another plan than was seen":         {ada, "POST", fix, "decision=approve&plan=" + strings.Repeat("0", 64), nil, 409},
		"no plan":                            {ada, "POST", fix, "decision=approve", nil, 409},
		"a fix that is not there":            {ada, "POST", "/incidents/gpu-aaaaaaaaaa/fixes/7", approve, nil, 409},
		"neither yes nor no":                 {ada, "POST", fix, "plan=" + hash, nil, 400},
		"a body that is no form":             {ada, "POST", fix, "%zz", nil, 400},
		"another method":                     {ada, "DELETE", "/incidents/gpu-aaaaaaaaaa", "", nil, 404},
		"a folder":                           {ada, "GET", "/static/", "", nil, 404},
		"a file by another hash":             {ada, "GET", "/static/0000000000000000/unpend.css", "", nil, 404},
		"a file that is not for the browser": {ada, "GET", "/static/0000000000000000/..%2fpage.go", "", nil, 404},
	} {
		r, err := http.NewRequestWithContext(t.Context(), tc.method, s.URL+tc.path, strings.NewReader(tc.body))
		must(t, err)
		if tc.method == http.MethodPost {
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
		if tc.edit != nil {
			tc.edit(r)
		}
		got := tc.who.do(t, r)
		of++
		held++
		if got.StatusCode != tc.want || strings.Contains(got.body, "team-a") && tc.who != ada {
			held--
			t.Errorf("%s: %s, want %d\n%s", name, got.Status, tc.want, got.body)
			continue
		}
		if tc.want != 431 && (!strings.HasPrefix(got.Header.Get("Content-Security-Policy"), "default-src 'none';") || got.Header.Get("X-Frame-Options") != "DENY" || got.Header.Get("X-Content-Type-Options") != "nosniff") {
			held--
			t.Errorf("%s: its headers are %v", name, got.Header)
		}
	}
	if len(d.asked) > 0 {
		t.Errorf("something was decided: %q", d.asked)
	}
	if got := ada.get(t, "/"); got.StatusCode != http.StatusOK {
		t.Errorf("afterwards it answers %s", got.Status)
	}
	return held, of
}

// What a reader decides comes to the desk with their own token and the plan that they saw, and
// they are told what came of it.
func TestDecisions(t *testing.T) {
	for name, tc := range map[string]struct {
		form  url.Values
		desk  desk
		want  int
		says  string
		asked string
	}{
		"yes":                {url.Values{"decision": {"approve"}}, desk{}, 303, "", "approve " + adas + " gpu-aaaaaaaaaa " + hash},
		"yes, as one of two": {url.Values{"decision": {"approve"}}, desk{waits: "two others have to"}, 202, "two others have to", "approve " + adas + " gpu-aaaaaaaaaa " + hash},
		"no":                 {url.Values{"decision": {"reject"}, "reason": {" we need them "}}, desk{}, 303, "", "reject " + adas + " gpu-aaaaaaaaaa " + hash + " we need them"},
		"stale":              {url.Values{"decision": {"approve"}}, desk{err: fmt.Errorf("%w: a pod has gone", plan.ErrStale)}, 409, "a pod has gone", "approve " + adas + " gpu-aaaaaaaaaa " + hash},
		"refused":            {url.Values{"decision": {"approve"}}, desk{err: fmt.Errorf("%w: the breaker is open", plan.ErrRefused)}, 403, "the breaker is open", "approve " + adas + " gpu-aaaaaaaaaa " + hash},
		"the API is away":    {url.Values{"decision": {"approve"}}, desk{err: fmt.Errorf("dial tcp 10.0.0.1")}, 503, "try again", "approve " + adas + " gpu-aaaaaaaaaa " + hash},
	} {
		s := newSite(t, func(o *web.Options) { o.Desk = &tc.desk })
		s.tell(t, waiting("gpu-aaaaaaaaaa", "team-a", "team-b"))
		tc.form.Set("plan", hash)
		got := s.browser(t).signIn(t, adas).post(t, "/incidents/gpu-aaaaaaaaaa/fixes/1", tc.form)
		if got.StatusCode != tc.want || !strings.Contains(got.body, tc.says) || strings.Contains(got.body, "10.0.0.1") || !slices.Equal(tc.desk.asked, []string{tc.asked}) {
			t.Errorf("%s: %s, asked %q\n%s", name, got.Status, tc.desk.asked, got.body)
		}
	}
}

// Before the button stands all that it does: the price, who is stopped, every step, the plan.
// Who may not create approvals has no button; nor has anybody while guard-rails hold it back.
func TestConsentComesBeforeTheButton(t *testing.T) {
	d := &desk{trial: web.Trial{Steps: []string{"step the first", "step the second"}}}
	s := newSite(t, func(o *web.Options) { o.Desk = d })
	s.tell(t, waiting("gpu-bbbbbbbbbb", "team-b", "team-a"))
	const path = "/incidents/gpu-bbbbbbbbbb/fixes/1?plan=" + hash
	got := s.browser(t).signIn(t, adas).get(t, path).body
	before, after, found := strings.Cut(got, "<button class=\"danger\"")
	if !found || !strings.Contains(after, "stops 1 pod, plan 0123456789ab") {
		t.Fatalf("no button:\n%s", got)
	}
	for _, part := range []string{"1 of 1", "1 pod", "low", "team-a/team-a-secret-0", "It then waits", "step the first", "step the second", hash} {
		if !strings.Contains(before, part) {
			t.Errorf("before the button %q is lacking:\n%s", part, before)
		}
	}
	if got := s.browser(t).signIn(t, bobs).get(t, path).body; strings.Contains(got, "danger") || !strings.Contains(got, "You may not create approvals.unpend.dev") {
		t.Errorf("who may not approve: %s", got)
	}
	if len(d.asked) != 1 {
		t.Errorf("it was tried for who may not approve: %q", d.asked)
	}
	d.trial.Held = "the kill switch is on"
	if got := s.browser(t).signIn(t, adas).get(t, path).body; strings.Contains(got, "danger") || !strings.Contains(got, "the kill switch is on") {
		t.Errorf("held back: %s", got)
	}
}

// promiseS18: no token is in any page, header or line of the log; the cookie says nothing, and no
// script reads it.
func promiseS18(t *testing.T) {
	var log bytes.Buffer
	s := newSite(t, func(o *web.Options) {
		o.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		o.Desk = &desk{err: fmt.Errorf("some trouble")}
		o.Hosts = []string{"unpend.example.com"}
	})
	s.tell(t, waiting("gpu-aaaaaaaaaa", "team-a", "team-b"))
	b := s.browser(t)
	var shown strings.Builder
	note := func(a answer) {
		fmt.Fprintln(&shown, a.Header, a.body)
	}
	signed := b.post(t, "/sign-in", url.Values{"token": {adas}})
	note(signed)
	if set := signed.Header.Get("Set-Cookie"); !strings.Contains(set, "HttpOnly") || !strings.Contains(set, "SameSite=Strict") || strings.Contains(set, "Secure") {
		t.Errorf("on loopback the cookie is %s", set)
	}
	for _, page := range []string{"/", "/incidents/gpu-aaaaaaaaaa", "/incidents/gpu-aaaaaaaaaa/fixes/1?plan=" + hash, "/cluster", "/sign-in", "/nothing"} {
		note(b.get(t, page))
	}
	s.api.change(func() { s.api.down = true })
	note(b.post(t, "/sign-in", url.Values{"token": {bobs}}))
	note(b.get(t, "/"))
	s.api.change(func() { s.api.down = false })
	note(b.post(t, "/sign-in", url.Values{"token": {carls + "\nx"}}))
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/sign-in", strings.NewReader("token="+bobs))
	must(t, err)
	r.Host = "unpend.example.com"
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	proxied := b.do(t, r)
	note(proxied)
	if set := proxied.Header.Get("Set-Cookie"); !strings.HasPrefix(set, "__Host-unpend=") || !strings.Contains(set, "; Secure") {
		t.Errorf("by a name of the world the cookie is %s", set)
	}
	b.post(t, "/sign-out", nil)
	if got := b.get(t, "/"); got.StatusCode != http.StatusSeeOther {
		t.Errorf("signed out, it shows %s", got.Status)
	}
	held := 0
	for token := range people() {
		held++
		if strings.Contains(shown.String()+log.String(), token) {
			held--
			t.Errorf("the token of %s is shown:\n%s\n%s", people()[token].user, shown.String(), log.String())
		}
	}
	if !strings.Contains(log.String(), "somebody has signed in") || !slices.Contains(slices.Collect(maps.Keys(people())), adas) {
		t.Errorf("the log says nothing: %s", log.String())
	}
	report(t, held, len(people()), fmt.Sprintf("tokens in none of %d bytes of answers, headers and log", shown.Len()+log.Len()))
}

// After signing in one is where one wanted to be, on this site and on no other.
func TestNextStaysHere(t *testing.T) {
	s := newSite(t)
	for next, want := range map[string]string{"/cluster": "/cluster", "/?page=2": "/?page=2", "": "/", "//evil.example": "/", "https://evil.example/": "/", `/\evil.example`: "/", "javascript:alert(1)": "/", "cluster": "/"} {
		if got := s.browser(t).post(t, "/sign-in", url.Values{"token": {adas}, "next": {next}}); got.Header.Get("Location") != want {
			t.Errorf("%q: to %q, want %q", next, got.Header.Get("Location"), want)
		}
	}
	if got := s.browser(t).get(t, "/incidents/gpu-1?x=y"); got.Header.Get("Location") != "/sign-in?next=%2Fincidents%2Fgpu-1%3Fx%3Dy" {
		t.Errorf("to %q", got.Header.Get("Location"))
	}
}
