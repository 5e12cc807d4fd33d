package parts

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/view"
)

// What lets a DaemonSet onto a node is one label, affinity or toleration for each that is missed; of what
// changes its template its other pods stop, of a label none does.
func TestWayOntoANode(t *testing.T) {
	yes := true
	wants := func(key string) *corev1.Affinity {
		return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{"true"}}}}}}}}
	}
	taint := []corev1.Taint{{Key: "team", Value: "x", Effect: corev1.TaintEffectNoSchedule}, {Key: "bare", Effect: corev1.TaintEffectNoExecute}}
	for name, c := range map[string]struct {
		edit func(*corev1.PodSpec, *corev1.Node)
		sign string
		want string // title, commands, untold, edits
	}{
		"nothing": {func(*corev1.PodSpec, *corev1.Node) {}, "", "  false false"},
		"labels": {func(s *corev1.PodSpec, _ *corev1.Node) { s.NodeSelector = map[string]string{"b": "2", "a": "1"} }, "",
			"label n a=1; label n b=2 kubectl label node n a=1 --overwrite|kubectl label node n b=2 --overwrite false false"},
		"an affinity": {func(s *corev1.PodSpec, _ *corev1.Node) { s.Affinity = wants("gpu") }, "",
			"let the affinity of s/d accept n kubectl -n s edit daemonset d  # spec.template.spec.affinity: gpu=true true true"},
		"an affinity that a sign meets":      {func(s *corev1.PodSpec, _ *corev1.Node) { s.Affinity = wants("gpu") }, "gpu", "label n gpu=true kubectl label node n gpu=true --overwrite false false"},
		"an affinity that another meets not": {func(s *corev1.PodSpec, _ *corev1.Node) { s.Affinity = wants("gpu") }, "other", "let the affinity of s/d accept n kubectl -n s edit daemonset d  # spec.template.spec.affinity: gpu=true true true"},
		"taints": {func(s *corev1.PodSpec, n *corev1.Node) {
			s.Tolerations, n.Spec.Taints = []corev1.Toleration{{Key: "had", Operator: corev1.TolerationOpExists}}, taint
		}, "", `have s/d tolerate team=x:NoSchedule, bare:NoExecute kubectl -n s patch daemonset d --type=merge -p '{"spec":{"template":{"spec":{"tolerations":[{"key":"had","operator":"Exists"},{"key":"team","operator":"Equal","value":"x","effect":"NoSchedule"},{"key":"bare","operator":"Exists","effect":"NoExecute"}]}}}}' false true`},
	} {
		d := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "s", Name: "d"}}
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
		c.edit(&d.Spec.Template.Spec, n)
		v, s := &view.Node{Node: n}, Asked(d)
		w := s.Let(v, s.Misses(v), c.sign, nil)
		if got := fmt.Sprintf("%s %s %v %v", w.Title(), strings.Join(w.Commands, "|"), w.Untold, w.Edits); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, c.want)
		}
	}
	pod := func(name, ns, kind, of, on string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name, OwnerReferences: []metav1.OwnerReference{{Kind: kind, Name: of, Controller: &yes}}}, Spec: corev1.PodSpec{NodeName: on}}
	}
	ended, leaving, now := pod("ended", "s", "DaemonSet", "d", "a"), pod("leaving", "s", "DaemonSet", "d", "b"), metav1.Now()
	ended.Status.Phase, leaving.DeletionTimestamp = corev1.PodSucceeded, &now
	pods := []*corev1.Pod{pod("x", "s", "DaemonSet", "d", "a"), pod("y", "s", "DaemonSet", "d", "b"), pod("waits", "s", "DaemonSet", "d", ""), pod("other", "s", "DaemonSet", "e", "a"), pod("set", "s", "ReplicaSet", "d", "a"), pod("far", "t", "DaemonSet", "d", "a"), ended, leaving}
	s := Asked(&appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "s", Name: "d"}})
	w := view.New(&cluster.State{Pods: pods})
	if got := s.Rolled(w); len(got) != 2 || got[0] != pods[0] || got[1] != pods[1] {
		t.Errorf("%d pods stop", len(got))
	}
	if s.Spec.UpdateStrategy.Type = appsv1.OnDeleteDaemonSetStrategyType; len(s.Rolled(w)) != 0 {
		t.Error("who waits to be deleted stops")
	}
	if p := s.On(&view.Node{Node: &corev1.Node{}, Pods: pods[3:6]}); p != nil {
		t.Errorf("%s is on it", p.Name)
	}
	if p := s.On(&view.Node{Node: &corev1.Node{}, Pods: pods}); p != pods[0] {
		t.Errorf("%v is on it", p)
	}
}
