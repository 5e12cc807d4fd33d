package outside

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/scaling"
	"github.com/unpend/unpend/rca/view"
)

// notThereYet is why nothing about a node to come can be tried on a copy.
const notThereYet = "the node is not there yet"

// onlyTheCloud is why nothing about what a cloud refuses can be tried.
const onlyTheCloud = "only the cloud knows what it has"

// AddNode is for the cluster without a node, where no autoscaler says what becomes of one.
func AddNode(c *edit.Workload) []edit.Change {
	if c.WayOut() != "" {
		return nil
	}
	what := "a node"
	if len(c.Asks) > 0 {
		what += " with such GPUs"
	}
	return []edit.Change{{Kind: diagnosis.ScaleNodePool, Manual: true, Risk: diagnosis.LowRisk, Title: "add " + what + " to the cluster", Untestable: notThereYet,
		Commands: []string{"kubectl get nodes", "# then scale a node pool with the cloud's or the autoscaler's own command"}}}
}

// WaitForAutoscaler leaves the node that it brings to it, for as long as it may take; not one that is there, and lacks
// what does not come by waiting.
func WaitForAutoscaler(c *edit.Workload) []edit.Change {
	if c.CameForGood() {
		return nil
	}
	ch := edit.Change{Kind: diagnosis.Wait, Cause: diagnosis.ScalingUp, Manual: true, Risk: diagnosis.NoRisk, Minutes: max(1, 5-int(c.Growth().PromiseAge(c.Cluster.State.Now).Minutes())), Until: "the autoscaler's node is Ready", Title: "wait for the node that the autoscaler brings",
		Commands: []string{fmt.Sprintf("kubectl -n %s get pod %s -w", c.Pod.Namespace, c.Pod.Name), "kubectl get nodes -w"}}
	g := c.Growth()
	if !g.By.IsZero() {
		ch.Until += "; not later than " + g.By.UTC().Format(time.RFC3339) + ", then it is stuck"
	}
	if g.Claim != nil {
		ch.Commands = append(ch.Commands, "kubectl get nodeclaim "+g.Claim.Name+" -o wide -w")
	}
	return []edit.Change{ch}
}

// LookAtPromise is for the node that was promised and did not come, or came without GPUs.
func LookAtPromise(c *edit.Workload) []edit.Change {
	g := c.Growth()
	if g.Claim == nil && c.CameWithout() != "" {
		return nil // it came, and what mends it is offered
	}
	ch := edit.Change{Kind: diagnosis.ScaleNodePool, Cause: diagnosis.ScaleUpStuck, Manual: true, Risk: diagnosis.NoRisk, Title: "see why the promised node did not come", Untestable: notThereYet}
	switch {
	case g.Claim != nil && len(g.Kept) > 0:
		return []edit.Change{takeOff(c)}
	case g.Claim != nil && g.Claim.Doubled():
		return []edit.Change{oneNode(c)}
	case g.Claim != nil && g.Claim.Registered.Status == string(corev1.ConditionFalse):
		return []edit.Change{ownNode(c)}
	case g.Claim != nil && g.Claim.Node != "":
		node := g.Claim.Node
		ch.Kind, ch.Title = diagnosis.Manual, "see why "+node+" came without what it was to bring"
		ch.Untestable = "what the node lacks is not known to the scheduler"
		ch.Commands = []string{"kubectl describe nodeclaim " + g.Claim.Name, "kubectl describe node " + node, "kubectl get pods -A -o wide --field-selector spec.nodeName=" + node + "  # its driver, toolkit and device plugin"}
		n := c.Cluster.Nodes[node]
		switch {
		case n != nil && n.ReadySince().IsZero():
			ch.Risk, ch.StopsUnknown, ch.Title = diagnosis.MediumRisk, true, "have Karpenter replace "+node+", which is not ready"
			ch.Commands = append(ch.Commands[:2], "kubectl delete nodeclaim "+g.Claim.Name+"  # Karpenter makes another while the pod waits; who runs on it stops")
		case n != nil && len(view.Drained(n)) == 0: // nobody stops
			ch.Commands = append(ch.Commands, "kubectl delete nodeclaim "+g.Claim.Name+"  # or this, where the image is sound: Karpenter makes another machine while the pod waits")
		}
	case g.Claim != nil && !g.Claim.Launched.Met() && g.Claim.Launched.Status != "":
		return []edit.Change{notLaunched(c)}
	case g.Claim != nil:
		return []edit.Change{notJoined(c)}
	case g.Karpenter:
		ch.Commands = []string{"kubectl get nodeclaims -o wide", "kubectl -n default get events --field-selector involvedObject.kind=NodeClaim", "kubectl get nodes --sort-by=.metadata.creationTimestamp  # a new one without GPUs: its driver or device plugin"}
	case len(g.Groups) > 0 && g.Groups[0].Missing() > 0:
		group := &g.Groups[0]
		ch.Title = fmt.Sprintf("see at the cloud why node group %s has %d of the %d machines that were asked for", group.Short(), group.Health.NodeCounts.Registered.Total, group.Health.Target)
		ch.Commands = askCloud(c, group)
		return append(GrowOther(c, diagnosis.ScaleUpStuck), ch)
	default:
		ch.Commands = []string{showStatus(c), showStatusEvents(c)}
		if names := scaling.Grown(g.Said); len(names) > 0 { // its status tells nothing of it
			group := &scaling.Group{Name: names[0]}
			ch.Title = "see at the cloud what became of the node that group " + group.Short() + " promised"
			ch.Commands = append(ch.Commands[:1], askCloud(c, group)...)
		}
		ch.Commands = append(ch.Commands, "kubectl get nodes --sort-by=.metadata.creationTimestamp  # a new one without GPUs: its driver or device plugin")
	}
	return []edit.Change{ch}
}

