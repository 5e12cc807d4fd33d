package terms

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/rcatest"
)

func wants(key string, values ...string) corev1.NodeSelectorRequirement {
	return corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}
}

func oneOf(terms ...corev1.NodeSelectorTerm) *corev1.Affinity {
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms}}}
}

// Terms of an affinity are alternatives: what is missed is of the one that comes nearest, the
// first of equals, and of none where one is met. A term without requirements matches nothing.
func TestTheTermThatComesNearest(t *testing.T) {
	labels := func(all ...corev1.NodeSelectorRequirement) corev1.NodeSelectorTerm {
		return corev1.NodeSelectorTerm{MatchExpressions: all}
	}
	named := func(name string) corev1.NodeSelectorTerm {
		return corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{wants("metadata.name", name)}}
	}
	const term = " spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms["
	for name, tc := range map[string]struct {
		selector map[string]string
		terms    []corev1.NodeSelectorTerm
		want     string
	}{
		"one of two is met": {nil, []corev1.NodeSelectorTerm{labels(wants("a", "9")), labels(wants("a", "1"))}, ""},
		"the one that misses less": {nil, []corev1.NodeSelectorTerm{labels(wants("a", "9"), wants("b", "9")), labels(wants("a", "1"), wants("b", "9"))},
			"proven: selector b=9 (nearest: \"2\") does not match, nor its alternatives\nlabel b is \"2\", 9 was asked; Pod/a/w" + term + "1].matchExpressions[1].values = 9; Node/n metadata.labels[b] = 2"},
		"the first of equals": {nil, []corev1.NodeSelectorTerm{labels(wants("b", "9")), labels(wants("a", "9"))},
			"proven: selector b=9 (nearest: \"2\") does not match, nor its alternatives\nlabel b is \"2\", 9 was asked; Pod/a/w" + term + "0].matchExpressions[0].values = 9; Node/n metadata.labels[b] = 2"},
		"an empty term is none": {nil, []corev1.NodeSelectorTerm{{}, labels(wants("a", "8", "9"))},
			"proven: selector a=8|9 (nearest: \"1\") does not match, nor its alternatives\nlabel a is \"1\", 8|9 was asked; Pod/a/w" + term + "1].matchExpressions[0].values = 8; Pod/a/w" + term + "1].matchExpressions[0].values = 9; Node/n metadata.labels[a] = 1"},
		"only empty ones":      {nil, []corev1.NodeSelectorTerm{{}}, "proven: node affinity does not match\nthe required node affinity does not match its labels; Pod/a/w selects[n] = false"},
		"it alone":             {nil, []corev1.NodeSelectorTerm{labels(wants("c", "9"))}, "proven: selector c=9 does not match\nlabel c is absent, 9 was asked; Pod/a/w" + term + "0].matchExpressions[0].values = 9; Node/n metadata.labels[c] absent "},
		"by the node's name":   {nil, []corev1.NodeSelectorTerm{named("o")}, "proven: selector metadata.name=o does not match\nlabel metadata.name is \"n\", o was asked; Pod/a/w" + term + "0].matchFields[0].values = o; Node/n metadata.name = n"},
		"by both":              {nil, []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{wants("a", "9")}, MatchFields: named("n").MatchFields}}, "proven: selector a=9 (nearest: \"1\") does not match\nlabel a is \"1\", 9 was asked; Pod/a/w" + term + "0].matchExpressions[0].values = 9; Node/n metadata.labels[a] = 1"},
		"the name that it has": {nil, []corev1.NodeSelectorTerm{named("n")}, ""},
		"the selector, beside terms": {map[string]string{"a": "9"}, []corev1.NodeSelectorTerm{labels(wants("a", "1")), labels(wants("b", "9"))},
			"proven: selector a=9 (nearest: \"1\") does not match\nlabel a is \"1\", 9 was asked; Pod/a/w spec.nodeSelector[a] = 9; Node/n metadata.labels[a] = 1"},
		"two of the selector": {map[string]string{"c": "9", "a": "9", "b": "2"}, nil,
			"proven: selector a=9 (nearest: \"1\"), c=9 does not match\nlabel a is \"1\", 9 was asked; Pod/a/w spec.nodeSelector[a] = 9; Node/n metadata.labels[a] = 1\nlabel c is absent, 9 was asked; Pod/a/w spec.nodeSelector[c] = 9; Node/n metadata.labels[c] absent "},
	} {
		t.Run(name, func(t *testing.T) {
			w := rcatest.NewWorld()
			w.AddNode(sim.Node{Name: "n", Labels: map[string]string{"a": "1", "b": "2"}})
			w.AddNode(sim.Node{Name: "twin", Labels: map[string]string{"a": "1", "b": "2"}})
			w.Wait.Spec.NodeSelector = tc.selector
			if tc.terms != nil {
				w.Wait.Spec.Affinity = oneOf(tc.terms...)
			}
			s, _ := subject(t, w)
			l := LabelsOf(s)
			l.On(s.Cluster.Nodes["twin"])
			f := l.Tell(s.Cluster.Nodes["n"])
			got := says(f)
			if f != nil {
				for _, e := range f.Evidence {
					got += "\n" + e.Fact
					for _, k := range e.Claims {
						got += fmt.Sprintf("; %s %s %s %s", k.Ref, k.Path, k.Op, k.Value)
					}
				}
			}
			if got != tc.want {
				t.Errorf("%s\nwant\n%s", got, tc.want)
			}
			if tc.want != "" && tc.terms == nil && l.On(s.Cluster.Nodes["twin"]) != l.On(s.Cluster.Nodes["n"]) {
				t.Error("nodes alike in what the pod speaks of are not judged once")
			}
		})
	}
}

