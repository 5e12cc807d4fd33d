package terms

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// noProvisioner is the provisioner of classes whose volumes people make (storage/v1, 1.37).
const noProvisioner = "kubernetes.io/no-provisioner"

// Difference is the one thing in which a volume is not what a claim asks.
type Difference int

// What a volume and a claim have to agree on (pkg/volume/util or persistentvolume/index.go, 1.37, as far as people get it
// wrong), those first that are mended at the volume alone.
const (
	InClass Difference = iota
	InHolder
	InModes
	InSize
)

// Spare is a volume that nobody has, and that would be bound to a claim for which nobody makes one, but for one thing.
type Spare struct {
	Claim  *corev1.PersistentVolumeClaim
	Volume *corev1.PersistentVolume
	In     Difference
}

// SpareFor is the volume that comes nearest to a claim of which nobody makes one; nil where none would do but for one
// thing, or volumes or classes were not read.
func SpareFor(w *view.Cluster, p *corev1.PersistentVolumeClaim) *Spare {
	if p.Spec.VolumeName != "" || w.State.Unread["PersistentVolume"] != "" || w.State.Unread["StorageClass"] != "" || !byHand(w, p) {
		return nil
	}
	var best *Spare
	for _, v := range w.State.PVs {
		in := differences(w, v, p)
		if len(in) == 1 && (best == nil || in[0] < best.In) {
			best = &Spare{p, v, in[0]}
		}
	}
	return best
}

// byHand says that nobody makes a volume for the claim by its class.
func byHand(w *view.Cluster, p *corev1.PersistentVolumeClaim) bool {
	return Unbound(w, p) != "" || ByPeople(w, p)
}

// ClassOf is the StorageClass that a claim names; empty for none.
func ClassOf(p *corev1.PersistentVolumeClaim) string {
	if p.Spec.StorageClassName == nil {
		return ""
	}
	return *p.Spec.StorageClassName
}

// differences are the things in which a volume is not what the claim asks; more than one where it is another's
// altogether.
func differences(w *view.Cluster, v *corev1.PersistentVolume, p *corev1.PersistentVolumeClaim) []Difference {
	another := []Difference{InClass, InHolder}
	if len(v.Spec.AccessModes) == 0 || modeOf(v.Spec.VolumeMode) != modeOf(p.Spec.VolumeMode) || !selected(v, p) || v.DeletionTimestamp != nil {
		return another
	}
	var out []Difference
	if v.Spec.StorageClassName != ClassOf(p) {
		out = append(out, InClass)
	}
	if ref := v.Spec.ClaimRef; ref != nil && (ref.Namespace != p.Namespace || ref.Name != p.Name || ref.UID != "" && ref.UID != p.UID) {
		if v.Status.Phase != corev1.VolumeReleased || slices.ContainsFunc(w.State.PVCs, func(o *corev1.PersistentVolumeClaim) bool { return o.UID == ref.UID }) {
			return another
		}
		out = append(out, InHolder)
	}
	if slices.ContainsFunc(p.Spec.AccessModes, func(m corev1.PersistentVolumeAccessMode) bool { return !slices.Contains(v.Spec.AccessModes, m) }) {
		out = append(out, InModes)
	}
	if asked, has := p.Spec.Resources.Requests[corev1.ResourceStorage], v.Spec.Capacity[corev1.ResourceStorage]; has.Cmp(asked) < 0 {
		out = append(out, InSize)
	}
	return out
}

func modeOf(m *corev1.PersistentVolumeMode) corev1.PersistentVolumeMode {
	if m == nil {
		return corev1.PersistentVolumeFilesystem
	}
	return *m
}

// selected says whether a claim that chooses among volumes by labels takes this one.
func selected(v *corev1.PersistentVolume, p *corev1.PersistentVolumeClaim) bool {
	if p.Spec.Selector == nil {
		return true
	}
	s, err := metav1.LabelSelectorAsSelector(p.Spec.Selector)
	return err == nil && s.Matches(labels.Set(v.Labels))
}

// Says is what keeps the two apart.
func (s *Spare) Says() string {
	v, p := s.Volume, s.Claim
	switch s.In {
	case InClass:
		return fmt.Sprintf("PersistentVolume %s would do, and is of %s, where the claim is of %s", v.Name, classText(v.Spec.StorageClassName), classText(ClassOf(p)))
	case InHolder:
		return fmt.Sprintf("PersistentVolume %s would do, and is kept for claim %s/%s, which is gone", v.Name, v.Spec.ClaimRef.Namespace, v.Spec.ClaimRef.Name)
	case InModes:
		return fmt.Sprintf("PersistentVolume %s would do, and has %s, where the claim asks for %s", v.Name, modesText(v.Spec.AccessModes), modesText(p.Spec.AccessModes))
	}
	asked, has := p.Spec.Resources.Requests[corev1.ResourceStorage], v.Spec.Capacity[corev1.ResourceStorage]
	return fmt.Sprintf("PersistentVolume %s would do, and has %s, where the claim asks for %s", v.Name, has.String(), asked.String())
}

func (s *Spare) evidence() diagnosis.Evidence {
	v, p := s.Volume, s.Claim
	claim := view.ObjectRef("PersistentVolumeClaim", p.Namespace, p.Name)
	var claims []diagnosis.Claim
	switch s.In {
	case InClass:
		claims = []diagnosis.Claim{classClaim(v.Spec.StorageClassName, v.Spec.StorageClassName == ""), classClaim(ClassOf(p), p.Spec.StorageClassName == nil).Of(claim)}
	case InHolder:
		claims = []diagnosis.Claim{diagnosis.That("status.phase", "", diagnosis.Is, string(v.Status.Phase)), diagnosis.That("spec.claimRef.name", "", diagnosis.Is, v.Spec.ClaimRef.Name)}
	case InModes:
		claims = []diagnosis.Claim{diagnosis.That("spec.accessModes", "", diagnosis.Contains, string(v.Spec.AccessModes[0])), diagnosis.That("spec.accessModes", "", diagnosis.Contains, string(p.Spec.AccessModes[0])).Of(claim)}
	default:
		asked, has := p.Spec.Resources.Requests[corev1.ResourceStorage], v.Spec.Capacity[corev1.ResourceStorage]
		claims = []diagnosis.Claim{diagnosis.That("spec.capacity", "storage", diagnosis.Is, has.String()), diagnosis.That("spec.resources.requests", "storage", diagnosis.Is, asked.String()).Of(claim)}
	}
	return diagnosis.Fact("PersistentVolume/"+v.Name, "is nobody's; "+strings.TrimPrefix(s.Says(), "PersistentVolume "+v.Name+" would do, and "), claims...)
}

func classClaim(name string, absent bool) diagnosis.Claim {
	if absent {
		return diagnosis.That("spec.storageClassName", "", diagnosis.Absent, "")
	}
	return diagnosis.That("spec.storageClassName", "", diagnosis.Is, name)
}

func classText(name string) string {
	if name == "" {
		return "no StorageClass"
	}
	return "StorageClass " + name
}

func modesText(modes []corev1.PersistentVolumeAccessMode) string {
	out := make([]string, len(modes))
	for i, m := range modes {
		out[i] = string(m)
	}
	return strings.Join(out, ", ")
}
