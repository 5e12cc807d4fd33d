package paging

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/unpend/unpend/remediate/notice"
	"github.com/unpend/unpend/remediate/notifytest"
)

func TestSuite(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			notifytest.Run(t, func(t *testing.T, c *notifytest.Clock) notifytest.Service { return newFake(t, c, k) })
		})
	}
}

const incidentID = "gpu-0123456789"

func finding() notice.Proposal {
	return notifytest.Finding(incidentID, "ml/training waits: needs 1×2g.10gb")
}

func withPlan(p notice.Proposal, what string, minute int, approvers ...string) notice.Proposal {
	p.Plans = append(p.Plans, notice.Notice{What: what, Incident: incidentID, Plan: "24ac8de5f00d24ac", Title: "repartition gpu-1", Node: "gpu-1", Reason: "MIG manager says failed", Since: noon.Add(time.Duration(minute) * time.Minute), Approvers: approvers})
	return p
}

func resolved(p notice.Proposal) notice.Proposal {
	p.Resolved = noon.Add(time.Hour)
	return p
}

// the whole log of all pages, and what is open.
func (f *fake) story() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []string
	for _, p := range f.pages {
		out = append(out, strings.Join(p.log, " ")+" = "+p.state)
	}
	return strings.Join(out, "; ")
}

