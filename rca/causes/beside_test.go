package causes

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe/sim"
)

func spread(key string, hard bool) corev1.TopologySpreadConstraint {
	when := corev1.ScheduleAnyway
	if hard {
		when = corev1.DoNotSchedule
	}
	return corev1.TopologySpreadConstraint{TopologyKey: key, MaxSkew: 1, WhenUnsatisfiable: when, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "w"}}}
}

func term(app, key string, namespaces ...string) corev1.PodAffinityTerm {
	return corev1.PodAffinityTerm{TopologyKey: key, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}, Namespaces: namespaces}
}

func apart(terms ...corev1.PodAffinityTerm) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms}}
	}
}

func near(terms ...corev1.PodAffinityTerm) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms}}
	}
}

func app(name string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Labels["app"] = name } }

func of(namespace string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Namespace = namespace }
}

// Where the pods that run keep the pod from.
func TestPodsBesideOthers(t *testing.T) {
	const host = "kubernetes.io/hostname"
	zoned := func(name, zone string) sim.Node {
		return sim.Node{Name: name, Model: "L4", GPUs: 4, Labels: map[string]string{"zone": zone}}
	}
	rows{
		"spread over a label": {func(w *world) {
			w.gpuNode(zoned("n1", "a"))
			w.Nodes = append(w.Nodes, plainNode("n2"))
			w.Nodes[1].Labels["zone"] = "b"
			w.pod("h", "n1", "nvidia.com/gpu", 1, app("w"))
			w.pod("w", "", "nvidia.com/gpu", 1, app("w"), func(p *corev1.Pod) {
				p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{spread("zone", true), spread(host, false)}
			})
		}, `
TopologySpreadConflict proven n1: topology spread leaves it out
  Node/n1: node(s) didn't match pod topology spread constraints
  Pod/ml/w: spread over zone with at most 1 apart; the node has zone="a"
Unknown proven n2: nothing says that the node has a GPU
  Node/n2: no label, capacity or report speaks of a GPU
`},
		"spread over two labels": {func(w *world) { // of n2 one of them is kept: nobody is there
			w.gpuNode(zoned("n1", "a"))
			w.gpuNode(zoned("n2", "a"))
			w.Nodes = append(w.Nodes, plainNode("n3"))
			w.Nodes[2].Labels["zone"] = "b"
			w.pod("h", "n1", "nvidia.com/gpu", 1, app("w"))
			w.pod("w", "", "nvidia.com/gpu", 1, app("w"), func(p *corev1.Pod) {
				p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{spread(host, true), spread("zone", true)}
			})
		}, `
TopologySpreadConflict proven n1,n2: topology spread leaves it out
  Node/n1: node(s) didn't match pod topology spread constraints
  Pod/ml/w: spread over kubernetes.io/hostname with at most 1 apart; the node has kubernetes.io/hostname="n1"
  Pod/ml/w: spread over zone with at most 1 apart; the node has zone="a"
  Node/n2: node(s) didn't match pod topology spread constraints
Unknown proven n3: nothing says that the node has a GPU
  Node/n3: no label, capacity or report speaks of a GPU
`},
		"apart from a pod of the node, by its own term": {func(w *world) {
			w.gpuNode(zoned("n1", "a"))
			w.pod("h", "n1", "nvidia.com/gpu", 1, app("h"))
			w.pod("other", "n1", "nvidia.com/gpu", 1, app("other"))
			w.pod("w", "", "nvidia.com/gpu", 1, apart(term("h", host), term("nobody", host)))
		}, `
PodAffinityConflict proven n1: pod (anti-)affinity rules leave it out: it has to be apart from app=h (kubernetes.io/hostname)
  Node/n1: node(s) didn't match pod anti-affinity rules
  Pod/ml/w: has to be apart from app=h (kubernetes.io/hostname)
  Node/n1: kept apart from ml/h
`},
		"apart from two": {func(w *world) {
			w.gpuNode(zoned("n1", "a"))
			w.pod("h", "n1", "nvidia.com/gpu", 1, app("h"))
			w.pod("g", "n1", "nvidia.com/gpu", 1, app("h"))
			w.pod("w", "", "nvidia.com/gpu", 1, apart(term("h", host), term("h", "zone")))
		}, `
PodAffinityConflict proven n1: pod (anti-)affinity rules leave it out: it has to be apart from app=h (kubernetes.io/hostname) and apart from app=h (zone)
  Node/n1: node(s) didn't match pod anti-affinity rules
  Pod/ml/w: has to be apart from app=h (kubernetes.io/hostname)
  Pod/ml/w: has to be apart from app=h (zone)
  Node/n1: kept apart from 2 pods (ml/h, …)
`},
		"apart by the term of the other": {func(w *world) {
			w.gpuNode(zoned("n1", "a"))
			w.pod("h", "n1", "nvidia.com/gpu", 1, apart(term("w", host)))
			w.pod("w", "", "nvidia.com/gpu", 1, app("w"))
		}, `
PodAffinityConflict proven n1: pod (anti-)affinity rules leave it out: pods that are there have to be apart from app=w (kubernetes.io/hostname), as it is
  Node/n1: node(s) didn't satisfy existing pods anti-affinity rules
  Pod/ml/h: has to be apart from app=w (kubernetes.io/hostname)
  Node/n1: kept apart from ml/h
`},
		"apart from a pod of another node of the zone": {func(w *world) {
			w.gpuNode(zoned("n1", "a"))
			w.gpuNode(zoned("n2", "a"))
			w.pod("h", "n2", "nvidia.com/gpu", 1, app("h"))
			w.pod("w", "", "nvidia.com/gpu", 1, apart(term("h", "zone")))
		}, `
PodAffinityConflict proven n1,n2: pod (anti-)affinity rules leave it out: it has to be apart from app=h (zone)
  Node/n1: node(s) didn't match pod anti-affinity rules
  Pod/ml/w: has to be apart from app=h (zone)
  Node/n2: node(s) didn't match pod anti-affinity rules
  Node/n2: kept apart from ml/h
`},
		"a term is about its pod's own namespace": {func(w *world) {
			w.gpuNode(zoned("n1", "a"))
			w.pod("h", "n1", "nvidia.com/gpu", 1, app("h"), of("other"))
			w.pod("g", "n1", "nvidia.com/gpu", 1, app("g"))
			w.pod("w", "", "nvidia.com/gpu", 1, apart(term("h", host), term("g", host)))
		}, `
PodAffinityConflict proven n1: pod (anti-)affinity rules leave it out: it has to be apart from app=g (kubernetes.io/hostname)
  Node/n1: node(s) didn't match pod anti-affinity rules
  Pod/ml/w: has to be apart from app=g (kubernetes.io/hostname)
  Node/n1: kept apart from ml/g
`},
		"or about those that it names": {func(w *world) {
			w.gpuNode(zoned("n1", "a"))
			w.pod("h", "n1", "nvidia.com/gpu", 1, app("h"), of("other"))
			w.pod("w", "", "nvidia.com/gpu", 1, apart(term("h", host, "other")))
		}, `
PodAffinityConflict proven n1: pod (anti-)affinity rules leave it out: it has to be apart from app=h (kubernetes.io/hostname)
  Node/n1: node(s) didn't match pod anti-affinity rules
  Pod/ml/w: has to be apart from app=h (kubernetes.io/hostname)
  Node/n1: kept apart from other/h
`},
		"or about those with labels, or all": {func(w *world) {
			w.gpuNode(zoned("n1", "a"))
			w.gpuNode(zoned("n2", "a"))
			w.Namespaces = append(w.Namespaces, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "other", Labels: map[string]string{"team": "x"}}}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "third"}}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ml"}})
			w.pod("h", "n1", "nvidia.com/gpu", 1, app("h"), of("other"))
			w.pod("third", "n2", "nvidia.com/gpu", 1, app("h"), of("third"))
			w.pod("g", "n2", "nvidia.com/gpu", 1, app("g"), of("third"))
			some, all := term("h", host), term("g", host)
			some.NamespaceSelector, all.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "x"}}, &metav1.LabelSelector{}
			w.pod("w", "", "nvidia.com/gpu", 1, apart(some, all))
		}, `
PodAffinityConflict proven n1,n2: pod (anti-)affinity rules leave it out: it has to be apart from app=h (kubernetes.io/hostname) (n1); it has to be apart from app=g (kubernetes.io/hostname) (n2)
  Node/n1: node(s) didn't match pod anti-affinity rules
  Pod/ml/w: has to be apart from app=h (kubernetes.io/hostname)
  Node/n1: kept apart from other/h
  Node/n2: node(s) didn't match pod anti-affinity rules
  Pod/ml/w: has to be apart from app=g (kubernetes.io/hostname)
  Node/n2: kept apart from third/g
`},
		"near one that is not there": {func(w *world) {
			w.gpuNode(zoned("n1", "a"))
			w.gpuNode(zoned("n2", "b"))
			w.pod("h", "n2", "nvidia.com/gpu", 4, app("h"))
			w.pod("w", "", "nvidia.com/gpu", 1, near(term("h", "zone")))
		}, `
GPUsInUse proven n2: all whole GPUs are held
  Node/n2: allocatable nvidia.com/gpu=4, requested 4
PodAffinityConflict proven n1: pod (anti-)affinity rules leave it out: it has to be near app=h (zone)
  Node/n1: node(s) didn't match pod affinity rules
  Pod/ml/w: has to be near app=h (zone)
`},
		"near any pod, where the label is missing": {func(w *world) {
			w.gpuNode(l4("n1", 1))
			w.pod("h", "n1", "", 0, app("h"))
			w.pod("w", "", "nvidia.com/gpu", 1, near(corev1.PodAffinityTerm{TopologyKey: "zone", LabelSelector: &metav1.LabelSelector{}}))
		}, `
PodAffinityConflict proven n1: pod (anti-)affinity rules leave it out: it has to be near all pods (zone); no node has label zone
  Node/n1: node(s) didn't match pod affinity rules
  Pod/ml/w: has to be near all pods (zone)
  Pod/ml/w: label zone, over which it has to be near others, is on no node
`},
	}.run(t)
}
