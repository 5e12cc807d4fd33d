package changes

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/terms"
	"github.com/unpend/unpend/rca/view"
)

// outsideScheduler is why nothing that is done about a volume can be tried.
const outsideScheduler = "a volume is made outside of what the scheduler decides"

// claimMender makes what is changed about claims of the pod, and the volumes for them.
type claimMender struct{ *Bench }

// mendClaim is for a claim of the pod that is not bound, or not there, where objects say what it is to be instead.
func (c claimMender) mendClaim() (edit.Change, bool) {
	if missing := terms.Missing(c.Cluster, c.Pod); missing != "" {
		if meant := terms.Resembling(c.Cluster, c.Pod, missing); meant != nil {
			return c.meantClaim(meant, missing), true
		}
		return edit.Change{}, false
	}
	for _, v := range c.Pod.Spec.Volumes {
		if v.PersistentVolumeClaim == nil {
			continue
		}
		at := slices.IndexFunc(c.Cluster.State.PVCs, func(p *corev1.PersistentVolumeClaim) bool {
			return p.Namespace == c.Pod.Namespace && p.Name == v.PersistentVolumeClaim.ClaimName && p.Spec.VolumeName == ""
		})
		if at < 0 {
			continue
		}
		p := c.Cluster.State.PVCs[at]
		if class, with := terms.Unshared(c.Cluster, p); class != nil {
			return c.sharedClaim(p, with), true
		}
		if s := terms.SpareFor(c.Cluster, p); s != nil {
			return c.takeSpare(s), true
		}
	}
	return edit.Change{}, false
}

// claimChange is what is done about a claim, or the volume for it.
func (c claimMender) claimChange(title string, commands ...string) edit.Change {
	return c.Once(title, func(title string) edit.Change {
		ch := edit.LookAt(diagnosis.VolumeConflict, title, outsideScheduler, commands...)
		ch.Risk = diagnosis.LowRisk
		return ch
	})
}

// again is how a claim is made again: of what it asks nothing but more room can change. Nothing is lost, for it has no
// volume.
func again(p *corev1.PersistentVolumeClaim, change string) string {
	return fmt.Sprintf("kubectl -n %s get pvc %s -o yaml > pvc.yaml  # %s, then kubectl replace --force -f pvc.yaml: it has no volume yet, so no data is lost", p.Namespace, p.Name, change)
}

// meantClaim names the claim that is there, or makes one like that of another namespace.
func (c claimMender) meantClaim(p *corev1.PersistentVolumeClaim, missing string) edit.Change {
	ns := c.Pod.Namespace
	if p.Namespace == ns {
		return c.claimChange(fmt.Sprintf("name PersistentVolumeClaim %s in %s: there is no %s", p.Name, c.WorkloadName(), missing), fmt.Sprintf("kubectl -n %s get pvc", ns), c.EditByHand("claimName: "+p.Name))
	}
	spec := map[string]any{"accessModes": p.Spec.AccessModes, "resources": map[string]any{"requests": p.Spec.Resources.Requests}}
	if p.Spec.StorageClassName != nil {
		spec["storageClassName"] = *p.Spec.StorageClassName
	}
	made := map[string]any{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": map[string]any{"namespace": ns, "name": missing}, "spec": spec}
	return c.claimChange(fmt.Sprintf("make PersistentVolumeClaim %s in %s, or run %s in %s, where one of that name is", missing, ns, c.WorkloadName(), p.Namespace),
		edit.Feed("kubectl create", string(diagnosis.MustJSON(made)))+"  # as that of "+p.Namespace+" asks; it is empty: what is in that one does not come with it",
		fmt.Sprintf("kubectl -n %s get pvc %s", p.Namespace, p.Name))
}

// sharedClaim is for a claim that many nodes are to have, of a class whose volumes one has.
func (c claimMender) sharedClaim(p *corev1.PersistentVolumeClaim, with string) edit.Change {
	title, change := fmt.Sprintf("make PersistentVolumeClaim %s again with ReadWriteOnce", p.Name), "accessModes: [ReadWriteOnce]"
	if with == "" {
		return c.claimChange(title+", or of a StorageClass of a file server: pods of one node alone have it then", again(p, change), "kubectl get storageclasses  # one of NFS or the like is for pods of several nodes")
	}
	return c.claimChange(fmt.Sprintf("%s, or of StorageClass %s, whose volumes many nodes have", title, with), again(p, change+", where pods of one node alone use it; else storageClassName: "+with))
}

// takeSpare has the volume that is there be the claim's.
func (c claimMender) takeSpare(s *terms.Spare) edit.Change {
	v, p := s.Volume, s.Claim
	see := fmt.Sprintf("kubectl get pv %s; kubectl -n %s get pvc %s", v.Name, p.Namespace, p.Name)
	switch s.In {
	case terms.InClass:
		class := terms.ClassOf(p)
		return c.claimChange(fmt.Sprintf("give PersistentVolume %s the StorageClass of PersistentVolumeClaim %s: %q instead of %q", v.Name, p.Name, class, v.Spec.StorageClassName), see,
			fmt.Sprintf("kubectl patch pv %s --type=merge -p '%s'", v.Name, diagnosis.MustJSON(map[string]any{"spec": map[string]any{"storageClassName": class}})),
			again(p, fmt.Sprintf("or this: storageClassName: %q", v.Spec.StorageClassName)))
	case terms.InHolder:
		return c.claimChange(fmt.Sprintf("free PersistentVolume %s for PersistentVolumeClaim %s: the claim that had it is gone", v.Name, p.Name), see,
			fmt.Sprintf(`kubectl patch pv %s --type=json -p '[{"op":"remove","path":"/spec/claimRef"}]'  # whoever's claim fits has it then, with what is on it`, v.Name))
	case terms.InModes:
		return c.claimChange(fmt.Sprintf("make PersistentVolumeClaim %s again with what PersistentVolume %s has: %s", p.Name, v.Name, v.Spec.AccessModes[0]), see, again(p, fmt.Sprintf("accessModes: [%s]", v.Spec.AccessModes[0])))
	}
	has := v.Spec.Capacity[corev1.ResourceStorage]
	return c.claimChange(fmt.Sprintf("make PersistentVolumeClaim %s again for %s, which PersistentVolume %s has", p.Name, view.QuantityText(has), v.Name), see, again(p, "resources.requests.storage: "+view.QuantityText(has)))
}
