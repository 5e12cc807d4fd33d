package service

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/unpend/unpend/cmd/internal/bus"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/notice"
	"github.com/unpend/unpend/remediate/plan"
	"github.com/unpend/unpend/remediate/slack/fakeslack"
	"github.com/unpend/unpend/remediate/v1alpha1"
	"github.com/unpend/unpend/testdata/controlplane"
	"github.com/unpend/unpend/watcher/incident"
)

const toldOf = "gpu-0123456789"

// teller is a service that has nothing to do but to tell, on a bus and in a Slack that
// outlive it.
func teller(t testing.TB, b *bus.Bus, channel *fakeslack.Server, plans *dynamicfake.FakeDynamicClient) (*Service, *bytes.Buffer) {
	t.Helper()
	token := filepath.Join(t.TempDir(), "token")
	must(t, os.WriteFile(token, []byte(fakeslack.Token+"\n"), 0o600))
	var log bytes.Buffer
	s := &Service{bus: b, now: time.Now, custom: plans, logger: slog.New(slog.NewTextHandler(&log, nil)), registry: prometheus.NewRegistry(),
		client: fake.NewClientset(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem, UID: "0123456789"}})}
	s.slackURL = channel.URL()
	s.config.Slack.TokenFile, s.config.Slack.Channel, s.config.Slack.Cluster = token, fakeslack.Channel, "prod"
	s.ready.set()
	return s, &log
}

// tells runs it until what it tells is so, and ends it.
func tells(t *testing.T, s *Service, what string, is func() bool) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.tellPeople(ctx) }()
	controlplane.Eventually(t, time.Minute, what, func() (bool, string) { return is(), "" })
	cancel()
	if err := <-done; err != nil {
		t.Errorf("%s: it ended with %v", what, err)
	}
}

func remediations() *dynamicfake.FakeDynamicClient {
	return dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{v1alpha1.Remediations: "RemediationList", v1alpha1.Approvals: "ApprovalList"})
}

func publish(t testing.TB, b *bus.Bus, d diagnosis.Diagnosis) {
	t.Helper()
	body, err := d.Message()
	must(t, err)
	must(t, b.PublishNewer(t.Context(), bus.Diagnoses, d.Incident, d.Headline, body, func([]byte) bool { return false }))
}

// What is published is told in the channel, once, whichever process goes on; how its plan
// goes and that it is over edits the message.
func TestPeopleAreTold(t *testing.T) {
	t.Parallel() // it waits
	b, err := bus.Open(t.Context(), bus.Options{Cluster: "here", Memory: true})
	must(t, err)
	defer b.Close()
	channel := fakeslack.New(time.Now)
	defer channel.Close()
	shows := func(text string, replies int) func() bool { // the last is what comes last
		return func() bool {
			all := channel.Messages("")
			return len(all) > 0 && strings.Contains(all[len(all)-1].Shown(), text) && len(channel.Messages(all[0].TS)) == replies
		}
	}
	d := diagnosis.Diagnosis{Incident: toldOf, Workload: incident.Ref{Kind: "Job", Namespace: "ml", Name: "training"}, Pods: diagnosis.WaitingPods{Waiting: 1, Since: time.Now()}, Headline: "ml/training waits: needs a 2g",
		Causes: []diagnosis.Cause{{ID: diagnosis.MIGFull, Certainty: diagnosis.Proven, Says: "it is full"}}}
	publish(t, b, d)
	plans := remediations()
	s, _ := teller(t, b, channel, plans)
	tells(t, s, "the finding", func() bool {
		return len(channel.Messages("")) == 1 && len(channel.Messages(channel.Messages("")[0].TS)) == 1
	})

	d.Headline = "ml/training waits: needs a 3g"
	publish(t, b, d)
	began := metav1.NewMicroTime(time.Now())
	rem := &v1alpha1.Remediation{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Remediation"}, ObjectMeta: metav1.ObjectMeta{Name: strings.Repeat("a", 64), UID: "u"},
		Spec: v1alpha1.RemediationSpec{Incident: toldOf, Title: "repartition gpu-1"}}
	made, err := plan.Store{Dynamic: plans}.Record(t.Context(), rem)
	must(t, err)
	s, _ = teller(t, b, channel, plans)
	tells(t, s, "the plan", shows("is recorded, and nobody has decided: repartition gpu-1", 2))
	if !shows("needs a 3g", 2)() {
		t.Errorf("%+v", channel.Messages(""))
	}

	made.Status = v1alpha1.RemediationStatus{Phase: v1alpha1.Running, Progress: "3/5", Began: &began, ApprovedBy: []string{"ada"}, Journal: []v1alpha1.Entry{{Step: "0/cordon", Text: "cordon gpu-1", Began: began}}}
	must(t, plan.Store{Dynamic: plans}.Save(t.Context(), made))
	s, _ = teller(t, b, channel, plans)
	tells(t, s, "its step", shows("approved by ada → step 3/5: cordon gpu-1", 3))

	n := notice.Notice{What: notice.Succeeded, Incident: toldOf, Plan: made.Name, Title: "repartition gpu-1", Began: began.Time, Since: began.Add(4 * time.Minute), Approvers: []string{"ada"}}
	must(t, notices{func(context.Context) (*bus.Bus, error) { return b, nil }}.publish(t.Context(), n))
	s, _ = teller(t, b, channel, plans)
	tells(t, s, "its end", shows("done in 4m0s: repartition gpu-1", 4))

	must(t, publishIncident(b)(t.Context(), incident.Incident{ID: toldOf, Resolved: true, Newest: "9"}))
	s, _ = teller(t, b, channel, plans)
	tells(t, s, "that it is over", shows("✔ Resolved: ml/training waits: needs a 3g", 4))
	if all := channel.Messages(""); len(all) != 1 {
		t.Errorf("%d messages", len(all))
	}
}