// A flavor of Kueue's is named where it has the label that the selector asks for, no node has it, and
// all nodes were read.
func TestAFlavorThatNoNodeHas(t *testing.T) {
	for name, tc := range map[string]struct {
		label MissedLabel
		edit  func(*rcatest.World)
		want  string
	}{
		"it has":              {MissedLabel{Key: "pool", NodeSelectorRequirement: wants("pool", "a"), InSelector: true}, nil, "gpus"},
		"by the affinity":     {MissedLabel{Key: "pool", NodeSelectorRequirement: wants("pool", "a")}, nil, ""},
		"one of two":          {MissedLabel{Key: "pool", NodeSelectorRequirement: wants("pool", "a", "b"), InSelector: true}, nil, ""},
		"of another value":    {MissedLabel{Key: "pool", NodeSelectorRequirement: wants("pool", "b"), InSelector: true}, nil, ""},
		"a node has it":       {MissedLabel{Key: "pool", NodeSelectorRequirement: wants("pool", "a"), InSelector: true}, func(w *rcatest.World) { w.Nodes[0].Labels["pool"] = "a" }, ""},
		"nodes were not read": {MissedLabel{Key: "pool", NodeSelectorRequirement: wants("pool", "a"), InSelector: true}, func(w *rcatest.World) { w.Unread["Node"] = "x" }, ""},
	} {
		w := rcatest.NewWorld()
		w.AddNode(sim.Node{Name: "n"})
		w.Queues.Flavors = []*unstructured.Unstructured{{Object: map[string]any{"metadata": map[string]any{"name": "gpus"}, "spec": map[string]any{"nodeLabels": map[string]any{"pool": "a"}}}}}
		if tc.edit != nil {
			tc.edit(w)
		}
		s, _ := subject(t, w)
		if got := LabelsOf(s).Unmatched(tc.label); got != tc.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// How like two values are goes by their letters and digits alone, as far as they agree from the
// beginning, whatever the case.
func TestHowLikeValuesAre(t *testing.T) {
	if got := diagnosis.Plain("`Az{/09:-_.é"); got != "az09" {
		t.Errorf("%q is left", got)
	}
	for _, tc := range []struct {
		a, b string
		want int
	}{
		{"NVIDIA-A100-SXM4", "nvidia_a100.pcie", 10}, {"a100", "a100-80gb", 4}, {"b100", "a100", 0}, {"", "a100", 0}, {"a-1", "A1", 2},
	} {
		if got := likeness(tc.a, tc.b); got != tc.want {
			t.Errorf("%s and %s: %d, want %d", tc.a, tc.b, got, tc.want)
		}
	}
}

// A node that takes nobody for now is told by the worst of its taints, with who would take a
// startup taint off and is kept from it.
func TestWhyANodeIsShut(t *testing.T) {
	taint := func(key string) corev1.Taint { return corev1.Taint{Key: key, Effect: corev1.TaintEffectNoSchedule} }
	const cilium, disk = "node.cilium.io/agent-not-ready", corev1.TaintNodeDiskPressure
	const waits = "proven: not opened yet: startup taint " + cilium + " stands on it"
	const until = "has lost taint " + cilium
	agent := func(name string, tolerates ...string) *appsv1.DaemonSet {
		d := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name}}
		for _, key := range tolerates {
			d.Spec.Template.Spec.Tolerations = append(d.Spec.Template.Spec.Tolerations, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists})
		}
		return d
	}
	for name, tc := range map[string]struct {
		taints []corev1.Taint
		sets   []*appsv1.DaemonSet
		want   string
		until  string
	}{
		"nothing":                    {nil, nil, "", ""},
		"a state":                    {[]corev1.Taint{taint(disk)}, nil, "proven: under disk pressure", "has disk space again"},
		"the first of two states":    {[]corev1.Taint{taint(disk), taint(corev1.TaintNodePIDPressure)}, nil, "proven: under disk pressure", "has disk space again"},
		"it is not ready either":     {[]corev1.Taint{taint(disk), taint(corev1.TaintNodeNotReady)}, nil, "proven: not ready", "is Ready again"},
		"a state before a startup":   {[]corev1.Taint{taint(disk), taint(cilium)}, nil, "proven: under disk pressure", "has disk space again"},
		"a startup taint":            {[]corev1.Taint{taint(cilium)}, nil, waits, until},
		"its agent may come":         {[]corev1.Taint{taint(cilium), taint("team")}, []*appsv1.DaemonSet{agent("cilium", cilium, "team")}, waits, until},
		"its agent is kept off":      {[]corev1.Taint{taint(cilium), taint("team")}, []*appsv1.DaemonSet{agent("other", cilium), agent("cilium", cilium)}, waits + ", for DaemonSet kube-system/cilium, which takes it off, does not tolerate team:NoSchedule", until},
		"by what controllers let in": {[]corev1.Taint{taint(cilium), taint(disk + "x")}, []*appsv1.DaemonSet{agent("cilium", cilium)}, "proven: not ready", "is Ready again"},
		"a taint of somebody's":      {[]corev1.Taint{taint("team")}, nil, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := rcatest.NewWorld()
			w.AddNode(sim.Node{Name: "n", Taints: tc.taints})
			w.DaemonSets = tc.sets
			s, _ := subject(t, w)
			n := s.Cluster.Nodes["n"]
			if got := says(NotReady(s, n)); got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
			shut := ShutFor(s, n)
			if (shut == nil) != (tc.want == "") || shut != nil && shut.Until != tc.until {
				t.Errorf("%+v", shut)
			}
			if kept := strings.Contains(tc.want, "DaemonSet"); shut != nil && (shut.By != nil) != kept {
				t.Errorf("kept off: %+v", shut.By)
			} else if kept && (shut.Ref() != "DaemonSet/kube-system/cilium" || shut.Misses() != "team:NoSchedule" || len(NotReady(s, n).Evidence) != 2) {
				t.Errorf("%s misses %s", shut.Ref(), shut.Misses())
			}
		})
	}
}

