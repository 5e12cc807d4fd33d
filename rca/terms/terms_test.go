package terms

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/evict"
	"github.com/unpend/unpend/rca/rcatest"
	"github.com/unpend/unpend/rca/view"
)

// subject is pod a/w of a world, with on whose behalf others leave.
func subject(t *testing.T, w *rcatest.World) (view.Subject, *evict.Asker) {
	t.Helper()
	v, done, err := view.Open(t.Context(), w.State, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(done)
	return view.Subject{Cluster: v, Pod: w.Wait}, evict.NewLedger(v).ForPod(w.Wait)
}

func says(f *view.Finding) string {
	if f == nil {
		return ""
	}
	return string(f.Certainty) + ": " + f.Says
}

// Taints that somebody has set are the pod's to tolerate; those that pass with the node's state
// are not, and that of a cordon is neither.
func TestWhichTaintsAreTold(t *testing.T) {
	no := corev1.TaintEffectNoSchedule
	for name, tc := range map[string]struct {
		taint     corev1.Taint
		tolerates []corev1.Toleration
		taints    string
		notReady  string
	}{
		"somebody's":         {corev1.Taint{Key: "team", Value: "x", Effect: no}, nil, "proven: taint team=x:NoSchedule is not tolerated", ""},
		"tolerated":          {corev1.Taint{Key: "team", Value: "x", Effect: no}, []corev1.Toleration{{Key: "team", Operator: corev1.TolerationOpExists}}, "", ""},
		"of another value":   {corev1.Taint{Key: "team", Value: "x", Effect: no}, []corev1.Toleration{{Key: "team", Operator: corev1.TolerationOpEqual, Value: "y"}}, "proven: taint team=x:NoSchedule is not tolerated", ""},
		"a preference":       {corev1.Taint{Key: "team", Effect: corev1.TaintEffectPreferNoSchedule}, nil, "", ""},
		"not ready":          {corev1.Taint{Key: corev1.TaintNodeNotReady, Effect: no}, nil, "", "proven: not ready"},
		"a cordon":           {corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: no}, nil, "", ""},
		"until it is set up": {corev1.Taint{Key: "karpenter.sh/unregistered", Effect: no}, nil, "", "proven: not opened yet: startup taint karpenter.sh/unregistered stands on it"},
		"it is going":        {corev1.Taint{Key: "karpenter.sh/disrupted", Effect: no}, nil, "proven: taint karpenter.sh/disrupted:NoSchedule is not tolerated", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := rcatest.NewWorld()
			w.AddNode(sim.Node{Name: "n", Taints: []corev1.Taint{tc.taint}})
			w.Wait.Spec.Tolerations = tc.tolerates
			s, _ := subject(t, w)
			n := s.Cluster.Nodes["n"]
			if got := says(Taints(s, n)); got != tc.taints {
				t.Errorf("%q, want %q", got, tc.taints)
			}
			if got := says(NotReady(s, n)); got != tc.notReady {
				t.Errorf("not ready: %q, want %q", got, tc.notReady)
			}
			if Departing(tc.taint) != (tc.taint.Key == "karpenter.sh/disrupted") {
				t.Errorf("departing: %v", Departing(tc.taint))
			}
		})
	}
}

