package changes

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/terms"
	"github.com/unpend/unpend/rca/view"
)

// lookAtVolume is for the pod whose volume is elsewhere, held, or not there: data is moved,
// released or made by a person, and no copy of the cluster shows how that ends.
func (c *Bench) lookAtVolume(n *view.Node) []edit.Change {
	claim, missing := "", terms.Missing(c.Cluster, c.Pod)
	for _, v := range c.Pod.Spec.Volumes {
		if v.PersistentVolumeClaim != nil {
			claim = cmp.Or(missing, v.PersistentVolumeClaim.ClaimName)
			break
		}
	}
	if claim == "" {
		return nil
	}
	if one, other, ok := terms.VolumesOf(c.Subject()).Apart(); ok {
		return []edit.Change{c.Once("bring the data of PersistentVolumeClaims "+one.Claim+" and "+other.Claim+" to one place: nothing else helps", func(title string) edit.Change {
			return edit.LookAt(diagnosis.VolumeConflict, title, "a volume is moved or made outside of what the scheduler decides",
				fmt.Sprintf("kubectl get pv %s %s -o custom-columns=NAME:.metadata.name,WHERE:.spec.nodeAffinity", one.Volume, other.Volume),
				"# then copy one (a snapshot, restored into the other zone); a StorageClass with volumeBindingMode WaitForFirstConsumer makes the next claims of a pod where the pod goes")
		})}
	}
	if p, named, ok := terms.VolumesOf(c.Subject()).Nowhere(); ok {
		return []edit.Change{localToNone(c, p, named)}
	}
	if p, key := terms.VolumesOf(c.Subject()).Pinned(); key != "" {
		return []edit.Change{c.Once("select "+key+"="+p.Where()+" in "+c.WorkloadName()+", where the volume of PersistentVolumeClaim "+p.Claim+" is, and no longer "+c.Pod.Spec.NodeSelector[key], func(title string) edit.Change {
			ch := edit.LookAt(diagnosis.VolumeConflict, title, "no node is there for which it could be tried",
				c.EditByHand("spec.nodeSelector: "+key+": "+p.Where()),
				fmt.Sprintf("kubectl get pv %s -o jsonpath='{.spec.nodeAffinity}'  # or copy the volume to where the selector has the pod go (a snapshot, restored there)", p.Volume))
			ch.Risk = diagnosis.LowRisk
			return ch
		})}
	}
	if n != nil {
		if full := terms.VolumesOf(c.Subject()).FullOf(n); full != nil {
			return []edit.Change{c.Once("let "+full.Driver+" attach more volumes to "+n.Name+", or have fewer there", func(title string) edit.Change {
				return edit.LookAt(diagnosis.VolumeConflict, title, "what a machine can attach is not known to the scheduler",
					"kubectl get csinode "+n.Name+" -o jsonpath='{.spec.drivers}'",
					"# if the machine can have more than its CSINode says: the driver's own flag (--volume-attach-limit of aws-ebs-csi-driver's node DaemonSet)",
					"kubectl get pods -A -o wide --field-selector spec.nodeName="+n.Name+"  # whose volumes are there; or a node more with such a GPU")
			})}
		}
	}
	if ch, ok := (claimMender{c}).mendClaim(); ok {
		return []edit.Change{ch}
	}
	ns := c.Pod.Namespace
	title, volume, mark := "make PersistentVolumeClaim "+claim+", or name one that exists", "", ""
	for _, p := range c.Cluster.State.PVCs {
		if p.Namespace != ns || p.Name != claim {
			continue
		}
		title, volume = "see why PersistentVolumeClaim "+claim+" is not bound", p.Spec.VolumeName
		if why := terms.Unbound(c.Cluster, p); why != "" {
			title, mark = fmt.Sprintf("have somebody make a volume for PersistentVolumeClaim %s: %s", claim, why), terms.DefaultFor(c.Cluster, p)
		}
		if volume != "" && terms.Unbound(c.Cluster, p) != "" {
			title, volume = "have PersistentVolumeClaim "+claim+" and its volume be of one StorageClass, by who makes them: "+terms.Unbound(c.Cluster, p), ""
		}
		if volume != "" {
			where, another := "such a GPU is free", "a GPU node"
			if len(c.Asks) == 0 {
				where, another = "a node has room for the pod", "such a node"
			}
			title = fmt.Sprintf("have the data of PersistentVolumeClaim %s where %s", claim, where)
			if !barredThere(c, volume) {
				title += fmt.Sprintf(", or %s where volume %s is%s", another, volume, volumeAt(c.Cluster.State.PVs, volume))
			}
		}
	}
	commands := []string{fmt.Sprintf("kubectl -n %s describe pvc %s", ns, claim)}
	if missing != "" {
		commands = []string{fmt.Sprintf("kubectl -n %s get pvc  # those that are there", ns), "kubectl get storageclasses  # of which one could be made"}
	}
	if strings.HasPrefix(title, "have somebody") && byPeople(c, ns, claim) {
		commands = append(commands, "kubectl get pv", fmt.Sprintf("# then, for each claim of %s, make a PersistentVolume of that class (one local to a node names it in spec.nodeAffinity), as large as is asked; or have the claims made again of a class with a provisioner (a claim's class cannot change)", c.WorkloadName()))
	} else if mark != "" {
		commands = append(commands, "kubectl get storageclasses", mark, "# or make a PersistentVolume for it")
	} else if strings.HasPrefix(title, "have somebody") {
		commands = append(commands, "kubectl get storageclasses", "# then make the class, or mark one as the default, and have the claim made again (its class cannot change); or make a PersistentVolume for it")
	}
	if volume != "" {
		commands = append(commands, fmt.Sprintf("kubectl get pv %s -o jsonpath='{.spec.nodeAffinity}'  # where it can be had", volume), "kubectl get nodes -L topology.kubernetes.io/zone -L nvidia.com/gpu.product",
			copyOf(c, ns, claim))
	}
	return []edit.Change{c.Once(title, func(title string) edit.Change {
		return edit.Change{Kind: diagnosis.Manual, Cause: diagnosis.VolumeConflict, Manual: true, Risk: diagnosis.LowRisk, Title: title, Commands: commands, Untestable: "a volume is moved or made outside of what the scheduler decides"}
	})}
}

