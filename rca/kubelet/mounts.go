package kubelet

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
	"github.com/unpend/unpend/watcher/incident"
)

var (
	// attached is the attach/detach controller's word for a volume that another node has
	// (pkg/controller/volume/attachdetach/reconciler).
	attached = regexp.MustCompile(`Multi-Attach error for volume "([^"]+)"`)
	// unmounted is the kubelet's word for volumes that did not come in time (pkg/kubelet/volumemanager).
	unmounted = regexp.MustCompile(`unmounted volumes=\[([^\]]*)\]`)
	// notThere is the kubelet's word for what a volume is made from (pkg/volume/configmap, secret, projected).
	notThere = regexp.MustCompile(`for volume "([^"]+)" ?:.*\b(configmap|secret)s? "([^"]+)" not found`)
	// unregistered is the kubelet's word for a driver whose plugin is not on the node (pkg/volume/csi).
	unregistered = regexp.MustCompile(`driver name (\S+) not found in the list of registered CSI drivers`)
)

// volume: a volume of the pod is not there on its node.
func (s stopped) volume() *Stop {
	if m := attached.FindStringSubmatch(s.says); m != nil {
		return s.elsewhere(m[1])
	}
	if m := notThere.FindStringSubmatch(s.says); m != nil {
		return s.missing(m[1], m[2], m[3])
	}
	if m := unregistered.FindStringSubmatch(s.says); m != nil {
		return s.driverAway(m[1])
	}
	if stop := s.late(); stop != nil {
		return stop
	}
	node := s.pod.Spec.NodeName
	stop := s.stop(diagnosis.VolumeConflict, diagnosis.Manual, "it has its node, and the kubelet of "+node+" cannot mount its volumes")
	stop.Words, stop.Title, stop.Unproven = "its volume cannot be mounted", fmt.Sprintf("see why %s cannot mount the pod's volume: %s", node, view.Told(s.quote(), 70)), "what a volume's server or driver answers is in no object"
	stop.Commands = []string{s.describe(), "kubectl get csinode " + node + " -o yaml", "kubectl get volumeattachments | grep " + node}
	return stop
}

// elsewhere: another node has the volume, and it may be on one at a time.
func (s stopped) elsewhere(volume string) *Stop {
	claim := s.claimOf(volume)
	what := "volume " + volume
	if claim != nil {
		what += " of PersistentVolumeClaim " + claim.Name
	}
	stop := s.stop(diagnosis.VolumeConflict, diagnosis.Manual, "it has its node "+s.pod.Spec.NodeName+", and "+what+" is attached to another, as it may be to one at a time")
	stop.Words, stop.Minutes, stop.Risk = "its volume is on another node", 5, diagnosis.MediumRisk
	stop.Unproven = "when a volume is given back is in no object"
	look := "kubectl get volumeattachments | grep " + volume + "  # which node has it"
	users := s.users(claim)
	if len(users) == 0 {
		stop.Title = "have the node that has " + what + " give it back"
		stop.Commands = []string{look, "# where that node is gone or shut down: kubectl taint node NODE node.kubernetes.io/out-of-service=nodeshutdown:NoExecute  # its volumes are detached at once; without, after 6 minutes"}
		return stop
	}
	on := users[0].Spec.NodeName
	stop.Says = strings.Replace(stop.Says, "to another,", "to "+on+", where "+usedBy(users)+" it,", 1)
	for _, p := range users {
		stop.Evidence = append(stop.Evidence, diagnosis.Fact(view.PodRef(p), "uses PersistentVolumeClaim "+claim.Name+" on "+on, diagnosis.That("spec.nodeName", "", diagnosis.Is, on), diagnosis.That("spec.volumes", "", diagnosis.Contains, claim.Name)))
	}
	stop.Evidence = append(stop.Evidence, diagnosis.Fact(view.ObjectRef("PersistentVolumeClaim", claim.Namespace, claim.Name), "is of volume "+volume, diagnosis.That("spec.volumeName", "", diagnosis.Is, volume)))
	if s.downWith(stop, users, what) {
		return stop
	}
	r, _ := incident.Roller(s.pod, s.w.State.Owner)
	ofSame := func(p *corev1.Pod) bool { of, _ := incident.Roller(p, s.w.State.Owner); return of == r }
	if r.Kind == "Deployment" && slices.ContainsFunc(users, ofSame) {
		s.oldFirst(stop, r, what)
	} else {
		s.stopUsers(stop, users, what)
	}
	stop.Commands = append([]string{look}, stop.Commands...)
	return stop
}

