package terms

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// ofOneNode are the provisioners whose volumes with a file system one node has at a time, by their vendors' own
// documents (AWS, Google, Azure, DigitalOcean, Hetzner: disks that are attached to a machine).
var ofOneNode = []string{
	"ebs.csi.aws.com", "ebs.csi.eks.amazonaws.com", "kubernetes.io/aws-ebs",
	"pd.csi.storage.gke.io", "kubernetes.io/gce-pd",
	"disk.csi.azure.com", "kubernetes.io/azure-disk",
	"dobs.csi.digitalocean.com", "csi.hetzner.cloud",
}

// ofManyNodes are parts of the names of provisioners whose volumes many nodes have at once: file servers.
var ofManyNodes = []string{"efs.csi.aws.com", "fsx.csi.aws.com", "filestore.csi.storage.gke.io", "file.csi.azure.com", "cephfs.csi.ceph.com", "nfs", "smb.csi.k8s.io"}

// Unshared is the class of a claim that asks for a file system on many nodes, and whose provisioner makes those for one
// node; with is another class that can, empty where none is known to. nil: it is not so.
func Unshared(w *view.Cluster, p *corev1.PersistentVolumeClaim) (class *storagev1.StorageClass, with string) {
	if p.Spec.VolumeName != "" || modeOf(p.Spec.VolumeMode) != corev1.PersistentVolumeFilesystem || !slices.Contains(p.Spec.AccessModes, corev1.ReadWriteMany) {
		return nil, ""
	}
	for _, c := range w.State.StorageClasses {
		switch {
		case c.Name == ClassOf(p) && slices.Contains(ofOneNode, c.Provisioner):
			class = c
		case with == "" && slices.ContainsFunc(ofManyNodes, func(part string) bool { return strings.Contains(c.Provisioner, part) }):
			with = c.Name
		}
	}
	return class, with
}

func unsharedSays(class *storagev1.StorageClass) string {
	return "it asks for ReadWriteMany, and " + class.Provisioner + " of its StorageClass " + class.Name + " makes file systems for one node at a time"
}

func unsharedEvidence(class *storagev1.StorageClass, p *corev1.PersistentVolumeClaim) diagnosis.Evidence {
	return diagnosis.Fact(view.ObjectRef("PersistentVolumeClaim", p.Namespace, p.Name), "asks for ReadWriteMany of StorageClass "+class.Name,
		diagnosis.That("spec.accessModes", "", diagnosis.Contains, string(corev1.ReadWriteMany)), diagnosis.That("spec.storageClassName", "", diagnosis.Is, class.Name), diagnosis.That("provisioner", "", diagnosis.Is, class.Provisioner).Of("StorageClass/"+class.Name))
}

// Resembling is the claim that a pod's missing one may be meant to be: one of its namespace whose name is a slip of the pen
// away, else one of that very name in another namespace, of no use to the pod. nil for none.
func Resembling(w *view.Cluster, pod *corev1.Pod, missing string) *corev1.PersistentVolumeClaim {
	var elsewhere *corev1.PersistentVolumeClaim
	for _, p := range w.State.PVCs {
		switch {
		case p.Namespace == pod.Namespace && diagnosis.Misspelled(missing, p.Name):
			return p
		case p.Namespace != pod.Namespace && p.Name == missing && elsewhere == nil:
			elsewhere = p
		}
	}
	return elsewhere
}

// meantSays tells of it.
func meantSays(p *corev1.PersistentVolumeClaim, pod *corev1.Pod, missing string) (string, diagnosis.Evidence) {
	there := diagnosis.That("", "", diagnosis.Exists, "")
	ref := view.ObjectRef("PersistentVolumeClaim", p.Namespace, p.Name)
	if p.Namespace == pod.Namespace {
		return "PersistentVolumeClaim " + missing + " does not exist (nearest: " + p.Name + ")", diagnosis.Fact(ref, "is there, in the same namespace", there)
	}
	return "PersistentVolumeClaim " + missing + " does not exist in " + pod.Namespace + "; " + p.Namespace + " has one of that name, and a pod has claims of its own namespace alone",
		diagnosis.Fact(ref, "has that name, in another namespace", there)
}
