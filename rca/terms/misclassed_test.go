package terms

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/view"
)

// A claim that names its volume waits for ever where the two are of different StorageClasses, also where the volume is of none.
func TestAClaimOfAnotherClassThanItsVolume(t *testing.T) {
	for name, c := range map[string]struct {
		claim *string
		of    string
		phase corev1.PersistentVolumeClaimPhase
		names string
		want  string
	}{
		"of none":             {new("local"), "", corev1.ClaimPending, "v", `it is of StorageClass "local", and volume v, which it names, of ""`},
		"of another":          {new("local"), "fast", corev1.ClaimPending, "v", `it is of StorageClass "local", and volume v, which it names, of "fast"`},
		"the claim of none":   {nil, "fast", corev1.ClaimPending, "v", `it is of StorageClass "", and volume v, which it names, of "fast"`},
		"of one":              {new("local"), "local", corev1.ClaimPending, "v", ""},
		"it is bound":         {new("local"), "fast", corev1.ClaimBound, "v", ""},
		"volume is not there": {new("local"), "fast", corev1.ClaimPending, "other", ""},
	} {
		p := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "c"}, Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: c.claim, VolumeName: c.names}, Status: corev1.PersistentVolumeClaimStatus{Phase: c.phase}}
		v := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "v"}, Spec: corev1.PersistentVolumeSpec{StorageClassName: c.of}}
		if got := Unbound(view.New(&cluster.State{PVs: []*corev1.PersistentVolume{v}, PVCs: []*corev1.PersistentVolumeClaim{p}}), p); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
