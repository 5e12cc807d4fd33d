package terms

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/scaling"
	"github.com/unpend/unpend/rca/view"
)

// defaultClass marks the StorageClass of claims that name none (storage/util, 1.37).
const defaultClass = "storageclass.kubernetes.io/is-default-class"

// unclassed is what the controller of volumes says of a claim that names no StorageClass, while none is the default and no volume
// is there for it (pkg/controller/volume/persistentvolume, FailedBinding).
const unclassed = "no storage class is set"

// DefaultFor is the command by which a claim that leaves its StorageClass open gets one: it takes the default by itself, also one
// that is marked as that later (1.28). Empty for a claim that names one, or wants none.
func DefaultFor(w *view.Cluster, p *corev1.PersistentVolumeClaim) string {
	if p.Spec.StorageClassName != nil {
		return ""
	}
	class := "NAME"
	made := slices.DeleteFunc(slices.Clone(w.State.StorageClasses), func(c *storagev1.StorageClass) bool { return c.Provisioner == noProvisioner })
	if len(made) == 1 {
		class = made[0].Name
	}
	mark := "kubectl annotate storageclasses " + class + " " + defaultClass + "=true  # PersistentVolumeClaim " + p.Name + ", which names none, takes the default by itself"
	if len(made) == 0 && w.State.Unread["StorageClass"] == "" {
		mark += "; first install what makes volumes here and brings a class (the CSI driver of your cloud or storage, or local-path-provisioner for one machine's disk): none is there"
	}
	return mark
}

// Missing is the first PersistentVolumeClaim that a pod names and that does not exist; empty: none, or claims were not read.
func Missing(w *view.Cluster, pod *corev1.Pod) string {
	if w.State.Unread["PersistentVolumeClaim"] != "" {
		return ""
	}
	for _, v := range pod.Spec.Volumes {
		if v.PersistentVolumeClaim != nil && !slices.ContainsFunc(w.State.PVCs, func(p *corev1.PersistentVolumeClaim) bool {
			return p.Namespace == pod.Namespace && p.Name == v.PersistentVolumeClaim.ClaimName
		}) {
			return v.PersistentVolumeClaim.ClaimName
		}
	}
	return ""
}

// Unbound is why nobody makes a volume for a claim, as far as objects say it: its StorageClass
// does not exist, or makes none and none is free, or it names none and none is the default. Empty where somebody could, or where
// classes were not read.
func Unbound(w *view.Cluster, p *corev1.PersistentVolumeClaim) string {
	classes := w.State.StorageClasses
	switch name := p.Spec.StorageClassName; {
	case p.Spec.VolumeName != "":
		return misclassed(w, p)
	case w.State.Unread["StorageClass"] != "":
		if _, says := toldOf(w, p); ClassOf(p) == "" && strings.Contains(says, unclassed) {
			return "it names no StorageClass, and none is the default"
		}
		return ""
	case name == nil || *name == "":
		if name == nil && slices.ContainsFunc(classes, func(c *storagev1.StorageClass) bool { return c.Annotations[defaultClass] == "true" }) {
			return ""
		}
		return "it names no StorageClass, and none is the default"
	case !slices.ContainsFunc(classes, func(c *storagev1.StorageClass) bool { return c.Name == *name }):
		return "its StorageClass " + *name + " does not exist"
	case !ByPeople(w, p) || slices.ContainsFunc(w.State.PVs, func(v *corev1.PersistentVolume) bool {
		return v.Spec.StorageClassName == *name && v.Spec.ClaimRef == nil && v.DeletionTimestamp == nil
	}):
		return ""
	}
	none := "its StorageClass " + ClassOf(p) + " makes none (" + noProvisioner + ")"
	if w.State.Unread["PersistentVolume"] == "" {
		none += ", and no PersistentVolume of it is free"
	}
	return none
}

