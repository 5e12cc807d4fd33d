package web_test

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/unpend/unpend/remediate/notice"
	"github.com/unpend/unpend/remediate/web"
)

// What is not ours is the file that was released, and its licence beside it.
func TestVendoredFilesAreTheReleasedOnes(t *testing.T) {
	for file, want := range map[string]string{
		"htmx.min.js":  "d6fdc75f204e6bdefa99b69bf1e6d4ac69b8a364f77929f45c13476b4000f717", // htmx.org 2.0.11, dist/htmx.min.js
		"htmx.LICENSE": "d3d2456f76414f2456104660ebd65aff1c04cd7966b942bdabd63f3cdb316a38",
		"sse.min.js":   "98a46496de0c3605fbffdce9167ba427bdd9553184f83f149c261891a92c0136", // htmx-ext-sse 2.2.4, dist/sse.min.js
		"sse.LICENSE":  "a17d224ce9afdc21ec9491b76a2f5d036d19aa641ac4f85ca29c21f9f7e54fdf",
	} {
		body, err := os.ReadFile("static/" + file)
		must(t, err)
		if sum := sha256.Sum256(body); hex.EncodeToString(sum[:]) != want {
			t.Errorf("%s has the hash %x", file, sum)
		}
	}
}

// inline is what the page's policy forbids: scripts, styles and handlers in the page itself.
var inline = regexp.MustCompile(`<style|\sstyle=|\son[a-z]+=|javascript:|<script(>| [^>]*[^r]>[^<])|hx-on`)

// No page has anything inline, or names another host.
func TestPagesHaveNothingInlineAndNothingForeign(t *testing.T) {
	all, err := os.ReadDir("testdata")
	must(t, err)
	for _, e := range all {
		body, err := os.ReadFile("testdata/" + e.Name())
		must(t, err)
		if found := inline.FindString(string(body)); found != "" {
			t.Errorf("%s has %q", e.Name(), found)
		}
		for _, address := range regexp.MustCompile(`(src|href|action|hx-get|sse-connect)="([^"]*)"`).FindAllStringSubmatch(string(body), -1) {
			if !strings.HasPrefix(address[2], "/") && address[2] != "#main" && !strings.HasPrefix(address[2], "https://wiki.example.com/") {
				t.Errorf("%s: %s", e.Name(), address[0])
			}
		}
	}
	if len(all) < 10 {
		t.Errorf("%d pages were looked at", len(all))
	}
}

// many are so many incidents, each with findings of its own.
func many(n int) (all []notice.Proposal) {
	for i := range n {
		p := waiting(fmt.Sprintf("gpu-%010x", i*7919), fmt.Sprintf("team-%d", i%20), fmt.Sprintf("other-%d", i%7))
		p.Finding.Pods.Since = noon.Add(-time.Duration(i) * time.Minute)
		all = append(all, p)
	}
	return all
}

// The first look at 200 incidents, with all that the browser has to load for it, is at most
// 100 KiB.
func TestFirstPaintIsSmall(t *testing.T) {
	s := newSite(t)
	s.tell(t, many(200)...)
	b := s.browser(t).signIn(t, adas)
	b.Transport = &http.Transport{DisableCompression: true} // what is sent is counted
	load := func(path string) int {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+path, nil)
		must(t, err)
		r.Header.Set("Accept-Encoding", "gzip")
		got := b.do(t, r)
		if got.StatusCode != http.StatusOK || got.Header.Get("Content-Encoding") != "gzip" {
			t.Fatalf("%s: %s, %v", path, got.Status, got.Header)
		}
		return len(got.body)
	}
	total := load("/")
	plain := b.get(t, "/").body
	if rows := strings.Count(plain, `href="/incidents/`); rows != 200 {
		t.Errorf("%d incidents are listed", rows)
	}
	files := regexp.MustCompile(`/static/[^"]+`).FindAllString(plain, -1)
	for _, f := range files {
		total += load(f)
	}
	t.Logf("%d bytes in all, of %d files; the page itself unpacked %d", total, len(files)+1, len(plain))
	if len(files) != 4 || total > 100<<10 {
		t.Errorf("%d bytes of %q", total, files)
	}
}

