package outside

import (
	"cmp"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/scaling"
	"github.com/unpend/unpend/rca/view"
)

// Growing is a change of what an autoscaler makes machines of.
func Growing(id diagnosis.CauseID, title string, commands ...string) edit.Change {
	return edit.Change{Kind: diagnosis.ScaleNodePool, Cause: id, Manual: true, Risk: diagnosis.LowRisk, Untestable: notThereYet, Title: title, Commands: commands}
}

func takeLarger(c *edit.Workload) string {
	return "let NodePool " + c.Growth().Pools[0].Name + " take larger machines: none that it takes has " + askedText(c) + " at once, beside what DaemonSets take"
}

// keepDaemonsOff is for DaemonSets that take of each machine what the pod asks for.
func keepDaemonsOff(c *edit.Workload) edit.Change {
	g := c.Growth()
	pool := g.Pools[0].Name
	var names, commands []string
	for _, d := range g.Takers {
		names = append(names, d.Namespace+"/"+d.Name)
		commands = append(commands, awayFrom(d, pool))
	}
	off := Growing(diagnosis.AutoscalerCannotHelp, fmt.Sprintf("keep DaemonSet %s off machines of NodePool %s, or have it ask for no such device: Karpenter leaves it room there before the pod", strings.Join(names, ", "), pool), commands...)
	off.Risk, off.StopsUnknown = diagnosis.MediumRisk, true // its pods elsewhere are made again
	off.Commands = append(off.Commands, "kubectl edit nodepool "+pool+"  # or larger machines, with enough for both, where there are any")
	return off
}

// awayFrom is the command that keeps a DaemonSet off a pool's machines; one with an affinity of its own is
// edited, for a list is written as a whole.
func awayFrom(d *appsv1.DaemonSet, pool string) string {
	term := fmt.Sprintf("{key: %s, operator: NotIn, values: [%s]}", scaling.LabelPool, pool)
	if d.Spec.Template.Spec.Affinity != nil {
		return fmt.Sprintf("kubectl -n %s edit daemonset %s  # in each term of its required node affinity: %s", d.Namespace, d.Name, term)
	}
	return fmt.Sprintf(`kubectl -n %s patch daemonset %s --type merge -p '{"spec":{"template":{"spec":{"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":%q,"operator":"NotIn","values":[%q]}]}]}}}}}}}'`, d.Namespace, d.Name, scaling.LabelPool, pool)
}

// largerDisk is for the disk that a node class gives each machine.
func largerDisk(c *edit.Workload) edit.Change {
	p := c.Growth().Pools[0]
	k, asked := p.Class, c.Wants[corev1.ResourceEphemeralStorage]
	const gi = 1 << 30
	least := (asked.Value()+gi)*10/9/gi + 1
	ch := Growing(diagnosis.AutoscalerCannotHelp, fmt.Sprintf("have %s %s give its machines a larger disk: %s has %s, and %s ephemeral-storage is asked", k.Kind, k.Name, k.Device, k.Disk.String(), asked.String()),
		fmt.Sprintf("kubectl edit %s %s  # spec.blockDeviceMappings: {deviceName: %s, ebs: {volumeType: gp3, volumeSize: %dGi}} or more, for images need room too; instanceStorePolicy: RAID0 takes the machines' own disks instead", strings.ToLower(k.Kind), k.Name, k.Device, least),
		"kubectl get nodeclaims -l karpenter.sh/nodepool="+p.Name+"  # machines that there are Karpenter replaces one by one (drift)")
	ch.Risk, ch.StopsUnknown = diagnosis.MediumRisk, true
	return ch
}

