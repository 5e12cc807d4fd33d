package plan

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/unpend/unpend/knowledge"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

const hash = "24ac8de5d78c24ac8de5d78c24ac8de5d78c24ac8de5d78c24ac8de5d78c24ac"

// memory is a store in memory. The API server's own part, uids and policies, is tested on a
// real one (deploy, remediate/executor).
func memory(t *testing.T, plans ...*v1alpha1.Remediation) (Store, *dynamicfake.FakeDynamicClient) {
	t.Helper()
	client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{v1alpha1.Remediations: "RemediationList", v1alpha1.Approvals: "ApprovalList"})
	s := Store{client}
	for _, rem := range plans {
		if _, err := s.Record(t.Context(), rem); err != nil {
			t.Fatal(err)
		}
	}
	return s, client
}

// named is a plan of that name, in a phase.
func named(name string, phase v1alpha1.Phase) *v1alpha1.Remediation {
	return &v1alpha1.Remediation{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Remediation"},
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name)}, Status: v1alpha1.RemediationStatus{Phase: phase}}
}

// A plan is used once: what is recorded under its name stands, unless it has ended and left
// nothing; then it is recorded again, and what was said of the one before is gone.
func TestRecord(t *testing.T) {
	for _, phase := range append(v1alpha1.Phases(), "") {
		s, _ := memory(t, named(hash, phase))
		if _, err := s.Decide(t.Context(), NewApproval(named(hash, ""), "alice", nil, v1alpha1.Approve)); err != nil {
			t.Fatal(err)
		}
		next := named(hash, "")
		next.UID = "next"
		is, err := s.Record(t.Context(), next)
		if err != nil {
			t.Fatal(err)
		}
		approvals, err := s.Approvals(t.Context(), hash)
		if err != nil {
			t.Fatal(err)
		}
		again := phase.Ended() && phase != v1alpha1.Succeeded && phase != v1alpha1.Parked
		if (is.UID == "next") != again || (len(approvals) == 0) != again {
			t.Errorf("%s: recorded again %v, %d approvals; want %v", phase, is.UID == "next", len(approvals), again)
		}
	}
}

