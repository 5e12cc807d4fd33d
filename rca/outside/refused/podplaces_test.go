package refused_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/edit/edittest"
	"github.com/unpend/unpend/rca/outside/refused"
)

// Where a scheduler says that a node is full of pods, and nothing else keeps the pod from it, its kubelet takes more, or one of
// lower priority goes; where something else does, that is no help.
func TestANodeFullOfPods(t *testing.T) {
	const rule, more = "see by which rule volcano refuses it", "let n take more pods than it has: raise maxPods of its kubelet"
	few := diagnosis.Blocker{Plugin: "NodeResourcesFit", Reason: "Too many pods"}
	for name, tc := range map[string]struct {
		words    string
		blockers []diagnosis.Blocker
		priority int32
		want     string
	}{
		"nobody is of lower priority": {"1 node(s) pod number exceeded", []diagnosis.Blocker{few}, 0, "free a pod's place on n, which has as many pods as it may: somebody there has to end, or be stopped; " + more},
		"one is":                      {"1 node(s) pod number exceeded", []diagnosis.Blocker{few}, 9, "free a pod's place on n, which has as many pods as it may: have a/low leave, of lower priority; " + more},
		"of kube-scheduler's code":    {"1 Too many pods", []diagnosis.Blocker{few}, 9, "free a pod's place on n, which has as many pods as it may: have a/low leave, of lower priority; " + more},
		"more is in the way":          {"1 node(s) pod number exceeded", []diagnosis.Blocker{few, {Plugin: "TaintToleration", Reason: "untolerated"}}, 9, rule},
		"it has a place":              {"1 node(s) pod number exceeded", nil, 9, rule},
		"in other words":              {"1 node(s) is odd", []diagnosis.Blocker{few}, 9, rule},
	} {
		w := edittest.New()
		w.AddNode(sim.Node{Name: "n", MIGOff: []int{0}}, func(*corev1.Node, *nodeprobe.NodeGeometry) {})
		edittest.RefusedBy("volcano", tc.words)(w)
		w.AddHolder("low", "n", "nvidia.com/gpu", 0)
		w.Pods[len(w.Pods)-1].Spec.SchedulerName = "volcano"
		w.Wait.Spec.Priority = &tc.priority
		k := w.Case(t, "Deployment")
		k.Judged = []diagnosis.NodeBlockers{{Name: "n", Blockers: tc.blockers}}
		var titles []string
		for _, ch := range refused.Ask(edit.New(k)) {
			titles = append(titles, ch.Title)
		}
		if got := strings.Join(titles, "; "); got != tc.want {
			t.Errorf("%s: got  %s\nwant %s", name, got, tc.want)
		}
	}
}
