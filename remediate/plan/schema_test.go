package plan

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/remediate/v1alpha1"
)

// stored puts an object there as another program has written it.
func stored(t *testing.T, s Store, text string) {
	t.Helper()
	var u unstructured.Unstructured
	if err := u.UnmarshalJSON([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Dynamic.Resource(v1alpha1.Remediations).Create(t.Context(), &u, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

const head = `{"apiVersion":"unpend.dev/v1alpha1","kind":"Remediation","metadata":{"name":"` + hash + `"},`

// What a later program of this schema has written besides is there after a save, also in a
// line of the journal; what this one knows is as it says, also where it is gone.
func TestSaveKeepsWhatItDoesNotKnow(t *testing.T) {
	s, client := memory(t)
	stored(t, s, head+`"status":{"phase":"Running","progress":"1/9","failure":"no","later":{"why":"x","none":null},"journal":[
		{"step":"0/lock","text":"lock","began":"2026-11-21T12:00:00.000000Z","deadline":"2026-11-21T12:01:00.000000Z","note":"written","later":3}]}}`)
	rem, err := s.Get(t.Context(), hash)
	if err != nil {
		t.Fatal(err)
	}
	rem.Status.Progress, rem.Status.Failure, rem.Status.Journal[0].Note = "2/9", "", ""
	rem.Status.Journal = append(rem.Status.Journal, v1alpha1.Entry{Step: "0/cordon", Text: "cordon", Began: metav1.NewMicroTime(noon), Deadline: metav1.NewMicroTime(noon)})
	if err := s.Save(t.Context(), rem); err != nil {
		t.Fatal(err)
	}
	u, err := client.Resource(v1alpha1.Remediations).Get(t.Context(), hash, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	status := u.Object["status"].(map[string]any)
	delete(status, "conditions")
	const at = "2026-11-21T12:00:00.000000Z"
	want := map[string]any{"schema": int64(1), "phase": "Running", "progress": "2/9", "later": map[string]any{"why": "x", "none": nil}, "journal": []any{
		map[string]any{"step": "0/lock", "text": "lock", "began": at, "deadline": "2026-11-21T12:01:00.000000Z", "later": int64(3)},
		map[string]any{"step": "0/cordon", "text": "cordon", "began": at, "deadline": at},
	}}
	if diff := cmp.Diff(want, status); diff != "" {
		t.Error(diff)
	}
}

// A plan of a newer schema is written by nobody here, can be read or not; one that was
// begun is in the list, so that it counts as under way.
func TestNewerIsLeftAlone(t *testing.T) {
	for name, status := range map[string]string{
		"readable":   `"status":{"schema":2,"phase":"Running"}}`,
		"unreadable": `"status":{"schema":2,"phase":"Running","journal":{"0/lock":"done"}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			s, client := memory(t)
			stored(t, s, head+status)
			client.ClearActions()
			plans, err := s.List(t.Context())
			if err != nil || len(plans) != 1 || !plans[0].Newer() || plans[0].Written() != 2 || plans[0].Status.Phase != v1alpha1.Running {
				t.Fatalf("%+v, %v", plans, err)
			}
			err = s.Save(t.Context(), &plans[0])
			const says = "write the journal of plan " + hash + ": refused: plan 24ac8de5d78c was written by a newer unpend (schema 2, this one knows 1) and is left alone"
			if !errors.Is(err, ErrNewer) || !errors.Is(err, ErrRefused) || err.Error() != says {
				t.Error(err)
			}
			for _, a := range client.Actions() {
				if a.GetVerb() != "list" && a.GetVerb() != "get" {
					t.Errorf("%s %s", a.GetVerb(), a.GetResource().Resource)
				}
			}
		})
	}
	rem := named(hash, "")
	rem.Spec.Schema = 2
	if err := open(rem, v1alpha1.Approve); !errors.Is(err, ErrNewer) {
		t.Errorf("a yes: %v", err)
	}
	if err := open(rem, v1alpha1.Reject); err != nil {
		t.Errorf("a no: %v", err)
	}
}