// A plan that nobody can read is in no other's way, until it has been begun.
func TestListLeavesOutWhatNobodyCanRead(t *testing.T) {
	for _, tc := range []struct {
		phase v1alpha1.Phase
		fails bool
	}{{"", false}, {v1alpha1.Queued, false}, {v1alpha1.Failed, false}, {v1alpha1.Running, true}, {v1alpha1.Undoing, true}} {
		s, client := memory(t, named("a", ""), named("b", tc.phase))
		u, err := client.Resource(v1alpha1.Remediations).Get(t.Context(), "b", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		u.Object["spec"] = map[string]any{"fix": "many"}
		if _, err := client.Resource(v1alpha1.Remediations).Update(t.Context(), u, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		list, err := s.List(t.Context())
		if (err != nil) != tc.fails || !tc.fails && (len(list) != 1 || list[0].Name != "a") {
			t.Errorf("%q: %d plans, %v", tc.phase, len(list), err)
		}
		_, err = s.Get(t.Context(), "b")
		no, ok := errors.AsType[*Unreadable](err)
		if !ok || !strings.HasPrefix(no.Error(), "read remediation b: json: ") || no.Head().UID != "uid-b" || no.Head().Status.Phase != tc.phase {
			t.Errorf("%q: %v", tc.phase, err)
			continue
		}
		if err := s.End(t.Context(), no, v1alpha1.Refused, "nobody can read it", noon); err != nil {
			t.Fatal(err)
		}
		u, err = client.Resource(v1alpha1.Remediations).Get(t.Context(), "b", metav1.GetOptions{})
		if diff := cmp.Diff(map[string]any{"phase": "Refused", "message": "nobody can read it", "ended": "2026-11-21T12:00:00.000000Z"}, u.Object["status"]); err != nil || diff != "" {
			t.Errorf("%v %s", err, diff)
		}
	}
}

// Of each person one word counts; a no may follow any yes, and one no is enough.
func TestDecide(t *testing.T) {
	type said struct {
		who  string
		says v1alpha1.Decision
		want string
	}
	for name, words := range map[string][]said{
		"two say yes":    {{"alice", v1alpha1.Approve, " alice Approve"}, {"bob", v1alpha1.Approve, "-2 bob Approve"}, {"carol", v1alpha1.Approve, "refused: two others have decided on plan " + hash + " already"}},
		"one says twice": {{"alice", v1alpha1.Approve, " alice Approve"}, {"alice", v1alpha1.Approve, " alice Approve"}, {"bob", v1alpha1.Approve, "-2 bob Approve"}, {"bob", v1alpha1.Approve, "-2 bob Approve"}},
		"a no at once":   {{"alice", v1alpha1.Reject, " alice Reject"}, {"bob", v1alpha1.Reject, " alice Reject"}, {"carol", v1alpha1.Approve, "-2 carol Approve"}},
		"a no to a yes":  {{"alice", v1alpha1.Approve, " alice Approve"}, {"alice", v1alpha1.Reject, "-no alice Reject"}, {"bob", v1alpha1.Reject, "-no alice Reject"}},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := memory(t)
			for _, w := range words {
				a, err := s.Decide(t.Context(), NewApproval(named(hash, ""), w.who, nil, w.says))
				got := fmt.Sprint(err)
				if err == nil {
					got = fmt.Sprintf("%s %s %s", strings.TrimPrefix(a.Name, hash), a.Spec.Approver, a.Spec.Decision)
				}
				if got != w.want {
					t.Errorf("%s of %s: %q, want %q", w.says, w.who, got, w.want)
				}
			}
		})
	}
	t.Run("what was said of an earlier plan is in the way, and can be withdrawn", func(t *testing.T) {
		s, _ := memory(t)
		earlier := named(hash, "")
		earlier.UID = "earlier"
		old, err := s.Decide(t.Context(), NewApproval(earlier, "alice", nil, v1alpha1.Approve))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), clearing/10)
		defer cancel()
		if _, err := s.Decide(ctx, NewApproval(named(hash, ""), "alice", nil, v1alpha1.Approve)); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		for range 2 { // that it is gone is no error
			if err := s.Withdraw(t.Context(), old); err != nil {
				t.Fatal(err)
			}
		}
		if a, err := s.Decide(t.Context(), NewApproval(named(hash, ""), "alice", nil, v1alpha1.Approve)); err != nil || a.Spec.Remediation != "uid-"+hash {
			t.Error(a, err)
		}
	})
}

// Who says something as themselves is told that they may not, or have said otherwise.
func TestSay(t *testing.T) {
	s, client := memory(t)
	if _, err := s.Say(t.Context(), NewApproval(named(hash, ""), "alice", nil, v1alpha1.Reject)); err != nil {
		t.Fatal(err)
	}
	if a, err := s.Say(t.Context(), NewApproval(named(hash, ""), "alice", nil, v1alpha1.Reject)); err != nil || a.Name != hash {
		t.Error(a, err)
	}
	client.PrependReactor("create", "approvals", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "approvals"}, hash, errors.New("no right"))
	})
	if _, err := s.Say(t.Context(), NewApproval(named(hash, ""), "bob", nil, v1alpha1.Approve)); !errors.Is(err, ErrRefused) || !apierrors.IsForbidden(err) {
		t.Error(err)
	}
}

// The condition says what the phase says: true when the pod runs, false when it will not.
func TestSaveConcludes(t *testing.T) {
	want := map[v1alpha1.Phase]metav1.ConditionStatus{v1alpha1.Succeeded: metav1.ConditionTrue, v1alpha1.Pending: metav1.ConditionUnknown, v1alpha1.Queued: metav1.ConditionUnknown,
		v1alpha1.Running: metav1.ConditionUnknown, v1alpha1.Undoing: metav1.ConditionUnknown}
	for _, phase := range v1alpha1.Phases() {
		s, _ := memory(t, named(hash, ""))
		rem := named(hash, phase)
		rem.Status.Message, rem.Generation = "so it is", 1
		if err := s.Save(t.Context(), rem); err != nil {
			t.Fatal(err)
		}
		is, err := s.Get(t.Context(), hash)
		if err != nil {
			t.Fatal(err)
		}
		status := want[phase]
		if phase.Ended() && status == "" {
			status = metav1.ConditionFalse
		}
		conditions := []metav1.Condition{{Type: "Complete", Status: status, Reason: string(phase), Message: "so it is", ObservedGeneration: 1}}
		if diff := cmp.Diff(conditions, is.Status.Conditions, cmpopts.IgnoreFields(metav1.Condition{}, "LastTransitionTime")); diff != "" {
			t.Errorf("%s: %s", phase, diff)
		}
	}
}

