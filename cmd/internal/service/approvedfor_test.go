package service

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/cmd/internal/bus"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/jira/fakejira"
	"github.com/unpend/unpend/remediate/notice"
	"github.com/unpend/unpend/remediate/plan"
	"github.com/unpend/unpend/remediate/slack/fakeslack"
	"github.com/unpend/unpend/remediate/v1alpha1"
	"github.com/unpend/unpend/watcher/incident"
)

// A plan that is carried out cordons and drains, which is a new diagnosis each time, the last
// of them just before the pod runs. The message and the ticket go on saying what it was
// approved for, in a process that starts only then too, and so they do once it is done; without
// a plan the newest is told.
func TestWhatAPlanWasApprovedForIsTold(t *testing.T) {
	t.Parallel() // it waits
	b, err := bus.Open(t.Context(), bus.Options{Cluster: "here", Memory: true})
	must(t, err)
	defer b.Close()
	channel, site := fakeslack.New(time.Now), fakejira.New(time.Now, true)
	defer channel.Close()
	defer site.Close()
	plans := remediations()
	publisher := &publisher{Service: &Service{bus: b, out: io.Discard, now: time.Now, custom: plans}}
	hash := strings.Repeat("a", 64)
	says := func(incidentID, words, plan string, waiting int) {
		d := diagnosis.Diagnosis{Incident: incidentID, Workload: incident.Ref{Kind: "Job", Namespace: "ml", Name: "training"}, Pods: diagnosis.WaitingPods{Waiting: 1, Since: time.Now().Add(-time.Minute).Truncate(time.Second)}, Headline: "ml/training waits: " + words,
			Causes: []diagnosis.Cause{{ID: diagnosis.MIGFull, Certainty: diagnosis.Proven, Says: words}}}
		if plan != "" {
			d.Fixes = []diagnosis.Fix{{ID: 1, Kind: diagnosis.RepartitionGPU, Title: "repartition gpu-1", Automatic: true, Plan: plan}}
		}
		_, err := publisher.publish(t.Context(), d, said{}, said{waiting: waiting})
		must(t, err)
	}
	const other = "gpu-bbbbbbbbbb"
	for i, id := range []string{toldOf, other} {
		says(id, "it is full", strings.Repeat(string("ab"[i]), 64), 1)
	}
	began := metav1.NewMicroTime(time.Now())
	rem, err := plan.Store{Dynamic: plans}.Record(t.Context(), &v1alpha1.Remediation{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Remediation"}, ObjectMeta: metav1.ObjectMeta{Name: hash, UID: "u"},
		Spec: v1alpha1.RemediationSpec{Incident: toldOf, Title: "repartition gpu-1"}})
	must(t, err)
	rem.Status = v1alpha1.RemediationStatus{Phase: v1alpha1.Running, Progress: "3/5", Began: &began, ApprovedBy: []string{"ada"}, Journal: []v1alpha1.Entry{{Step: "0/cordon", Text: "cordon gpu-1", Began: began}}}
	must(t, plan.Store{Dynamic: plans}.Save(t.Context(), rem))
	for i, words := range []string{"unpend has cordoned it", "nobody reports it"} {
		says(toldOf, words, "", i+2)
		says(other, words, "", i+2)
	}

	// tells wants both places to say these words, and how the plan stands, and of the other
	// incident the newest.
	saysBoth := func(what string, words ...string) {
		s, _ := teller(t, b, channel, plans)
		tracker(t, s, site)
		tells(t, s, what, func() bool {
			all := map[string]string{}
			for _, m := range channel.Messages("") {
				all["slack "+incidentOf(m)] = m.Shown()
			}
			for _, i := range site.Issues() {
				all["jira "+strings.TrimPrefix(i.Labels()[1], "unpend-prod-")] = i.Summary() + "\n" + i.Shown()
			}
			if len(all) != 4 {
				return false
			}
			for where, text := range all {
				want := append([]string{"it is full"}, words...)
				if strings.HasSuffix(where, other) {
					want = []string{"nobody reports it"}
				}
				for _, w := range want {
					if !strings.Contains(text, w) {
						return false
					}
				}
				if strings.Contains(text, "unpend has cordoned") || strings.HasSuffix(where, toldOf) && strings.Contains(text, "nobody reports it") {
					t.Fatalf("%s says %s", where, text)
				}
			}
			return true
		})
	}
	saysBoth("the finding, and the plan under way", "approved by ada")

	n := notice.Notice{What: notice.Succeeded, Incident: toldOf, Plan: hash, Title: "repartition gpu-1", Began: began.Time, Since: began.Add(4 * time.Minute), Approvers: []string{"ada"}}
	must(t, notices{func(context.Context) (*bus.Bus, error) { return b, nil }}.publish(t.Context(), n))
	must(t, publishIncident(b)(t.Context(), incident.Incident{ID: toldOf, Resolved: true, Newest: "9"}))
	saysBoth("what was cured, beside that it was", "done in 4m0s: repartition gpu-1", "Nobody of it waits any more")
}

// incidentOf is which incident a message of Slack is of.
func incidentOf(m fakeslack.Message) string {
	for _, id := range []string{toldOf, "gpu-bbbbbbbbbb"} {
		if strings.Contains(m.Shown(), id) {
			return id
		}
	}
	return "?"
}