// More than a page holds is on the next, and each incident on one of them.
func TestPagesOfTheList(t *testing.T) {
	s := newSite(t)
	s.tell(t, many(450)...)
	b := s.browser(t).signIn(t, adas)
	seen, at := map[string]bool{}, "/"
	for range 3 {
		got := b.get(t, at).body
		for _, m := range regexp.MustCompile(`href="/incidents/([^"]+)"`).FindAllStringSubmatch(got, -1) {
			seen[m[1]] = true
		}
		next := regexp.MustCompile(`href="(/\?page=\d+)" rel="next"`).FindStringSubmatch(got)
		if next == nil {
			break
		}
		at = next[1]
	}
	if len(seen) != 450 || at != "/?page=3" {
		t.Errorf("%d incidents on the pages up to %s", len(seen), at)
	}
	if got := b.get(t, "/?namespace=team-3").body; strings.Count(got, `href="/incidents/`) != 23 || !strings.Contains(got, "<h1>23 waiting</h1>") {
		t.Errorf("of one namespace: %d", strings.Count(got, `href="/incidents/`))
	}
}

// stream reads events as they come.
func (b *browser) stream(t *testing.T, path string) (<-chan string, func()) {
	t.Helper()
	ctx, end := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, b.site.URL+path, nil)
	must(t, err)
	resp, err := b.Do(r) //nolint:bodyclose // who reads it closes it
	must(t, err)
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("%s: %s", path, resp.Status)
	}
	lines := make(chan string, 100)
	go func() {
		defer close(lines)
		defer resp.Body.Close()
		for in := bufio.NewScanner(resp.Body); in.Scan(); {
			if name, ok := strings.CutPrefix(in.Text(), "event: "); ok {
				lines <- name
			}
		}
	}()
	return lines, func() {
		end()
		for range lines { //nolint:revive // until it has ended
		}
	}
}

func next(t *testing.T, lines <-chan string) string {
	t.Helper()
	select {
	case line, ok := <-lines:
		if !ok {
			return "the end"
		}
		return line
	case <-time.After(time.Minute):
		t.Fatal("nothing came")
		return ""
	}
}

// An open page hears that something has changed, of what its reader may read alone, also what
// did so before it listened.
func TestLive(t *testing.T) {
	s := newSite(t)
	p := waiting("gpu-bbbbbbbbbb", "team-b", "team-a")
	p.Plans = nil
	s.tell(t, p)
	b := s.browser(t).signIn(t, bobs)
	address := regexp.MustCompile(`sse-connect="([^"]+)"`).FindStringSubmatch(b.get(t, "/incidents/"+p.Incident).body)[1]
	lines, end := b.stream(t, strings.ReplaceAll(address, "&amp;", "&"))
	defer end()
	list, endList := b.stream(t, strings.ReplaceAll(regexp.MustCompile(`sse-connect="([^"]+)"`).FindStringSubmatch(b.get(t, "/").body)[1], "&amp;", "&"))
	defer endList()
	s.tell(t, waiting("gpu-aaaaaaaaaa", "team-a", "team-b")) // which nobody is told of
	p.Plans = []notice.Notice{underWay(p)}
	s.tell(t, p)
	if got := next(t, lines); got != "plans" {
		t.Errorf("a step: %q", got)
	}
	if got := next(t, list); got != "list" {
		t.Errorf("the list hears of it: %q", got)
	}
	changed := *p.Finding
	changed.Headline = "something else"
	p.Finding = &changed
	s.tell(t, p)
	if got := next(t, lines); got != "finding" {
		t.Errorf("another finding: %q", got)
	}
	late, endLate := b.stream(t, strings.ReplaceAll(address, "&amp;", "&"))
	defer endLate()
	if first, second := next(t, late), next(t, late); first+second != "findingplans" {
		t.Errorf("who listens later hears %q, %q", first, second)
	}
	select {
	case got := <-lines:
		t.Errorf("and nothing else: %q", got)
	default:
	}
	theirs, endTheirs := b.stream(t, "/events?incident=gpu-aaaaaaaaaa")
	defer endTheirs()
	if got := next(t, theirs); got != "the end" {
		t.Errorf("of another's incident it hears %q", got)
	}
}

