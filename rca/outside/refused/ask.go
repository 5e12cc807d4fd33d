package refused

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/outside"
	"github.com/unpend/unpend/rca/queues"
	"github.com/unpend/unpend/rca/queues/full"
	"github.com/unpend/unpend/watcher/incident"
)

// Ask is for the pod that another scheduler refuses: where its rule is seen, and
// what of the request its words are about.
func Ask(c *edit.Workload) []edit.Change {
	w, told := c.Queue.Refused()
	if !told {
		return nil
	}
	by := c.Queue.SchedulerName()
	if a := c.Queue.Assumed(); a != nil {
		return []edit.Change{unassume(by, a)}
	}
	look := outside.LookAtWaiting(c, "describe")
	logs := "kubectl get pods -A -o wide | grep -i " + by + "  # then its log"
	ch := edit.Change{Kind: diagnosis.Manual, Cause: diagnosis.SchedulerRefused, Manual: true, Risk: diagnosis.NoRisk, Untestable: by + " decides by its own rules, which are not run here",
		Title: "see by which rule " + by + " refuses it", Commands: []string{look, logs}}
	out := []edit.Change{ch}
	for _, p := range c.Queue.Named(w) { // what it waits for
		out[0].Commands = append([]string{fmt.Sprintf("kubectl -n %s describe pod %s", p.Namespace, p.Name), fmt.Sprintf("kubectl -n %s logs %s --all-containers --previous", p.Namespace, p.Name)}, out[0].Commands...)
		ofWaitedFor(c, by, p, &out[0])
	}
	if clear := unplaced(c, by, w); clear != nil {
		return []edit.Change{*clear}
	}
	for _, first := range []*edit.Change{c.LetBeBound(diagnosis.SchedulerRefused, w.Message()), tryAgain(c, by, w)} {
		if first != nil {
			return []edit.Change{*first, ch}
		}
	}
	if w.OfReports() {
		if agent := haveAgent(c, by); agent != nil {
			return []edit.Change{*agent, ch}
		}
	}
	if off := sayMIGIsOff(c, by, look, logs); w.OfMIGStrategy() && off != nil {
		return []edit.Change{*off}
	}
	if k := queues.TooManyCards(c.Queue); k != nil && !w.OfQueue() && !w.OfCluster() {
		return []edit.Change{askFewerCards(c, k, look)}
	}
	if place := havePlace(c, by, w, look); place != nil {
		return place
	}
	if w.OfRoom() {
		preempt(c, &out[0])
	}
	switch {
	case w.OfTimeout():
		out = []edit.Change{submitAgain(c, by), askLess(c, "ask for less, or for fewer members of the gang")}
	case w.OfMemory() && unlabelled(c) != "":
		out[0].Title = "say how much memory the GPUs of " + unlabelled(c) + " have: label nvidia.com/gpu.memory, in MiB"
		out[0].Commands = []string{"kubectl get nodes -L nvidia.com/gpu.memory,nvidia.com/gpu.product", "kubectl label node " + unlabelled(c) + " nvidia.com/gpu.memory=MIB  # GPU feature discovery writes it where it can tell", look}
	case w.OfPlaces():
		out = append(outside.GrowOther(c, diagnosis.SchedulerRefused), c.MorePlaces(diagnosis.SchedulerRefused, by), ch)
	case w.OfCard():
		out[0].Title = "see what " + by + " has given out of each card"
		out[0].Commands = append([]string{look}, append(listCards(c), logs)...)
		memory, cores := "nvidia.com/gpumem", "nvidia.com/gpucores"
		if by == "volcano" {
			memory, cores = "volcano.sh/vgpu-memory", "volcano.sh/vgpu-cores"
		}
		out = append(out, askLess(c, "ask for a smaller share: less "+memory+" or "+cores+" (none asked is all of the card), or fewer cards"))
		out = append(outside.GrowOther(c, diagnosis.SchedulerRefused), out...) // no autoscaler reckons by its books
	case w.OfCluster():
		out = forAll(c, by, ch)
	case full.Of(c.Queue) != nil:
		out = holdMore(c, full.Of(c.Queue), ch)
	case w.OfQueue():
		out[0].Title = "let its queue of " + by + " have more, or see who uses what it may have"
		out[0].Commands = append([]string{look}, outside.QueueCommands(c)...)
		if all := c.Queue.Counted(); len(all) > 0 {
			uncount(&out[0], &all[0])
		}
		if q := queues.OfYuniKorn(c.Queue); q != "" {
			out[0].Title = "let queue " + q + " of " + by + " have more, or see who uses what it may have"
		}
		out = append(out, askLess(c, "ask for less than its queue may have"))
	}
	return out
}

