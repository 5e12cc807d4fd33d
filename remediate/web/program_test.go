package web_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/unpend/unpend/remediate/web"
)

// asking sends a question as an agent does.
func asking(t *testing.T, s *site, body string, edit func(*http.Request)) answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/mcp", strings.NewReader(body))
	must(t, err)
	r.Header.Set("Authorization", "Bearer "+adas)
	if edit != nil {
		edit(r)
	}
	return s.browser(t).do(t, r)
}

// Agents are answered on the page's listener, behind its guard: what comes by another name, from
// another site's page or with more than 64 KiB is not heard. Where there is nobody to answer
// there is no such page.
func TestAgentsComeByTheGuard(t *testing.T) {
	var heard []string
	s := newSite(t, func(o *web.Options) {
		o.Hosts = []string{"unpend.example.com"}
		o.Agents = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				http.Error(w, "too large", http.StatusRequestEntityTooLarge)
				return
			}
			heard = append(heard, r.Method+" "+r.Host+" "+string(body))
		})
	})
	for name, tc := range map[string]struct {
		body string
		edit func(*http.Request)
		want int
	}{
		"a name that was rebound":  {"x", func(r *http.Request) { r.Host = "evil.example" }, 421},
		"from another origin":      {"x", func(r *http.Request) { r.Header.Set("Origin", "http://evil.example") }, 403},
		"from another site's page": {"x", func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }, 403},
		"too large":                {strings.Repeat("x", 65<<10), nil, 413},
	} {
		if got := asking(t, s, tc.body, tc.edit); got.StatusCode != tc.want || len(heard) > 0 {
			t.Errorf("%s: %s, heard %q", name, got.Status, heard)
		}
	}
	asking(t, s, "why", nil)
	asking(t, s, "show", func(r *http.Request) { r.Host = "unpend.example.com" })
	if want := []string{"POST " + strings.TrimPrefix(s.URL, "http://") + " why", "POST unpend.example.com show"}; !slices.Equal(heard, want) {
		t.Errorf("heard %q", heard)
	}
	if got := asking(t, newSite(t), "why", nil); got.StatusCode != http.StatusNotFound {
		t.Errorf("where nobody answers: %s", got.Status)
	}
}

// A flood of agents waits elsewhere, and people's pages are served meanwhile.
func TestAgentsDoNotCrowdPeopleOut(t *testing.T) {
	const most = 16
	inside, leave := make(chan struct{}, most), make(chan struct{})
	s := newSite(t, func(o *web.Options) {
		o.Agents = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			inside <- struct{}{}
			<-leave
		})
	})
	said := make(chan error, most)
	for range most {
		go func() {
			resp, err := http.Post(s.URL+"/mcp", "application/json", http.NoBody)
			if err == nil {
				err = resp.Body.Close()
			}
			said <- err
		}()
	}
	for range most {
		<-inside
	}
	if got := asking(t, s, "why", nil); got.StatusCode != http.StatusServiceUnavailable || got.Header.Get("Retry-After") == "" {
		t.Errorf("one more: %s", got.Status)
	}
	if got := s.browser(t).signIn(t, adas).get(t, "/"); got.StatusCode != http.StatusOK {
		t.Errorf("a person meanwhile: %s", got.Status)
	}
	close(leave)
	for range most {
		must(t, <-said)
	}
	if got := asking(t, s, "why", nil); got.StatusCode != http.StatusOK {
		t.Errorf("afterwards: %s", got.Status)
	}
}

// An answer to an agent may take longer than a page may.
func TestAgentsMayBeAnsweredLate(t *testing.T) {
	s := newSite(t, func(o *web.Options) {
		o.Agents = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			<-time.After(20 * time.Millisecond)
			io.WriteString(w, "said late")
		})
	})
	late := httptest.NewUnstartedServer(nil)
	late.Config = s.Page.Server()
	late.Config.WriteTimeout = time.Millisecond
	late.Start()
	t.Cleanup(late.Close)
	s.URL = late.URL
	if got := asking(t, s, "why", nil); got.body != "said late" {
		t.Errorf("%s %q", got.Status, got.body)
	}
}
