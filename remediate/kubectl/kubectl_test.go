package kubectl_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/kubectl"
	"github.com/unpend/unpend/remediate/notice"
	"github.com/unpend/unpend/remediate/notifytest"
)

func TestSuite(t *testing.T) {
	notifytest.Run(t, func(t *testing.T, c *notifytest.Clock) notifytest.Service { return newAPIServer(t, c) })
}

// withFix is a finding whose best fix may be approved.
func withFix() notice.Proposal {
	p := notifytest.Finding("gpu-7f3a01c9be", "ml/training waits: needs 1×2g.10gb")
	p.Finding.Fixes = []diagnosis.FixSummary{{ID: 1, Title: "repartition gpu-1/GPU 0", Automatic: true, Plan: strings.Repeat("0", 64), Class: diagnosis.HarmsNobody, EvictionCount: 3, Effect: &diagnosis.Effect{Runs: 1, Of: 1}, Risk: "low", Proof: diagnosis.Proof{Verdict: diagnosis.Schedules}}}
	return p
}

func tell(t *testing.T, k *kubectl.Kubectl, p notice.Proposal) {
	t.Helper()
	if err := k.Notify(t.Context(), p); err != nil {
		t.Fatal(err)
	}
}

// One Event says what waits, why, the fix and the next command; another finding changes it,
// the same one writes nothing, also when nobody remembers, and after it expired it is made
// again with the next news.
func TestOneEventAPod(t *testing.T) {
	c := notifytest.NewClock()
	a := newAPIServer(t, c)
	k := a.kubectl(t, c)
	tell(t, k, withFix())
	const says = "ml/training waits: needs 1×2g.10gb. MIGLayoutMismatch (proven): not laid out with 2g.10gb. Fix 1, schedules, 1 of 1 pod runs · stops 3 pods · takes <1 min · risk low: repartition gpu-1/GPU 0. Next: kubectl unpend approve gpu-7f3a01c9be#1"
	e := a.all()["training-0"]
	if e == nil || len(a.all()) != 1 || e.Note != says {
		t.Fatalf("%+v, want\n%s", a.all(), says)
	}
	if e.Reason != "Diagnosed" || e.Action != "Diagnose" || e.Type != corev1.EventTypeNormal || e.ReportingController != "unpend.dev/diagnosis" || e.ReportingInstance != "unpend-0" || e.Regarding.UID != "uid-training-0" || e.Regarding.Kind != "Pod" || e.Series != nil {
		t.Errorf("%+v", e)
	}
	a.forget(true, false)
	tell(t, k, withFix())
	if a.Writes() != 1 {
		t.Errorf("%d writes for the same news, which nobody remembers", a.Writes())
	}
	held := withFix()
	held.Finding.Fixes[0].Held = "frozen"
	tell(t, k, held)
	e = a.all()["training-0"]
	if !strings.HasSuffix(e.Note, ". Next: kubectl unpend show gpu-7f3a01c9be") || e.Series == nil || e.Series.Count != 2 || len(a.all()) != 1 {
		t.Errorf("%+v", e)
	}
	a.forget(false, true)
	tell(t, k, held)
	if a.Writes() != 2 || len(a.all()) != 0 {
		t.Error("it is told again though nothing is news")
	}
	tell(t, k, withFix())
	if got := a.all()["training-0"]; got == nil || got.Note != says {
		t.Errorf("%+v", got)
	}
}

// Of many pods the oldest are told, those that are gone are not, and how many are not told is
// said; what is over, and what nothing is known of, says nothing.
func TestTheOldestPodsAreTold(t *testing.T) {
	c := notifytest.NewClock()
	a := newAPIServer(t, c)
	clear(a.pods)
	p := withFix()
	p.Finding.Pods.Names, p.Finding.Pods.Waiting = nil, 40
	for i := range 20 {
		name := fmt.Sprintf("training-%02d", i)
		p.Finding.Pods.Names = append(p.Finding.Pods.Names, name)
		if i != 18 { // it is gone
			a.pods[name] = c.Now().Add(-time.Duration(i) * time.Minute)
		}
	}
	tell(t, a.kubectl(t, c), p)
	got := a.all()
	for _, name := range []string{"training-19", "training-17", "training-16", "training-15", "training-14"} {
		if e := got[name]; e == nil || !strings.Contains(e.Note, ". 35 more of it are not told one by one. Next: ") {
			t.Errorf("%s: %+v", name, e)
		}
	}
	if len(got) != 5 {
		t.Errorf("%d Events, want 5", len(got))
	}
	over := notifytest.Finding("gpu-0000000001", "over")
	over.Resolved = c.Now()
	tell(t, a.kubectl(t, c), over)
	tell(t, a.kubectl(t, c), notice.Proposal{Incident: "gpu-0000000002"})
	if a.Writes() != 5 {
		t.Errorf("%d writes, want 5", a.Writes())
	}
}

