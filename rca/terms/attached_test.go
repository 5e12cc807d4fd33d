package terms

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/rcatest"
)

// A node is full of a driver's volumes by what its CSINode allows and what its pods have: each
// volume once, who attaches it told by the volume, or else by the class of its claim.
func TestWhereNoMoreVolumesAreAttached(t *testing.T) {
	const disks = "disks.example.com"
	full := Full{Driver: disks, Used: 2, Limit: 2}
	for name, tc := range map[string]struct {
		edit func(*rcatest.World)
		want Full // of no driver: none is full
	}{
		"all are":                    {func(*rcatest.World) {}, full},
		"one more may be":            {func(w *rcatest.World) { *w.CSINodes[1].Spec.Drivers[1].Allocatable.Count = 3 }, Full{}},
		"no limit is told":           {func(w *rcatest.World) { w.CSINodes[1].Spec.Drivers[1].Allocatable = nil }, Full{}},
		"one volume for two":         {func(w *rcatest.World) { w.PVs[2].Spec.CSI.VolumeHandle = "h-1" }, Full{}},
		"one of another driver":      {func(w *rcatest.World) { w.PVs[2].Spec.CSI.Driver = "nfs.example.com" }, Full{}},
		"one is done":                {func(w *rcatest.World) { w.Pods[1].Status.Phase = corev1.PodSucceeded }, Full{}},
		"its own is of no driver":    {func(w *rcatest.World) { w.PVs[0].Spec.CSI = nil }, Full{}},
		"its own by its class":       {func(w *rcatest.World) { w.PVCs[0].Spec.VolumeName = "" }, full},
		"its own of another class":   {func(w *rcatest.World) { w.PVCs[0].Spec.VolumeName, w.StorageClasses[0].Name = "", "other" }, Full{}},
		"its own claim is elsewhere": {func(w *rcatest.World) { w.PVCs[0].Namespace = "b" }, Full{}},
		"nodes were not read":        {func(w *rcatest.World) { w.Unread["CSINode"] = "forbidden" }, Full{}},
	} {
		t.Run(name, func(t *testing.T) {
			w := rcatest.NewWorld()
			w.AddNode(sim.Node{Name: "n"})
			for _, of := range []string{"0", "1", "2"} {
				claim(w, "c-"+of, "v-"+of, "")
				w.PVs[len(w.PVs)-1].Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: disks, VolumeHandle: "h-" + of}
			}
			all := w.Wait.Spec.Volumes
			w.Wait.Spec.Volumes = []corev1.Volume{{Name: "scratch"}, all[0]}
			w.AddHolder("x", "n", "cpu", 0).Spec.Volumes = []corev1.Volume{{Name: "scratch"}, all[1]}
			w.AddHolder("y", "n", "cpu", 0).Spec.Volumes = all[2:]
			w.PVCs[0].Spec.StorageClassName = new("fast")
			w.StorageClasses = []*storagev1.StorageClass{{ObjectMeta: metav1.ObjectMeta{Name: "fast"}, Provisioner: disks}}
			allows := func(node string, count int32) *storagev1.CSINode {
				return &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: node}, Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{{Name: "nfs.example.com"}, {Name: disks, Allocatable: &storagev1.VolumeNodeResources{Count: &count}}}}}
			}
			w.CSINodes = []*storagev1.CSINode{allows("other", 9), allows("n", 2)}
			tc.edit(w)
			s, _ := subject(t, w)
			got := Full{}
			if f := VolumesOf(s).FullOf(s.Cluster.Nodes["n"]); f != nil {
				got = *f
			}
			if got != tc.want {
				t.Errorf("%+v, want %+v", got, tc.want)
			}
		})
	}
}
