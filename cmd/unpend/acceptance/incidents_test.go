package acceptance

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

const joined = "gpu-50f0f36e34" // of the scenario layout-mismatch

// planIn is a plan for the incident of a dump; n tells one from another, and the higher
// the newer.
func planIn(n int, phase v1alpha1.Phase, progress string, by ...string) v1alpha1.Remediation {
	r := v1alpha1.Remediation{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Remediation"}}
	r.Name, r.CreationTimestamp = fmt.Sprintf("%064x", n), metav1.NewTime(time.Date(2026, 11, 20, 12, n, 0, 0, time.UTC))
	r.Spec = v1alpha1.RemediationSpec{Incident: joined, Fix: n, Kind: diagnosis.RepartitionGPU, Requester: "rex"}
	r.Status = v1alpha1.RemediationStatus{Phase: phase, Progress: progress, ApprovedBy: by, Message: "why"}
	return r
}

// dumpWith is the scenario's dump, with Remediations beside it: a file each, or as lists.
func dumpWith(t *testing.T, list bool, plans ...v1alpha1.Remediation) []string {
	t.Helper()
	dir := t.TempDir()
	var docs []any
	for _, p := range plans {
		docs = append(docs, p)
	}
	if list {
		docs = []any{map[string]any{"apiVersion": "v1", "kind": "List", "items": docs}, map[string]any{"apiVersion": v1alpha1.GroupVersion.String(), "kind": "RemediationList", "items": []v1alpha1.Remediation{}}}
	}
	for i, d := range docs {
		text, err := json.Marshal(d)
		must(t, err)
		must(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d.json", i)), text, 0o600))
	}
	return []string{"incidents", "-f", filepath.Join(scenarios, "layout-mismatch"), "-f", dir}
}

// Each incident says where its plan stands, and who decided; of several the one that tells
// most.
func TestIncidentsTellOfTheirPlans(t *testing.T) {
	other := planIn(9, v1alpha1.Running, "1/9", "eve")
	other.Spec.Incident = "gpu-0000000000"
	for name, c := range map[string]struct {
		plans []v1alpha1.Remediation
		want  string
	}{
		"recorded":        {[]v1alpha1.Remediation{planIn(1, "", "")}, "#1 recorded (rex)"},
		"seen":            {[]v1alpha1.Remediation{planIn(1, v1alpha1.Pending, "")}, "#1 recorded (rex)"},
		"approved":        {[]v1alpha1.Remediation{planIn(1, v1alpha1.Queued, "", "ada", "mia")}, "#1 approved (ada, mia)"},
		"under way":       {[]v1alpha1.Remediation{planIn(1, v1alpha1.Running, "3/9", "ada"), planIn(2, "", ""), other}, "#1 step 3/9 (ada)"},
		"on the way back": {[]v1alpha1.Remediation{planIn(2, "", ""), planIn(1, v1alpha1.Undoing, "3/9", "ada")}, "#1 being taken back (ada)"},
		"done":            {[]v1alpha1.Remediation{planIn(1, v1alpha1.Failed, "3/9", "ada"), planIn(2, v1alpha1.Succeeded, "9/9", "mia")}, "#2 done (mia)"},
		"parked":          {[]v1alpha1.Remediation{planIn(1, v1alpha1.Parked, "3/9", "ada"), planIn(2, v1alpha1.Stopped, "1/9", "mia")}, "#1 parked (ada)"},
		"stopped":         {[]v1alpha1.Remediation{planIn(2, v1alpha1.Stopped, "1/9", "mia"), planIn(1, v1alpha1.Rejected, "", "ada")}, "#2 stopped (mia)"},
		"of another":      {[]v1alpha1.Remediation{other}, "-"},
		"hostile":         {[]v1alpha1.Remediation{planIn(1, v1alpha1.Queued, "", "ada\x1b[2J\n")}, "#1 approved (ada[2J )"},
	} {
		for _, list := range []bool{false, true} {
			code, out, errs := call(t, dumpWith(t, list, c.plans...)...)
			rows := strings.Split(strings.TrimSpace(out), "\n")
			if code != 0 || errs != "" || len(rows) != 2 || !strings.HasPrefix(rows[0], "INCIDENT        WORKLOAD      PLAN ") || !strings.HasPrefix(rows[1], joined+"  demo/waiting  "+c.want+"  ") {
				t.Errorf("%s, %v: exit %d, %s\n%s", name, list, code, errs, out)
			}
		}
	}
}

// The same for programs: a diagnosis as `why` gives it, with the plan beside it.
func TestIncidentsForPrograms(t *testing.T) {
	read := func(args ...string) (out struct {
		Kind  string
		Items []struct {
			Incident    string
			Causes      []diagnosis.Cause
			Unread      []string
			Remediation map[string]any
		}
	}) {
		code, text, errs := call(t, append(args, "-o", "json")...)
		if code != 0 || errs != "" {
			t.Fatalf("exit %d: %s", code, errs)
		}
		must(t, json.Unmarshal([]byte(text), &out))
		return out
	}
	got := read(dumpWith(t, false, planIn(2, v1alpha1.Running, "3/9", "ada"))...)
	want := map[string]any{"plan": planIn(2, "", "").Name, "fix": 2.0, "phase": "Running", "state": "step 3/9", "progress": "3/9", "by": []any{"ada"}, "message": "why"}
	if got.Kind != diagnosis.ListKind || len(got.Items) != 1 || got.Items[0].Incident != joined || got.Items[0].Causes[0].ID != diagnosis.MIGLayoutMismatch {
		t.Fatalf("%+v", got)
	}
	if diff := cmp.Diff(want, got.Items[0].Remediation); diff != "" {
		t.Error(diff)
	}
	const none = "Remediation: the dump holds none: whether a plan is recorded, or under way, is not known"
	without := read("incidents", "-f", filepath.Join(scenarios, "layout-mismatch"))
	if u := without.Items[0].Unread; without.Items[0].Remediation != nil || len(u) == 0 || u[len(u)-1] != none {
		t.Errorf("%+v", without.Items[0])
	}
	if diff := cmp.Diff(append(got.Items[0].Unread, none), without.Items[0].Unread); diff != "" {
		t.Error(diff)
	}
	if code, out, errs := call(t, "incidents", "-f", filepath.Join(scenarios, "layout-mismatch")); code != 0 || errs != "unread: "+none+"\n" || !strings.Contains(out, joined+"  demo/waiting  unread  ") {
		t.Errorf("exit %d, %s%s", code, errs, out)
	}
	bad := planIn(1, "", "")
	args := dumpWith(t, false, bad)
	must(t, os.WriteFile(filepath.Join(args[len(args)-1], "0.json"), []byte(`{"apiVersion":"unpend.dev/v1alpha1","kind":"Remediation","spec":{"fix":"one"}}`), 0o600))
	if code, out, errs := call(t, args...); code != exitError || out != "" || !strings.Contains(errs, "read a Remediation of the dump: ") || !strings.Contains(errs, "spec.fix") {
		t.Errorf("exit %d, %s%s", code, errs, out)
	}
}
