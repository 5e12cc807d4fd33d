package watcher

import (
	"errors"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/unpend/unpend/watcher/incident"
	"github.com/unpend/unpend/watcher/incident/incidenttest"
	"github.com/unpend/unpend/watcher/owners"
	"github.com/unpend/unpend/watcher/owners/ownerstest"
)

// The kinds of owners that are named are walked through: pods of two trials of an experiment are
// one incident. Where they are not read the walk ends at their names, and watching goes on.
func TestNamedOwnersAreFollowed(t *testing.T) {
	trial := func(name string) *batchv1.Job {
		return &batchv1.Job{ObjectMeta: meta(name, ownerstest.By("kubeflow.org/v1beta1", "Trial", name))}
	}
	reader := func() owners.Reader {
		of := ownerstest.By("kubeflow.org/v1beta1", "Experiment", "tune")[0]
		return ownerstest.Reader(ownerstest.Object("Trial", "one", of), ownerstest.Object("Trial", "two", of), ownerstest.Object("Experiment", "tune"))
	}
	refused := reader()
	refused.Client.(interface {
		PrependReactor(verb, resource string, reaction clienttesting.ReactionFunc)
	}).PrependReactor("list", "trials", func(a clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(a.GetResource().GroupResource(), "", errors.New("no role"))
	})
	for name, tc := range map[string]struct {
		reader owners.Reader
		serves bool
		want   []incident.Ref
	}{
		"named":         {reader(), true, []incident.Ref{{Kind: "Experiment.kubeflow.org", Namespace: "ml", Name: "tune"}}},
		"not named":     {owners.Reader{}, true, []incident.Ref{{Kind: "Trial.kubeflow.org", Namespace: "ml", Name: "one"}, {Kind: "Trial.kubeflow.org", Namespace: "ml", Name: "two"}}},
		"not installed": {reader(), false, []incident.Ref{{Kind: "Trial.kubeflow.org", Namespace: "ml", Name: "one"}, {Kind: "Trial.kubeflow.org", Namespace: "ml", Name: "two"}}},
		"not allowed":   {refused, true, []incident.Ref{{Kind: "Trial.kubeflow.org", Namespace: "ml", Name: "one"}, {Kind: "Trial.kubeflow.org", Namespace: "ml", Name: "two"}}},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAPI(trial("one"), trial("two"))
			if tc.serves {
				ownerstest.Serve(a.Clientset)
			}
			a.set(incidenttest.WaitingPod("one-a", "nvidia.com/gpu", incidenttest.Owned("Job", "one")), incidenttest.WaitingPod("two-a", "nvidia.com/gpu", incidenttest.Owned("Job", "two")))
			watchingWith(t, a, nil, func(o *Options) { o.Owners = tc.reader }, func(t *testing.T, p *taken) {
				var got []incident.Ref
				for _, i := range p.news(t) {
					got = append(got, i.Workload)
				}
				slices.SortFunc(got, func(a, b incident.Ref) int { return strings.Compare(a.Name, b.Name) })
				if !slices.Equal(got, tc.want) {
					t.Errorf("%v, want %v", got, tc.want)
				}
			})
		})
	}
}

// Each kind through which owners are followed has an informer here.
func TestEveryMakerIsFollowed(t *testing.T) {
	for _, k := range incident.Kinds {
		if makers[k.Kind] == nil {
			t.Errorf("%s has none", k.Kind)
		}
	}
	if len(makers) != len(incident.Kinds) {
		t.Errorf("%d informers of %d kinds", len(makers), len(incident.Kinds))
	}
}
