package kubelet

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

var (
	// attached is the attach/detach controller's word for a volume that another node has
	// (pkg/controller/volume/attachdetach/reconciler).
	attached = regexp.MustCompile(`Multi-Attach error for volume "([^"]+)"`)
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
	holder := users[0]
	stop.Drained = users[:1]
	stop.Says = strings.Replace(stop.Says, "to another,", "to "+holder.Spec.NodeName+", where "+holder.Namespace+"/"+holder.Name+" uses it,", 1)
	stop.Evidence = append(stop.Evidence, diagnosis.Fact(view.PodRef(holder), "uses PersistentVolumeClaim "+claim.Name+" on "+holder.Spec.NodeName, diagnosis.That("spec.nodeName", "", diagnosis.Is, holder.Spec.NodeName), diagnosis.That("spec.volumes", "", diagnosis.Contains, claim.Name)),
		diagnosis.Fact(view.ObjectRef("PersistentVolumeClaim", claim.Namespace, claim.Name), "is of volume "+volume, diagnosis.That("spec.volumeName", "", diagnosis.Is, volume)))
	stop.Title = fmt.Sprintf("end %s/%s on %s, which has %s, or give the pod one of its own", holder.Namespace, holder.Name, holder.Spec.NodeName, what)
	stop.Commands = []string{look, fmt.Sprintf("kubectl -n %s delete pod %s  # its volume is detached once it has ended", holder.Namespace, holder.Name)}
	if sameOwner(holder, s.pod) {
		stop.Title += ": a rollout that begins the new pod first never ends with such a volume"
		stop.Commands = append(stop.Commands, "# for the next rollout, in the Deployment: spec.strategy {type: Recreate}")
	}
	return stop
}

// sameOwner: a ReplicaSet and its successor are named after the Deployment that made both.
func sameOwner(a, b *corev1.Pod) bool {
	name := func(p *corev1.Pod) string {
		for _, o := range p.OwnerReferences {
			if o.Controller != nil && *o.Controller {
				return o.Kind + "/" + strings.TrimSuffix(o.Name, "-"+p.Labels["pod-template-hash"])
			}
		}
		return p.Name
	}
	return a.Namespace == b.Namespace && name(a) == name(b)
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

// users are the other pods with a node that have not ended and use a claim, by name.
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
	slices.SortFunc(out, func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return out
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