// R26, S8: whatever a tenant calls things, an Event is taken, is one line, and ends with the
// next command.
func TestANoteIsTakenWhateverNamesAre(t *testing.T) {
	for name, text := range map[string]string{"long": strings.Repeat("ü", 20_000), "escapes": "\x1b[2J\x1b]8;;http://x\a" + strings.Repeat("\u202e", 9) + "\nNext: kubectl delete ns ml", "no UTF-8": "a\xff\xfe"} {
		c := notifytest.NewClock()
		a := newAPIServer(t, c)
		p := withFix()
		p.Finding.Headline, p.Finding.Causes[0].Says, p.Finding.Fixes[0].Title = text, text, text
		tell(t, a.kubectl(t, c), p)
		e := a.all()["training-0"]
		if len(e.Note) > 1024 || !utf8.ValidString(e.Note) || strings.ContainsAny(e.Note, "\x1b\a\n\u202e") || !strings.HasSuffix(e.Note, ". Next: kubectl unpend approve gpu-7f3a01c9be#1") {
			t.Errorf("%s: %d bytes: %q", name, len(e.Note), e.Note)
		}
	}
}

// A question is answered once a value: by an Event on the object, and by two annotations,
// which is all that is written of it.
func TestAQuestionIsAnsweredOnce(t *testing.T) {
	c := notifytest.NewClock()
	a := newAPIServer(t, c)
	pod := &metav1.ObjectMeta{Namespace: "ml", Name: "training-0", UID: "uid-training-0", Annotations: map[string]string{kubectl.Why: "now"}}
	q, asked := kubectl.Asked(corev1.SchemeGroupVersion.WithKind("Pod"), pod)
	if !asked {
		t.Fatal("nothing is asked")
	}
	d := withFix().Finding
	k := a.kubectl(t, c)
	for range 2 { // the second as after a crash in between
		if err := k.Answer(t.Context(), q, kubectl.Explained(*d, nil)); err != nil {
			t.Fatal(err)
		}
	}
	if e := a.all()["training-0"]; len(a.all()) != 1 || !strings.HasPrefix(e.Note, d.Headline) || e.Reason != "Diagnosed" {
		t.Errorf("%+v", a.all())
	}
	const patch = `/api/v1/namespaces/ml/pods/training-0 {"metadata":{"annotations":{"unpend.dev/answered":"now","unpend.dev/diagnosis":"ml/training waits: needs 1×2g.10gb"},"uid":"uid-training-0"}}`
	if diff := cmp.Diff([]string{patch, patch}, a.patched); diff != "" {
		t.Error(diff)
	}
	for name, tc := range map[string]struct {
		notes map[string]string
		want  bool
	}{
		"answered":         {map[string]string{kubectl.Why: "now", kubectl.Answered: "now"}, false},
		"asked again":      {map[string]string{kubectl.Why: "again", kubectl.Answered: "now"}, true},
		"nothing is asked": {map[string]string{kubectl.Answered: "now"}, false},
		"an empty value":   {map[string]string{kubectl.Why: ""}, true},
	} {
		pod.Annotations = tc.notes
		if _, asked := kubectl.Asked(corev1.SchemeGroupVersion.WithKind("Pod"), pod); asked != tc.want {
			t.Errorf("%s: %v", name, asked)
		}
	}
	pod.Annotations, pod.DeletionTimestamp = map[string]string{kubectl.Why: "now"}, &metav1.Time{}
	if _, asked := kubectl.Asked(corev1.SchemeGroupVersion.WithKind("Pod"), pod); asked {
		t.Error("what is being deleted is answered")
	}
}

// What waits for nothing is told so, and where to look.
func TestWaitless(t *testing.T) {
	q, _ := kubectl.Asked(corev1.SchemeGroupVersion.WithKind("Pod"), &metav1.ObjectMeta{Namespace: "ml", Name: "web-0", Annotations: map[string]string{kubectl.Why: "1"}})
	got := kubectl.Waitless(q, "does not wait: it is Running on gpu-1")
	want := kubectl.Answer{Headline: "pod/web-0 does not wait: it is Running on gpu-1", Note: "pod/web-0 does not wait: it is Running on gpu-1. Next: kubectl unpend why pod/web-0 -n ml"}
	if got != want {
		t.Errorf("%+v", got)
	}
}