// A Slack that does not let us in is counted, said once in the log and shown in /readyz,
// which stays ready; once it does, everything is told.
func slackFailsAlone(t *testing.T) {
	b, err := bus.Open(t.Context(), bus.Options{Cluster: "here", Memory: true})
	must(t, err)
	defer b.Close()
	channel := fakeslack.New(time.Now)
	defer channel.Close()
	s, log := teller(t, b, channel, remediations())
	channel.Fail(fakeslack.Soft("not_in_channel"), fakeslack.Soft("not_in_channel"))
	for _, id := range []string{"gpu-aaaaaaaaaa", "gpu-bbbbbbbbbb"} {
		publish(t, b, diagnosis.Diagnosis{Incident: id, Headline: id + " waits", Pods: diagnosis.WaitingPods{Since: time.Now()}})
	}
	ready := func() string {
		w := httptest.NewRecorder()
		s.ready.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/readyz", nil))
		return w.Result().Status + " " + w.Body.String()
	}
	const why = "post a message: Slack says not_in_channel: the app is not in slack.channel: say /invite @unpend there"
	seen := false
	tells(t, s, "both, in the end", func() bool {
		is := ready()
		seen = seen || strings.HasPrefix(is, "200 OK ok\nslack is not told since ") && strings.HasSuffix(is, ": "+why+"\n")
		return len(channel.Messages("")) == 2
	})
	if !seen || ready() != "200 OK ok\n" {
		t.Errorf("/readyz showed it: %v, and says %q now", seen, ready())
	}
	if all := channel.Messages(""); !strings.HasPrefix(all[0].Text, "gpu-aaaaaaaaaa") || !strings.HasPrefix(all[1].Text, "gpu-bbbbbbbbbb") {
		t.Errorf("out of order: %+v", all)
	}
	if got := log.String(); strings.Count(got, "people are not told") != 1 || strings.Count(got, "people are told again") != 1 || !strings.Contains(got, why) || strings.Contains(got, fakeslack.Token) {
		t.Errorf("the log says %s", got)
	}
	families, err := s.registry.Gather()
	must(t, err)
	for _, f := range families {
		if f.GetName() == "unpend_sink_errors_total" && f.GetMetric()[0].GetCounter().GetValue() != 2 {
			t.Errorf("%v", f)
		}
	}
}

// A Slack that asks us to wait, breaks, loses what it was sent and what it answers holds up no
// pager, and in the end has each message once, in order.
func slackStruggles(t *testing.T) {
	b, err := bus.Open(t.Context(), bus.Options{Cluster: "here", Memory: true})
	must(t, err)
	defer b.Close()
	channel, pager := fakeslack.New(time.Now), newPagerDuty(t)
	defer channel.Close()
	s, log := teller(t, b, channel, remediations())
	pagedBy(t, s, pager)
	everything := true
	s.config.PagerDuty.When.Everything = &everything
	channel.Fail(fakeslack.Code(429, 2*time.Second), fakeslack.Code(503, 0), fakeslack.Lost, fakeslack.Silent, fakeslack.Soft("ratelimited"))
	for _, id := range []string{"gpu-aaaaaaaaaa", "gpu-bbbbbbbbbb"} {
		publish(t, b, diagnosis.Diagnosis{Incident: id, Headline: id + " waits", Pods: diagnosis.WaitingPods{Since: time.Now()}})
	}
	const paged = "trigger gpu-aaaaaaaaaa.01234567, trigger gpu-bbbbbbbbbb.01234567"
	intime := false
	tells(t, s, "all on the pager, then all in the channel", func() bool {
		said, _ := pager.story()
		all := channel.Messages("")
		intime = intime || said == paged && len(all) == 0
		return len(all) == 2 && len(channel.Messages(all[0].TS)) == 1 && len(channel.Messages(all[1].TS)) == 1
	})
	all := channel.Messages("")
	if said, _ := pager.story(); !intime || said != paged || len(all) != 2 || !strings.HasPrefix(all[0].Text, "gpu-aaaaaaaaaa") || !strings.HasPrefix(all[1].Text, "gpu-bbbbbbbbbb") {
		t.Errorf("in time: %v; the pager was told %q; the channel has %+v", intime, said, all)
	}
	if strings.Contains(log.String(), fakeslack.Token) {
		t.Errorf("the log has the token: %s", log)
	}
}