// late is for the volume that does not come, and that a pod on another node uses though one node may have it at a time: why it does
// not come the attach/detach controller says once, and an API server forgets Events after an hour.
func (s stopped) late() *Stop {
	m := unmounted.FindStringSubmatch(s.says)
	if m == nil {
		return nil
	}
	for _, v := range s.pod.Spec.Volumes {
		if v.PersistentVolumeClaim == nil || !slices.Contains(strings.Fields(m[1]), v.Name) {
			continue
		}
		for _, k := range s.w.State.PVCs {
			if k.Namespace != s.pod.Namespace || k.Name != v.PersistentVolumeClaim.ClaimName || k.Spec.VolumeName == "" || !ofOneNode(k) ||
				!slices.ContainsFunc(s.users(k), func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodRunning }) {
				continue
			}
			stop := s.elsewhere(k.Spec.VolumeName)
			stop.Certainty = diagnosis.Likely // a driver that attaches nothing minds no access mode
			stop.Evidence = append(stop.Evidence, diagnosis.Fact(view.ObjectRef("PersistentVolumeClaim", k.Namespace, k.Name), "may be on one node at a time: "+string(k.Spec.AccessModes[0]), diagnosis.That("spec.accessModes", "", diagnosis.Contains, string(k.Spec.AccessModes[0]))))
			return stop
		}
	}
	return nil
}

// ofOneNode says whether a claim lets one node at a time have its volume.
func ofOneNode(k *corev1.PersistentVolumeClaim) bool {
	return len(k.Spec.AccessModes) > 0 && !slices.ContainsFunc(k.Spec.AccessModes, func(m corev1.PersistentVolumeAccessMode) bool {
		return m != corev1.ReadWriteOnce && m != corev1.ReadWriteOncePod
	})
}

// HeldElsewhere is a claim of a pod whose volume may be on one node at a time, and the pod that has it on another node than
// the one it would go to; nil where there is none, or all such leave. No scheduler minds that: the kubelet waits for the volume.
func HeldElsewhere(w *view.Cluster, pod *corev1.Pod, node string, leaves func(*corev1.Pod) bool) (claim string, by *corev1.Pod) {
	for _, v := range pod.Spec.Volumes {
		at := slices.IndexFunc(w.State.PVCs, func(k *corev1.PersistentVolumeClaim) bool {
			return v.PersistentVolumeClaim != nil && k.Namespace == pod.Namespace && k.Name == v.PersistentVolumeClaim.ClaimName && k.Spec.VolumeName != "" && ofOneNode(k) && !everywhere(w, k.Spec.VolumeName)
		})
		if at < 0 {
			continue
		}
		k := w.State.PVCs[at]
		for _, p := range w.State.Pods {
			if p.Namespace == k.Namespace && p.Name != pod.Name && p.Spec.NodeName != "" && p.Spec.NodeName != node && !view.Ended(p) && !leaves(p) && uses(p, k.Name) {
				return k.Name, p
			}
		}
	}
	return "", nil
}

// shared are CSI drivers of file systems that are attached to no node (attachRequired: false in their CSIDriver), so
// that their access modes bind nobody: NFS, SMB, EFS, FSx, Azure Files and blobs, Filestore, CephFS of Rook.
var shared = []string{"nfs.csi.k8s.io", "smb.csi.k8s.io", "efs.csi.aws.com", "fsx.csi.aws.com", "file.csi.azure.com", "blob.csi.azure.com", "filestore.csi.storage.gke.io", "gcsfuse.csi.storage.gke.io", "cephfs.csi.ceph.com"}

// everywhere says whether a volume is of a kind that every node can have at once, or is bound to its node anyway.
func everywhere(w *view.Cluster, volume string) bool {
	at := slices.IndexFunc(w.State.PVs, func(v *corev1.PersistentVolume) bool { return v.Name == volume })
	if at < 0 {
		return false
	}
	s := w.State.PVs[at].Spec.PersistentVolumeSource
	return s.NFS != nil || s.HostPath != nil || s.Local != nil || s.AzureFile != nil || s.CephFS != nil || s.Glusterfs != nil ||
		s.CSI != nil && slices.ContainsFunc(shared, func(driver string) bool { return s.CSI.Driver == driver || strings.HasSuffix(s.CSI.Driver, "."+driver) })
}

// oldFirst is for the rollout that makes the new pod on another node while the old one has the volume: neither ends. To
// delete the old one does not help, for its ReplicaSet makes it again.
func (s stopped) oldFirst(stop *Stop, r incident.Ref, what string) {
	name := "deployment/" + r.Name
	stop.Title = fmt.Sprintf("have the rollout of %s stop its old pods before it makes new ones (strategy Recreate): they have %s", name, what)
	stop.Commands = []string{fmt.Sprintf(`kubectl -n %s patch %s --type=merge -p '{"spec":{"strategy":{"type":"Recreate","rollingUpdate":null}}}'  # nothing serves until the new pod runs`, r.Namespace, name)}
	stop.Drained = slices.DeleteFunc(s.w.Running(r), func(p *corev1.Pod) bool { return p.Labels[template] == s.pod.Labels[template] })
}

