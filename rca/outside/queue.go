package outside

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/queues"
	"github.com/unpend/unpend/rca/queues/full"
	"github.com/unpend/unpend/rca/view"
)

// LetInByQueue is for the pod whose queue does not admit it: what it waits for, or who has to
// agree.
func LetInByQueue(c *edit.Workload) []edit.Change {
	if x := c.Queue.Beyond(); x != nil {
		return []edit.Change{{Kind: diagnosis.Manual, Cause: diagnosis.QueueNotAdmitted, Manual: true, Risk: diagnosis.MediumRisk, Untestable: "volcano decides by its own rules, which are not run here",
			Title:    fmt.Sprintf("let Queue %s hold %s %s, ask for no more than %s at once, or name another queue", x.Queue, x.Asks.String(), x.Resource, x.Holds.String()),
			Commands: []string{"kubectl get queues.scheduling.volcano.sh -o yaml  # spec.capability", "kubectl edit queues.scheduling.volcano.sh " + x.Queue}}}
	}
	if u := c.Queue.WhyUngrouped(); u != nil {
		return []edit.Change{group(c, u)}
	}
	if b := queues.Behind(c.Queue); b != nil {
		return []edit.Change{leaveAlone(c, b)}
	}
	w := c.Queue.Queued()
	if lacks, _ := c.Queue.GroupLacks(); w == nil && lacks != "" {
		const label = "kueue.x-k8s.io/pod-group-name"
		group := c.Pod.Labels[label]
		return []edit.Change{queueChange(diagnosis.Wait, diagnosis.NoRisk, "all pods of its group exist", "wait until all pods of group "+group+" exist, or make them",
			fmt.Sprintf("kubectl -n %s get pods -l %s=%s", c.Pod.Namespace, label, group))}
	}
	if _, lacks := c.Queue.NoWorkload(); lacks {
		return []edit.Change{queue(c)}
	}
	if w == nil && c.Cluster.State.Unread["Workload.kueue.x-k8s.io"] != "" {
		return []edit.Change{queueChange(diagnosis.Manual, diagnosis.NoRisk, "Kueue admits it", "see whether Kueue has made a Workload for "+c.WorkloadName()+", and what that lacks: none was read", "kubectl -n "+c.Pod.Namespace+" get workloads.kueue.x-k8s.io -o wide",
			managersLog(c, "1h", c.Incident.Workload.Name)+"  # where there is none: why it has made none")}
	}
	if w == nil {
		return []edit.Change{queueChange(diagnosis.Wait, diagnosis.NoRisk, "Kueue admits it", "wait until its queue admits it", "kubectl -n "+c.Pod.Namespace+" get workloads.kueue.x-k8s.io")}
	}
	look := fmt.Sprintf("kubectl -n %s describe workloads.kueue.x-k8s.io %s", w.GetNamespace(), w.GetName())
	if changes := beyondQuota(c, w, look); changes != nil {
		return changes
	}
	why, _ := queues.Why(w)
	again := fmt.Sprintf("kubectl -n %s delete workloads.kueue.x-k8s.io %s  # Kueue makes it again; its place in the queue is that of a new one", w.GetNamespace(), w.GetName())
	if !c.Queue.Forgotten(w).IsZero() {
		return []edit.Change{queueChange(diagnosis.Manual, diagnosis.LowRisk, "Kueue has tried it again", "have Kueue try its admission checks again", look, again)}
	}
	if c.Queue.SecondPass(w) != "" {
		return []edit.Change{queueChange(diagnosis.Manual, diagnosis.LowRisk, "Kueue has placed it again", "have Kueue place it again from the beginning", look,
			managersLog(c, "10m", w.GetName()), again)}
	}
	if request, _ := c.Queue.Unprovided(w); request != "" {
		return nil // what is offered beside
	}
	if checks := append(queues.Unchecked(w), queues.Refused(w)...); len(checks) > 0 {
		commands := []string{look, "kubectl describe admissionchecks.kueue.x-k8s.io " + checks[0].Name, fmt.Sprintf("kubectl -n %s get provisioningrequests.autoscaling.x-k8s.io", w.GetNamespace())}
		if checks[0].State == "Rejected" {
			return []edit.Change{queueChange(diagnosis.Manual, diagnosis.NoRisk, "its check agrees", "see why admission check "+checks[0].Name+" has rejected it", commands...)}
		}
		return []edit.Change{queueChange(diagnosis.Wait, diagnosis.NoRisk, "its check agrees", "wait until admission check "+checks[0].Name+" agrees", commands...)}
	}
	if h := c.Queue.Ahead(w); h != nil {
		return []edit.Change{passOver(h), queueChange(diagnosis.Wait, diagnosis.NoRisk, h.Ref()+" is admitted, or leaves the queue", "wait until "+h.Ref()+" is admitted", look)}
	}
	if h := queues.Keeps(c.Queue, w); h != nil {
		return []edit.Change{queueChange(diagnosis.Wait, diagnosis.NoRisk, h.Ref()+" is admitted, or leaves the queue", "wait until "+h.Ref()+" is admitted", look), passOver(h)}
	}
	if t := c.Queue.Intolerant(w); t != nil && t.Alone && !patched(c, t) {
		return []edit.Change{tolerateFlavor(c, t, look)}
	}
	raise := raiseQuota(c, w, look)
	crowded := leaveDomain(c, why, look)
	switch {
	case strings.Contains(why, "unavailable in ClusterQueue"): // no flavor has it, so no end of others helps (flavorassigner.go)
		if u := queues.NotCovered(c.Queue, w); u != nil {
			return []edit.Change{cover(u, look)}
		}
		return []edit.Change{queueChange(diagnosis.Manual, diagnosis.NoRisk, "its ClusterQueue covers what it asks", "have its ClusterQueue cover what it asks, or ask without it", look, "kubectl get clusterqueues.kueue.x-k8s.io -o yaml  # spec.resourceGroups[].coveredResources")}
	case strings.Contains(why, "maximum capacity"): // nobody who ends leaves enough (flavorassigner.go)
		return []edit.Change{raise}
	case len(c.Queue.Kept(w)) > 0:
		return []edit.Change{giveBack(c.Queue.Kept(w)), queueChange(diagnosis.Wait, diagnosis.NoRisk, "Kueue admits it", "wait until its queue admits it", look)}
	case crowded != nil:
		return []edit.Change{*crowded}
	case strings.Contains(why, "insufficient") && !c.Queue.QuotaOf(w).Outdated():
		out := []edit.Change{queueChange(diagnosis.Wait, diagnosis.NoRisk, "Kueue admits it", "wait until its queue admits it", look), raise}
		if ch := mayPreempt(c, w); ch != nil {
			out = append(out, *ch)
		}
		return out
	case queues.Unlooked(w, c.Cluster.State.Now):
		ns, manager := queues.Manager(c.Cluster)
		return []edit.Change{queueChange(diagnosis.Manual, diagnosis.LowRisk, "Kueue has looked at it", "see why Kueue has not looked at it: its manager's log, and who stands in front of it in the queue", look,
			managersLog(c, "1h", w.GetName()), "kubectl get workloads.kueue.x-k8s.io -A --sort-by=.metadata.creationTimestamp  # one that is tried again and again keeps the others of its queue waiting: set it aside",
			fmt.Sprintf("kubectl -n %s rollout restart deploy/%s  # its own pod alone is made again, and queues all afresh; a later release may mend it", ns, manager))}
	}
	return []edit.Change{queueChange(diagnosis.Wait, diagnosis.NoRisk, "Kueue admits it", "wait until its queue admits it", look)}
}