// How past plans turned out is told of those that were carried out; one by which no pod was
// to run claims nothing by its success.
func TestOutcomes(t *testing.T) {
	began, ended := metav1.NewMicroTime(noon), metav1.NewMicroTime(noon.Add(time.Minute))
	carriedOut := func(name string, phase v1alpha1.Phase) *v1alpha1.Remediation {
		rem := named(name, phase)
		rem.Spec = v1alpha1.RemediationSpec{Incident: "gpu-0123456789", Cause: diagnosis.MIGLayoutMismatch, Kind: diagnosis.RepartitionGPU, Kinds: []diagnosis.FixKind{diagnosis.RepartitionGPU}, Title: "repartition", Node: "gpu-1",
			Actions: []diagnosis.Action{{Verb: diagnosis.VerbRelayout, Target: diagnosis.Target{Kind: "Node", Name: "gpu-1"}, Relies: map[string]string{"mig": "all-1g.5gb success mixed"}, Relayout: &diagnosis.Relayout{Config: "all-2g.10gb"}}}}
		rem.Status.Began, rem.Status.Ended, rem.Status.Evicted, rem.Status.Message = &began, &ended, 3, "as it came"
		return rem
	}
	mends := carriedOut("e", v1alpha1.Succeeded)
	mends.Spec.Node, mends.Spec.Kind, mends.Spec.Kinds = "", diagnosis.RevertMIGConfig, []diagnosis.FixKind{diagnosis.RevertMIGConfig}
	never := carriedOut("f", v1alpha1.Failed)
	never.Status.Began = nil
	s, client := memory(t, carriedOut("a", v1alpha1.Succeeded), carriedOut("b", v1alpha1.Parked), carriedOut("c", v1alpha1.Stale), carriedOut("d", v1alpha1.Running), mends, never)
	got, err := s.Outcomes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ran := knowledge.Outcome{Incident: "gpu-0123456789", Cause: "MIGLayoutMismatch", Fix: "RepartitionGPU", Title: "repartition", Plan: "a", Runs: true, Took: time.Minute, Evicted: 3, At: ended.Time,
		Layouts: []knowledge.Layout{{Node: "gpu-1", Was: "all-1g.5gb", Became: "all-2g.10gb"}}}
	parked := ran
	parked.Plan, parked.Runs, parked.Why = "b", false, "as it came"
	if diff := cmp.Diff([]knowledge.Outcome{ran, parked}, got); diff != "" {
		t.Error(diff)
	}
	client.PrependReactor("list", "remediations", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewNotFound(schema.GroupResource{Resource: "remediations"}, "")
	})
	if got, err := s.Outcomes(t.Context()); got != nil || err != nil {
		t.Errorf("where unpend is not installed: %v, %v", got, err)
	}
}