// Of a volume is claimed what it wants of its node, and what this one has there; who else uses
// its claim is one that runs, in the pod's namespace, and there are not too many.
func TestWhatAVolumeWantsOfANode(t *testing.T) {
	w := rcatest.NewWorld()
	w.AddNode(sim.Node{Name: "n", Labels: map[string]string{zone: "a"}})
	use := func(claim string) corev1.Volume {
		return corev1.Volume{Name: claim, VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}}
	}
	w.Wait.Spec.Volumes = []corev1.Volume{use("data"), {Name: "scratch"}, use("gone")}
	claim := func(namespace, name, volume string) *corev1.PersistentVolumeClaim {
		return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: corev1.PersistentVolumeClaimSpec{VolumeName: volume}, Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound}}
	}
	volume := func(name string, keys ...string) *corev1.PersistentVolume {
		v := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}}
		for _, key := range keys {
			v.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{wants(key, "b")}}}}}
		}
		return v
	}
	w.PVCs = []*corev1.PersistentVolumeClaim{claim("b", "data", "theirs"), claim("a", "other", "others"), claim("a", "data", "mine")}
	w.PVs = []*corev1.PersistentVolume{volume("theirs", "rack"), volume("others", "rack"), volume("mine", zone), volume("none")}
	for i := range mostNamed + 2 {
		w.AddHolder(fmt.Sprint("h", i), "n", "cpu", 0).Spec.Volumes = []corev1.Volume{use("data")}
	}
	w.Pods[1].Namespace, w.Pods[2].Spec.NodeName = "b", ""
	w.AddHolder("x", "n", "cpu", 0).Spec.Volumes = []corev1.Volume{use("other")}
	w.Wait.Spec.NodeName = "n"
	s, _ := subject(t, w)
	f := VolumesOf(s).Tell(s.Cluster.Nodes["n"], "refused")
	var claims, facts []string
	for _, k := range f.Evidence[0].Claims {
		claims = append(claims, fmt.Sprintf("%s %s %s %s", k.Ref, k.Path, k.Op, k.Value))
	}
	for _, e := range f.Evidence[1:] {
		facts = append(facts, e.Ref+" "+e.Fact)
	}
	if got, want := strings.Join(claims, "; "), "PersistentVolume/mine spec.nodeAffinity contains "+zone+"; Node/n metadata.labels["+zone+"] = a; PersistentVolumeClaim/a/gone  absent "; got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	want := "PersistentVolumeClaim/a/data is Bound, volume mine"
	for i := range mostNamed {
		want += fmt.Sprintf("; Pod/a/h%d uses PersistentVolumeClaim data on n", i+2)
	}
	if got := strings.Join(facts, "; "); f.Certainty != "proven" || got != want+"; PersistentVolumeClaim/a/gone does not exist" {
		t.Errorf("%s: %s\nwant\n%s", f.Certainty, got, want)
	}
}
