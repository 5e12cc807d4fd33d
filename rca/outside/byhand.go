package outside

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/scaling"
	"github.com/unpend/unpend/rca/view"
)

// byHand are the commands of the cloud that give node groups a machine more than was asked for;
// note: until when. What the autoscaler finds idle later it takes away again.
func byHand(c *edit.Workload, note string) []string { return byHandOf(c, c.Growth().Groups, note) }

func byHandOf(c *edit.Workload, groups []scaling.Group, note string) []string {
	if note != "" {
		note = "  # " + note
	}
	var out []string
	for i := range groups {
		g := &groups[i]
		more := fmt.Sprint(g.Health.Target + 1)
		if o := g.Object(); o != nil {
			out = append(out, scaleObject(o, more, note))
			continue
		}
		switch provider(c) {
		case "aws":
			out = append(out, "aws autoscaling set-desired-capacity --auto-scaling-group-name "+g.Short()+" --desired-capacity "+more+note)
		case "gce":
			out = append(out, "gcloud container clusters resize CLUSTER --node-pool "+cmp.Or(nodeGroup(c, g.Short()), besideOnGKE(c, g), "POOL-OF-"+g.Short())+" --num-nodes "+more+note)
		case "azure":
			pool := cmp.Or(nodeGroup(c, g.Short()), g.PoolOnAKS(), g.Short()) // its scale set is not for others to change
			out = append(out, fmt.Sprintf("az aks nodepool update --resource-group GROUP --cluster-name CLUSTER --name %s --update-cluster-autoscaler --min-count %s --max-count %d%s", pool, more, max(g.Health.MaxSize, g.Health.Target+1), note))
		default:
			out = append(out, "# scale "+g.Short()+" to "+more+" with the cloud's own command"+strings.Replace(note, "  # ", ", ", 1))
		}
	}
	return append(out, fmt.Sprintf("kubectl -n %s get pod %s -w", c.Pod.Namespace, c.Pod.Name))
}

func editAutoscaler(c *edit.Workload, what string) string {
	if d := autoscaler(c); d != nil {
		return fmt.Sprintf("kubectl -n %s edit deployment %s  # %s", d.Namespace, d.Name, what)
	}
	return "kubectl get deployments -A | grep cluster-autoscaler  # then edit it: " + what
}

// restartAutoscaler has the autoscaler forget the last node of a group at zero, which it takes for what the
// group makes before any tag (processors/nodeinfosprovider/mixed_nodeinfos_processor.go).
func restartAutoscaler(c *edit.Workload) []string {
	d := autoscaler(c)
	if d == nil {
		return nil
	}
	return []string{fmt.Sprintf("kubectl -n %s rollout restart deployment %s  # it forgets the group's last node, which it goes by before any tag", d.Namespace, d.Name)}
}

// besideOnGKE is the name of a pool without a node, by that of one which has some: GKE calls their instance
// groups gke-CLUSTER-POOL-HASH-grp, and shortens long names. Empty where that does not tell.
func besideOnGKE(c *edit.Workload, g *scaling.Group) string {
	st := c.Cluster.Outlook().Status
	if st == nil {
		return ""
	}
	for i := range st.Groups {
		name := st.Groups[i].Short()
		before, _, ok := strings.Cut(name, nodeGroup(c, name))
		if rest, same := strings.CutPrefix(g.Short(), before); ok && before != "" && same {
			if m := onGKE.FindStringSubmatch(rest); m != nil {
				return m[1]
			}
		}
	}
	return ""
}

var onGKE = regexp.MustCompile(`^([a-z][a-z0-9-]*)-[0-9a-f]+-grp$`)