// raiseQuota is for the Workload that its ClusterQueue has too little quota for.
func raiseQuota(c *edit.Workload, w *unstructured.Unstructured, look string) edit.Change {
	raise := queueChange(diagnosis.RaiseQuota, diagnosis.MediumRisk, "its ClusterQueue has the quota", "raise the quota of its ClusterQueue", look, "kubectl get clusterqueues.kueue.x-k8s.io", "# then kubectl edit clusterqueue.kueue.x-k8s.io NAME: nominalQuota or borrowingLimit")
	if q := c.Queue.ClusterQueue(w); q != nil {
		raise.Title = "raise the quota of ClusterQueue " + q.GetName()
		raise.Commands = []string{look, "kubectl edit clusterqueues.kueue.x-k8s.io " + q.GetName() + "  # nominalQuota or borrowingLimit"}
		if least := full.ByHowMuch(c.Queue, w); least != "" {
			raise.Title += " " + least
			raise.Commands[1] = "kubectl edit clusterqueues.kueue.x-k8s.io " + q.GetName() + "  # nominalQuota " + least
		}
	}
	raise.Minutes = 1
	raise.NeedlessOn = func(n *view.Node) bool { return c.Queue.QuotaOf(w).Spare(n) }
	raise.Instead = func(pod *corev1.Pod) *edit.Change {
		if !full.CouldTake(w, view.PodRequests(pod)) {
			return nil
		}
		wait := queueChange(diagnosis.Wait, diagnosis.NoRisk, "Kueue admits it", "wait until its queue admits it", look)
		return &wait
	}
	return raise
}

