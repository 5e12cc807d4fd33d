package changes

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Where objects say what a claim or a volume is to be instead, that is the fix, with the command that does it.
func TestWhatAClaimIsToBe(t *testing.T) {
	type edit func(*world, *corev1.PersistentVolumeClaim, *corev1.PersistentVolume)
	for name, tc := range map[string]struct {
		edit     edit
		want     string
		commands string // a part of them
	}{
		"the class of the volume": {func(_ *world, _ *corev1.PersistentVolumeClaim, v *corev1.PersistentVolume) {
			v.Spec.StorageClassName = "slow"
		},
			`give PersistentVolume v the StorageClass of PersistentVolumeClaim data: "" instead of "slow"`, `kubectl patch pv v --type=merge -p '{"spec":{"storageClassName":""}}'`},
		"its old claim": {func(_ *world, _ *corev1.PersistentVolumeClaim, v *corev1.PersistentVolume) {
			v.Spec.ClaimRef, v.Status.Phase = &corev1.ObjectReference{Namespace: "a", Name: "old", UID: "old"}, corev1.VolumeReleased
		}, "free PersistentVolume v for PersistentVolumeClaim data: the claim that had it is gone", `[{"op":"remove","path":"/spec/claimRef"}]`},
		"its modes": {func(_ *world, p *corev1.PersistentVolumeClaim, _ *corev1.PersistentVolume) {
			p.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
		}, "make PersistentVolumeClaim data again with what PersistentVolume v has: ReadWriteOnce", "accessModes: [ReadWriteOnce]"},
		"its size": {func(_ *world, p *corev1.PersistentVolumeClaim, _ *corev1.PersistentVolume) {
			p.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("20Gi")}
		}, "make PersistentVolumeClaim data again for 10Gi, which PersistentVolume v has", "resources.requests.storage: 10Gi"},
		"many nodes of a disk": {func(w *world, p *corev1.PersistentVolumeClaim, _ *corev1.PersistentVolume) {
			class := "fast"
			p.Spec.StorageClassName, p.Spec.AccessModes = &class, []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
			w.StorageClasses = append(w.StorageClasses, &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: class}, Provisioner: "ebs.csi.aws.com"}, &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "files"}, Provisioner: "efs.csi.aws.com"})
		}, "make PersistentVolumeClaim data again with ReadWriteOnce, or of StorageClass files, whose volumes many nodes have", "else storageClassName: files"},
		"a slip of the pen": {func(_ *world, p *corev1.PersistentVolumeClaim, _ *corev1.PersistentVolume) { p.Name = "datas" },
			"name PersistentVolumeClaim datas in deployment/w: there is no data", "claimName: datas"},
		"another namespace's": {func(_ *world, p *corev1.PersistentVolumeClaim, _ *corev1.PersistentVolume) { p.Namespace = "b" },
			"make PersistentVolumeClaim data in a, or run deployment/w in b, where one of that name is", `"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"10Gi"}},"storageClassName":""`},
		"beside others that are bound": {func(w *world, _ *corev1.PersistentVolumeClaim, v *corev1.PersistentVolume) {
			v.Spec.StorageClassName = "slow"
			for _, at := range [][3]string{{"a", "other", ""}, {"b", "data", ""}, {"c", "data", "x"}} {
				other := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: at[0], Name: at[1]}, Spec: corev1.PersistentVolumeClaimSpec{VolumeName: at[2], StorageClassName: new("fast")}}
				w.PVCs = append([]*corev1.PersistentVolumeClaim{other}, w.PVCs...)
			}
		}, `give PersistentVolume v the StorageClass of PersistentVolumeClaim data: "" instead of "slow"`, "kubectl patch pv v"},
		"it is bound": {func(_ *world, p *corev1.PersistentVolumeClaim, v *corev1.PersistentVolume) {
			v.Spec.StorageClassName, p.Spec.VolumeName = "slow", "v"
		}, "", ""},
		"the volume does": {func(*world, *corev1.PersistentVolumeClaim, *corev1.PersistentVolume) {}, "", ""},
	} {
		w := newWorld()
		none, modes, size := "", []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("10Gi")}
		p := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "data", UID: "claim"}, Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: &none, AccessModes: modes}}
		p.Spec.Resources.Requests = size
		v := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "v"}, Spec: corev1.PersistentVolumeSpec{AccessModes: modes, Capacity: size}, Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeAvailable}}
		w.PVCs, w.PVs = append(w.PVCs, p), append(w.PVs, v)
		w.Wait.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
		tc.edit(w, p, v)
		ch, ok := claimMender{w.bench(t, "Deployment")}.mendClaim()
		if ch.Title != tc.want || ok != (tc.want != "") || !strings.Contains(strings.Join(ch.Commands, "\n"), tc.commands) {
			t.Errorf("%s: %q, %q, want %q with %q", name, ch.Title, ch.Commands, tc.want, tc.commands)
		}
	}
}
