package jira

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/unpend/unpend/knowledge"
	"github.com/unpend/unpend/knowledge/jira/jiratest"
)

var began = time.Date(2026, 10, 20, 12, 0, 0, 0, time.UTC)

// world is a Jira, and a library that is read into; its clock is moved by who waits.
type world struct {
	*jiratest.Server
	library *knowledge.Library
	opts    APIOptions

	mu     sync.Mutex
	now    time.Time
	pauses []time.Duration
}

func (w *world) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

func (w *world) later(d time.Duration) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
	return w.now
}

func newWorld(t *testing.T, cloud bool) *world {
	t.Helper()
	w := &world{library: library(t), now: began}
	w.Server = jiratest.New(w.clock, cloud)
	t.Cleanup(func() {
		if c := w.Complaints(); len(c) > 0 {
			t.Errorf("Atlassian does not document it: %s", c)
		}
		w.Close()
	})
	w.opts = APIOptions{URL: w.URL(), Deployment: DataCenter, Token: jiratest.Token, Projects: []string{"GPU"}, HTTP: w.Client(), Clock: knowledge.Clock{Now: w.clock, Sleep: func(ctx context.Context, d time.Duration) error {
		w.later(d)
		w.pauses = append(w.pauses, d)
		return ctx.Err()
	}}}
	if cloud {
		w.opts.Deployment, w.opts.User = Cloud, jiratest.User
	}
	return w
}

func (w *world) load(t *testing.T) (knowledge.Import, error) {
	t.Helper()
	a, err := NewAPI(w.opts)
	if err != nil {
		t.Fatal(err)
	}
	return w.library.Import(t.Context(), a, "jira", "the API", time.Time{})
}

func (w *world) reads(t *testing.T, want knowledge.Import) {
	t.Helper()
	done, err := w.load(t)
	if err != nil {
		t.Fatal(err)
	}
	done.Source, done.From = "", ""
	if len(done.Skipped) == 0 {
		done.Skipped = nil
	}
	if diff := cmp.Diff(want, done); diff != "" {
		t.Error(diff)
	}
}

func issue(n int, summary string, more ...string) jiratest.Issue {
	return jiratest.Issue{Key: fmt.Sprintf("GPU-%d", n), Summary: summary, Created: began.Add(-24 * time.Hour), Updated: began.Add(-24 * time.Hour), Comments: more}
}

func each(t *testing.T, test func(*testing.T, *world)) {
	for name, cloud := range map[string]bool{"cloud": true, "datacenter": false} {
		t.Run(name, func(t *testing.T) { test(t, newWorld(t, cloud)) })
	}
}

// All that goes wrong in one project, bodies as either deployment has them, and comments that
// a search leaves out.
func TestAPI(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.Inline, w.Most = 20, 2
		long := issue(118, "3g pod pending")
		long.Body, long.Resolution = "asks for nvidia.com/mig-3g.20gb", "Done"
		for n := range 130 {
			long.Comments = append(long.Comments, fmt.Sprintf("comment %d", n))
		}
		long.Comments[129] = "the way out was Xid 119"
		secret, strange, huge := issue(2, "layoffs"), issue(3, ""), issue(4, "Xid 79", strings.Repeat("x", 5<<20))
		secret.Restricted, strange.Odd = true, true
		w.Put(long, secret, strange, huge, jiratest.Issue{Key: "OPS-1", Summary: "Xid 13", Updated: began})
		w.reads(t, knowledge.Import{Added: 2, Skipped: map[string]int{
			"a ticket with a security level: not everybody may read it": 2, // by the search, and when all is compared
			odd: 2,
			"a description or comment of more than 64 KiB": 1,
		}})
		who := "5b10ada"
		if w.opts.Deployment == DataCenter {
			who = "JIRAUSER-ada"
		}
		want := knowledge.Hit{Source: "jira", Title: "GPU-118 3g pod pending", URL: w.URL() + "/browse/GPU-118", Who: who, Where: "The GPU", Part: "GPU", At: began.Add(-24 * time.Hour), Quote: "asks for nvidia.com/mig-3g.20gb"}
		if diff := cmp.Diff(want, first(t, w.library, "nvidia.com/mig-3g.20gb")); diff != "" {
			t.Error(diff)
		}
		if h := first(t, w.library, "Xid 119"); h.Title != want.Title {
			t.Errorf("the last of 130 comments: %+v", h)
		}
		for _, hidden := range []string{"layoffs", "Xid 13", "Lovelace"} {
			if h := first(t, w.library, hidden); h.Title != "" {
				t.Errorf("%s was found: %+v", hidden, h)
			}
		}
	})
}