// A label that is absent is in no list, and numbers are whole, as the NodeAffinity plugin has it.
func TestWhichRequirementsAreMet(t *testing.T) {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"zone": "a", "memory": "40", "odd": "4x"}}}
	for _, tc := range []struct {
		key    string
		op     corev1.NodeSelectorOperator
		values []string
		met    bool
		text   string
	}{
		{"zone", corev1.NodeSelectorOpIn, []string{"b", "a"}, true, "zone=b|a"},
		{"zone", corev1.NodeSelectorOpIn, []string{"b"}, false, "zone=b"},
		{"none", corev1.NodeSelectorOpIn, []string{""}, false, "none="},
		{"zone", corev1.NodeSelectorOpNotIn, []string{"a"}, false, "zone!=a"},
		{"none", corev1.NodeSelectorOpNotIn, []string{"a"}, true, "none!=a"},
		{"zone", corev1.NodeSelectorOpExists, nil, true, "zone=any value"},
		{"none", corev1.NodeSelectorOpExists, nil, false, "none=any value"},
		{"zone", corev1.NodeSelectorOpDoesNotExist, nil, false, "no zone"},
		{"none", corev1.NodeSelectorOpDoesNotExist, nil, true, "no none"},
		{"memory", corev1.NodeSelectorOpGt, []string{"39"}, true, "memory>39"},
		{"memory", corev1.NodeSelectorOpGt, []string{"40"}, false, "memory>40"},
		{"memory", corev1.NodeSelectorOpLt, []string{"41"}, true, "memory<41"},
		{"memory", corev1.NodeSelectorOpLt, []string{"40"}, false, "memory<40"},
		{"odd", corev1.NodeSelectorOpGt, []string{"1"}, false, "odd>1"},
		{"memory", corev1.NodeSelectorOpGt, []string{"x"}, false, "memory>x"},
		{"memory", corev1.NodeSelectorOpGt, []string{"1", "2"}, false, "memory>1|2"},
	} {
		m := MissedLabel{NodeSelectorRequirement: corev1.NodeSelectorRequirement{Key: tc.key, Operator: tc.op, Values: tc.values}, Key: tc.key}
		if m.Met(n) != tc.met || m.Text() != tc.text {
			t.Errorf("%s: %v, %q; want %v", tc.text, m.Met(n), m.Text(), tc.met)
		}
	}
}

// What comes nearest to a label that no node has: by the letters and digits that values share,
// or by how close a number is to the bound.
func TestWhatComesNearest(t *testing.T) {
	for name, tc := range map[string]struct {
		selector map[string]string
		affinity *corev1.NodeSelectorRequirement
		want     string
	}{
		"spelled otherwise":   {map[string]string{"model": "a100_80gb"}, nil, `proven: selector model=a100_80gb (nearest: "A100-40") does not match`},
		"another node has it": {map[string]string{"model": "b200"}, nil, `proven: selector model=b200 does not match`},
		"no node has any":     {map[string]string{"absent": "x"}, nil, "proven: selector absent=x does not match"},
		"more than there is":  {nil, &corev1.NodeSelectorRequirement{Key: "memory", Operator: corev1.NodeSelectorOpGt, Values: []string{"60"}}, `proven: selector memory>60 (nearest: "40") does not match`},
		"less than there is":  {nil, &corev1.NodeSelectorRequirement{Key: "memory", Operator: corev1.NodeSelectorOpLt, Values: []string{"20"}}, `proven: selector memory<20 (nearest: "24") does not match`},
		"met":                 {map[string]string{"model": "A100-40"}, &corev1.NodeSelectorRequirement{Key: "memory", Operator: corev1.NodeSelectorOpGt, Values: []string{"24"}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := rcatest.NewWorld()
			w.AddNode(sim.Node{Name: "n", Labels: map[string]string{"model": "A100-40", "memory": "40"}})
			w.AddNode(sim.Node{Name: "o", Labels: map[string]string{"model": "b200", "memory": "24"}})
			w.Wait.Spec.NodeSelector = tc.selector
			if tc.affinity != nil {
				w.Wait.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{*tc.affinity}}}}}}
			}
			s, _ := subject(t, w)
			l, n := LabelsOf(s), s.Cluster.Nodes["n"]
			first := l.On(n)
			if got := says(l.Tell(n)); got != tc.want || l.Accepts(n) != (tc.want == "") || first != l.On(n) {
				t.Errorf("%q, want %q; accepted: %v", got, tc.want, l.Accepts(n))
			}
		})
	}
}

