package jira_test

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/unpend/unpend/remediate/notifytest"
)

// A thousand findings, half of them on each deployment: every one has its ticket, within Jira's limits and
// as Atlassian documents it, and what tenants write stays text (R26, S8). The server
// complains where it does not.
func promiseR26(t *testing.T) {
	both(t, func(t *testing.T, d string) {
		const sites, findings = 10, 50
		r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same each time
		made := 0
		for range sites {
			clock := notifytest.NewClock()
			s := newSite(t, clock, d)
			n := s.New(t, clock, slog.New(slog.DiscardHandler))
			for i := range findings {
				if err := n.Notify(t.Context(), notifytest.Anything(r, fmt.Sprintf("gpu-%010x", i), clock.Now())); err != nil {
					t.Fatalf("finding %d: %v", i, err)
				}
			}
			for _, is := range s.Issues() {
				made++
				if strings.ContainsAny(is.Summary()+is.Shown(), "\u202e\x1b\u2066\u200b") {
					t.Errorf("what turns or hides text is shown: %q", is.Shown())
				}
			}
		}
		if made != sites*findings {
			t.Errorf("%d tickets of %d findings", made, sites*findings)
		}
		fmt.Printf("R26 %d/%d, findings of any text have a ticket in Jira (%s), 0 over a limit\n", made, sites*findings, d)
		fmt.Printf("S8 %d/%d, tickets in Jira (%s) with whatever names hold, 0 marks\n", made, sites*findings, d)
	})
}

// A finding that is far over the limit keeps its beginning and its last line.
func TestTooLong(t *testing.T) {
	both(t, func(t *testing.T, d string) {
		clock := notifytest.NewClock()
		s := newSite(t, clock, d)
		p := offer()
		f := p.Finding.Fixes[0]
		for i := range 30 {
			f.ID, f.Title, f.Steps = i+1, strings.Repeat("|*", 4000), nil
			for range 40 {
				f.Steps, f.Commands = append(f.Steps, strings.Repeat("_[x]", 3000)), append(f.Commands, strings.Repeat("c", 140))
			}
			p.Finding.Fixes = append(p.Finding.Fixes, f)
		}
		told(t, s.New(t, clock, nil), p)
		is := s.Issues()[0].Shown()
		if !strings.HasPrefix(is, "ml/training (Job): 1 pod waits") || !strings.HasSuffix(strings.TrimSpace(is), "kubectl unpend approve gpu-0123456789#1") || !strings.Contains(is, "## Fixes") {
			t.Errorf("%.300s … %s", is, is[max(0, len(is)-300):])
		}
	})
}

// Names in the notation of Data Center are shown as they are, whatever they hold.
func TestNamesStayText(t *testing.T) {
	for _, text := range []string{"[~admin]", "[x|https://evil.example]", "https://evil.example/a", "mailto:a@b.example", "{color:red}x{color}", "!image.png!", "h1. big", "bq. quoted", "*bold* _it_ -no- +in+ ^up^ ~down~ ??cite??",
		":) ;) (x) (/) (!)", "OPS-12 and A_B-3", "||a||b||", "a -- b --- c", `\\server\share \* \`, "&amp; &#64; <b>", "{noformat}", "# one", "gpu-1 my_pod a:b a/b 1.2.3", "@admin", "www.evil.example", "-x -y_ _z", "(c) (tm) (*r) (flag)", "%p%"} {
		clock := notifytest.NewClock()
		s := newSite(t, clock, "datacenter")
		p := offer()
		p.Finding.Headline, p.Finding.Workload.Namespace, p.Finding.Causes[0].Says, p.Finding.Fixes[0].Title, p.Finding.Fixes[0].Commands = text, text, text, text, []string{"echo " + text}
		told(t, s.New(t, clock, nil), p)
		is := s.Issues()[0]
		for _, want := range []string{text + "/training (Job)", text + " (MIGLayoutMismatch)", "1. " + text} {
			if !strings.Contains(is.Shown(), want) {
				t.Errorf("%q is not in what people read:\n%s\n%s", want, is.Shown(), is.Raw())
			}
		}
		if is.Summary() != text {
			t.Errorf("its title is %q", is.Summary())
		}
	}
}
