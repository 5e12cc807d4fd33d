package jira_test

import (
	"flag"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/unpend/unpend/remediate/jira"
	"github.com/unpend/unpend/remediate/notifytest"
	"github.com/unpend/unpend/remediate/notifytest/scenarios"
)

var update = flag.Bool("update", false, "write the golden tickets")

// Every cause is told in a ticket, within Jira's limits: a title that is one line, the
// drawing where there is one, a next command. On Data Center it is the notation that is held,
// on Cloud what people read of the document.
func TestGoldenTickets(t *testing.T) {
	all := scenarios.OneOfEach(t, "../..")
	both(t, func(t *testing.T, d string) {
		clock := notifytest.NewClock()
		s := newSite(t, clock, d)
		n := s.New(t, clock, slog.New(slog.DiscardHandler))
		var got strings.Builder
		for i, c := range all {
			told(t, n, c.Proposal)
			issues := s.Issues()
			if len(issues) != i+1 {
				t.Fatalf("%s: %d tickets", c.Name, len(issues))
			}
			is := issues[i]
			if utf8.RuneCountInString(is.Summary()) > 80 || !strings.Contains(is.Shown(), "kubectl unpend ") || (c.Finding.Drawing != nil) != strings.Contains(is.Shown(), "] none\n") {
				t.Errorf("%s: %s\n%s", c.Name, is.Summary(), is.Shown())
			}
			text := is.Shown()
			if d == jira.DataCenter {
				text = is.Raw() + "\n"
			}
			fmt.Fprintf(&got, "=== %s\n%s\n%s\n\n%s", c.Name, is.Summary(), strings.Join(is.Labels(), " "), text)
		}
		golden := "testdata/" + d + ".txt"
		if *update {
			if err := os.WriteFile(golden, []byte(got.String()), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got.String(), "\n")); diff != "" {
			t.Errorf("with -update it is written again: %s", diff)
		}
	})
}