// tellOfDevice is for the group of which the cluster autoscaler does not know that its nodes have what is asked. Of
// whole GPUs clouds' templates speak by themselves, so what it goes by is a node that the group once had.
func tellOfDevice(c *edit.Workload) edit.Change {
	g := c.Growth()
	ch := Growing(diagnosis.AutoscalerCannotHelp, "tell the cluster autoscaler that nodes of the group offer "+g.Lacks+", or keep one node of it", tagCommands(c, "resources/"+g.Lacks, asked(c, g.Lacks))...)
	if len(g.Groups) == 0 {
		return ch
	}
	if ofObjects(g.Groups) {
		return describeCapacity(c, g.Groups, g.Lacks)
	}
	hand := byHand(c, "of a group with a node the autoscaler knows what that has")
	if g.Lacks == view.WholeGPU {
		ch.Title = "scale node group " + g.Groups[0].Short() + " to one machine by hand: the cluster autoscaler then sees that it has " + g.Lacks
		ch.Commands = slices.Concat(hand, restartAutoscaler(c), ch.Commands)
		return ch
	}
	ch.Commands = slices.Concat(ch.Commands, restartAutoscaler(c), hand)
	return ch
}

// showDevices is for the group at zero of which the cluster autoscaler does not know which devices a driver
// would publish for its nodes.
func showDevices(c *edit.Workload) edit.Change {
	var names []string
	for _, g := range c.Growth().Groups {
		names = append(names, g.Short())
	}
	ch := Growing(diagnosis.AutoscalerCannotHelp, "scale node group "+strings.Join(names, " or ")+" to one machine by hand: the cluster autoscaler then knows the devices that its nodes publish", byHand(c, "")...)
	if provider(c) == "gce" {
		ch.Commands = append(ch.Commands, "# to have it grow from zero by itself: make the pool with label cloud.google.com/gke-nvidia-gpu-dra-driver=true, by which GKE knows the devices of nodes to come")
	} else {
		ch.Commands = append(ch.Commands, "# to keep it so: a smallest size of 1")
	}
	return ch
}

// staticPool is for the pod whose claims for devices Karpenter meets on no machine of its own: with a machine there, and
// the driver on it, the scheduler places it. A NodePool that grows cannot be made one of a fixed size, so it is another.
func staticPool(c *edit.Workload) edit.Change {
	of, likes := "NODEPOOL", "a NodePool with such GPUs"
	pools := c.Growth().Pools
	if len(pools) == 0 { // its words name none
		pools = takes(c)
	}
	if len(pools) > 0 {
		of, likes = pools[0].Name, "NodePool "+pools[0].Name
	}
	return Growing(diagnosis.AutoscalerCannotHelp, "bring such a machine without Karpenter's choice: by a NodePool of a fixed size like "+likes+", or by a node group of the cloud; or ask for GPUs by the device plugin instead of a claim",
		"kubectl get nodepool "+of+" -o yaml > static.yaml  # metadata.name: another; spec.replicas: 1, without spec.weight, status and limits other than nodes",
		"kubectl apply -f static.yaml  # Karpenter 1.8 and later, with its feature gate StaticCapacity",
		fmt.Sprintf("kubectl -n %s get pod %s -w", c.Pod.Namespace, c.Pod.Name))
}

// takes are the NodePools that take the pod and are sure to make machines with GPUs.
func takes(c *edit.Workload) []scaling.Pool {
	return slices.DeleteFunc(slices.Clone(c.Cluster.Outlook().Pools), func(p scaling.Pool) bool { return p.Suits(c.Pod) != scaling.Yes })
}

