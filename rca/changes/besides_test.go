package changes

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit/edittest"
	"github.com/unpend/unpend/rca/rcatest"
	"github.com/unpend/unpend/rca/terms"
)

// A gang is let in by its missing members, or by those who leave for all of it.
func TestWhatLetsAGangIn(t *testing.T) {
	victim := rcatest.Victim("v", 0, 1, 0, "v")
	for name, tc := range map[string]struct {
		known    bool
		min, fit int
		victims  []*corev1.Pod
		rolls    bool
		want     string
	}{
		"nobody knows its group":          {known: false, min: 9, victims: []*corev1.Pod{victim}, want: "by hand, none risk: wait until PodGroup g is there and complete"},
		"members are missing":             {known: true, min: 3, victims: []*corev1.Pod{victim}, want: "by hand, none risk: wait until 2 more members of gang g exist"},
		"one member is missing":           {known: true, min: 2, want: "by hand, none risk: wait until 1 more member of gang g exists"},
		"all are there, and no room":      {known: true, min: 1, fit: 0, want: "by hand, none risk: wait until gang g has room for 1 more member (no evictions were found that make room for the whole gang; 0 of 1 fit)"},
		"its rollout makes one by one":    {known: true, min: 3, rolls: true, want: "by hand, low risk: have the rollout of deployment/w make 3 new pods at once (maxSurge), as many as begin together (its controller makes its pods by rules of its own)"},
		"it is rolled, and all are there": {known: true, min: 1, rolls: true, victims: []*corev1.Pod{victim}, want: "by plan, low risk: evict a/v so that all of gang g fit; by hand, none risk: wait until a/v leaves"},
		"all are there, somebody goes":    {known: true, min: 1, fit: 0, victims: []*corev1.Pod{victim}, want: "by plan, low risk: evict a/v so that all of gang g fit; by hand, none risk: wait until a/v leaves"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			if tc.rolls {
				rolls(w)
			}
			w.Wait.Labels["scheduling.x-k8s.io/pod-group"] = "g"
			c := w.bench(t, "Deployment")
			w.Look(t, c.Case)
			c.Gang.Known, c.Gang.Min, c.Gang.Fit, c.Gang.Victims = tc.known, tc.min, tc.fit, tc.victims
			got := c.GangChanges(diagnosis.GangIncomplete)
			if edittest.ToldAll(got) != tc.want {
				t.Errorf("%s, want %s", edittest.ToldAll(got), tc.want)
			}
			for _, ch := range got {
				if ch.Cause != diagnosis.GangIncomplete {
					t.Errorf("%s is for %s", ch.Title, ch.Cause)
				}
			}
		})
	}
}

// rolls has the pod that waits be of a Deployment's new ReplicaSet, while a pod of the old one runs.
func rolls(w *world) {
	w.Deployed()
	w.AddNode(sim.Node{Name: "old"})
	for name, p := range map[string]*corev1.Pod{"w-new": w.Wait, "w-old": w.AddHolder("old", "old", "cpu", 0)} {
		by := []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "w", UID: "d", Controller: new(true)}}
		w.ReplicaSets = append(w.ReplicaSets, &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name, UID: types.UID(name), OwnerReferences: by}})
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: name, UID: types.UID(name), Controller: new(true)}}
	}
}

// An affinity is changed in the template that the pod has it from, and by nobody where the
// template has another.
func TestWhoseAffinityItIs(t *testing.T) {
	zone := func(values ...string) *corev1.Affinity {
		return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
			{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: values}}}}}}}
	}
	for name, tc := range map[string]struct {
		template *corev1.Affinity
		deployed bool
		kind     string
		byName   bool
		want     string
	}{
		"of the template":             {zone("a"), true, "Deployment", false, "by plan, medium risk: select zone=b too in deployment/w"},
		"of somebody else":            {zone("c"), true, "Deployment", false, "by hand, medium risk: select zone=b too in deployment/w"},
		"the template has none":       {nil, true, "Deployment", false, "by hand, medium risk: select zone=b too in deployment/w"},
		"the template is not known":   {nil, false, "Deployment", false, "by hand, medium risk: select zone=b too in deployment/w"},
		"a pod of its own":            {nil, false, "Pod", false, "by plan, medium risk: select zone=b too in pod/w"},
		"the daemons' is by the name": {nil, false, "DaemonSet", true, ""},
		"of daemons, by a label":      {zone("a"), true, "DaemonSet", false, "by hand, medium risk: select zone=b too in daemonset/w"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.AddNode(sim.Node{Name: "n", Labels: map[string]string{"zone": "b"}})
			w.Wait.Spec.Affinity = tc.template
			if tc.deployed {
				w.Deployed()
			}
			w.Wait.Spec.Affinity = zone("a")
			c := w.bench(t, tc.kind)
			r := w.Wait.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchExpressions[0]
			got := c.selecting(c.Node("n"), []terms.MissedLabel{{NodeSelectorRequirement: r, Key: "zone", ByName: tc.byName}})
			if edittest.ToldAll(got) != tc.want {
				t.Errorf("%s, want %s", edittest.ToldAll(got), tc.want)
			}
			for _, ch := range got {
				p := w.Wait.DeepCopy()
				ch.Pod(p)
				if p.Spec.Affinity.String() != zone("a", "b").String() {
					t.Errorf("%s", p.Spec.Affinity)
				}
			}
		})
	}
}