// A second reading asks for what was updated alone; once a day all is compared.
func TestAPIReadsWhatIsNew(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		for n := range 250 {
			w.Put(issue(n+1, fmt.Sprintf("Xid %d", n+1)))
		}
		w.Hidden = []string{"GPU-7"} // search runs behind
		w.reads(t, knowledge.Import{Added: 249})
		if n := w.Calls("search"); n != 4 { // 3 pages with texts, and one with times
			t.Errorf("%d searches", n)
		}
		w.Hidden = nil
		changed := issue(3, "Xid 300")
		changed.Updated = w.later(2 * time.Hour)
		w.Put(changed)
		w.Delete("GPU-9")
		w.Move("GPU-10", "OPS-1", w.clock())
		w.later(3 * time.Hour)
		w.reads(t, knowledge.Import{Changed: 1})
		if n, read := w.Calls("search")-4, w.Calls("issue"); n != 1 || read != 0 {
			t.Errorf("%d searches, %d tickets", n, read)
		}
		w.later(24 * time.Hour)
		// What was updated is read again, within the minutes that clocks may differ: it is the same.
		w.reads(t, knowledge.Import{Added: 1, Removed: 2, Same: 247})
		if n, read := w.Calls("search")-5, w.Calls("issue"); n != 2 || read != 3 {
			t.Errorf("%d searches, %d tickets, want the deleted, the moved and the missed", n, read)
		}
		for words, want := range map[string]string{"Xid 300": "GPU-3 Xid 300", "Xid 9": "", "Xid 10": "", "Xid 7": "GPU-7 Xid 7"} {
			if h := first(t, w.library, words); h.Title != want {
				t.Errorf("%s: found %+v", words, h)
			}
		}
	})
}

// Who watches sees how many tickets were read, and how much of all that is: never less than
// before, and all of it in the end.
func TestAPIIsWatched(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		for n := range 250 {
			w.Put(issue(n+1, fmt.Sprintf("Xid %d", n+1)))
		}
		w.Put(jiratest.Issue{Key: "OPS-1", Summary: "Xid 13", Created: began, Updated: began})
		w.opts.Projects = []string{"GPU", "OPS"}
		var tickets []int
		var shares []float64
		w.opts.Watch = func(n int, share float64) { tickets, shares = append(tickets, n), append(shares, share) }
		w.reads(t, knowledge.Import{Added: 251})
		if diff := cmp.Diff([]int{100, 200, 250, 251}, tickets); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]float64{0.2, 0.4, 0.5, 1}, shares); diff != "" {
			t.Error(diff)
		}
	})
}

// What nobody may read any more, or no longer belongs to what is read, leaves.
func TestAPILeaves(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.Put(issue(1, "Xid 79"), jiratest.Issue{Key: "OPS-1", Summary: "Xid 13", Created: began, Updated: began})
		w.opts.Projects = []string{"GPU", "OPS"}
		w.reads(t, knowledge.Import{Added: 2})
		secret := issue(1, "Xid 79")
		secret.Restricted, secret.Updated = true, w.later(time.Hour)
		w.Put(secret)
		w.opts.Projects, w.opts.Only = []string{"GPU"}, true
		w.reads(t, knowledge.Import{Removed: 2, Skipped: map[string]int{"a ticket with a security level: not everybody may read it": 1}})
		if w.library.Len() != 0 {
			t.Errorf("%d are left", w.library.Len())
		}
	})
}

// What passes by itself is waited for as Jira asks, what does not is told with its remedy and
// without the token.
func TestAPIErrors(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.Put(issue(1, "Xid 79"))
		pauses := []string{"17", "", "3"}
		w.Before = func(rw http.ResponseWriter, _ *http.Request) bool {
			if len(pauses) == 0 {
				return false
			}
			code := map[string]int{"17": 429, "": 502, "3": 503}[pauses[0]]
			rw.Header().Set("Retry-After", pauses[0])
			rw.Header().Set("RateLimit-Reason", "jira-burst-based")
			pauses = pauses[1:]
			rw.WriteHeader(code)
			return true
		}
		w.reads(t, knowledge.Import{Added: 1})
		if w.opts.Deployment == DataCenter { // Cloud is asked for a count first, once
			if len(w.pauses) != 3 || w.pauses[0] != 17*time.Second || w.pauses[2] != 3*time.Second {
				t.Errorf("it waited %v", w.pauses)
			}
		}
	})
	for name, c := range map[string]struct {
		set  func(*APIOptions)
		want string
	}{
		"a wrong token":      {func(o *APIOptions) { o.Token = "secretsecret2" }, "search tickets: Jira answers 401 Unauthorized: Client must be authenticated to access this resource.: the token is not taken"},
		"another deployment": {func(o *APIOptions) { o.Deployment, o.User = Cloud, jiratest.User }, "search tickets: Jira answers 404 Not Found: the address or the deployment is another one"},
		"another project":    {func(o *APIOptions) { o.Projects = []string{"NONE"} }, "read Jira project NONE: search tickets: Jira answers 400 Bad Request: The value 'NONE' does not exist for the field 'project'."},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, false)
			w.Put(issue(1, "Xid 79"))
			c.set(&w.opts)
			_, err := w.load(t)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), w.opts.Token) {
				t.Errorf("said %v", err)
			}
			if w.library.Len() != 0 {
				t.Errorf("%d documents are there", w.library.Len())
			}
		})
	}
}