// RefusedByCloud is for the machine that the cloud does not give: what helps depends on why.
func RefusedByCloud(c *edit.Workload) []edit.Change {
	g := c.Growth()
	ch := edit.Change{Kind: diagnosis.ScaleNodePool, Cause: diagnosis.CloudCapacityRefused, Manual: true, Risk: diagnosis.LowRisk, Untestable: onlyTheCloud}
	switch {
	case scaling.Has(g.Codes, scaling.Quota):
		ch.Title = "have the cloud account's quota raised (" + scaling.Names(g.Codes) + beyond(c) + "): nothing in the cluster changes that"
		ch.Commands = quotaCommands(c)
		if p := ofSpotAlone(c); p != nil {
			return []edit.Change{onDemandToo(c, p), ch}
		}
		if p := ofSpotToo(c); p != nil {
			ch.Title = strings.TrimSuffix(ch.Title, ": nothing in the cluster changes that") + ", which is of spot machines alone"
			return []edit.Change{askOnDemand(c, p), ch}
		}
		return []edit.Change{ch}
	case scaling.Has(g.Codes, scaling.Unnamed):
		return []edit.Change{nameReservation(c)}
	case scaling.Has(g.Codes, scaling.Addresses):
		return []edit.Change{otherSubnet(c)}
	case len(g.Codes) > 0 && !scaling.Has(g.Codes, scaling.Stockout) && !scaling.Has(g.Codes, scaling.Unsaid) && !scaling.Has(g.Codes, scaling.Reserved):
		ch.Title = "correct what the cloud refuses (" + scaling.Names(g.Codes) + ")"
		ch.Commands = lookAtPools(c)
		return []edit.Change{ch}
	}
	ch.Title = "let the pool take other machines: more zones, instance types or on-demand beside spot, or a reservation"
	ch.Commands = widen(c)
	if narrow := narrowed(c); narrow != "" {
		ch.Title = "let " + narrow + ", of which the cloud has none left"
	}
	if !g.Karpenter && scaling.Has(g.Codes, scaling.Unsaid) && len(g.Groups) > 0 {
		ch.Title = "see at the cloud why node group " + g.Groups[0].Short() + " gets no machine, and have a group of another zone or instance type beside it"
		ch.Commands = append(askCloud(c, &g.Groups[0]), "# what the cloud has no more of there: a node group of another zone, instance type or capacity type")
	}
	wait := edit.Change{Kind: diagnosis.Wait, Cause: diagnosis.CloudCapacityRefused, Manual: true, Risk: diagnosis.NoRisk, Title: "wait until the cloud has such a machine: the autoscaler tries again by itself", Until: "the cloud has such a machine",
		Untestable: "nobody knows when the cloud has one", Commands: []string{fmt.Sprintf("kubectl -n %s get pod %s -w", c.Pod.Namespace, c.Pod.Name)}}
	var out []edit.Change
	if !g.Since.IsZero() { // it counts on that machine: had it looked again, it would have grown another group
		out = GrowOther(c, diagnosis.CloudCapacityRefused)
	}
	if scaling.Has(g.Codes, scaling.Reserved) {
		out = append(out, otherReservation(c))
	}
	return append(out, ch, wait)
}

