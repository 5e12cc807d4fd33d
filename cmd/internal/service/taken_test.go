package service

import (
	"strings"
	"testing"
	"time"

	"github.com/unpend/unpend/cmd/internal/bus"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/slack/fakeslack"
	"github.com/unpend/unpend/watcher/incident"
	"github.com/unpend/unpend/watcher/webhook"
)

// Who acknowledges a page in PagerDuty is named where the incident is shown, until they take it
// back. What is said of a page of another cluster, of no incident, or came late, changes nothing.
func TestAcknowledgedInPagerDuty(t *testing.T) {
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
