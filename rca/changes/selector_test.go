package changes

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/rcatest"
)

// Another model of GPU than is asked by name is less than what was asked, where some node has that model;
// a name that no node has is put right.
func TestWhoSettlesForAnotherModel(t *testing.T) {
	for name, tc := range map[string]struct {
		key, value string
		want       bool
	}{
		"there is one":      {"nvidia.com/gpu.product", "B", true},
		"there is none":     {"nvidia.com/gpu.product", "C", false},
		"another's label":   {"zone", "b", false},
		"a cloud's label":   {"cloud.google.com/gke-accelerator", "B", true},
		"a label beside it": {"nvidia.com/gpu.count", "B", false},
	} {
		w := newWorld()
		w.AddNode(sim.Node{Name: "n", Labels: map[string]string{tc.key: "A"}})
		w.AddNode(sim.Node{Name: "m", Labels: map[string]string{"nvidia.com/gpu.product": "B", "cloud.google.com/gke-accelerator": "B", "zone": "b", "nvidia.com/gpu.count": "B"}})
		w.Wait.Spec.NodeSelector = map[string]string{tc.key: tc.value}
		w.Asking(rcatest.List("nvidia.com/gpu", "3"))
		w.Deployed()
		c := w.bench(t, "Deployment")
		got := c.fixSelector(c.Node("n"))
		if less := map[bool]int64{true: 3}[tc.want]; len(got) != 1 || got[0].Settles != tc.want || got[0].Less != less {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// The patch of a template has what is changed of its selector, or of its affinity, and nothing
// else: a label that no node has is taken out of it.
func TestPatchesOfSelectors(t *testing.T) {
	zone := func(value string) *corev1.Affinity {
		return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
			{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: []string{value}}}}}}}}
	}
	const widened = `"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"zone","operator":"In","values":["a","b"]}]}]}}}`
	for name, tc := range map[string]struct {
		selector map[string]string
		affinity *corev1.Affinity
		want     string
	}{
		"another value":   {map[string]string{"zone": "a", "team": "x"}, nil, `"nodeSelector":{"zone":"b"}`},
		"another name":    {map[string]string{"taem": "x"}, nil, `"nodeSelector":{"taem":null,"team":"x"}`},
		"nothing of it":   {map[string]string{"pool": "a"}, nil, `"nodeSelector":{"pool":null}`},
		"a wider term":    {nil, zone("a"), widened},
		"a term and more": {map[string]string{"pool": "a"}, zone("a"), widened + `,"nodeSelector":{"pool":null}`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.AddNode(sim.Node{Name: "n", Labels: map[string]string{"zone": "b", "team": "x"}})
			w.Wait.Spec.NodeSelector, w.Wait.Spec.Affinity = tc.selector, tc.affinity
			w.Deployed()
			c := w.bench(t, "Deployment")
			got := c.fixSelector(c.Node("n"))
			if len(got) != 1 || len(got[0].Actions) != 1 {
				t.Fatalf("%+v", got)
			}
			if patch, want := string(got[0].Actions[0].Patch), `{"spec":{"template":{"spec":{`+tc.want+`}}}}`; patch != want {
				t.Errorf("%s, want %s", patch, want)
			}
		})
	}
}

// Who asks for one machine that is there has a reason, which may lie on it: another is no low risk, as it is where that
// machine is not there, or another label was misspelled.
func TestWhoIsMovedFromAMachine(t *testing.T) {
	for name, tc := range map[string]struct {
		selector map[string]string
		want     diagnosis.Risk
	}{
		"a machine that is there": {map[string]string{corev1.LabelHostname: "m"}, diagnosis.MediumRisk},
		"one that is not":         {map[string]string{corev1.LabelHostname: "gone"}, diagnosis.LowRisk},
		"another label":           {map[string]string{"zone": "b"}, diagnosis.LowRisk},
	} {
		w := newWorld()
		w.AddNode(sim.Node{Name: "n", Labels: map[string]string{"zone": "a"}})
		w.AddNode(sim.Node{Name: "m", Labels: map[string]string{"zone": "b"}})
		w.Wait.Spec.NodeSelector = tc.selector
		w.Deployed()
		c := w.bench(t, "Deployment")
		if got := c.fixSelector(c.Node("n")); len(got) != 1 || got[0].Risk != tc.want {
			t.Errorf("%s: %+v, want %s risk", name, got, tc.want)
		}
	}
}

// A selector that is not of the template is not taken out of it: who gives it is named, and of a DaemonSet the template
// is to have it too, for its controller goes by that alone.
func TestSelectorsThatAreGiven(t *testing.T) {
	class := func(w *world, name string, selects map[string]string) {
		w.RuntimeClasses = append(w.RuntimeClasses, &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Scheduling: &nodev1.Scheduling{NodeSelector: selects}})
	}
	for name, tc := range map[string]struct {
		kind string
		edit func(*world)
		want string
	}{
		"by nobody known": {"Deployment", func(*world) {}, "see who gives its pods the selector cc=on, which deployment/w does not have, and have the pod made again"},
		"by its class": {"Deployment", func(w *world) { class(w, "kata", map[string]string{"cc": "on"}) },
			"make nodes ready for RuntimeClass kata, which selects cc=on, or name another in deployment/w"},
		"and others fit": {"Deployment", func(w *world) {
			class(w, "kata", map[string]string{"cc": "on"})
			class(w, "plain", map[string]string{"cc": "off"})
			class(w, "none", map[string]string{"cc": "x"})
		}, "make nodes ready for RuntimeClass kata, which selects cc=on, or name plain in deployment/w"},
		"to a bare pod":  {"Pod", func(w *world) { class(w, "kata", map[string]string{"cc": "on"}) }, "make nodes ready for RuntimeClass kata, which selects cc=on, or name another in pod/w"},
		"to a DaemonSet": {"DaemonSet", func(w *world) { class(w, "kata", map[string]string{"cc": "on"}) }, "have daemonset/w itself select cc=on, as its pods are given it by RuntimeClass kata: those for other nodes are not made then"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.AddNode(sim.Node{Name: "n", Labels: map[string]string{"cc": "off"}})
			w.Wait.Spec.RuntimeClassName = new("kata")
			switch tc.kind {
			case "Deployment":
				w.Deployed()
			case "DaemonSet":
				w.DaemonSets = []*appsv1.DaemonSet{{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "w", UID: "d"}, Spec: appsv1.DaemonSetSpec{Template: corev1.PodTemplateSpec{Spec: *w.Wait.Spec.DeepCopy()}}}}
			}
			w.Wait.Spec.NodeSelector = map[string]string{"cc": "on"}
			tc.edit(w)
			c := w.bench(t, tc.kind)
			if got := c.fixSelector(c.Node("n")); len(got) != 1 || got[0].Title != tc.want || !got[0].Manual || got[0].Untestable == "" {
				t.Errorf("%+v, want %s", got, tc.want)
			}
		})
	}
}