// widen are the commands that let a pool take other machines.
func widen(c *edit.Workload) []string {
	g := c.Growth()
	if !g.Karpenter {
		return append(lookAtPools(c), "# then add a node group of another zone, instance type or capacity type")
	}
	if len(g.Pools) == 0 {
		return []string{"kubectl get nodepools", "# then kubectl edit nodepool NAME: spec.template.spec.requirements"}
	}
	var out []string
	for i := range g.Pools {
		out = append(out, widenPool(&g.Pools[i])...)
	}
	return out
}

func widenPool(p *scaling.Pool) []string {
	out := []string{"kubectl get nodepool " + p.Name + " -o jsonpath='{.spec.template.spec.requirements}'"}
	for _, r := range p.Requirements {
		out = append(out, fmt.Sprintf("# now: %s %s %s", r.Key, r.Operator, strings.Join(r.Values, ", ")))
	}
	widened := "topology.kubernetes.io/zone, node.kubernetes.io/instance-type, karpenter.sh/capacity-type"
	if keys := keptBy(p); len(keys) > 0 {
		widened = strings.Join(keys, ", ")
	}
	return append(out, "kubectl edit nodepool "+p.Name+"  # more values for "+widened)
}

func lookAtPools(c *edit.Workload) []string {
	if g := c.Growth(); g.Karpenter {
		out := []string{"kubectl -n default get events --field-selector involvedObject.kind=NodeClaim"}
		for _, p := range g.Pools {
			out = append(out, "kubectl get nodepool "+p.Name+" -o yaml")
		}
		return out
	}
	return []string{showStatus(c)}
}

// RaiseLimit lets the pool that is at its limit grow by one machine.
func RaiseLimit(c *edit.Workload) []edit.Change {
	g := c.Growth()
	ch := edit.Change{Kind: diagnosis.ScaleNodePool, Cause: diagnosis.AutoscalerLimit, Manual: true, Risk: diagnosis.LowRisk, Untestable: notThereYet}
	var out []edit.Change
	switch {
	case g.Karpenter && len(g.Pools) > 0:
		p := g.Pools[0]
		out = letGo(c)
		patch := raisedLimits(c, &p)
		ch.Title = "raise the limits of NodePool " + p.Name + " by a machine"
		ch.Commands = []string{"kubectl get nodepool " + p.Name + " -o jsonpath='{.spec.limits}{\"\\n\"}{.status.resources}{\"\\n\"}'", "kubectl patch nodepool " + p.Name + ` --type merge -p '{"spec":{"limits":{` + patch + `}}}'`}
	case g.Karpenter:
		ch.Title = "raise the limits of the NodePool"
		ch.Commands = []string{"kubectl get nodepools -o custom-columns=NAME:.metadata.name,LIMITS:.spec.limits,USED:.status.resources", "# then kubectl edit nodepool NAME: spec.limits"}
	case strings.Contains(g.Said, "exceeded quota:") || strings.Contains(g.Said, "max cluster"):
		ch.Title = "raise the cluster autoscaler's own limits (--gpu-total, --cores-total, --memory-total, or its CapacityQuota)"
		ch.Commands = []string{showFlags(c, "-total"), "kubectl get capacityquotas.autoscaling.x-k8s.io"}
		if provider(c) == "gce" {
			ch.Commands = append(ch.Commands, "# of node auto-provisioning on GKE, GiB of memory: gcloud container clusters update CLUSTER --enable-autoprovisioning --max-cpu MORE --max-memory MORE")
		}
	case strings.Contains(g.Said, "max total nodes"):
		ch.Title = "raise the cluster autoscaler's --max-nodes-total"
		ch.Commands = []string{showFlags(c, "max-nodes-total")}
	default:
		ch.Title = "raise the largest size of the node group"
		if len(g.Groups) == 1 {
			ch.Title += " " + g.Groups[0].Short()
		}
		ch.Commands = growGroups(c)
	}
	if like := likeOfGrowth(c); like != nil && heldForGood(c) {
		ch.Until, ch.Untestable = "the pool has a node more", ""
	}
	return append(out, ch)
}

