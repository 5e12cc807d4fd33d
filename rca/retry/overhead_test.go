package retry

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/rcatest"
)

// A scheduler that leaves an overhead out may take any node where the rest is left: so little is asked that
// each of them has room for both, of the nodes that the pod may come to. Else the scheduler has to count it.
func TestWhatIsAskedBesideAnOverhead(t *testing.T) {
	for name, tc := range map[string]struct {
		n, m, overhead string
		edit           func(*world)
		want           string
	}{
		"the other would refuse it":   {"1", "800m", "500m", nil, "ask for 300m cpu (less than asked)"},
		"the other has room for both": {"1", "2", "500m", nil, "ask for 500m cpu (less than asked)"},
		"the other is not taken":      {"1", "400m", "500m", nil, "ask for 500m cpu (less than asked)"},
		"the other is not selected": {"1", "800m", "500m", func(w *world) {
			w.Nodes[0].Labels["pool"], w.Wait.Spec.NodeSelector = "a", map[string]string{"pool": "a"}
		}, "ask for 500m cpu (less than asked)"},
		"the other is closed": {"1", "800m", "500m", func(w *world) { w.Nodes[1].Spec.Unschedulable = true }, "ask for 500m cpu (less than asked)"},
		"nothing is left":     {"1", "800m", "1", nil, "have kai-scheduler count the overhead of RuntimeClass kata: a version that does"},
		"two containers": {"1", "800m", "500m", func(w *world) { w.Wait.Spec.Containers = append(w.Wait.Spec.Containers, corev1.Container{Name: "d"}) },
			"have kai-scheduler count the overhead of RuntimeClass kata: a version that does"},
	} {
		w := newWorld()
		w.AddNode(sim.Node{Name: "n", CPU: tc.n})
		w.AddNode(sim.Node{Name: "m", CPU: tc.m})
		w.Asking(list("cpu", "800m"))
		at := metav1.NewTime(rcatest.Noon)
		w.Wait.Spec.NodeName, w.Wait.Spec.SchedulerName, w.Wait.Spec.RuntimeClassName, w.Wait.Spec.Overhead = "n", "kai-scheduler", new("kata"), list("cpu", tc.overhead)
		w.Wait.Status = corev1.PodStatus{Phase: corev1.PodFailed, Reason: "OutOfcpu", StartTime: &at}
		if tc.edit != nil {
			tc.edit(w)
		}
		k := w.Case(t, "Deployment")
		w.Look(t, k)
		c := edit.New(k)
		all, beside := Again(c), Uncounted(c)
		if len(all) != 1 || !strings.HasPrefix(all[0].Title, tc.want) || len(beside) != 1 || beside[0].Kind != diagnosis.Manual {
			t.Errorf("%s: %s; beside: %s", name, told(all), told(beside))
		}
	}
	w := newWorld()
	halves(w)
	if got := Uncounted(refused(t, w, "Pod", few)); got != nil {
		t.Errorf("of another refusal: %s", told(got))
	}
}