// holdMore is for the queue that has given out, by its own figures, what the pod would need of it.
func holdMore(c *edit.Workload, q *full.Queue, ch edit.Change) []edit.Change {
	ch.Title = fmt.Sprintf("let Queue %s hold more than %s %s", q.Name, q.May.String(), q.Resource)
	if who := q.Who(); who != "" {
		ch.Title += ", or wait for " + who
	}
	ch.Commands = append([]string{fmt.Sprintf(`kubectl patch queues.scheduling.volcano.sh %s --type merge -p '{"spec":{"capability":{"%s":"%s"}}}'  # the least by which one more fits`, q.Name, q.Resource, q.Enough())}, outside.QueueCommands(c)...)
	if q.Left() == "0" {
		return []edit.Change{ch} // then no smaller request fits
	}
	return []edit.Change{ch, askLess(c, fmt.Sprintf("ask for no more than the %s %s that Queue %s has left", q.Left(), q.Resource, q.Name))}
}

// submitAgain is for the gang that its scheduler has given up: another application is another gang.
func submitAgain(c *edit.Workload, by string) edit.Change {
	ch := edit.LookAt(diagnosis.SchedulerRefused, fmt.Sprintf("make %s again once nodes have room for all of its gang at once, or have it begin with a part (gangSchedulingStyle=Soft): its application is over for %s", c.WorkloadName(), by), by+" decides by its own rules, which are not run here",
		"kubectl get nodes -o custom-columns=NAME:.metadata.name,HAS:.status.allocatable  # and what is free of it: kubectl describe nodes",
		c.Replace("write annotation yunikorn.apache.org/schedulingPolicyParameters: gangSchedulingStyle=Soft, or a longer placeholderTimeoutInSeconds")+": all its pods are made again, under another application id")
	ch.Risk, ch.StopsUnknown = diagnosis.MediumRisk, true
	return ch
}

// uncount has a group give back what it counts as using without a pod that runs, if it is none that will.
func uncount(ch *edit.Change, k *queues.Counted) {
	g := k.Group
	ch.Title = fmt.Sprintf("see whether %s can run at all, and shrink or take it away if not: it counts as using %s %s of queue %s, and has not begun", k.Ref(), k.Asks.String(), k.Resource, k.Queue)
	commands := []string{fmt.Sprintf("kubectl -n %s describe podgroups.scheduling.volcano.sh %s", g.GetNamespace(), g.GetName())}
	if of := metav1.GetControllerOf(g); of != nil {
		commands = append(commands, fmt.Sprintf("kubectl -n %s delete %s %s  # its owner, if nobody needs it as it is", g.GetNamespace(), strings.ToLower(incident.OwnerKind(of)), of.Name))
	}
	ch.Commands = append(commands, ch.Commands...)
}

// unassume is for the group whose members its scheduler counts on nodes while they wait for others: a time
// after which it lets go of them, or none of them.
func unassume(by string, a *queues.Assumer) edit.Change {
	return edit.LookAt(diagnosis.SchedulerRefused, fmt.Sprintf("have %s let go of what it keeps for %s: a time to schedule within, or the group made again once all of it fits", by, a.Ref()), by+" decides by its own rules, which are not run here",
		fmt.Sprintf("kubectl -n %s get podgroups.scheduling.x-k8s.io %s -o yaml  # spec.minMember, spec.scheduleTimeoutSeconds", a.Namespace, a.Name),
		fmt.Sprintf(`kubectl -n %s patch podgroups.scheduling.x-k8s.io %s --type merge -p '{"spec":{"scheduleTimeoutSeconds":60}}'  # how long its members are kept room`, a.Namespace, a.Name),
		"kubectl get pods -A -o wide | grep -i "+by+"  # then its log: which pods wait at permit")
}

// unlabelled is the first node with GPUs of which no label says how much memory they have;
// empty where all say it.
func unlabelled(c *edit.Workload) string {
	for _, n := range c.Cluster.SortedNodes() {
		if n.HasGPUs() && n.Labels["nvidia.com/gpu.memory"] == "" {
			return n.Name
		}
	}
	return ""
}

func askLess(c *edit.Workload, title string) edit.Change {
	return edit.Change{Kind: diagnosis.ChangeRequest, Cause: diagnosis.SchedulerRefused, Manual: true, Risk: diagnosis.MediumRisk, Title: title + ", in " + c.WorkloadName(), Untestable: c.Queue.SchedulerName() + " decides by its own rules, which are not run here",
		Drained: c.Cluster.Running(c.Incident.Workload), StopsUnknown: true, // another template: its controller makes its pods again
		Commands: []string{c.EditByHand("ask for less")}}
}