// noTypeLeft is for NodePools none of which has an instance type left: one pool's requirements are to be
// widened, where several say it the instance types themselves are not there.
func noTypeLeft(c *edit.Workload) edit.Change {
	g := c.Growth()
	var wide []string
	title := "see why Karpenter has no instance type left for any NodePool: its log says what it leaves out; have a node by hand meanwhile"
	for i := range g.Pools {
		p := &g.Pools[i]
		if !p.Takes(c.Pod) {
			continue
		}
		wide = widenPool(p)
		if wrong := p.Unheard(); wrong != nil {
			return Growing(diagnosis.AutoscalerCannotHelp, fmt.Sprintf("correct requirement %s of NodePool %s: %s is none of %s", wrong.Key, p.Name, strings.Join(wrong.Values, ", "), strings.Join(scaling.Heard(wrong.Key), ", ")),
				"kubectl edit nodepool "+p.Name+"  # spec.template.spec.requirements: "+wrong.Key+" In "+strings.Join(scaling.Heard(wrong.Key), " or "), "kubectl get nodeclaims -w")
		}
		if len(g.Pools) == 1 {
			title = "let NodePool " + p.Name + " take other instance types: of those that it requires none is left"
			if narrow := narrowed(c); narrow != "" {
				title = "let " + narrow + ", and of that none is left"
			}
		}
	}
	look := append([]string{"kubectl get deployments,pods -A -o wide | grep -i karpenter  # then its log; where a cloud runs it, ask that cloud"}, listTypes(c)...)
	if len(g.Pools) == 1 {
		return Growing(diagnosis.AutoscalerCannotHelp, title, append(wide, look...)...)
	}
	return Growing(diagnosis.AutoscalerCannotHelp, title, append(look, wide...)...)
}

// listTypes are the commands by which a cloud says which machines with GPUs it has.
func listTypes(c *edit.Workload) []string {
	switch provider(c) {
	case "aws":
		return []string{"aws ec2 describe-instance-type-offerings --location-type availability-zone --filters Name=instance-type,Values='g*,p*' --output table"}
	case "azure":
		return []string{"az vm list-skus --location LOCATION --size Standard_N --all --output table  # restrictions: what the subscription may not have", "az aks nodepool add --resource-group GROUP --cluster-name CLUSTER --name byhand --node-count 1 --node-vm-size SIZE  # a pool that Karpenter does not make"}
	case "gce":
		return []string{"gcloud compute machine-types list --filter='name~^(a2|a3|g2)-'"}
	}
	return nil
}

// largerGroup is for groups whose machines are too small.
func largerGroup(c *edit.Workload) edit.Change {
	g := c.Growth()
	name := g.Small[0]
	q := c.Wants[name]
	larger, disk := "larger machines", ""
	if name == corev1.ResourceEphemeralStorage {
		larger, disk = "larger disks", " --disk-size SIZE"
	}
	title := fmt.Sprintf("add a node group with %s, or ask for less %s: %s is asked", larger, name, q.String())
	if g.Roomiest != nil {
		has := g.Roomiest.Status.Allocatable[name]
		title += fmt.Sprintf(", and a machine such as %s has %s, for the pods of DaemonSets too", g.Roomiest.Name, has.String())
	}
	var add []string
	switch provider(c) {
	case "aws":
		add = []string{"eksctl create nodegroup --cluster CLUSTER --name NAME --node-type LARGER --nodes-min 0 --nodes-max 3"}
	case "azure":
		add = []string{"az aks nodepool add --resource-group GROUP --cluster-name CLUSTER --name NAME --node-vm-size LARGER --enable-cluster-autoscaler --min-count 0 --max-count 3 --node-count 1"}
	case "gce":
		add = []string{"gcloud container node-pools create NAME --cluster CLUSTER --machine-type LARGER --enable-autoscaling --min-nodes 0 --max-nodes 3" + disk}
	default:
		add = []string{"# add a node group of a larger type with the cloud's own command"}
	}
	return Growing(diagnosis.AutoscalerCannotHelp, title, append(add, c.EditByHand("less "+string(name)+", that a machine has"))...)
}

// GrowOther is for the cloud that refuses one group a machine where another could hold the pod and may grow:
// while the first is counted on, nobody grows the second.
func GrowOther(c *edit.Workload, id diagnosis.CauseID) []edit.Change {
	if c.Growth().Karpenter {
		return nil
	}
	spare := c.Growth().Spare()
	if len(spare) == 0 {
		return tryUntried(c, id)
	}
	ch := Growing(id, "scale node group "+spare[0].Short()+" up by one machine by hand: its machines could hold the pod, and it may have more", byHandOf(c, spare[:1], "")...)
	ch.Until, ch.Untestable = "node group "+spare[0].Short()+" has a node more", ""
	return []edit.Change{ch}
}