// misclassed is why a claim that is not bound and the volume that it names do not come together: they are of two StorageClasses
// (pkg/controller/volume/persistentvolume, VolumeMismatch). Empty where they do, or the volume is not there.
func misclassed(w *view.Cluster, p *corev1.PersistentVolumeClaim) string {
	for _, v := range w.State.PVs {
		if v.Name == p.Spec.VolumeName && p.Status.Phase == corev1.ClaimPending && v.Spec.StorageClassName != ClassOf(p) {
			return fmt.Sprintf("it is of StorageClass %q, and volume %s, which it names, of %q", ClassOf(p), v.Name, v.Spec.StorageClassName)
		}
	}
	return ""
}

// ByPeople says whether the volumes of the class that a claim names are made by people.
func ByPeople(w *view.Cluster, p *corev1.PersistentVolumeClaim) bool {
	return slices.ContainsFunc(w.State.StorageClasses, func(c *storagev1.StorageClass) bool {
		return c.Name == ClassOf(p) && c.Provisioner == noProvisioner
	})
}

// migrated are the CSI drivers that make the volumes of provisioners that were Kubernetes' own (csi-translation-lib).
var migrated = map[string]string{"kubernetes.io/gce-pd": "pd.csi.storage.gke.io", "kubernetes.io/aws-ebs": "ebs.csi.aws.com", "kubernetes.io/azure-disk": "disk.csi.azure.com"}

// ClassesOf are the StorageClass of a claim that makes volumes before a pod has a node, and one of its provisioner that makes
// them after that, of a name like it where there is one; empty where a class is not so, or nobody can tell.
func ClassesOf(w *view.Cluster, namespace, claim string) (own, waits string) {
	at := slices.IndexFunc(w.State.PVCs, func(p *corev1.PersistentVolumeClaim) bool { return p.Namespace == namespace && p.Name == claim })
	if at < 0 || w.State.PVCs[at].Spec.StorageClassName == nil {
		return "", ""
	}
	classes, mode := w.State.StorageClasses, func(c *storagev1.StorageClass, is storagev1.VolumeBindingMode) bool {
		return c.VolumeBindingMode != nil && *c.VolumeBindingMode == is
	}
	of := slices.IndexFunc(classes, func(c *storagev1.StorageClass) bool {
		return c.Name == *w.State.PVCs[at].Spec.StorageClassName && mode(c, storagev1.VolumeBindingImmediate)
	})
	if of < 0 {
		return "", ""
	}
	own = classes[of].Name
	for _, c := range classes {
		if slices.Contains([]string{classes[of].Provisioner, migrated[classes[of].Provisioner]}, c.Provisioner) && mode(c, storagev1.VolumeBindingWaitForFirstConsumer) {
			if alike := strings.HasPrefix(c.Name, own); waits == "" || alike && !strings.HasPrefix(waits, own) || alike == strings.HasPrefix(waits, own) && c.Name < waits {
				waits = c.Name
			}
		}
	}
	return own, waits
}

// toldOf are the newest words of who binds and makes volumes about a claim that is not bound; empty
// where they say nothing but that it waits for its pod.
func toldOf(w *view.Cluster, p *corev1.PersistentVolumeClaim) (diagnosis.Evidence, string) {
	var newest *corev1.Event
	for _, e := range w.EventsOf("PersistentVolumeClaim", p.Namespace, p.Name) {
		if uid := e.InvolvedObject.UID; uid != "" && p.UID != "" && uid != p.UID || e.Reason != "FailedBinding" && e.Reason != "ProvisioningFailed" && e.Reason != "ClaimMisbound" && e.Reason != "VolumeMismatch" {
			continue
		}
		if newest == nil || scaling.Seen(e).After(scaling.Seen(newest)) {
			newest = e
		}
	}
	if newest == nil {
		return diagnosis.Evidence{}, ""
	}
	says := view.Quotable(newest.Message, 200)
	return diagnosis.Fact(view.ObjectRef("PersistentVolumeClaim", p.Namespace, p.Name), newest.Reason+": "+says, diagnosis.Says(newest.Message)), says
}

// Apart are two volumes of the pod that no node can have together: each is in places of its own,
// by the same label. ok is false where there are no such.
func (c *Volumes) Apart() (one, other Place, ok bool) {
	places := c.places()
	for i, a := range places {
		for _, b := range places[i+1:] {
			if a.Volume != b.Volume && a.Key == b.Key && !slices.ContainsFunc(a.values, func(v string) bool { return slices.Contains(b.values, v) }) {
				return a, b, true
			}
		}
	}
	return Place{}, Place{}, false
}

