package owners_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/unpend/unpend/watcher/owners"
	"github.com/unpend/unpend/watcher/owners/ownerstest"
)

// A name is plural and group, and nothing else is taken for one: what is wrong is named, with
// what to write.
func TestNames(t *testing.T) {
	got, err := owners.Names([]string{"workflows.argoproj.io", "jobs.batch.volcano.sh"})
	if want := []schema.GroupResource{{Group: "argoproj.io", Resource: "workflows"}, {Group: "batch.volcano.sh", Resource: "jobs"}}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	const write = "write its plural, a dot and its group, without a version, as in workflows.argoproj.io"
	for entry, want := range map[string]string{
		"":                               `"" names no kind: ` + write,
		"workflows":                      `"workflows" names no kind: ` + write,
		"Workflow.argoproj.io":           `"Workflow.argoproj.io" names no kind: ` + write,
		"workflows.argoproj.io/v1alpha1": `"workflows.argoproj.io/v1alpha1" names no kind: ` + write,
		"argoproj.io/workflows":          `"argoproj.io/workflows" names no kind: ` + write,
		"workflows.":                     `"workflows." names no kind: ` + write,
		"workflows/status.argoproj.io":   `names no kind: ` + write,
		"*":                              `"*" has a wildcard, and every kind has to be named`,
		"*.argoproj.io":                  `"*.argoproj.io" has a wildcard`,
		"jobs.batch":                     `"jobs.batch" is read already: leave it out`,
		"replicasets.apps":               `"replicasets.apps" is read already: leave it out`,
	} {
		if _, err := owners.Names([]string{"trials.kubeflow.org", entry}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", entry, err, want)
		}
	}
	if _, err := owners.Names([]string{"a.b", "c.d", "a.b"}); err == nil || err.Error() != `"a.b" is named twice: leave one out` {
		t.Error(err)
	}
}

// What is named is looked for in the version that the API server prefers, and what it does not
// serve is absent: that is no error.
func TestServed(t *testing.T) {
	c := fake.NewClientset()
	ownerstest.Serve(c)
	r := ownerstest.Reader()
	r.Names = append(r.Names, schema.GroupResource{Group: "argoproj.io", Resource: "workflows"}, schema.GroupResource{Group: "kubeflow.org", Resource: "suggestions"})
	found := r.Served(t.Context(), c.Discovery())
	var names []string
	for _, k := range found.Kinds {
		names = append(names, k.Name()+" "+k.Resource.Version)
	}
	if want := []string{"Trial.kubeflow.org v1beta1", "Experiment.kubeflow.org v1beta1"}; !slices.Equal(names, want) || len(found.Untold) != 0 {
		t.Errorf("%q, %v", names, found.Untold)
	}
	if !slices.Equal(found.Absent, r.Names[2:]) {
		t.Errorf("absent: %v", found.Absent)
	}
	if n := len(owners.Reader{}.Served(t.Context(), nil).Kinds); n != 0 {
		t.Errorf("who names none reads %d", n)
	}
}

// Single owners are got by their metadata; a kind that nobody named is not asked for.
func TestSingle(t *testing.T) {
	c := fake.NewClientset()
	ownerstest.Serve(c)
	r := ownerstest.Reader(ownerstest.Object("Trial", "t", ownerstest.By("kubeflow.org/v1beta1", "Experiment", "e")...))
	asked := 0
	c.PrependReactor("get", "group", func(clienttesting.Action) (bool, runtime.Object, error) { asked++; return false, nil, nil })
	single := r.Single(c.Discovery())
	for range 3 {
		o, err := single.Get(t.Context(), "Trial.kubeflow.org", "ml", "t")
		if err != nil || metav1.GetControllerOf(o) == nil || metav1.GetControllerOf(o).Name != "e" {
			t.Fatalf("%v, %v", o, err)
		}
	}
	if _, err := single.Get(t.Context(), "Experiment.kubeflow.org", "ml", "e"); !apierrors.IsNotFound(err) {
		t.Error(err)
	}
	for _, kind := range []string{"Trial", "Trial.example.org", "Workflow.argoproj.io"} {
		if o, err := single.Get(t.Context(), kind, "ml", "t"); !errors.Is(err, owners.ErrUnread) || o != nil {
			t.Errorf("%s: %v, %v", kind, o, err)
		}
	}
	if asked > 1 {
		t.Errorf("what is served was asked %d times", asked)
	}
}