// A token that was revoked is told before there is anything else to tell: in /readyz, which
// `unpend status` shows, and in the log, once.
func TestSlackIsLookedAtFirst(t *testing.T) {
	b, err := bus.Open(t.Context(), bus.Options{Cluster: "here", Memory: true})
	must(t, err)
	defer b.Close()
	channel := fakeslack.New(time.Now)
	defer channel.Close()
	s, log := teller(t, b, channel, remediations())
	must(t, os.WriteFile(s.config.Slack.TokenFile, []byte("xoxb-revoked"), 0o600))
	const why = "Slack says invalid_auth: the bot token in slack.tokenFile is not one: install the app again and write its token there"
	tells(t, s, "that the token is none", func() bool {
		w := httptest.NewRecorder()
		s.ready.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/readyz", nil))
		return strings.Contains(w.Body.String(), "slack is not told since ") && strings.Contains(w.Body.String(), why)
	})
	if got := log.String(); strings.Count(got, why) != 1 || strings.Contains(got, "xoxb-") || channel.Writes() != 0 {
		t.Errorf("%d writes, and the log says %s", channel.Writes(), got)
	}
}

// A place whose token is not there is off, which /readyz and the log say, and nothing else is; it
// is told once the token is there.
func TestPlaceWithoutItsSecret(t *testing.T) {
	t.Parallel() // it waits
	b, err := bus.Open(t.Context(), bus.Options{Cluster: "here", Memory: true})
	must(t, err)
	defer b.Close()
	channel := fakeslack.New(time.Now)
	defer channel.Close()
	s, log := teller(t, b, channel, remediations())
	later := filepath.Join(t.TempDir(), "later")
	token := s.config.Slack.TokenFile
	s.config.Slack.TokenFile = later
	must(t, publishIncident(b)(t.Context(), incident.Incident{ID: toldOf, Newest: "9"}))
	publish(t, b, diagnosis.Diagnosis{Incident: toldOf, Headline: "it waits", Pods: diagnosis.WaitingPods{Since: time.Now()}, Causes: []diagnosis.Cause{{ID: diagnosis.MIGFull, Says: "it is full"}}})
	off := later + " is not there: make the Secret that holds it"
	made := false
	tells(t, s, "that it is off, and then the finding", func() bool {
		w := httptest.NewRecorder()
		s.ready.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/readyz", nil))
		if !made && w.Code == http.StatusOK && strings.HasPrefix(w.Body.String(), "ok\nslack is not told since ") && strings.Contains(w.Body.String(), off) {
			if channel.Writes() != 0 {
				t.Errorf("%d writes without a token", channel.Writes())
			}
			must(t, os.Symlink(token, later))
			made = true
		}
		return made && w.Body.String() == "ok\n" && len(channel.Messages("")) == 1
	})
	if got := log.String(); strings.Count(got, off) != 1 || strings.Count(got, "people are told again") != 1 {
		t.Errorf("the log says %s", got)
	}
}

// A part whose file is not there is off, and is begun once it is.
func TestPartWithoutItsFile(t *testing.T) {
	t.Parallel() // it waits
	var log bytes.Buffer
	s := &Service{logger: slog.New(slog.NewTextHandler(&log, nil))}
	file, begun := filepath.Join(t.TempDir(), "later"), make(chan error)
	go func() {
		begun <- s.whenThere(t.Context(), "hooks are not listened to", func(context.Context) error { return errors.New("it ran") }, "", file)
	}()
	controlplane.Eventually(t, time.Minute, "it is off", func() (bool, string) {
		return slices.Equal(s.ready.whatIsOff(), []string{"hooks are not listened to: " + file + " is not there: make the Secret that holds it, or name another key of it"}), ""
	})
	must(t, os.WriteFile(file, nil, 0o600))
	if err := <-begun; err == nil || err.Error() != "it ran" || len(s.ready.whatIsOff()) > 0 {
		t.Error(err, s.ready.whatIsOff())
	}
	if n := strings.Count(log.String(), "a part is off"); n != 1 {
		t.Errorf("that was said %d times", n)
	}
}