// letGo is for machines on their way out that count against the pool's limits until they are gone.
func letGo(c *edit.Workload) []edit.Change {
	var out []edit.Change
	for _, h := range c.Growth().Held {
		ch := edit.Change{Kind: diagnosis.ScaleNodePool, Cause: diagnosis.AutoscalerLimit, Manual: true, Risk: diagnosis.MediumRisk, StopsUnknown: true, Untestable: notThereYet,
			Title:    "let node " + h.Node + " be gone, for which its pool then may have another",
			Commands: []string{"kubectl describe nodeclaim " + h.Claim, "kubectl get pods -A -o wide --field-selector spec.nodeName=" + h.Node}}
		if h.By != "" {
			ch.Title += ": a PodDisruptionBudget keeps " + h.By + " there"
			ch.Commands = append(ch.Commands, "kubectl get pdb -A  # then give that workload another replica elsewhere, or have its owner allow the eviction")
		}
		out = append(out, ch)
	}
	return out
}

// raisedLimits are the limits that are in the way of one more machine, as they would let it in:
// what is used, and the largest machine of the pool that is known, at least what is asked.
// Where none is seen to be in the way, as Karpenter counts a machine that nobody here knows,
// it is the limit of GPUs, or without one all of them, at twice what they are.
func raisedLimits(c *edit.Workload, p *scaling.Pool) string {
	names := slices.Sorted(maps.Keys(p.Limits))
	var parts []string
	raise := func(name corev1.ResourceName, from, by resource.Quantity) {
		from = from.DeepCopy()
		from.Add(by)
		parts = append(parts, fmt.Sprintf("%q:%q", name, from.String()))
	}
	for _, name := range names {
		more := machineOf(c, p, name)
		if left, _ := p.Left(name); left.Sign() > 0 && left.Cmp(more) >= 0 {
			continue
		}
		if more.IsZero() {
			more = p.Limits[name]
		}
		raise(name, p.Used[name], more)
	}
	if _, gpus := p.Limits[view.WholeGPU]; len(parts) == 0 && gpus {
		names = []corev1.ResourceName{view.WholeGPU}
	}
	if len(parts) == 0 {
		for _, name := range names {
			raise(name, p.Limits[name], p.Limits[name])
		}
	}
	return strings.Join(parts, ",")
}

// machineOf is how much of a resource a machine of the pool has, as far as its nodes tell: at
// least what is asked.
func machineOf(c *edit.Workload, p *scaling.Pool, name corev1.ResourceName) resource.Quantity {
	if name == "nodes" { // Karpenter's own word
		return resource.MustParse("1")
	}
	most := c.Wants[name]
	for _, n := range c.Cluster.SortedNodes() {
		if q := n.Status.Capacity[name]; n.Labels[scaling.LabelPool] == p.Name && q.Cmp(most) > 0 {
			most = q
		}
	}
	return most
}

