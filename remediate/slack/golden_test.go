package slack_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/unpend/unpend/rca"
	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/notice"
	"github.com/unpend/unpend/remediate/notifytest"
	"github.com/unpend/unpend/remediate/slack"
)

var update = flag.Bool("update", false, "write the golden messages")

// summary is a finding as it travels.
func summary(t *testing.T, d diagnosis.Diagnosis) *diagnosis.Summary {
	t.Helper()
	body, err := d.Message()
	if err != nil {
		t.Fatal(err)
	}
	var s diagnosis.Summary
	if err := json.Unmarshal(body, &s); err != nil {
		t.Fatal(err)
	}
	return &s
}

// scenario is the first finding of a dump.
func scenario(t *testing.T, folder string) notice.Proposal {
	t.Helper()
	st, err := cluster.FromFiles([]string{folder}, nil)
	if err != nil {
		t.Fatal(err)
	}
	found, err := rca.Diagnose(t.Context(), st, rca.Options{})
	if err != nil || len(found) == 0 {
		t.Fatalf("%s: %d findings, %v", folder, len(found), err)
	}
	s := summary(t, found[0])
	return notice.Proposal{Incident: s.Incident, Finding: s, Read: s.Pods.Since.Add(time.Minute)}
}

// oneOfEach is a scenario for every cause that has one.
func oneOfEach(t *testing.T) (folders []string) {
	t.Helper()
	for _, id := range diagnosis.Catalogue() {
		found, err := filepath.Glob(filepath.Join("..", "..", "testdata", "scenarios", string(id)+"*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range found {
			if name := filepath.Base(f); name == string(id) || strings.HasPrefix(name, string(id)+"-") {
				folders = append(folders, f)
				break
			}
		}
	}
	return folders
}

// Every cause is told as people read it in the channel, within Slack's limits: a headline
// that fits a phone, at most twelve blocks, a next command.
func TestGoldenMessages(t *testing.T) {
	clock := notifytest.NewClock()
	w := newWorkspace(t, clock)
	n := w.New(t, clock, slog.New(slog.DiscardHandler))
	var got strings.Builder
	told := 0
	for _, folder := range oneOfEach(t) {
		p := scenario(t, folder)
		p.Incident = fmt.Sprintf("gpu-%010x", told) // some are of the same workload
		p.Finding.Incident = p.Incident
		if err := clock.Sleep(t.Context(), time.Hour); err != nil { // no storm
			t.Fatal(err)
		}
		if err := n.Notify(t.Context(), p); err != nil {
			t.Fatalf("%s: %v", folder, err)
		}
		told++
		all := w.Server.Messages("")
		m := all[len(all)-1]
		var blocks []any
		if err := json.Unmarshal(m.Blocks, &blocks); err != nil || len(blocks) > 12 || len(all) != told {
			t.Errorf("%s: %d blocks, %d messages after %d, %v", folder, len(blocks), len(all), told, err)
		}
		shown := m.Shown()
		first, _, _ := strings.Cut(shown, "\n")
		if len([]rune(first)) > 80 || !strings.Contains(shown, "kubectl unpend ") {
			t.Errorf("%s: its headline has %d characters, or no command follows:\n%s", folder, len([]rune(first)), shown)
		}
		for _, line := range slack.Preview(p, "prod", true) {
			if !strings.Contains(shown, line) && !strings.HasPrefix(line, "[ ") {
				t.Errorf("%s: the preview has %q, the message has\n%s", folder, line, shown)
			}
		}
		fmt.Fprintf(&got, "=== %s\n%s", filepath.Base(folder), shown)
	}
	if told < 60 {
		t.Errorf("%d causes have a scenario", told)
	}
	const golden = "testdata/causes.txt"
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
}
