package terms

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/rcatest"
)

const zone = "topology.kubernetes.io/zone"

// beside is a term about the pods of an app in a zone.
func beside(app string, edits ...func(*corev1.PodAffinityTerm)) corev1.PodAffinityTerm {
	t := corev1.PodAffinityTerm{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}, TopologyKey: zone}
	for _, edit := range edits {
		edit(&t)
	}
	return t
}

func together(terms ...corev1.PodAffinityTerm) *corev1.Affinity {
	return &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms}}
}

func apart(terms ...corev1.PodAffinityTerm) *corev1.Affinity {
	return &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms}}
}

// zones are nodes n and o in zones a and b, and bare in none.
func zones(w *rcatest.World) {
	for name, of := range map[string]string{"n": "a", "o": "b"} {
		w.AddNode(sim.Node{Name: name, Labels: map[string]string{zone: of}})
	}
	w.AddNode(sim.Node{Name: "bare"})
}

// A term is about pods with its labels in the namespaces that it names or selects, in that of
// its own pod where it does neither; of a node it is met where such a pod is in its domain.
func TestWhomATermIsAbout(t *testing.T) {
	names := func(all ...string) func(*corev1.PodAffinityTerm) {
		return func(t *corev1.PodAffinityTerm) { t.Namespaces = all }
	}
	selects := func(labels map[string]string) func(*corev1.PodAffinityTerm) {
		return func(t *corev1.PodAffinityTerm) { t.NamespaceSelector = &metav1.LabelSelector{MatchLabels: labels} }
	}
	odd := func(t *corev1.PodAffinityTerm) {
		t.LabelSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Odd"}}
	}
	oddSpace := func(t *corev1.PodAffinityTerm) {
		t.NamespaceSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Odd"}}}
	}
	for name, tc := range map[string]struct {
		term corev1.PodAffinityTerm
		in   string // the namespace of h
		met  bool
	}{
		"of its own namespace":           {beside("h"), "a", true},
		"of another":                     {beside("h"), "b", false},
		"of one that it names":           {beside("h", names("b", "c")), "b", true},
		"of its own, which it names not": {beside("h", names("b")), "a", false},
		"of one that it selects":         {beside("h", selects(map[string]string{"team": "x"})), "b", true},
		"of one that it does not":        {beside("h", selects(map[string]string{"team": "x"})), "c", false},
		"of one that it names beside":    {beside("h", selects(map[string]string{"team": "x"}), names("c")), "c", true},
		"of all":                         {beside("h", selects(nil)), "c", true},
		"another's labels":               {beside("x"), "a", false},
		"a selector without sense":       {beside("h", odd), "a", false},
		"namespaces without sense":       {beside("h", oddSpace), "a", false},
		"of a key that no node has":      {beside("h", func(t *corev1.PodAffinityTerm) { t.TopologyKey = "rack" }), "a", false},
	} {
		t.Run(name, func(t *testing.T) {
			w := rcatest.NewWorld()
			zones(w)
			w.Namespaces = []*corev1.Namespace{{ObjectMeta: metav1.ObjectMeta{Name: "b", Labels: map[string]string{"team": "x"}}}, {ObjectMeta: metav1.ObjectMeta{Name: "c"}}}
			w.AddHolder("h", "n", "cpu", 0).Namespace = tc.in
			w.Wait.Spec.Affinity = together(tc.term)
			s, by := subject(t, w)
			c := CompanyOf(s, by)
			for node, met := range map[string]bool{"n": tc.met, "o": false, "bare": false} {
				if unmet, _, _ := c.UnmetTerms(s.Cluster.Nodes[node]); (len(unmet) == 0) != met {
					t.Errorf("%s: %v are not met", node, unmet)
				}
			}
			w.Wait.Spec.Affinity = apart(tc.term)
			c = CompanyOf(s, by)
			for node, in := range map[string]bool{"n": tc.met, "o": false, "bare": false} {
				if _, broken, _ := c.UnmetTerms(s.Cluster.Nodes[node]); (len(broken) > 0) != in || len(c.InTheWay(s.Cluster.Nodes[node])) > 0 != in {
					t.Errorf("%s: %v are broken, %d in the way", node, broken, len(c.InTheWay(s.Cluster.Nodes[node])))
				}
			}
		})
	}
}

