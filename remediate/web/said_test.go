package web_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/notice"
)

// Who acknowledged a page elsewhere, or has snoozed the message in Slack, is named in the list
// and with the incident, as Slack and Jira have it; an open page hears of it. Once it is over,
// nobody has to.
func TestWhoSeesToIt(t *testing.T) {
	s := newSite(t)
	p := waiting("gpu-bbbbbbbbbb", "team-b", "team-a")
	p.Plans = nil
	s.tell(t, p)
	b := s.browser(t).signIn(t, adas)
	incident := "/incidents/" + p.Incident
	stream := regexp.MustCompile(`sse-connect="([^"]+)"`).FindStringSubmatch(b.get(t, incident).body)[1]
	lines, end := b.stream(t, strings.ReplaceAll(stream, "&amp;", "&"))
	defer end()
	p.Taken = &notice.Taken{By: "Ada <b>", In: "PagerDuty", At: noon.Add(-2 * time.Minute)}
	p.Snoozed = &notice.Snoozed{By: "bob@example.com", At: noon.Add(-time.Minute), Until: noon.Add(59 * time.Minute)}
	s.tell(t, p)
	if got := next(t, lines); got != "plans" {
		t.Errorf("an open page hears %q", got)
	}
	for _, path := range []string{"/", incident} {
		got := b.get(t, path).body
		for _, want := range []string{`<p class="said">acknowledged in PagerDuty by Ada &lt;b&gt;, <time datetime="2026-11-22T11:58:00Z" title="2026-11-22 11:58:00 UTC">2 min</time> ago</p>`,
			`<p class="said">snoozed in Slack by bob@example.com until 2026-11-22 12:59 UTC, <time datetime="2026-11-22T11:59:00Z" title="2026-11-22 11:59:00 UTC">1 min</time> ago</p>`} {
			if strings.Count(got, want) != 1 {
				t.Errorf("%s has no %s:\n%s", path, want, got)
			}
		}
	}
	p.Resolved = noon
	s.tell(t, p)
	for _, path := range []string{"/", incident} {
		if got := b.get(t, path).body; strings.Contains(got, "acknowledged") || strings.Contains(got, "snoozed") {
			t.Errorf("%s, after it is over:\n%s", path, got)
		}
	}
}

// Beside a fix stands how its kind turned out here before, in the list and with the incident; of
// one that was never carried out nothing is said.
func TestHowAFixTurnedOut(t *testing.T) {
	s := newSite(t)
	b := s.browser(t).signIn(t, adas)
	for _, r := range []*diagnosis.Record{nil, {Worked: 4, Of: 5, Minutes: 3}} {
		p := waiting("gpu-bbbbbbbbbb", "team-b", "team-a")
		p.Plans, p.Finding.Fixes[0].Record = nil, r
		s.tell(t, p)
		for _, path := range []string{"/", "/incidents/" + p.Incident} {
			if got := b.get(t, path).body; strings.Contains(got, "worked here 4 times of 5, in about 3 min") != (r != nil) {
				t.Errorf("%s, of %v:\n%s", path, r, got)
			}
		}
	}
}