// Whom the pod has to be apart from, by its terms or by theirs, and who of them may leave.
func TestWhoStandsApart(t *testing.T) {
	const host = "kubernetes.io/hostname"
	term := func(app, key string) *corev1.Affinity {
		return &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}, TopologyKey: key}}}}
	}
	for name, tc := range map[string]struct {
		fill    func(w *rcatest.World, h *corev1.Pod)
		on      string
		want    string
		movable bool
		in      int
	}{
		"by its own term":      {func(w *rcatest.World, _ *corev1.Pod) { w.Wait.Spec.Affinity = term("h", host) }, "n", "apart from app=h (kubernetes.io/hostname)", true, 1},
		"by the other's":       {func(_ *rcatest.World, h *corev1.Pod) { h.Spec.Affinity = term("w", host) }, "n", "", true, 1},
		"from another node":    {func(w *rcatest.World, _ *corev1.Pod) { w.Wait.Spec.Affinity = term("h", "zone") }, "o", "apart from app=h (zone)", false, 1},
		"not on this node":     {func(w *rcatest.World, _ *corev1.Pod) { w.Wait.Spec.Affinity = term("h", host) }, "o", "", true, 0},
		"of another namespace": {func(w *rcatest.World, h *corev1.Pod) { w.Wait.Spec.Affinity = term("h", host); h.Namespace = "b" }, "n", "", true, 0},
		"one who may not leave": {func(w *rcatest.World, h *corev1.Pod) {
			w.Wait.Spec.Affinity = term("h", host)
			h.Spec.Priority = new(int32(9))
		}, "n", "apart from app=h (kubernetes.io/hostname)", false, 1},
		"nobody is spoken about": {func(*rcatest.World, *corev1.Pod) {}, "n", "", true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := rcatest.NewWorld()
			for _, node := range []string{"n", "o"} {
				w.AddNode(sim.Node{Name: node, Labels: map[string]string{"zone": "z"}}, func(o *corev1.Node, _ *nodeprobe.NodeGeometry) { o.Labels[host] = o.Name })
			}
			h := w.AddHolder("h", "n", "cpu", 0)
			tc.fill(w, h)
			s, by := subject(t, w)
			c, n := CompanyOf(s, by), s.Cluster.Nodes[tc.on]
			pods, movable := c.StandsApart(n)
			_, _, texts := c.UnmetTerms(n)
			if movable != tc.movable || len(pods) > 0 != (tc.movable && tc.in > 0) || strings.Join(texts, ", ") != tc.want || len(c.InTheWay(n)) != tc.in {
				t.Errorf("%s, %v; %q; %d in the way", view.PodList(pods), movable, texts, len(c.InTheWay(n)))
			}
		})
	}
}

// A claim that does not exist is as sure as the list of claims; one that is not read proves
// nothing, and who else uses it is named.
func TestWhatIsSaidOfVolumes(t *testing.T) {
	for name, tc := range map[string]struct {
		fill func(*rcatest.World)
		want string
	}{
		"none of that name": {func(*rcatest.World) {}, "proven: n: refused; PersistentVolumeClaim/a/data: does not exist"},
		"not read":          {func(w *rcatest.World) { w.Unread["PersistentVolumeClaim"] = "forbidden" }, "possible: n: refused"},
		"with its volume": {func(w *rcatest.World) {
			w.PVCs = []*corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "data"}, Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "pv"}, Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound}}}
			w.Unread["PersistentVolume"] = "forbidden"
		}, "possible: n: refused; PersistentVolumeClaim/a/data: is Bound, volume pv"},
		"who uses it": {func(w *rcatest.World) { w.AddHolder("h", "n", "cpu", 0).Spec.Volumes = w.Wait.Spec.Volumes }, "proven: n: refused; PersistentVolumeClaim/a/data: does not exist; Pod/a/h: uses PersistentVolumeClaim data on n"},
	} {
		t.Run(name, func(t *testing.T) {
			w := rcatest.NewWorld()
			w.AddNode(sim.Node{Name: "n"})
			w.Wait.Spec.Volumes = []corev1.Volume{{Name: "scratch"}, {Name: "d", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
			tc.fill(w)
			s, _ := subject(t, w)
			f := VolumesOf(s).Tell(s.Cluster.Nodes["n"], "refused")
			got := []string{}
			for _, e := range f.Evidence {
				got = append(got, strings.TrimPrefix(e.Ref, "Node/")+": "+e.Fact)
			}
			if text := string(f.Certainty) + ": " + strings.Join(got, "; "); text != tc.want || f.Says != "its volume cannot be had there: refused" {
				t.Errorf("%s, want %s (%s)", text, tc.want, f.Says)
			}
		})
	}
}