// GrowPool is for the autoscaler that knows no machine for the pod: it says what to write
// where.
func GrowPool(c *edit.Workload) []edit.Change {
	g := c.Growth()
	if g.Bar == scaling.Volume || g.Bar == scaling.Topology && len(g.Counted)+len(g.Beside)+len(g.Groups) == 0 {
		return nil // no machine helps that is not where the volume or the neighbour is; what does is offered with that
	}
	if c.MisnamedResource() != nil {
		return nil // nor one more of those that do not have it by that name
	}
	ch := edit.Change{Kind: diagnosis.ScaleNodePool, Cause: diagnosis.AutoscalerCannotHelp, Manual: true, Risk: diagnosis.LowRisk, Untestable: notThereYet}
	switch {
	case g.Down != nil:
		return []edit.Change{haveRun(c)}
	case g.Bar == scaling.Internal:
		return []edit.Change{readLog(c)}
	case g.Bar == scaling.NoPool:
		return []edit.Change{firstPool(c)}
	case g.Bar == scaling.NotReady && len(g.Pools) > 0:
		return []edit.Change{mendPool(c, &g.Pools[0])}
	case g.Halted:
		return []edit.Change{setGoing(c)}
	case g.Bar == scaling.NotReady && len(g.Groups) == 0 && g.Said == "":
		return []edit.Change{Growing(diagnosis.AutoscalerCannotHelp, "start the cluster autoscaler", startCommands(c)...)}
	case g.Bar == scaling.Topology && !g.Karpenter:
		ch.Title = fmt.Sprintf("have a node elsewhere by %s: a node group for each of its values grows by itself, one over several by hand", cmp.Or(g.Over, "what its rule is counted over"))
		ch.Commands = byHand(c, "until it has a node elsewhere")
	case g.Like && len(g.Groups) > 0:
		ch.Title, ch.Until, ch.Untestable = "scale node group "+g.Groups[0].Short()+" up by one machine by hand", "node group "+g.Groups[0].Short()+" has a node more", ""
		ch.Commands = byHand(c, "")
	case g.Bar == scaling.Topology && len(g.Beside) > 0:
		return []edit.Change{nameValues(c)}
	case g.Bar == scaling.Topology:
		return []edit.Change{loosenSpread(c)}
	case g.Bar == scaling.Priority:
		return []edit.Change{aboveCutoff(c)}
	case g.Bar == scaling.Offering && len(g.Pools) > 0:
		ch.Title = "let NodePool " + g.Pools[0].Name + " take more: other zones, instance types or capacity types"
		ch.Commands = append(widen(c), "kubectl -n default get events --field-selector involvedObject.kind=NodeClaim  # did the cloud refuse one? Then Karpenter tries again by itself within minutes")
	case g.Bar == scaling.Claims && !g.Karpenter && len(g.Groups) > 0:
		return []edit.Change{showDevices(c)}
	case g.Startup != "":
		ch.Title = "have the cluster autoscaler leave taint " + g.Startup + ", which fresh nodes lose, out of account: --startup-taint=" + g.Startup
		ch.Commands = append([]string{editAutoscaler(c, "args: --startup-taint="+g.Startup),
			"# where a cloud runs it: name the taint startup-taint.cluster-autoscaler.kubernetes.io/NAME, which it leaves out by itself"}, byHand(c, "by hand meanwhile")...)
	case g.Bar == scaling.Taint && !g.Karpenter && len(g.Groups) == 1:
		ch.Title = "scale node group " + g.Groups[0].Short() + " to one node by hand: the cluster autoscaler then sees what it makes"
		ch.Commands = append(byHand(c, ""), "# to keep it from coming back, have the autoscaler ignore that taint (--ignore-taint, --status-taint)")
	case g.Bar == scaling.Taint && !g.Karpenter:
		ch.Title = "scale that node group to one node by hand: the cluster autoscaler then sees what it makes"
		ch.Commands = []string{showStatus(c) + "  # which group is at zero", "# then scale it with the cloud's own command; to keep it from coming back, have the autoscaler ignore that taint (--ignore-taint, --status-taint)"}
	case g.Bar == scaling.Selector && scaling.IsPoolLabel(g.Lacks):
		ch.Title = "scale node group " + g.Groups[0].Short() + " to one machine by hand: the cluster autoscaler then knows label " + g.Lacks + " of its nodes"
		ch.Commands = append(byHand(c, ""), "# to have it grow from zero by itself: select by a label of your own, which the pool's template has too")
	case g.Lacks != "" && g.Bar == scaling.Selector:
		ch.Title = "tell the cluster autoscaler of label " + g.Lacks + " on the node group's template, or keep one node of it"
		ch.Commands = tagCommands(c, "label/"+g.Lacks, cmp.Or(c.Pod.Spec.NodeSelector[g.Lacks], "VALUE"))
	case g.Karpenter && len(g.Takers) > 0:
		return []edit.Change{keepDaemonsOff(c)}
	case g.Karpenter && g.Disk:
		return []edit.Change{largerDisk(c), Growing(diagnosis.AutoscalerCannotHelp, takeLarger(c), widen(c)...)} // more may be short
	case g.None:
		return []edit.Change{noTypeLeft(c)}
	case len(g.Small) > 0:
		return []edit.Change{largerGroup(c)}
	case g.Shares != nil:
		t := g.Shares.Labels[corev1.LabelInstanceTypeStable]
		ch.Title = fmt.Sprintf("tell Karpenter by a NodeOverlay that %s offers %d %s, as %s does", cmp.Or(t, "a machine of NodePool "+g.Pools[0].Name), g.Shares.Allocatable(corev1.ResourceName(g.Lacks)), g.Lacks, g.Shares.Name)
		ch.Commands = overlay(c, g.Lacks)
		if g.Like {
			ch.Until, ch.Untestable = "Karpenter has made such a machine", ""
		}
	case g.Lacks == view.WholeGPU && g.Karpenter:
		return []edit.Change{countGPUs(c)}
	case g.Bar == scaling.Devices:
		return []edit.Change{staticPool(c)}
	case g.Karpenter && view.HugePages(corev1.ResourceName(g.Lacks)):
		return []edit.Change{setPagesAside(c)}
	case g.Lacks != "" && g.Karpenter:
		ch.Title = "tell Karpenter by a NodeOverlay which machines offer " + g.Lacks + ", or ask for " + view.WholeGPU
		ch.Commands = overlay(c, g.Lacks)
	case g.Lacks != "":
		return []edit.Change{tellOfDevice(c)}
	case g.Karpenter && g.Crowd > 0:
		k := g.Pools[0].Class
		ch.Title = fmt.Sprintf("let %s %s take %d pods onto a machine", k.Kind, k.Name, g.Crowd)
		ch.Risk, ch.StopsUnknown = diagnosis.MediumRisk, true // who runs on machines of the class moves
		ch.Commands = []string{fmt.Sprintf("kubectl edit %s %s  # spec.kubelet.maxPods: at least %d; Karpenter then replaces its machines one by one (drift)", strings.ToLower(k.Kind), k.Name, g.Crowd)}
	case g.Karpenter && g.Bar == scaling.Lacks && len(g.Pools) > 0 && !ofAnotherMaker(&g.Pools[0]):
		ch.Title, ch.Commands = takeLarger(c), widen(c)
	case g.Karpenter && g.Bar == scaling.Lacks && len(g.Pools) > 0:
		ch.Title = "let NodePool " + g.Pools[0].Name + " take machines with NVIDIA's GPUs, or add one that does"
		ch.Commands = []string{"kubectl edit nodepool " + g.Pools[0].Name + "  # spec.template.spec.requirements: instance families such as g4dn, g5, g6 on EC2"}
	case g.Karpenter:
		ch.Title = "let a NodePool take machines that the pod fits, or add one"
		ch.Commands = []string{"kubectl get nodepools -o yaml", "# then kubectl edit nodepool NAME: spec.template.spec.requirements (instance types, zones, capacity types)"}
	case g.Bar == scaling.Other && len(g.Groups) > 0:
		return []edit.Change{fromZero(c)}
	default:
		return []edit.Change{anyGroup(c)}
	}
	return []edit.Change{ch}
}