// copyOf is how the data of a claim comes to where the pod can be: the classes are named, where the claim's own makes
// volumes before the pod has a node, and another one after that.
func copyOf(c *Bench, namespace, claim string) string {
	node := "a node"
	if len(c.Asks) > 0 {
		node = "a GPU node"
	}
	own, waits := terms.ClassesOf(c.Cluster, namespace, claim)
	if own == "" || waits == "" {
		return "# then copy it (a snapshot, restored into the other zone; a new claim of a class with WaitForFirstConsumer), or add " + node + " there"
	}
	return fmt.Sprintf("# then copy it into a new claim of StorageClass %s (by a snapshot, restored), whose volumes are made where the pod goes (WaitForFirstConsumer), not before as those of %s (Immediate); or add %s there", waits, own, node)
}

// localToNone is for a volume that is local to a node, by a host name that none has. What a volume wants of its node
// does not change once it is made.
func localToNone(c *Bench, p terms.Place, named *view.Node) edit.Change {
	ns, workload := c.Pod.Namespace, c.WorkloadName()
	if named == nil {
		return c.Once(fmt.Sprintf("bring node %s back, where the data of PersistentVolumeClaim %s is, or make the claim again without the data", p.Where(), p.Claim), func(title string) edit.Change {
			ch := edit.LookAt(diagnosis.VolumeConflict, title, "whether the machine and its disk are there still is in no object",
				fmt.Sprintf("kubectl get pv %s -o yaml  # where on the machine the data is", p.Volume),
				fmt.Sprintf("kubectl -n %s delete pvc %s  # the data is lost; scale %s down first, and make the claim again as it was", ns, p.Claim, workload))
			ch.Risk = diagnosis.MediumRisk
			return ch
		})
	}
	has := named.Labels[p.Key]
	return c.Once(fmt.Sprintf("make PersistentVolume %s again for %s=%s, which is what node %s has", p.Volume, p.Key, has, named.Name), func(title string) edit.Change {
		ch := edit.LookAt(diagnosis.VolumeConflict, title, "a volume is made outside of what the scheduler decides",
			fmt.Sprintf(`kubectl patch pv %s -p '{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}'  # first: else the data goes with the claim`, p.Volume),
			fmt.Sprintf("kubectl get pv %s -o yaml > pv.yaml; kubectl -n %s get pvc %s -o yaml > pvc.yaml", p.Volume, ns, p.Claim),
			fmt.Sprintf("# scale %s down, then: kubectl -n %s delete pvc %s; kubectl delete pv %s", workload, ns, p.Claim, p.Volume),
			fmt.Sprintf("# in pv.yaml: %s in spec.nodeAffinity; in both: no uid, resourceVersion, status; in pv.yaml no claimRef.uid; then kubectl create -f pv.yaml -f pvc.yaml", has),
			"# what made the volume takes the node's name for that label: a newer version of it may read the label")
		ch.Risk = diagnosis.MediumRisk
		return ch
	})
}

// byPeople says whether the volumes of a claim's class are made by people.
func byPeople(c *Bench, namespace, claim string) bool {
	return slices.ContainsFunc(c.Cluster.State.PVCs, func(p *corev1.PersistentVolumeClaim) bool {
		return p.Namespace == namespace && p.Name == claim && terms.ByPeople(c.Cluster, p)
	})
}
