package rca

import (
	"reflect"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/rcatest"
)

// bare makes pods without a controller that wait for a GPU each, the first one the oldest.
func bare(namespace string, edit func(*corev1.Pod), names ...string) func(*cluster.State) {
	return func(st *cluster.State) {
		for i, name := range names {
			p := st.Pods[0].DeepCopy()
			p.ObjectMeta = metav1.ObjectMeta{Namespace: namespace, Name: name, CreationTimestamp: metav1.NewTime(st.Now.Add(time.Duration(i-60) * time.Minute))}
			edit(p)
			st.Pods = append(st.Pods, p)
		}
	}
}

// Pods that differ in their names alone are told by the oldest of their namespace; what
// differs in more, or is a tenant's of its own, is not.
func TestAlikeIsExplainedOnce(t *testing.T) {
	same := func(*corev1.Pod) {}
	more := func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("2")
	}
	st := lent(t, func(st *cluster.State) {
		bare("c", same, "one", "another", "third")(st)
		bare("c", more, "larger")(st)
		bare("b", same, "elsewhere")(st)
		st.Pods = st.Pods[2:]
	}, rcatest.Victim("holds", 100, 1, time.Hour, "x"), rcatest.Victim("too", 100, 1, time.Hour, "y"))
	s, err := Begin(t.Context(), st, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	explained := map[string]diagnosis.Diagnosis{}
	for _, i := range s.Incidents {
		d, err := s.ExplainOnce(t.Context(), i)
		if err != nil {
			t.Fatal(err)
		}
		explained[i.Workload.Namespace+"/"+i.Workload.Name] = d
	}
	first := explained["c/one"]
	if first.Causes[0].ID == diagnosis.Unknown {
		t.Errorf("nothing is told: %s", asJSON(t, first))
	}
	for name, alike := range map[string]bool{"c/one": false, "c/another": true, "c/third": true, "c/larger": false, "b/elsewhere": false} {
		d := explained[name]
		whole, err := s.Explain(t.Context(), s.Incidents[indexOf(s, d.Incident)])
		if err != nil {
			t.Fatal(err)
		}
		if !alike {
			if !reflect.DeepEqual(d, whole) {
				t.Errorf("%s: explained once it is\n%s, else\n%s", name, asJSON(t, d), asJSON(t, whole))
			}
			continue
		}
		if d.Alike != first.Incident || len(d.Fixes) != 0 || d.Fixes == nil {
			t.Errorf("%s: alike %q, fixes %v", name, d.Alike, d.Fixes)
		}
		whole.Alike, whole.Fixes, whole.Drawing = d.Alike, d.Fixes, d.Drawing
		if !reflect.DeepEqual(d, whole) { // all else is what it would be told by itself
			t.Errorf("%s: as the like of another it is\n%s, by itself\n%s", name, asJSON(t, d), asJSON(t, whole))
		}
	}
}

func indexOf(s *Session, id string) int {
	for n, i := range s.Incidents {
		if i.ID == id {
			return n
		}
	}
	return -1
}
