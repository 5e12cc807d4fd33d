package service

import (
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/unpend/unpend/cmd/internal/bus"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/notice"
	"github.com/unpend/unpend/remediate/slack"
	"github.com/unpend/unpend/remediate/slack/fakeslack"
	"github.com/unpend/unpend/watcher/incident"
	"github.com/unpend/unpend/watcher/webhook"
)

// Who acknowledges a page in PagerDuty is named where the incident is shown, until they take it
// back. What is said of a page of another cluster, of no incident, or came late, changes nothing.
func TestAcknowledgedInPagerDuty(t *testing.T) {
	t.Parallel() // it waits
	b, err := bus.Open(t.Context(), bus.Options{Cluster: "here", Memory: true})
	must(t, err)
	defer b.Close()
	channel := fakeslack.New(time.Now)
	defer channel.Close()
	since := time.Now().Add(-time.Hour).UTC().Truncate(time.Second)
	publish(t, b, diagnosis.Diagnosis{Incident: toldOf, Workload: incident.Ref{Kind: "Job", Namespace: "ml", Name: "training"}, Headline: "ml/training waits", Pods: diagnosis.WaitingPods{Waiting: 1, Since: since}})
	i := incident.Incident{ID: toldOf, Workload: incident.Ref{Kind: "Job", Namespace: "ml", Name: "training"}, Pods: []incident.PodRef{}, Waiting: 1, Newest: "1"}
	id, body, err := i.Message()
	must(t, err)
	must(t, b.PublishNewer(t.Context(), bus.Incidents, i.ID, id, body, i.Older))
	shown := func() string {
		if all := channel.Messages(""); len(all) == 1 {
			return all[0].Shown()
		}
		return ""
	}
	says := func(s *Service, key string, minute int, sees bool, by string) {
		must(t, s.said("01234567")(t.Context(), webhook.Said{Key: key, By: by, At: since.Add(time.Duration(minute) * time.Minute), Sees: sees}))
	}
	s, _ := teller(t, b, channel, remediations())
	step := 0
	tells(t, s, "who sees to it, and that nobody does", func() bool {
		is := shown()
		switch {
		case step == 0 && is != "":
			says(s, toldOf+".89abcdef", 1, true, "of another cluster")
			says(s, "gpu-ffffffffff.01234567", 1, true, "of no incident")
			says(s, toldOf+".01234567", -1, true, "before it waited")
			says(s, toldOf+".01234567", 10, true, "Ada <!here>")
			step++
		case step == 1 && strings.Contains(is, "acknowledged in PagerDuty by Ada"):
			says(s, toldOf+".01234567", 9, false, "late") // it came late
			says(s, toldOf+".01234567", 11, false, "Ada")
			step++
		case step == 2 && !strings.Contains(is, "acknowledged"):
			return true
		}
		return false
	})
	if wrong := channel.Complaints(); len(wrong) > 0 || len(channel.Messages("")) != 1 {
		t.Errorf("%v", wrong)
	}
}

// Who has snoozed a message in Slack is told of to every place, once, and once more that it is
// over; where no clicks are heard nobody has.
func TestSnoozedInSlack(t *testing.T) {
	b, err := bus.Open(t.Context(), bus.Options{Cluster: "here", Memory: true})
	must(t, err)
	defer b.Close()
	now := time.Now()
	s := &Service{bus: b, now: func() time.Time { return now }, logger: slog.New(slog.DiscardHandler)}
	k := &sink{Service: s, name: "jira", place: "jira"}
	kept := func(all map[string]notice.Snoozed) {
		body, err := json.Marshal(all)
		must(t, err)
		must(t, memory{b, "slack"}.save(t.Context(), slack.SnoozesKey, body))
	}
	wanted := func() string {
		k.snoozes(t.Context())
		all := slices.Sorted(maps.Keys(k.wanted))
		k.wanted = nil
		return strings.Join(all, " ")
	}
	z := notice.Snoozed{By: "ada@example.com", At: now, Until: now.Add(time.Hour).UTC()}
	kept(map[string]notice.Snoozed{toldOf: z, "gpu-ffffffffff": {By: "bob", Until: now.Add(-time.Minute)}})
	if got := wanted(); got != "" {
		t.Errorf("nobody's clicks are heard, and %q is told of", got)
	}
	s.config.Slack.AppTokenFile = "app"
	if first, second := wanted(), wanted(); first != toldOf || second != "" {
		t.Errorf("told of %q, and then of %q", first, second)
	}
	if got, err := k.snoozedOf(t.Context(), toldOf); err != nil || got == nil || got.By != z.By || !got.Until.Equal(z.Until) {
		t.Errorf("%+v, %v", got, err)
	}
	now = now.Add(time.Hour)
	if first, second := wanted(), wanted(); first != toldOf || second != "" {
		t.Errorf("once it is over, of %q, and then of %q", first, second)
	}
	if got, err := k.snoozedOf(t.Context(), toldOf); err != nil || got != nil {
		t.Errorf("%+v, %v", got, err)
	}
}