// Pinned is a volume of the pod that is not where the pod's own selector has it go, and the label by which it
// does; the key is empty where there is none.
func (c *Volumes) Pinned() (place Place, key string) {
	for _, p := range c.places() {
		for _, key := range slices.Sorted(maps.Keys(c.Pod.Spec.NodeSelector)) {
			if (key == p.Key || ofZone(key) && ofZone(p.Key)) && !slices.Contains(p.values, c.Pod.Spec.NodeSelector[key]) {
				return p, key
			}
		}
	}
	return Place{}, ""
}

// ofZone says whether a label has the zone of a node: Kubernetes' own, and those that drivers of volumes
// keep beside it (topology.ebs.csi.aws.com/zone, topology.gke.io/zone).
func ofZone(key string) bool { return strings.HasSuffix(key, "/zone") }

// Where is the value, or values, of the label where the volume can be had.
func (p Place) Where() string { return strings.Join(p.values, "|") }

// places are where the volumes of the pod can be had.
func (c *Volumes) places() []Place {
	var places []Place
	for _, v := range c.Pod.Spec.Volumes {
		if v.PersistentVolumeClaim == nil {
			continue
		}
		for _, p := range c.Cluster.State.PVCs {
			if p.Namespace != c.Pod.Namespace || p.Name != v.PersistentVolumeClaim.ClaimName || p.Spec.VolumeName == "" {
				continue
			}
			for _, pv := range c.Cluster.State.PVs {
				if pv.Name == p.Spec.VolumeName {
					places = append(places, placesOf(p.Name, pv)...)
				}
			}
		}
	}
	return places
}

// Place is where the volume of a claim can be had, by one label of nodes.
type Place struct {
	Claim, Volume, Key string
	values             []string
}

func (p Place) String() string {
	return fmt.Sprintf("PersistentVolumeClaim %s in %s", p.Claim, p.Where())
}

// placesOf are the lists of values that a volume with one term wants of a node.
func placesOf(claim string, pv *corev1.PersistentVolume) []Place {
	if pv.Spec.NodeAffinity == nil || pv.Spec.NodeAffinity.Required == nil || len(pv.Spec.NodeAffinity.Required.NodeSelectorTerms) != 1 {
		return nil
	}
	var out []Place
	for _, e := range pv.Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions {
		if e.Operator == corev1.NodeSelectorOpIn {
			out = append(out, Place{claim, pv.Name, e.Key, e.Values})
		}
	}
	return out
}

// apartSays tells of volumes that no node can have together, or of one that none can have that the pod's
// selector takes.
func (c *Volumes) apartSays() (string, []diagnosis.Evidence) {
	if a, b, ok := c.Apart(); ok {
		return "its volumes exclude each other, so no node at all can have it: " + a.String() + ", " + b.String(), []diagnosis.Evidence{a.evidence(), b.evidence()}
	}
	if p, named, ok := c.Nowhere(); ok {
		return nowhereSays(p, named)
	}
	p, key := c.Pinned()
	if key == "" {
		return "", nil
	}
	own := key + "=" + c.Pod.Spec.NodeSelector[key]
	return "its volume is not where its own selector has it go, so no node at all can have it: " + p.String() + ", selector " + own,
		[]diagnosis.Evidence{p.evidence(), diagnosis.Fact(view.PodRef(c.Pod), "selects "+own, c.Cluster.OfPod(c.Pod, diagnosis.That("spec.nodeSelector", key, diagnosis.Is, c.Pod.Spec.NodeSelector[key]))...)}
}

func (p Place) evidence() diagnosis.Evidence {
	return diagnosis.Fact("PersistentVolume/"+p.Volume, "of PersistentVolumeClaim "+p.Claim+": wants a node with "+p.Key+"="+p.Where(), diagnosis.That("spec.nodeAffinity", "", diagnosis.Contains, p.Key), diagnosis.That("spec.nodeAffinity", "", diagnosis.Contains, p.values[0]))
}