// loosenSpread is for the spread that Karpenter counts machines by which the pod may not have. A changed template has the
// pool's machines replaced.
func loosenSpread(c *edit.Workload) edit.Change {
	g := c.Growth()
	ch := Growing(diagnosis.AutoscalerCannotHelp, fmt.Sprintf("loosen the pod's spread over %s, or taint NodePool %s: Karpenter then does not count what it makes", g.Over, strings.Join(g.Counted, ", ")),
		c.EditByHand("topologySpreadConstraints: whenUnsatisfiable ScheduleAnyway"),
		"# or kubectl edit nodepool "+g.Counted[0]+"  # spec.template.spec.taints: one that the pod does not tolerate and its own do; Karpenter then replaces its machines one by one (drift)")
	ch.Risk, ch.StopsUnknown = diagnosis.MediumRisk, true
	return ch
}

// countGPUs is for Karpenter that counts no GPU of a pool's machines.
func countGPUs(c *edit.Workload) edit.Change {
	g := c.Growth()
	pool := g.Pools[0]
	if key, types := pool.PartGPUs(); key != "" {
		return Growing(diagnosis.AutoscalerCannotHelp, fmt.Sprintf("let NodePool %s take machines with whole GPUs, or tell Karpenter by a NodeOverlay how many %s %s offer", pool.Name, g.Lacks, strings.Join(types, " and ")),
			append([]string{"kubectl edit nodepool " + pool.Name + "  # " + key + ": such as g6 or g5 on EC2"}, overlay(c, g.Lacks)...)...)
	}
	return Growing(diagnosis.AutoscalerCannotHelp, fmt.Sprintf("tell Karpenter by a NodeOverlay how many %s machines of NodePool %s offer, if its provider does not count them: a later one may", g.Lacks, pool.Name),
		append(overlay(c, g.Lacks), "kubectl get deployments -A -o wide | grep -i karpenter  # the version of Karpenter's provider", "kubectl edit nodepool "+pool.Name+"  # or larger machines, if it counts them")...)
}