// askCloud are the commands by which a cloud says what became of a group's machines.
func askCloud(c *edit.Workload, g *scaling.Group) []string {
	out := []string{showStatusEvents(c)}
	if o := g.Object(); o != nil {
		return append(out, fmt.Sprintf("kubectl -n %s describe %s %s%s", o.Namespace, o.Resource(), o.Name, managed), fmt.Sprintf("kubectl -n %s get machines -o wide | grep %s", o.Namespace, o.Name))
	}
	switch provider(c) {
	case "aws":
		return append(out, "aws autoscaling describe-scaling-activities --auto-scaling-group-name "+g.Short()+" --max-items 5")
	case "gce":
		return append(out, "gcloud compute instance-groups managed list-errors "+g.Short()+g.InZone())
	case "azure":
		return append(out, "az vmss list-instances --resource-group NODE-RESOURCE-GROUP --name "+g.Short()+" --expand instanceView -o table",
			"az monitor activity-log list --resource-group NODE-RESOURCE-GROUP --status Failed --offset 6h -o table  # quota, allocation")
	}
	return append(out, "# then what the cloud says of the machines of "+g.Short()+": were they refused, or do they run and not join")
}

// takeOff is for the new node that has all and is kept shut by a taint that somebody was to take
// off it.
func takeOff(c *edit.Workload) edit.Change {
	g := c.Growth()
	node := g.Claim.Node
	var keys, commands []string
	for _, t := range g.Kept {
		keys = append(keys, t.Key)
		commands = append(commands, fmt.Sprintf("kubectl taint nodes %s %s-  # what takes it off has not, or does not run", node, taintText(t)))
	}
	ch := edit.Change{Kind: diagnosis.Manual, Cause: diagnosis.ScaleUpStuck, Manual: true, Risk: diagnosis.LowRisk, Minutes: 1, Until: node + " has lost taint " + strings.Join(keys, ", "),
		Title:    "take taint " + strings.Join(keys, ", ") + " off " + node + ", once what it waits for runs there: who was to do it has not",
		Commands: append([]string{"kubectl describe nodeclaim " + g.Claim.Name, "kubectl get pods -A -o wide --field-selector spec.nodeName=" + node}, commands...)}
	if moreKeeps(c, node) {
		ch.Untestable = "more keeps the pod from " + node
	}
	if c.Cluster.Outlook().Pool(g.Claim.Pool) != nil && len(g.Claim.Startup) > 0 {
		ch.Commands = append(ch.Commands, "kubectl edit nodepool "+g.Claim.Pool+"  # spec.template.spec.startupTaints: without it, if nobody takes it off; Karpenter then replaces its machines one by one (drift)")
	}
	return ch
}

// moreKeeps says whether the pod is kept from the new node by more than the taints that stand on
// it still.
func moreKeeps(c *edit.Workload, node string) bool {
	rest := slices.DeleteFunc(slices.Clone(c.Cluster.Nodes[node].Spec.Taints), func(t corev1.Taint) bool {
		return slices.ContainsFunc(c.Growth().Kept, func(k corev1.Taint) bool { return k.MatchTaint(&t) })
	})
	return !scaling.Tolerates(c.Pod, rest) || slices.ContainsFunc(c.Judged, func(n diagnosis.NodeBlockers) bool {
		return n.Name == node && slices.ContainsFunc(n.Blockers, func(b diagnosis.Blocker) bool {
			return b.Cause != diagnosis.UntoleratedTaint && b.Cause != diagnosis.NodeNotReady
		})
	})
}

func taintText(t corev1.Taint) string {
	if t.Value == "" {
		return t.Key + ":" + string(t.Effect)
	}
	return t.Key + "=" + t.Value + ":" + string(t.Effect)
}