// AskForMachinesAgain is for the Workload whose ProvisioningRequest has ended without machines:
// nobody who waits gets further by it, and Kueue asks by another for a Workload made again.
func AskForMachinesAgain(c *edit.Workload) []edit.Change {
	w := c.Queue.Queued()
	if lacks, _ := c.Queue.GroupLacks(); w == nil && lacks != "" {
		const label = "kueue.x-k8s.io/pod-group-name"
		group := c.Pod.Labels[label]
		return []edit.Change{queueChange(diagnosis.Wait, diagnosis.NoRisk, "all pods of its group exist", "wait until all pods of group "+group+" exist, or make them",
			fmt.Sprintf("kubectl -n %s get pods -l %s=%s", c.Pod.Namespace, label, group))}
	}
	if w == nil {
		return nil
	}
	request, says := c.Queue.Unprovided(w)
	if request == "" {
		return nil
	}
	const until, again = "a ProvisioningRequest of its Workload is Provisioned", ", and have Kueue ask for machines again"
	if name := deviceIn(c, says); name != "" {
		return []edit.Change{queueChange(diagnosis.Manual, diagnosis.MediumRisk, until, "ask without "+name+", which by ProvisioningRequest "+request+" no machine that it may have offers"+again,
			fmt.Sprintf("kubectl -n %s describe provisioningrequests.autoscaling.x-k8s.io %s", w.GetNamespace(), request),
			c.EditByHand("requests and limits without "+name+"; Kueue then asks again"))}
	}
	if one := oneSet(c, w, request, says); one != nil {
		return []edit.Change{*one}
	}
	if name := madeWithPod(c); name != "" {
		return []edit.Change{queueChange(diagnosis.Manual, diagnosis.MediumRisk, until, "have volume "+name+" of another kind (a claim that exists, or emptyDir): its claim is made with the pod, and ProvisioningRequest "+request+" asks for one that is not there"+again,
			fmt.Sprintf("kubectl -n %s describe provisioningrequests.autoscaling.x-k8s.io %s", w.GetNamespace(), request),
			c.EditByHand("volume "+name+" other than by ephemeral.volumeClaimTemplate; Kueue then asks again"))}
	}
	return []edit.Change{queueChange(diagnosis.Manual, diagnosis.LowRisk, until, "mend what ProvisioningRequest "+request+" says"+again,
		fmt.Sprintf("kubectl -n %s describe provisioningrequests.autoscaling.x-k8s.io %s", w.GetNamespace(), request),
		"kubectl get provisioningrequestconfigs.kueue.x-k8s.io,resourceflavors.kueue.x-k8s.io -o yaml  # the class that is asked, and the labels, taints and tolerations of the flavor",
		fmt.Sprintf("kubectl -n %s delete workloads.kueue.x-k8s.io %s  # Kueue makes it again; its place in the queue is that of a new one", w.GetNamespace(), w.GetName()))}
}

// insufficient is how the scheduler's filters name what a template has too little of.
var insufficient = regexp.MustCompile(`Insufficient ([a-z0-9.-]+/[A-Za-z0-9._-]+)`)

// deviceIn is what the pod asks for beside its GPUs and a ProvisioningRequest says is not to be had:
// what software makes on a node is in no template of the autoscaler. Empty for none.
func deviceIn(c *edit.Workload, says string) string {
	m := insufficient.FindStringSubmatch(says)
	if m == nil || slices.ContainsFunc(c.Asks, func(a view.Ask) bool { return string(a.Resource) == m[1] }) {
		return ""
	}
	if _, asked := c.Wants[corev1.ResourceName(m[1])]; !asked {
		return ""
	}
	return m[1]
}

// madeWithPod is a volume of the pod whose claim is made for it once it exists (a generic ephemeral volume):
// for the pods of a ProvisioningRequest, which do not, the scheduler's filters find no claim
// (plugins/volumebinding; kueue issue 2389, autoscaler issue 7321). Empty for none.
func madeWithPod(c *edit.Workload) string {
	for _, v := range c.Pod.Spec.Volumes {
		if v.Ephemeral != nil {
			return v.Name
		}
	}
	return ""
}

func queueChange(kind diagnosis.FixKind, risk diagnosis.Risk, until, title string, commands ...string) edit.Change {
	return edit.Change{Kind: kind, Manual: true, Risk: risk, Until: until, Title: title, Commands: commands}
}

// giveBack is for quota that Kueue has not given back with the eviction of who held it
// (kueue issue 14811), of a Workload that is not active it lets all go; or that is held for what is gone.
func giveBack(all []queues.Holder) edit.Change {
	h := all[0]
	w := h.Workload
	ch := queueChange(diagnosis.Manual, diagnosis.LowRisk, "Kueue gives that quota back", "have Kueue give back the quota of "+h.Ref()+", which it has evicted",
		fmt.Sprintf("kubectl -n %s get workloads.kueue.x-k8s.io %s -o yaml  # Evicted=True, and status.admission is still there", w.GetNamespace(), w.GetName()),
		fmt.Sprintf(`kubectl -n %s patch workloads.kueue.x-k8s.io %s --type merge -p '{"spec":{"active":false}}'  # active: true queues it again`, w.GetNamespace(), w.GetName()))
	if h.Orphan != "" {
		ch.Title, ch.Commands = fmt.Sprintf("delete Workload %s, which holds quota for a %s that is gone", w.GetName(), h.Orphan), nil
		if n := len(all) - 1; n > 0 {
			ch.Title = fmt.Sprintf("delete Workload %s and %d more, which hold quota for what is gone", w.GetName(), n)
		}
		for _, h := range all {
			ch.Commands = append(ch.Commands, fmt.Sprintf("kubectl -n %s delete workloads.kueue.x-k8s.io %s  # once no %s has the uid in its label kueue.x-k8s.io/job-uid", h.Workload.GetNamespace(), h.Workload.GetName(), h.Orphan))
		}
	}
	ch.Minutes = 1
	return ch
}