// anyGroup is for the autoscaler that does not say which of its groups is in question.
func anyGroup(c *edit.Workload) edit.Change {
	title := "let a node pool with such GPUs grow, or add one"
	if len(c.Asks) == 0 {
		title = "let a node pool grow whose machines the pod fits, or add one"
	}
	return Growing(diagnosis.AutoscalerCannotHelp, title, addGroup(c)...)
}

// fromZero is for the group without a machine, of which the autoscaler does not know what one would have.
func fromZero(c *edit.Workload) edit.Change {
	have, sees := "have such GPUs, or say in its template what they have", "what it has; newer versions know GPUs of a group at zero"
	if of := c.Growth().Selects; of != "" {
		have, sees = "are labelled "+of+", or say in its template that they are", "how it is labelled"
	}
	return Growing(diagnosis.AutoscalerCannotHelp, "scale node group "+c.Growth().Groups[0].Short()+" up by one machine by hand, if its machines "+have,
		byHand(c, "of a machine that is there the autoscaler sees "+sees)...)
}

// aboveCutoff is for the pod that the cluster autoscaler leaves alone for its priority.
func aboveCutoff(c *edit.Workload) edit.Change {
	return Growing(diagnosis.AutoscalerCannotHelp, "give the pod a priority of -10 or more, or lower the autoscaler's cutoff: below it no node is brought, and none kept for it",
		showFlags(c, "expendable-pods-priority-cutoff"), "kubectl get priorityclasses",
		c.EditByHand("priorityClassName: a class of -10 or more (the value of one cannot be changed)"))
}

// asked is how much of a resource one pod asks for.
func asked(c *edit.Workload, name string) string {
	q := c.Wants[corev1.ResourceName(name)]
	if q.IsZero() {
		return "1"
	}
	return q.String()
}

// overlay is what tells Karpenter of a resource that instance types do not speak of.
func overlay(c *edit.Workload, name string) []string {
	g := c.Growth()
	key, value, count := scaling.LabelPool, "POOL", asked(c, name)
	if len(g.Pools) > 0 {
		value = g.Pools[0].Name
	} else if all := c.Cluster.Outlook().Pools; len(all) == 1 {
		value = all[0].Name
	}
	if n := g.Shares; n != nil {
		count = fmt.Sprint(n.Allocatable(corev1.ResourceName(name)))
		if t := n.Labels[corev1.LabelInstanceTypeStable]; t != "" {
			key, value = corev1.LabelInstanceTypeStable, t
		}
	}
	return []string{edit.Feed("kubectl apply", fmt.Sprintf("{apiVersion: karpenter.sh/v1alpha1, kind: NodeOverlay, metadata: {name: %s}, spec: {requirements: [{key: %s, operator: In, values: [%s]}], capacity: {%s: %s}}}",
		strings.NewReplacer("/", "-", ".", "-").Replace(strings.ToLower(name)), key, value, name, count)) + "  # capacity: as many as a machine offers once it is laid out"}
}