// The pod that waits is no company of its own, and who is in the way by two terms is so once.
func TestWhoIsInTheWayIsNamedOnce(t *testing.T) {
	w := rcatest.NewWorld()
	zones(w)
	w.Wait.Spec.NodeName = "n" // as the next of its kind is thought of
	w.Wait.Spec.Affinity = apart(beside("w"), beside("h"), beside("h", func(t *corev1.PodAffinityTerm) { t.TopologyKey = "kubernetes.io/hostname" }))
	w.AddHolder("h", "n", "cpu", 0).Spec.Affinity = apart(beside("w"))
	s, by := subject(t, w)
	c, n := CompanyOf(s, by), s.Cluster.Nodes["n"]
	pods, movable := c.StandsApart(n)
	if len(pods) != 1 || pods[0].Name != "h" || !movable {
		t.Errorf("%d pods, %v", len(pods), movable)
	}
	if got := len(c.InTheWay(n)); got != 2 { // of the zone, and of the host
		t.Errorf("%d in the way", got)
	}
	for _, node := range []string{"o", "bare"} {
		if got := c.InTheWay(s.Cluster.Nodes[node]); len(got) != 0 {
			t.Errorf("%d in the way of %s", len(got), node)
		}
	}
}

// A node in no domain is not in the one whose value is empty.
func TestAnEmptyValueIsADomainOfItsOwn(t *testing.T) {
	w := rcatest.NewWorld()
	w.AddNode(sim.Node{Name: "n", Labels: map[string]string{zone: ""}})
	w.AddNode(sim.Node{Name: "bare"})
	w.AddHolder("h", "n", "cpu", 0)
	w.Wait.Spec.Affinity = apart(beside("h"))
	s, by := subject(t, w)
	c := CompanyOf(s, by)
	if n, bare := len(c.InTheWay(s.Cluster.Nodes["n"])), len(c.InTheWay(s.Cluster.Nodes["bare"])); n != 1 || bare != 0 {
		t.Errorf("%d in the way of n, %d of the node without the label", n, bare)
	}
}

// What the plugin refuses is told with the terms that are not met, those of being near first,
// and with who stands in the way.
func TestWhatIsSaidOfCompany(t *testing.T) {
	all := beside("x", func(t *corev1.PodAffinityTerm) { t.LabelSelector = &metav1.LabelSelector{} })
	w := rcatest.NewWorld()
	zones(w)
	w.AddHolder("h", "n", "cpu", 0)
	w.Wait.Spec.Affinity = together(beside("h"), beside("gone"))
	w.Wait.Spec.Affinity.PodAntiAffinity = apart(beside("gone"), beside("h"), all).PodAntiAffinity
	s, by := subject(t, w)
	f := CompanyOf(s, by).Tell(s.Cluster.Nodes["n"], "refused")
	const key = " (" + zone + ")"
	if want := "proven: pod (anti-)affinity rules leave it out: it has to be near app=gone" + key + " and apart from app=h" + key + " and apart from all pods" + key; says(f) != want {
		t.Errorf("%s\nwant\n%s", says(f), want)
	}
	var got []string
	for _, e := range f.Evidence {
		text := e.Ref + ": " + e.Fact
		for _, k := range e.Claims {
			text += fmt.Sprintf("; %s %s %s %s", k.Ref, k.Path, k.Op, k.Value)
		}
		got = append(got, text)
	}
	const at, on, pod = "Node/n metadata.labels[" + zone + "] = a", "Pod/a/h spec.nodeName = n", "Pod/a/w spec.affinity = " + zone
	want := []string{
		"Node/n: refused; " + at + "; " + on,
		"Pod/a/w: has to be near app=gone" + key + "; " + pod,
		"Pod/a/w: has to be apart from app=h" + key + "; " + pod,
		"Pod/a/w: has to be apart from all pods" + key + "; " + pod,
		"Node/n: kept apart from a/h; " + on,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if f := CompanyOf(s, by).Tell(s.Cluster.Nodes["bare"], "refused"); !strings.HasSuffix(f.Says, "near app=h"+key+" and near app=gone"+key) || len(f.Evidence) != 3 {
		t.Errorf("%s, with %d", f.Says, len(f.Evidence))
	}
}