// template is the label by which pods of a Deployment tell from which of its templates they are.
const template = appsv1.DefaultDeploymentUniqueLabelKey

// stopUsers is for others who have the volume: what makes a pod makes it again, and that is stopped.
func (s stopped) stopUsers(stop *Stop, users []*corev1.Pod, what string) {
	stop.Title = fmt.Sprintf("stop %s on %s, for %s, or give the pod one of its own", view.PodList(users), users[0].Spec.NodeName, what)
	done := map[incident.Ref]bool{}
	for _, p := range users {
		r := incident.Topmost(p, s.w.State.Owner)
		if done[r] {
			continue
		}
		done[r] = true
		switch r.Kind {
		case "Deployment", "StatefulSet", "ReplicaSet":
			stop.Commands = append(stop.Commands, fmt.Sprintf("kubectl -n %s scale %s/%s --replicas=0  # all its pods stop; the volume is detached once they have ended", r.Namespace, strings.ToLower(r.Kind), r.Name))
			stop.Drained = append(stop.Drained, s.w.Running(r)...)
		case "Pod":
			stop.Commands = append(stop.Commands, fmt.Sprintf("kubectl -n %s delete pod %s  # nobody makes it again; the volume is detached once it has ended", p.Namespace, p.Name))
			stop.Drained = append(stop.Drained, p)
		default:
			stop.Commands = append(stop.Commands, fmt.Sprintf("kubectl -n %s get %s %s -o yaml  # it makes its pods again: stop it, or suspend it", r.Namespace, strings.ToLower(r.Kind), r.Name))
			stop.Drained = append(stop.Drained, s.w.Running(r)...)
		}
	}
}

// claimOf is the claim of the pod that has a volume; nil where none has, or they were not read.
func (s stopped) claimOf(volume string) *corev1.PersistentVolumeClaim {
	for _, k := range s.w.State.PVCs {
		if k.Namespace == s.pod.Namespace && k.Spec.VolumeName == volume && uses(s.pod, k.Name) {
			return k
		}
	}
	return nil
}

// users are the other pods on the first node, by its name, where some that have not ended use a claim.
func (s stopped) users(claim *corev1.PersistentVolumeClaim) []*corev1.Pod {
	if claim == nil {
		return nil
	}
	var out []*corev1.Pod
	for _, p := range s.w.State.Pods {
		if p.Namespace == claim.Namespace && p.Name != s.pod.Name && p.Spec.NodeName != "" && p.Spec.NodeName != s.pod.Spec.NodeName && !view.Ended(p) && uses(p, claim.Name) {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(a, b *corev1.Pod) int {
		return cmp.Or(strings.Compare(a.Spec.NodeName, b.Spec.NodeName), strings.Compare(a.Name, b.Name))
	})
	return slices.DeleteFunc(out, func(p *corev1.Pod) bool { return p.Spec.NodeName != out[0].Spec.NodeName })
}

// usedBy says who uses something, as far as before what it is.
func usedBy(pods []*corev1.Pod) string {
	if len(pods) == 1 {
		return view.PodList(pods) + " uses"
	}
	return view.PodList(pods) + " use"
}

func uses(p *corev1.Pod, claim string) bool {
	return slices.ContainsFunc(p.Spec.Volumes, func(v corev1.Volume) bool {
		return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == claim
	})
}

// missing: what the volume is made from does not exist.
func (s stopped) missing(volume, kind, name string) *Stop {
	kind = map[string]string{"configmap": "ConfigMap", "secret": "Secret"}[kind]
	stop := s.stop(diagnosis.VolumeConflict, diagnosis.Manual, fmt.Sprintf("it has its node, and its volume %s is made from %s %s, which is not there", volume, kind, name))
	stop.Words, stop.Title, stop.Minutes = kind+" of its volume missing", fmt.Sprintf("make %s %s in namespace %s, which volume %s of the pod names", kind, name, s.pod.Namespace, volume), 2
	stop.Unproven = "what belongs into it only its owner knows"
	stop.Commands = []string{fmt.Sprintf("kubectl -n %s get %ss  # those that are there: is the name misspelled?", s.pod.Namespace, strings.ToLower(kind)), s.describe() + "  # the kubelet tries again by itself"}
	return stop
}
