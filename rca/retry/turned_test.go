package retry

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/edit/edittest"
	"github.com/unpend/unpend/rca/rcatest"
)

// refused is the case of pod a/w, which the kubelet of node n has refused at noon; bare, or of
// a workload of that kind.
func refused(t *testing.T, w *world, kind, message string) *edit.Workload {
	t.Helper()
	return refusedAs(t, w, kind, "UnexpectedAdmissionError", message)
}

// refusedAs is refused, for another reason.
func refusedAs(t *testing.T, w *world, kind, reason, message string) *edit.Workload {
	t.Helper()
	w.Asking(rcatest.List("nvidia.com/gpu", "1"))
	at, yes := metav1.NewTime(rcatest.Noon), true
	w.Wait.Spec.NodeName = "n"
	w.Wait.Status = corev1.PodStatus{Phase: corev1.PodFailed, Reason: reason, Message: message, StartTime: &at}
	if kind != "Pod" {
		w.Wait.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: "rs", UID: "rs", Controller: &yes}}
	}
	k := w.Case(t, kind)
	w.Look(t, k)
	return edit.New(k)
}

// What is offered for a refused pod, by what was behind it and whether the node is well again.
func TestWhatHelpsAfterARefusal(t *testing.T) {
	const again, bare = "by hand, none risk: wait until replicaset/rs makes another pod", "by plan, low risk: make pod/w again, which the kubelet of n has refused"
	const restart = "by hand, low risk: restart the device plugin on n (the kubelet's own table of devices is in no object: the plugin registers its devices afresh); by hand, medium risk: restart the kubelet of n (what a kubelet counts is in no object; running pods keep running)"
	hami := func(w *world) { w.Nodes[0].Annotations = map[string]string{"hami.io/node-nvidia-register": "GPU-a"} }
	for name, tc := range map[string]struct {
		kind, message string
		fill          func(*world)
		want          string
	}{
		"its own words, of an owner":   {"ReplicaSet", "something", nil, again + "; by hand, none risk: look at what the kubelet of n says (the kubelet decides by what no object tells)"},
		"its own words, of nobody":     {"Pod", "something", nil, bare + " (whether the next one is taken nobody can tell: what the kubelet refuses by these words is not known); by hand, none risk: look at what the kubelet of n says (the kubelet decides by what no object tells)"},
		"the plugin was away":          {"ReplicaSet", "code = Unavailable", nil, again + "; " + restart},
		"the scheduler refuses it too": {"ReplicaSet", "code = Unavailable", func(w *world) { w.Nodes[0].Spec.Unschedulable = true }, again},
		"the node is gone":             {"ReplicaSet", "something", func(w *world) { w.Nodes = nil }, again},
		"HAMi has not placed it":       {"ReplicaSet", "no binding pod found on node n", hami, "by hand, none risk: have HAMi's scheduler place it: schedulerName hami-scheduler (HAMi decides by its own accounting, which is not run here)"},
		"HAMi's webhook leaves its namespace out": {"Pod", "no binding pod found on node n", func(w *world) {
			hami(w)
			w.Namespaces = []*corev1.Namespace{{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"hami.io/webhook": "ignore"}}}}
		}, "by hand, none risk: have HAMi's scheduler place it: schedulerName hami-scheduler; HAMi's webhook leaves it out, by label hami.io/webhook=ignore of its namespace (HAMi decides by its own accounting, which is not run here)"},
		"a lost GPU": {"ReplicaSet", "GPU is lost", nil, again + "; by plan, medium risk: quarantine n, which refuses every such pod: cordon it, and have its GPUs seen to (it keeps pods from a sick GPU and schedules none: this pod waits until somebody mends the hardware); " +
			"by hand, high risk: reboot n, or reset its GPUs (a reboot cannot be tried on a copy); by hand, low risk: restart the device plugin on n (it helps only if NVML then hides the lost GPU, which nobody can try on a copy)"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.AddNode(sim.Node{Name: "n", MIGOff: []int{0}})
			if tc.fill != nil {
				tc.fill(w)
			}
			if got := edittest.ToldAll(Again(refused(t, w, tc.kind, tc.message))); got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}

// Who of the workload runs is named where its template is to be changed for HAMi, for that rolls it.
func TestWhoIsRolledForHAMi(t *testing.T) {
	w := newWorld()
	w.AddNode(sim.Node{Name: "n", MIGOff: []int{0}})
	w.Nodes[0].Annotations = map[string]string{"hami.io/node-nvidia-register": "GPU-a"}
	sibling := w.Wait.DeepCopy()
	sibling.Name, sibling.UID, sibling.Spec.NodeName, sibling.Status.Phase = "sibling", "sibling", "n", corev1.PodRunning
	sibling.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "w", UID: "d", Controller: new(true)}}
	w.Pods = append(w.Pods, sibling)
	c := refused(t, w, "Deployment", "no binding pod found on node n")
	if got := Again(c); len(got) != 1 || len(got[0].Drained) != 1 || got[0].Drained[0].Name != "sibling" || got[0].Risk != diagnosis.MediumRisk {
		t.Errorf("%+v", got)
	}
}

// What mends the node for a bare pod has that pod made again behind it, and to be placed on the
// node that refused it is no proof.
func TestABarePodIsMadeAgainBehind(t *testing.T) {
	w := newWorld()
	w.AddNode(sim.Node{Name: "n", MIGOff: []int{0}}, func(_ *corev1.Node, g *nodeprobe.NodeGeometry) { g.Report.GPUs[0].Healthy = false })
	all := Again(refused(t, w, "Pod", "GPU is lost"))
	var with, not []string
	for _, ch := range all {
		not = append(not, ch.Not)
		for _, k := range ch.With {
			with = append(with, ch.Title+" + "+k.Title)
		}
	}
	if len(with) != 2 || len(not) == 0 || not[0] != "n" {
		t.Errorf("%q, %q", with, not)
	}
}

func TestWhoWasNotRefused(t *testing.T) {
	w := newWorld()
	w.AddNode(sim.Node{Name: "n", MIGOff: []int{0}})
	if got := Again(w.bench(t, "Pod")); got != nil {
		t.Errorf("%s", edittest.ToldAll(got))
	}
}
