package jira_test

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/unpend/unpend/remediate/jira"
	"github.com/unpend/unpend/remediate/notice"
	"github.com/unpend/unpend/remediate/notifytest"
	"github.com/unpend/unpend/remediate/notifytest/scenarios"
)

// A preview has the words of the ticket, of its labels and of its comments, in their order, for
// every cause and when its plan has begun and has ended.
func TestPreviewReadsAsTheTicket(t *testing.T) {
	words := func(parts ...string) []string {
		return slices.DeleteFunc(strings.Fields(strings.Join(parts, "\n")), func(w string) bool { return w == "##" || w == "•" || w == "-" })
	}
	clock := notifytest.NewClock()
	s := newSite(t, clock, jira.Cloud)
	n := s.New(t, clock, slog.New(slog.DiscardHandler))
	for i, c := range scenarios.OneOfEach(t, "../..") {
		begun, ended := c.Proposal, c.Proposal
		run := notice.Notice{What: notice.Running, Incident: c.Incident, Plan: strings.Repeat("ab", 32), Title: "evict a pod", Began: clock.Now(), Since: clock.Now(), Approvers: []string{"ada@example.com"}}
		begun.Plans = []notice.Notice{run}
		run.What, run.Since = notice.Succeeded, run.Began.Add(time.Minute)
		ended.Plans, ended.Resolved = []notice.Notice{run}, run.Since
		told(t, n, begun, ended)
		is := s.Issues()[i]
		want := []string{is.Summary(), "labels: " + strings.Join(is.Labels(), " "), is.Shown()}
		for _, comment := range is.Comments {
			want = append(want, "comment:", comment.Shown())
		}
		got := jira.Preview("prod", 80, 10, begun, ended)
		if diff := cmp.Diff(words(want...), words(got...)); diff != "" || len(is.Comments) != 3 {
			t.Errorf("%s: %s", c.Name, diff)
		}
		if got[2] != "" || slices.Contains(got[3:], "\n") || !slices.Contains(got, "Fixes") {
			t.Errorf("%s: its lines are %q", c.Name, got)
		}
		if short := jira.Preview("prod", 60, 1, begun, ended); len(c.Finding.Fixes) > 1 {
			if all := strings.Join(short, "\n"); !strings.Contains(all, fmt.Sprintf("and %d more: kubectl unpend show ", len(c.Finding.Fixes)+c.Finding.LeftOut["fixes"]-1)) || strings.Contains(all, "\n2. ") || !strings.Contains(all, "\n1. ") {
				t.Errorf("%s: with room for one fix it says\n%s", c.Name, all)
			}
		}
	}
}
