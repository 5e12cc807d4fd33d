package terms

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/unpend/unpend/rca/rcatest"
)

// asking is a claim of the pod for a file system of 10Gi on one node, of no class, and a volume that would do.
func asking(w *rcatest.World) (*corev1.PersistentVolumeClaim, *corev1.PersistentVolume) {
	p, none := claim(w, "data", "", ""), ""
	p.UID, p.Spec.StorageClassName, p.Spec.AccessModes = "claim", &none, []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	p.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("10Gi")}
	v := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "v"}, Spec: corev1.PersistentVolumeSpec{AccessModes: p.Spec.AccessModes, Capacity: p.Spec.Resources.Requests.DeepCopy()}, Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeAvailable}}
	w.PVs = append(w.PVs, v)
	return p, v
}

// A volume that would do but for one thing is named with it; one that differs in two, or is another's, is none.
func TestVolumesThatWouldDo(t *testing.T) {
	kept := func(v *corev1.PersistentVolume, uid string, phase corev1.PersistentVolumePhase) {
		v.Spec.ClaimRef, v.Status.Phase = &corev1.ObjectReference{Namespace: "a", Name: "data", UID: types.UID(uid)}, phase
	}
	for name, tc := range map[string]struct {
		edit func(*rcatest.World, *corev1.PersistentVolumeClaim, *corev1.PersistentVolume)
		want string
	}{
		"it does": {func(*rcatest.World, *corev1.PersistentVolumeClaim, *corev1.PersistentVolume) {}, ""},
		"of a class": {func(_ *rcatest.World, _ *corev1.PersistentVolumeClaim, v *corev1.PersistentVolume) {
			v.Spec.StorageClassName = "slow"
		}, "PersistentVolume v would do, and is of StorageClass slow, where the claim is of no StorageClass"},
		"too small": {func(_ *rcatest.World, _ *corev1.PersistentVolumeClaim, v *corev1.PersistentVolume) {
			v.Spec.Capacity[corev1.ResourceStorage] = resource.MustParse("5Gi")
		}, "PersistentVolume v would do, and has 5Gi, where the claim asks for 10Gi"},
		"for one node": {func(_ *rcatest.World, p *corev1.PersistentVolumeClaim, _ *corev1.PersistentVolume) {
			p.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
		}, "PersistentVolume v would do, and has ReadWriteOnce, where the claim asks for ReadWriteMany"},
		"kept for one that is gone": {func(_ *rcatest.World, _ *corev1.PersistentVolumeClaim, v *corev1.PersistentVolume) {
			kept(v, "old", corev1.VolumeReleased)
		}, "PersistentVolume v would do, and is kept for claim a/data, which is gone"},
		"had by another": {func(_ *rcatest.World, _ *corev1.PersistentVolumeClaim, v *corev1.PersistentVolume) {
			kept(v, "old", corev1.VolumeBound)
		}, ""},
		"of a class, and too small": {func(_ *rcatest.World, _ *corev1.PersistentVolumeClaim, v *corev1.PersistentVolume) {
			v.Spec.StorageClassName, v.Spec.Capacity[corev1.ResourceStorage] = "slow", resource.MustParse("5Gi")
		}, ""},
		"not chosen by its labels": {func(_ *rcatest.World, p *corev1.PersistentVolumeClaim, v *corev1.PersistentVolume) {
			v.Spec.StorageClassName, p.Spec.Selector = "slow", &metav1.LabelSelector{MatchLabels: map[string]string{"disk": "fast"}}
		}, ""},
		"a block device": {func(_ *rcatest.World, _ *corev1.PersistentVolumeClaim, v *corev1.PersistentVolume) {
			block := corev1.PersistentVolumeBlock
			v.Spec.StorageClassName, v.Spec.VolumeMode = "slow", &block
		}, ""},
		"somebody makes one": {func(w *rcatest.World, p *corev1.PersistentVolumeClaim, _ *corev1.PersistentVolume) {
			class := "fast"
			p.Spec.StorageClassName = &class
			w.StorageClasses = append(w.StorageClasses, &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: class}, Provisioner: "ebs.csi.aws.com"})
		}, ""},
		"people make them of its class": {func(w *rcatest.World, p *corev1.PersistentVolumeClaim, _ *corev1.PersistentVolume) {
			class := "local"
			p.Spec.StorageClassName = &class
			w.StorageClasses = append(w.StorageClasses, &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: class}, Provisioner: noProvisioner})
		}, "PersistentVolume v would do, and is of no StorageClass, where the claim is of StorageClass local"},
		"volumes were not read": {func(w *rcatest.World, _ *corev1.PersistentVolumeClaim, v *corev1.PersistentVolume) {
			v.Spec.StorageClassName, w.Unread["PersistentVolume"] = "slow", "forbidden"
		}, ""},
	} {
		w := rcatest.NewWorld()
		p, v := asking(w)
		tc.edit(w, p, v)
		s, _ := subject(t, w)
		got := ""
		if spare := SpareFor(s.Cluster, p); spare != nil {
			got = spare.Says()
		}
		if got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// A file system for many nodes is not had of who makes disks; another class is named where its own documents say it does.
func TestFileSystemsOfManyNodes(t *testing.T) {
	for name, tc := range map[string]struct {
		provisioner, other string
		mode               corev1.PersistentVolumeAccessMode
		want               string
	}{
		"a disk":                  {"ebs.csi.aws.com", "", corev1.ReadWriteMany, "fast "},
		"a disk, beside a server": {"pd.csi.storage.gke.io", "filestore.csi.storage.gke.io", corev1.ReadWriteMany, "fast other"},
		"a disk for one node":     {"ebs.csi.aws.com", "", corev1.ReadWriteOnce, ""},
		"a file server":           {"efs.csi.aws.com", "", corev1.ReadWriteMany, ""},
		"who is not known":        {"example.com/any", "", corev1.ReadWriteMany, ""},
	} {
		w := rcatest.NewWorld()
		p, class := claim(w, "data", "", ""), "fast"
		p.Spec.StorageClassName, p.Spec.AccessModes = &class, []corev1.PersistentVolumeAccessMode{tc.mode}
		for name, by := range map[string]string{class: tc.provisioner, "other": tc.other} {
			w.StorageClasses = append(w.StorageClasses, &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: by})
		}
		s, _ := subject(t, w)
		got := ""
		if c, with := Unshared(s.Cluster, p); c != nil {
			got = c.Name + " " + with
		}
		if got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// For a claim that is missing one of a name like it is meant, before one of its very name elsewhere.
func TestWhichClaimIsMeant(t *testing.T) {
	for want, there := range map[string][][2]string{
		"a/datas": {{"b", "data"}, {"a", "datas"}},
		"b/data":  {{"b", "other"}, {"b", "data"}, {"c", "data"}},
		"":        {{"a", "other"}, {"b", "datas"}},
	} {
		w := rcatest.NewWorld()
		for _, of := range there {
			claim(w, of[1], "", "").Namespace = of[0]
		}
		s, _ := subject(t, w)
		got := ""
		if p := Resembling(s.Cluster, s.Pod, "data"); p != nil {
			got = p.Namespace + "/" + p.Name
		}
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