// A word that comes in from elsewhere is said as who its caller is, about the plan that they
// were shown, while it is open; asked for again it is the same word.
func TestDecider(t *testing.T) {
	people, err := NewIdentities([]Identity{{Slack: "U0ADA", PagerDuty: "PADA", User: "ada@example.com", Groups: []string{"admins"}}, {Web: "bob", User: "bob@example.com"}})
	if err != nil {
		t.Fatal(err)
	}
	yes := Word{Caller: Caller{ViaSlack, "U0ADA"}, Plan: hash, Remediation: "uid-" + hash, Decision: v1alpha1.Approve, Reason: "go"}
	for _, tc := range []struct {
		name    string
		phase   v1alpha1.Phase
		asked   string
		persons int
		edit    func(*Word)
		want    string
	}{
		{"a yes", v1alpha1.Pending, "carol", 1, func(*Word) {}, "ada@example.com [admins] Approve by slack: go"},
		{"a no, under way", v1alpha1.Running, "carol", 1, func(w *Word) { w.Decision = v1alpha1.Reject }, "ada@example.com [admins] Reject by slack: go"},
		{"by another place", v1alpha1.Queued, "carol", 1, func(w *Word) { w.Caller = Caller{ViaPagerDuty, "PADA"} }, "ada@example.com [admins] Approve by pagerduty: go"},
		{"of who asked, and one is enough", v1alpha1.Pending, "ada@example.com", 1, func(*Word) {}, "ada@example.com [admins] Approve by slack: go"},
		{"of who asked, and it takes two", v1alpha1.Pending, "ada@example.com", 2, func(*Word) {}, "refused: you have asked for this plan, and two others have to approve it (it is much)"},
		{"a no of who asked", v1alpha1.Pending, "ada@example.com", 2, func(w *Word) { w.Decision = v1alpha1.Reject }, "ada@example.com [admins] Reject by slack: go"},
		{"nobody", v1alpha1.Pending, "carol", 1, func(w *Word) { w.ID = "U0EVE" }, "refused: slack U0EVE is nobody: remediate.identities of the configuration says of each id which Kubernetes user it is"},
		{"an id of another place", v1alpha1.Pending, "carol", 1, func(w *Word) { w.Caller = Caller{ViaWeb, "U0ADA"} }, "refused: web U0ADA is nobody: remediate.identities of the configuration says of each id which Kubernetes user it is"},
		{"no plan", v1alpha1.Pending, "carol", 1, func(w *Word) { w.Plan = "x" }, `refused: "x" of "uid-` + hash + `" is no plan`},
		{"no object", v1alpha1.Pending, "carol", 1, func(w *Word) { w.Remediation = "" }, `refused: "` + hash + `" of "" is no plan`},
		{"no decision", v1alpha1.Pending, "carol", 1, func(w *Word) { w.Decision = "Perhaps" }, `refused: "Perhaps" is no decision`},
		{"the longest reason", v1alpha1.Pending, "carol", 1, func(w *Word) { w.Reason = strings.Repeat("x", 1024) }, "ada@example.com [admins] Approve by slack: " + strings.Repeat("x", 1024)},
		{"a longer reason", v1alpha1.Pending, "carol", 1, func(w *Word) { w.Reason = strings.Repeat("x", 1025) }, "refused: the reason has 1025 bytes, at most 1024 are taken"},
		{"of another plan", v1alpha1.Pending, "carol", 1, func(w *Word) { w.Plan = strings.Repeat("0", 64) }, "plan is stale: plan 000000000000 is no longer recorded as it was shown"},
		{"of another object", v1alpha1.Pending, "carol", 1, func(w *Word) { w.Remediation = "another" }, "plan is stale: plan 24ac8de5d78c is no longer recorded as it was shown"},
		{"too late", v1alpha1.Succeeded, "carol", 1, func(*Word) {}, "refused: the plan is Succeeded already: as it is"},
		{"on the way back", v1alpha1.Undoing, "carol", 1, func(*Word) {}, "refused: the plan is Undoing already: as it is"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			rem := named(hash, tc.phase)
			rem.Spec.Requester, rem.Status.Message = tc.asked, "as it is"
			_, client := memory(t, rem)
			var as []string
			d := Decider{Identities: people, Dynamic: client, Persons: func(context.Context, *v1alpha1.Remediation) (int, string, error) {
				return tc.persons, "it is much", nil
			},
				ActAs: func(user string, groups []string) (dynamic.Interface, error) {
					as = append(as, fmt.Sprint(user, groups))
					return client, nil
				}}
			w := yes
			tc.edit(&w)
			for again := range 2 {
				a, err := d.Decide(t.Context(), w)
				got := fmt.Sprint(err)
				if err == nil {
					got = fmt.Sprintf("%s %s %s by %s: %s", a.Spec.Approver, a.Spec.Groups, a.Spec.Decision, a.Spec.Via, a.Spec.Reason)
				}
				if got != tc.want {
					t.Errorf("%q, want %q", got, tc.want)
				}
				if err == nil && len(as) != 1 || err != nil && len(as) > 0 {
					t.Errorf("acted as %q, after %d words", as, again+1)
				}
			}
		})
	}
}
