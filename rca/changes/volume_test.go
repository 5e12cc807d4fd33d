package changes

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/rcatest"
)

// What a person does about a volume goes by the pod's first claim, as its namespace has it: it
// is made, bound, or has its data brought where the GPUs are.
func TestWhatIsDoneAboutVolumes(t *testing.T) {
	claim := func(namespace, name, volume string) *corev1.PersistentVolumeClaim {
		return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: corev1.PersistentVolumeClaimSpec{VolumeName: volume}}
	}
	for name, tc := range map[string]struct {
		asks     []string // claims; empty: another volume
		there    []*corev1.PersistentVolumeClaim
		want     string
		commands int
	}{
		"none is asked":        {[]string{""}, []*corev1.PersistentVolumeClaim{claim("a", "data", "v")}, "", 0},
		"it is not there":      {[]string{"data"}, []*corev1.PersistentVolumeClaim{claim("a", "other", "v")}, "make PersistentVolumeClaim data, or name one that exists", 2},
		"another namespace's":  {[]string{"data"}, []*corev1.PersistentVolumeClaim{claim("b", "data", "v")}, "make PersistentVolumeClaim data in a, or run deployment/w in b, where one of that name is", 2},
		"it is not bound":      {[]string{"data"}, []*corev1.PersistentVolumeClaim{claim("a", "data", "")}, "have somebody make a volume for PersistentVolumeClaim data: it names no StorageClass, and none is the default", 4},
		"it is somewhere else": {[]string{"data"}, []*corev1.PersistentVolumeClaim{claim("a", "data", "v")}, "have the data of PersistentVolumeClaim data where a node has room for the pod, or such a node where volume v is", 4},
		"the first of two":     {[]string{"", "data", "other"}, []*corev1.PersistentVolumeClaim{claim("a", "other", "v")}, "make PersistentVolumeClaim data, or name one that exists", 2},
		"the second alone":     {[]string{"data", "other"}, []*corev1.PersistentVolumeClaim{claim("a", "data", "v")}, "make PersistentVolumeClaim other, or name one that exists", 2},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			for _, c := range tc.asks {
				var v corev1.Volume
				if c != "" {
					v.PersistentVolumeClaim = &corev1.PersistentVolumeClaimVolumeSource{ClaimName: c}
				}
				w.Wait.Spec.Volumes = append(w.Wait.Spec.Volumes, v)
			}
			w.PVCs = tc.there
			got := w.bench(t, "Deployment").lookAtVolume(nil)
			if tc.want == "" {
				if got != nil {
					t.Errorf("%+v", got)
				}
				return
			}
			if len(got) != 1 || got[0].Title != tc.want || !got[0].Manual || len(got[0].Commands) != tc.commands {
				t.Errorf("%+v, want %s", got, tc.want)
			}
		})
	}
}

// Of a pod that asks for a GPU one is spoken of; a selector that has the pod go where its volume is not is
// what is wrong, in the zone by whatever label.
func TestVolumesElsewhere(t *testing.T) {
	for name, tc := range map[string]struct {
		selects map[string]string
		want    string
	}{
		"no selector":      {nil, "have the data of PersistentVolumeClaim data where such a GPU is free, or a GPU node where volume v is (zone c)"},
		"another zone":     {map[string]string{"topology.kubernetes.io/zone": "a"}, "select topology.kubernetes.io/zone=c in deployment/w, where the volume of PersistentVolumeClaim data is, and no longer a"},
		"its zone":         {map[string]string{"topology.kubernetes.io/zone": "c"}, "have the data of PersistentVolumeClaim data where such a GPU is free, or a GPU node where volume v is (zone c)"},
		"of another label": {map[string]string{"team": "a"}, "have the data of PersistentVolumeClaim data where such a GPU is free, or a GPU node where volume v is (zone c)"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.Asking(rcatest.List("nvidia.com/gpu", "1"))
			w.Wait.Spec.NodeSelector = tc.selects
			w.Wait.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
			w.PVCs = []*corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "data"}, Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "v"}}}
			w.PVs = []*corev1.PersistentVolume{{ObjectMeta: metav1.ObjectMeta{Name: "v"}, Spec: corev1.PersistentVolumeSpec{NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "topology.ebs.csi.aws.com/zone", Operator: corev1.NodeSelectorOpIn, Values: []string{"c"}}}}}}}}}}
			got := w.bench(t, "Deployment").lookAtVolume(nil)
			if len(got) != 1 || got[0].Title != tc.want || !got[0].Manual || got[0].Untestable == "" {
				t.Errorf("%+v, want %s", got, tc.want)
			}
		})
	}
}

// Several pods together ask for as many times as much, and the one for as much as before.
func TestTheBenchForSeveral(t *testing.T) {
	w := newWorld()
	w.Asking(rcatest.List("cpu", "500m", string(mig1g), "2"))
	c := w.bench(t, "Deployment")
	of := func(b *Bench) []int64 {
		cpu, gpu := b.Wants[corev1.ResourceCPU], b.Wants[mig1g]
		return []int64{b.Asks[0].Count, cpu.MilliValue(), gpu.Value(), int64(len(b.Asks)), int64(len(b.Wants))}
	}
	three := c.For(3)
	if got, want := of(three), []int64{6, 1500, 6, 1, 2}; !slices.Equal(got, want) {
		t.Errorf("three: %v, want %v", got, want)
	}
	if got, want := of(c), []int64{2, 500, 2, 1, 2}; !slices.Equal(got, want) {
		t.Errorf("one: %v, want %v", got, want)
	}
}

// What is local to no node is made again for the one that was meant, or that node is brought back.
func TestVolumesOfNoNode(t *testing.T) {
	for name, tc := range map[string]struct{ host, want string }{
		"named": {"n", "make PersistentVolume v again for kubernetes.io/hostname=gpu-1, which is what node n has"},
		"gone":  {"gone", "bring node gone back, where the data of PersistentVolumeClaim data is, or make the claim again without the data"},
	} {
		w := newWorld()
		w.AddNode(sim.Node{Name: "n", Labels: map[string]string{corev1.LabelHostname: "gpu-1"}})
		w.Wait.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
		w.PVCs = []*corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "data"}, Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "v"}}}
		w.PVs = []*corev1.PersistentVolume{{ObjectMeta: metav1.ObjectMeta{Name: "v"}, Spec: corev1.PersistentVolumeSpec{NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{tc.host}}}}}}}}}}
		if got := w.bench(t, "Deployment").lookAtVolume(nil); len(got) != 1 || got[0].Title != tc.want || got[0].Risk != diagnosis.MediumRisk {
			t.Errorf("%s: %+v, want %s", name, got, tc.want)
		}
	}
}