// ownNode is for the machine that joined in a way by which Karpenter does not know it for its own.
func ownNode(c *edit.Workload) edit.Change {
	g := c.Growth()
	ch := edit.Change{Kind: diagnosis.Manual, Cause: diagnosis.ScaleUpStuck, Manual: true, Risk: diagnosis.LowRisk, Untestable: notThereYet,
		Title:    "have machines of NodePool " + g.Claim.Pool + " join as Karpenter wants them: " + view.Cut(g.Claim.Registered.Words(), 120),
		Commands: []string{"kubectl describe nodeclaim " + g.Claim.Name}}
	if g.Claim.Registered.Reason == "UnregisteredTaintNotFound" {
		ch.Title = "have kubelets of NodePool " + g.Claim.Pool + " register with taint karpenter.sh/unregistered:NoExecute"
	}
	if p := c.Cluster.Outlook().Pool(g.Claim.Pool); p != nil && p.Class.Name != "" {
		ch.Title += ", by the image or user data of " + p.Class.Kind + " " + p.Class.Name
		ch.Commands = append(ch.Commands, fmt.Sprintf("kubectl edit %s %s  # its image and user data: with a custom one, kubelet's --register-with-taints is yours to give", strings.ToLower(p.Class.Kind), p.Class.Name))
	}
	ch.Commands = append(ch.Commands, "kubectl delete nodeclaim "+g.Claim.Name+"  # Karpenter makes another while the pod waits; who runs on its machine stops")
	ch.StopsUnknown = true
	return ch
}

// oneNode is for the machine that several nodes have: Karpenter takes none of them for it.
func oneNode(c *edit.Workload) edit.Change {
	k := c.Growth().Claim
	return edit.Change{Kind: diagnosis.Manual, Cause: diagnosis.ScaleUpStuck, Manual: true, Risk: diagnosis.LowRisk, Untestable: notThereYet, StopsUnknown: true,
		Title: "leave one node of the machine of NodeClaim " + k.Name + ": by their providerID several have it; or have Karpenter make another machine",
		Commands: []string{"kubectl get nodes -o custom-columns=NAME:.metadata.name,MACHINE:.spec.providerID,SINCE:.metadata.creationTimestamp  # those of " + cmp.Or(k.ProviderID, "one machine") + ": delete who is not its kubelet's own",
			"kubectl delete nodeclaim " + k.Name + "  # or this: Karpenter makes another while the pod waits; who runs on its machine stops"}}
}

// setGoing is for the cluster autoscaler that stands still: for nodes that it takes for not ready.
func setGoing(c *edit.Workload) edit.Change {
	g := c.Growth()
	ch := edit.Change{Kind: diagnosis.ScaleNodePool, Cause: diagnosis.AutoscalerCannotHelp, Manual: true, Risk: diagnosis.LowRisk, Untestable: notThereYet,
		Title:    "have the cluster autoscaler work again: mend the nodes that are not ready to it, or raise --ok-total-unready-count",
		Commands: []string{showFlags(c, "-unready")}}
	if len(g.Bare) > 0 {
		n := c.Cluster.Nodes[g.Bare[0]]
		ch.Title = fmt.Sprintf("have the cluster autoscaler work again: it is kept from that by %s, as %s, labelled as having GPUs and without %s", view.CountOf(len(g.Bare), "node"), n.Name, view.WholeGPU)
		if n.AdvertisesAny() {
			ch.Commands = append(ch.Commands, fmt.Sprintf("# MIG instances and shares count for nothing there: --ok-total-unready-count=%d or more lets them be", len(g.Bare)))
		} else {
			ch.Commands = append(ch.Commands, "kubectl get daemonsets -A | grep -i device-plugin  # one has to run on "+n.Name+", or the label of its GPUs be taken off")
		}
	}
	if len(g.Groups) > 0 {
		ch.Commands = append(ch.Commands, byHand(c, "by hand meanwhile")...)
	}
	return ch
}

// ofAnotherMaker says whether a pool takes machines with other makers' GPUs alone.
func ofAnotherMaker(p *scaling.Pool) bool {
	key, _ := p.OtherGPUs()
	return key != ""
}

// askedText is what one pod asks for of devices, CPU and memory.
func askedText(c *edit.Workload) string {
	var out []string
	for _, a := range c.Asks {
		out = append(out, fmt.Sprintf("%d %s", a.Count, a.Resource))
	}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage} {
		if q, asked := c.Wants[name]; asked {
			out = append(out, q.String()+" "+string(name))
		}
	}
	return strings.Join(out, ", ")
}