// A session ends after an hour unused and after eight hours, and of one person there are so
// many; who signs in again and again holds no memory.
func TestSessionsEnd(t *testing.T) {
	now := noon
	s := newSite(t, func(o *web.Options) { o.Now = func() time.Time { return now } })
	open := func(b *browser) bool { return b.get(t, "/").StatusCode == http.StatusOK }
	unused, used := s.browser(t).signIn(t, adas), s.browser(t).signIn(t, adas)
	for range 8 {
		if now = now.Add(59 * time.Minute); !open(used) {
			t.Fatalf("it ended after %s", now.Sub(noon))
		}
	}
	if open(unused) {
		t.Error("unused for hours, it is open")
	}
	if now = noon.Add(8 * time.Hour); open(used) {
		t.Error("after eight hours it is open")
	}
	first := s.browser(t).signIn(t, adas)
	bob := s.browser(t).signIn(t, bobs)
	for range 16 {
		now = now.Add(time.Second)
		s.browser(t).signIn(t, adas)
	}
	if open(first) || !open(bob) {
		t.Error("one person's sessions have no bound, or put another's out")
	}
}

// What is over is shown for a day, and of much of it the latest.
func TestWhatIsOverIsForgotten(t *testing.T) {
	now := noon
	s := newSite(t, func(o *web.Options) { o.Now = func() time.Time { return now } })
	all := many(130)
	for i := range all {
		if i > 0 {
			all[i].Resolved = noon.Add(-time.Duration(i) * time.Second)
		}
	}
	s.tell(t, all...)
	b := s.browser(t).signIn(t, adas)
	if got := strings.Count(b.get(t, "/").body, `href="/incidents/`); got != 101 {
		t.Errorf("%d are shown", got)
	}
	now = now.Add(25 * time.Hour)
	s.tell(t, all[0])
	b.signIn(t, adas)
	if got := strings.Count(b.get(t, "/").body, `href="/incidents/`); got != 1 {
		t.Errorf("a day later %d are shown", got)
	}
}

// A page needs to know how to ask as its reader.
func TestNewNeedsWaysToAsk(t *testing.T) {
	if p, err := web.New(web.Options{}); p != nil || err == nil {
		t.Error("it makes a page that would show everything to everybody")
	}
	s := newSite(t, func(o *web.Options) {
		o.Namespaces = func(context.Context) ([]string, error) { return nil, errors.New("down") }
	})
	s.tell(t, waiting("gpu-bbbbbbbbbb", "team-b", "team-a"))
	if got := s.browser(t).signIn(t, bobs).get(t, "/incidents/gpu-bbbbbbbbbb"); got.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("without the names of namespaces nothing can be covered: %s", got.Status)
	}
}

// BenchmarkList renders 200 incidents, for somebody who may read all and for somebody who may not.
func BenchmarkList(b *testing.B) {
	for name, token := range map[string]string{"all": adas, "one namespace": bobs} {
		b.Run(name, func(b *testing.B) {
			s := newSite(b)
			s.api.change(func() {
				bob := s.api.people[bobs]
				for i := range 20 {
					bob.reads = append(bob.reads, fmt.Sprintf("team-%d", i))
				}
				s.api.people[bobs] = bob
			})
			s.tell(b, many(200)...)
			who := s.browser(b).signIn(b, token)
			for b.Loop() {
				r, err := http.NewRequestWithContext(b.Context(), http.MethodGet, s.URL+"/", nil)
				must(b, err)
				resp, err := who.Do(r)
				must(b, err)
				io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
		})
	}
}