// A place that Jira has forgotten is no end: the search begins again.
func TestAPIForgottenToken(t *testing.T) {
	w := newWorld(t, true)
	w.Most = 10
	for n := range 30 {
		w.Put(issue(n+1, fmt.Sprintf("Xid %d", n+1)))
	}
	searches := 0
	w.Before = func(rw http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "/search/jql") {
			searches++
		}
		if searches != 3 {
			return false
		}
		rw.WriteHeader(http.StatusForbidden)
		return true
	}
	if _, err := w.load(t); err == nil || w.library.Len() != 20 {
		t.Fatalf("%d were read, %v", w.library.Len(), err)
	}
	w.Expire()
	w.Before = nil
	w.reads(t, knowledge.Import{Added: 10, Same: 20})
}

// A process that reads a project and is killed at any moment: another one goes on where it
// was, and in the end each ticket is there once. It is this test's binary, run again.
func TestAPIKilled(t *testing.T) {
	if dir := os.Getenv("UNPEND_TEST_LIBRARY"); dir != "" {
		l, err := knowledge.EditLibrary(dir)
		if err != nil {
			t.Fatal(err)
		}
		a, err := NewAPI(APIOptions{URL: os.Getenv("UNPEND_TEST_JIRA"), Deployment: Cloud, User: jiratest.User, Token: jiratest.Token, Projects: []string{"GPU"}, HTTP: http.DefaultClient})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.Import(t.Context(), a, "jira", "the API", time.Time{}); err != nil {
			t.Fatal(err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		return
	}
	s := jiratest.New(time.Now, true)
	defer s.Close()
	const tickets = 600
	s.Most, s.Inline = 20, 1
	for n := range tickets {
		s.Put(issue(n+1, fmt.Sprintf("Xid %d", n+1), "one", fmt.Sprintf("reset node-%d", n+1)))
	}
	dir := t.TempDir()
	asked := make(chan *os.Process, 1)
	kills, calls := []int{2, 150, 400}, 0
	s.Before = func(http.ResponseWriter, *http.Request) bool {
		if calls++; len(kills) > 0 && calls == kills[0] {
			kills = kills[1:]
			p := <-asked
			if err := p.Kill(); err != nil {
				t.Error(err)
			}
		}
		return false
	}
	starts := 0
	for done := false; !done; {
		starts++
		c := exec.Command(os.Args[0], "-test.run=^TestAPIKilled$")
		c.Env = append(os.Environ(), "UNPEND_TEST_LIBRARY="+dir, "UNPEND_TEST_JIRA="+s.URL())
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		select {
		case <-asked:
		default:
		}
		asked <- c.Process
		err := c.Wait()
		if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && (!ok || exit.ExitCode() != -1) {
			t.Fatal(err)
		}
		done = err == nil
	}
	// Each ticket's comments once, the pages twice (texts, and when all is compared), and at
	// most one page again for each kill.
	if most := tickets + 2*(tickets/20) + 4 + 3*(20+1); starts != 4 || calls > most {
		t.Errorf("%d starts, %d calls, want 4 and at most %d", starts, calls, most)
	}
	l, err := knowledge.OpenLibrary(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if l.Len() != tickets {
		t.Errorf("%d tickets are there, want %d", l.Len(), tickets)
	}
	for _, n := range []int{1, 2, 299, 600} {
		if h := first(t, l, fmt.Sprintf("Xid %d", n)); h.Title != fmt.Sprintf("GPU-%d Xid %d", n, n) {
			t.Errorf("Xid %d: found %+v", n, h)
		}
	}
}