// tryUntried is GrowOther with groups at zero, whose machines nobody has seen: whether the pod fits them a
// person knows.
func tryUntried(c *edit.Workload, id diagnosis.CauseID) []edit.Change {
	groups := c.Growth().Untried()
	if len(groups) == 0 {
		return nil
	}
	var names []string
	for i := range groups {
		names = append(names, groups[i].Short())
	}
	return []edit.Change{Growing(id, "scale node group "+strings.Join(names, " or ")+" to one machine by hand, if the pod fits its machines: while another group's is waited for, the autoscaler grows no more", byHandOf(c, groups, "")...)}
}

// notLaunched is for the NodeClaim of which Karpenter cannot make a machine.
func notLaunched(c *edit.Workload) edit.Change {
	k := c.Growth().Claim
	ch := Growing(diagnosis.ScaleUpStuck, "mend what keeps Karpenter from launching a machine for NodePool "+k.Pool+": "+view.Cut(k.Launched.Words(), 160), "kubectl describe nodeclaim "+k.Name)
	ch.Risk = diagnosis.NoRisk
	if p := c.Cluster.Outlook().Pool(k.Pool); p != nil && p.Class.Name != "" {
		kind := strings.ToLower(p.Class.Kind)
		ch.Commands = append(ch.Commands, "kubectl get "+kind+" "+p.Class.Name+" -o yaml")
		if scaling.Has(scaling.Codes(k.Launched.Reason, k.Launched.Message), scaling.Setup) {
			ch.Commands = append(ch.Commands, "kubectl edit "+kind+" "+p.Class.Name+"  # ask for nothing that Karpenter's role may not give (tags, images, subnets), or let the role do it; Karpenter tries again by itself")
		}
	}
	return ch
}

// notJoined is for the machine that was launched and is no node.
func notJoined(c *edit.Workload) edit.Change {
	k := c.Growth().Claim
	ch := Growing(diagnosis.ScaleUpStuck, "see why the promised node did not come", "kubectl describe nodeclaim "+k.Name)
	ch.Risk = diagnosis.NoRisk
	p := c.Cluster.Outlook().Pool(k.Pool)
	if p != nil && p.Class.Name != "" {
		ch.Title = fmt.Sprintf("see why machines of NodePool %s do not join: image and user data of %s %s, network, and whether the cluster lets their role in", k.Pool, p.Class.Kind, p.Class.Name)
	}
	if provider(c) == "aws" {
		role := "ROLE"
		if p != nil {
			role = cmp.Or(p.Class.Role, role)
		}
		ch.Commands = append(ch.Commands, "aws eks list-access-entries --cluster-name CLUSTER  # the machines' role "+role+" has to be there (type EC2_LINUX; of Auto Mode EC2), or in ConfigMap kube-system/aws-auth")
		if _, id, ok := strings.Cut(k.ProviderID, ":///"); ok {
			ch.Commands = append(ch.Commands, "aws ec2 get-console-output --latest --output text --instance-id "+id[strings.LastIndexByte(id, '/')+1:]+"  # what nodeadm and kubelet say")
		}
	} else {
		ch.Commands = append(ch.Commands, "# a machine that boots and never joins: its image, user data, role and network")
	}
	ch.Commands = append(ch.Commands, "kubectl -n default get events --field-selector involvedObject.kind=NodeClaim", "kubectl delete nodeclaim "+k.Name+"  # once it is mended: Karpenter makes another")
	return ch
}

// setPagesAside is for huge pages: Karpenter has to be told of them, and the machines to set them aside before their kubelet
// counts them.
func setPagesAside(c *edit.Workload) edit.Change {
	g := c.Growth()
	of, class := "a NodePool", "kubectl get nodepools -o yaml"
	if len(g.Pools) > 0 {
		p := &g.Pools[0]
		of, class = "NodePool "+p.Name, fmt.Sprintf("kubectl edit %s %s", strings.ToLower(p.Class.Kind), p.Class.Name)
	}
	ch := Growing(diagnosis.AutoscalerCannotHelp, fmt.Sprintf("tell Karpenter by a NodeOverlay that machines of %s offer %s, and have them set as much aside as they start; or ask for none", of, g.Lacks))
	ch.Risk, ch.StopsUnknown = diagnosis.MediumRisk, true // another node class has its machines replaced
	ch.Commands = append(overlay(c, g.Lacks), class+"  # its user data: the kernel's huge pages (vm.nr_hugepages for 2Mi) before the kubelet starts; Karpenter then replaces its machines one by one (drift)",
		c.EditByHand("resources: no "+g.Lacks+", and no volume of medium HugePages"))
	return ch
}
