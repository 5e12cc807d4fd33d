package live

import (
	"bytes"
	"errors"
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/cluster/dump"
	"github.com/unpend/unpend/watcher/incident"
	"github.com/unpend/unpend/watcher/owners"
	"github.com/unpend/unpend/watcher/owners/ownerstest"
)

const katib = "kubeflow.org/v1beta1"

// trialPod waits, and is a Job's that a Trial owns, which an Experiment does.
func trialPod() (*corev1.Pod, *batchv1.Job) {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "p", OwnerReferences: ownerstest.By("batch/v1", "Job", "j")}},
		&batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "j", OwnerReferences: ownerstest.By(katib, "Trial", "one")}}
}

func trials() []runtime.Object {
	one := ownerstest.Object("Trial", "one", ownerstest.By(katib, "Experiment", "tune")...)
	one.Annotations = map[string]string{"spec": "of anything"}
	return []runtime.Object{one, ownerstest.Object("Experiment", "tune")}
}

// Kinds of owners that are named are read by their metadata, written to a dump, and read back
// from it. What is not installed is absent, what may not be read is said.
func TestOwnersThatAreNamed(t *testing.T) {
	pod, job := trialPod()
	refuse := func(r owners.Reader) owners.Reader {
		r.Client.(interface {
			PrependReactor(verb, resource string, reaction clienttesting.ReactionFunc)
		}).PrependReactor("list", "trials", func(a clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(a.GetResource().GroupResource(), "", errors.New("no role"))
		})
		return r
	}
	more := ownerstest.Reader(trials()...)
	more.Names = append(more.Names, schema.GroupResource{Group: "argoproj.io", Resource: "workflows"})
	for name, tc := range map[string]struct {
		reader []owners.Reader
		serves bool
		top    string
		lost   string // why the walk ends where it does
		unread string // of trials.kubeflow.org
		owners []string
	}{
		"named":               {[]owners.Reader{ownerstest.Reader(trials()...)}, true, "Experiment.kubeflow.org", "", "", []string{"Experiment tune", "Trial one"}},
		"and one that is not": {[]owners.Reader{more}, true, "Experiment.kubeflow.org", "", "", []string{"Experiment tune", "Trial one"}},
		"none named":          {nil, true, "Trial.kubeflow.org", "owners of this kind are not read", "", nil},
		"not installed":       {[]owners.Reader{ownerstest.Reader(trials()...)}, false, "Trial.kubeflow.org", "the API server does not serve trials.kubeflow.org", "", nil},
		"gone":                {[]owners.Reader{ownerstest.Reader()}, true, "Trial.kubeflow.org", "", "", nil},
		"not allowed":         {[]owners.Reader{refuse(ownerstest.Reader(trials()...))}, true, "Trial.kubeflow.org", "the right to list trials.kubeflow.org is missing", "the right to list trials.kubeflow.org is missing", []string{"Experiment tune"}},
	} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset(pod, job)
			if tc.serves {
				ownerstest.Serve(client)
			}
			s, err := Read(t.Context(), client, customs(), time.Now, tc.reader...)
			if err != nil {
				t.Fatal(err)
			}
			look := func(where string, s *cluster.State) {
				t.Helper()
				chain, lost := incident.Walk(s.Pods[0], s.Owner)
				if got := chain[len(chain)-1].Kind; got != tc.top {
					t.Errorf("%s: %v ends at %s, want %s", where, chain, got, tc.top)
				}
				why := ""
				if lost != nil {
					why = s.OwnerUnread(lost)
				}
				if s.Live && why != tc.lost || (why == "") != (tc.lost == "") {
					t.Errorf("%s: %q, want %q", where, why, tc.lost)
				}
			}
			look("live", s)
			if got := s.Unread["trials.kubeflow.org"]; got != tc.unread {
				t.Errorf("unread: %q", got)
			}
			var got []string
			for _, o := range s.Owners {
				if got = append(got, o.Kind+" "+o.Name); o.Annotations != nil || o.Labels != nil || o.APIVersion != katib {
					t.Errorf("kept too much: %+v", o)
				}
			}
			if !slices.Equal(got, tc.owners) {
				t.Errorf("%q, want %q", got, tc.owners)
			}
			var text bytes.Buffer
			if err := dump.Write(&text, s.In("ml"), "yaml"); err != nil {
				t.Fatal(err)
			}
			again, err := dump.Read([]string{"-"}, &text)
			if err != nil {
				t.Fatal(err)
			}
			look("from its dump", again)
		})
	}
}

// What changes about an owner is who owns it; its status is nobody's business.
func TestOwnersThatChange(t *testing.T) {
	k := cluster.OfOwners(owners.Kind{Resource: ownerstest.Trials, API: ownerstest.Trials.GroupVersion().WithKind("Trial"), Namespaced: true})
	before, later, moved := ownerstest.Object("Trial", "one"), ownerstest.Object("Trial", "one"), ownerstest.Object("Trial", "one", ownerstest.By(katib, "Experiment", "e")...)
	later.ResourceVersion, moved.ResourceVersion = "9", "9"
	for name, tc := range map[string]struct {
		before, after cluster.Object
		want          bool
	}{"status": {before, later, false}, "another owner": {before, moved, true}, "new": {nil, before, true}, "gone": {before, nil, true}} {
		if ns, yes := concerns(k, tc.before, tc.after); yes != tc.want || ns != "ml" {
			t.Errorf("%s: %q, %v", name, ns, yes)
		}
	}
}