// A page lives with its incident: it is sent, acknowledged once somebody has approved, sent
// again when that came to nothing, and ends; how far a plan has come wakes nobody. Waiting
// again is a page again.
func TestLifeOfAPage(t *testing.T) {
	running := withPlan(finding(), notice.Running, 1, "ada")
	further := withPlan(finding(), notice.Running, 2, "ada")
	further.Plans[0].Progress, further.Plans[0].Step = "3/9", "evict ml/web-1"
	failed := withPlan(finding(), notice.Failed, 3, "ada")
	for name, want := range map[string]string{
		"pagerduty":    "trigger trigger acknowledge trigger resolve = over; trigger = firing",
		"alertmanager": "5m0s 5m0s 5m0s 0s = over; 5m0s = firing",
		"opsgenie":     "create acknowledge notes close = over; create = firing",
		"webhook":      "opened changed changed resolved = over; opened = firing",
	} {
		k := kinds[0]
		for _, o := range kinds {
			if o.name == name {
				k = o
			}
		}
		clock := notifytest.NewClock()
		f := newFake(t, clock, k)
		n := f.pager(t, clock, When{Everything: true})
		for _, p := range []notice.Proposal{finding(), running, further, failed, resolved(failed), resolved(failed), finding()} {
			if err := n.Notify(t.Context(), p); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		if got := f.story(); got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// What a vendor takes while the process stops is kept: the next one does not send it again.
func TestNothingIsSentAgainAfterAStop(t *testing.T) {
	for _, k := range kinds {
		clock := notifytest.NewClock()
		f := newFake(t, clock, k)
		ctx, stop := context.WithCancel(t.Context())
		f.taking = stop
		if err := f.pager(t, clock, When{Everything: true}).Notify(ctx, finding()); err != nil || ctx.Err() == nil {
			t.Errorf("%s: %v, stopped: %v", k.name, err, ctx.Err())
		}
		if err := f.pager(t, clock, When{Everything: true}).Notify(t.Context(), finding()); err != nil || f.Writes() != 1 {
			t.Errorf("%s: %d requests, %v", k.name, f.Writes(), err)
		}
	}
}

// Nobody is paged for what the policy does not name; a parked node is worth a page until it
// was given back, and waiting is from the moment on that it takes too long.
func TestPolicy(t *testing.T) {
	parked := withPlan(finding(), notice.Parked, 1, "ada")
	released := withPlan(finding(), notice.Parked, 1, "ada")
	released.Plans[0].Released = true
	alarm := notice.Proposal{Incident: "breaker", Alarm: "the breaker is open: 3 of 10 GPU nodes went out of use", Read: noon}
	closed := alarm
	closed.Resolved = noon.Add(time.Minute)
	usual := When{Parked: true, Breaker: true}
	least, above := int32(1000), int32(1001)
	of := func(priority *int32) notice.Proposal {
		p := finding()
		p.Finding.Pods.Priority = priority
		return p
	}
	for name, tc := range map[string]struct {
		when When
		told []notice.Proposal
		want string
	}{
		"nothing":                 {When{}, []notice.Proposal{finding(), parked, alarm}, ""},
		"a finding":               {usual, []notice.Proposal{finding(), withPlan(finding(), notice.Failed, 1)}, ""},
		"parked":                  {usual, []notice.Proposal{finding(), parked}, "trigger = firing"},
		"parked, nobody waits":    {usual, []notice.Proposal{parked, resolved(parked)}, "trigger trigger = firing"},
		"given back":              {usual, []notice.Proposal{parked, released}, "trigger resolve = over"},
		"given back long before":  {usual, []notice.Proposal{released}, ""},
		"another plan after it":   {usual, []notice.Proposal{withPlan(parked, notice.Rejected, 9)}, "trigger = firing"},
		"the breaker":             {usual, []notice.Proposal{alarm, alarm}, "trigger = firing"},
		"the breaker is closed":   {usual, []notice.Proposal{alarm, closed, closed}, "trigger resolve = over"},
		"not parked":              {When{Breaker: true}, []notice.Proposal{parked}, ""},
		"long enough":             {When{Waiting: 10 * time.Minute}, []notice.Proposal{finding()}, "trigger = firing"}, // since 13:48
		"not yet":                 {When{Waiting: 20 * time.Minute}, []notice.Proposal{finding()}, ""},
		"long, and urgent enough": {When{Waiting: 10 * time.Minute, MinPriority: &least}, []notice.Proposal{of(&least)}, "trigger = firing"},
		"long, and not urgent":    {When{Waiting: 10 * time.Minute, MinPriority: &above}, []notice.Proposal{of(&least)}, ""},
		"urgent, not long enough": {When{Waiting: 20 * time.Minute, MinPriority: &least}, []notice.Proposal{of(&above)}, ""},
		"of no known priority":    {When{Waiting: 10 * time.Minute, MinPriority: &least}, []notice.Proposal{of(nil)}, "trigger = firing"},
		"every urgent finding":    {When{Everything: true, MinPriority: &above}, []notice.Proposal{of(&least), of(&above)}, "trigger = firing"},
		"parked, not urgent":      {When{Parked: true, MinPriority: &above}, []notice.Proposal{withPlan(of(&least), notice.Parked, 1, "ada")}, "trigger = firing"},
		"over before it was told": {When{Everything: true}, []notice.Proposal{resolved(finding())}, ""},
	} {
		clock := notifytest.NewClock()
		f := newFake(t, clock, kinds[0])
		n := f.pager(t, clock, tc.when)
		for _, p := range tc.told {
			if err := n.Notify(t.Context(), p); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		if got := f.story(); got != tc.want {
			t.Errorf("%s: %q", name, got)
		}
		if got := f.Messages(); strings.HasSuffix(tc.want, "= firing") && tc.when == usual && !strings.HasPrefix(got[0].Text, "critical ") {
			t.Errorf("%s: %s", name, got[0].Text)
		}
	}
}

// What is not told because it does not wait long enough is due once it does; what a vendor
// would forget is due before it does, and is told again then though nothing is news.
func TestDue(t *testing.T) {
	clock := notifytest.NewClock()
	f := newFake(t, clock, kinds[0])
	n := f.pager(t, clock, When{Waiting: 20 * time.Minute})
	pass := func(d time.Duration) {
		t.Helper()
		if err := clock.Sleep(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}
	tell := func(n *Pager) {
		t.Helper()
		if err := n.Notify(t.Context(), finding()); err != nil {
			t.Fatal(err)
		}
	}
	tell(n)
	pass(5 * time.Minute)
	if got := n.Due(); len(got) != 0 {
		t.Errorf("due after 19 min: %v", got)
	}
	pass(2 * time.Minute)
	if got := n.Due(); fmt.Sprint(got) != "["+incidentID+"]" {
		t.Errorf("due after 21 min: %v", got)
	}
	tell(n)
	if got := f.story(); got != "trigger = firing" {
		t.Errorf("%q", got)
	}
	clock = notifytest.NewClock()
	f = newFake(t, clock, kinds[1])
	n = f.pager(t, clock, When{Everything: true})
	tell(n)
	pass(59 * time.Second)
	tell(n)
	if got, due := f.story(), n.Due(); got != "5m0s = firing" || len(due) != 0 {
		t.Errorf("%q, due %v", got, due)
	}
	pass(2 * time.Second)
	if got := n.Due(); len(got) != 1 {
		t.Errorf("due after a minute: %v", got)
	}
	tell(n)
	if got, due := f.story(), n.Due(); got != "5m0s 5m0s = firing" || len(due) != 0 {
		t.Errorf("%q, due %v", got, due)
	}
	if err := n.Notify(t.Context(), resolved(finding())); err != nil {
		t.Fatal(err)
	}
	pass(time.Hour)
	if got, due := f.story(), n.Due(); got != "5m0s 5m0s 0s = over" || len(due) != 0 {
		t.Errorf("%q, due %v", got, due)
	}
}

// An alert that gets another label is another alert to Alertmanager: the one before ends in
// the same request.
func TestLabelsThatChange(t *testing.T) {
	clock := notifytest.NewClock()
	f := newFake(t, clock, kinds[1])
	n := f.pager(t, clock, When{Everything: true, Parked: true})
	for _, p := range []notice.Proposal{finding(), withPlan(finding(), notice.Parked, 1, "ada")} {
		if err := n.Notify(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	if got := f.story(); got != "5m0s 0s = over; 5m0s = firing" || f.Writes() != 2 {
		t.Errorf("%s in %d requests", got, f.Writes())
	}
}

// What an operator has to mend is said with where, and what is gone is left alone.
func TestRemedies(t *testing.T) {
	clock := notifytest.NewClock()
	f := newFake(t, clock, kinds[0])
	f.Fail(notifytest.Fault{Kind: notifytest.BadToken})
	err := f.pager(t, clock, When{Everything: true}).Notify(t.Context(), finding())
	if want := `pagerduty.keyFile holds no key of an integration of Events API v2: trigger in PagerDuty: the answer is 400 Bad Request: {"status":"invalid event","message":"Event object is invalid","errors":["Invalid routing key"]}`; fmt.Sprint(err) != want {
		t.Error(err)
	}
	o := Options{Client: f.pager(t, clock, When{}).Client, Load: f.pager(t, clock, When{}).Load, Save: f.pager(t, clock, When{}).Save}
	for want, make := range map[string]func() (*Pager, error){
		"pagerduty.keyFile: it holds 5 characters, and an integration key of Events API v2 has 32": func() (*Pager, error) { return PagerDuty(o, "abcde", "") },
		"opsgenie.keyFile: it holds no key":                                   func() (*Pager, error) { return Opsgenie(o, "", "") },
		"webhook.secretFile: it holds no secret":                              func() (*Pager, error) { return Webhook(o, nil, "https://x.example") },
		"webhook.secretFile: a secret is whsec_ and 24 to 64 bytes in base64": func() (*Pager, error) { return Webhook(o, []string{"hunter2"}, "https://x.example") },
		"webhook.url: http://x.example may not be spoken to without TLS: write https://, or list x.example in outbound.allow":                        func() (*Pager, error) { return Webhook(o, []string{theSecret}, "http://x.example/token") },
		"alertmanager.url: an address without a host may not be spoken to: it begins with neither https:// nor http://":                              func() (*Pager, error) { return Alertmanager(o, "alertmanager:9093", "") },
		"pagerduty.url: https://events.example may not be spoken to: a user and password in the address would be shown; name a file that holds them": func() (*Pager, error) { return PagerDuty(o, theKey, "https://a:b@events.example") },
	} {
		if p, err := make(); p != nil || fmt.Sprint(err) != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// A key that PagerDuty does not know is found before anybody is to be paged, and by that nobody
// is. Others cannot be asked, and are not.
func TestCheck(t *testing.T) {
	for _, k := range kinds {
		clock := notifytest.NewClock()
		f := newFake(t, clock, k)
		n := f.pager(t, clock, When{Everything: true})
		f.Fail(notifytest.Fault{Kind: notifytest.BadToken})
		err, want, writes := n.Check(t.Context()), "<nil>", 0
		if k.name == "pagerduty" {
			want, writes = "pagerduty.keyFile holds no key of an integration of Events API v2: resolve in PagerDuty: the answer is 400 Bad Request: "+`{"status":"invalid event","message":"Event object is invalid","errors":["Invalid routing key"]}`, 2
		}
		if fmt.Sprint(err) != want {
			t.Errorf("%s: %v", k.name, err)
		}
		if k.name != "pagerduty" {
			f.Fail()
		}
		if err := n.Check(t.Context()); err != nil || f.Writes() != writes || len(f.Messages()) != 0 {
			t.Errorf("%s: %v after %d writes, %v", k.name, err, f.Writes(), f.Messages())
		}
	}
}
