package changes

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/view"
)

func (c *Bench) waitForPreempted() []edit.Change {
	leaving := c.Preempted()
	if p := c.Overdue(); p != nil {
		return []edit.Change{endOverdue(diagnosis.PreemptionBlocked, p)}
	}
	return []edit.Change{waitGone("", leaving)}
}

// leaving is to wait for pods that are being deleted on the node, where what they have is enough;
// with those whose time was over long ago somebody has to see to it.
func leaving(c *Bench, n *view.Node, cause diagnosis.CauseID, lack view.Deficits) (edit.Change, bool) {
	now := c.Cluster.State.Now
	goes := func(p *corev1.Pod) bool { return p.DeletionTimestamp != nil }
	soon := func(p *corev1.Pod) bool { return view.Leaves(p, now) }
	switch {
	case enough(n, lack, soon):
		return waitGone(cause, gives(n, lack, soon)), true
	case !enough(n, lack, goes):
		return edit.Change{}, false
	}
	all := gives(n, lack, goes)
	late := slices.DeleteFunc(slices.Clone(all), soon)
	ch := endOverdue(cause, late[0])
	if len(late) > 1 {
		ch.Title = fmt.Sprintf("see why %s do not end on %s, whose time was over long ago", view.PodList(late), n.Name)
	}
	for _, p := range late[1:] {
		ch.Commands = append(ch.Commands, endOverdue(cause, p).Commands...)
	}
	ch.Kind, ch.Untestable, ch.Victims, ch.Until = diagnosis.Wait, "", all, view.Gone(all)
	return ch, true
}

// gives are such pods of the node that have some of what lacks.
func gives(n *view.Node, lack view.Deficits, such func(*corev1.Pod) bool) []*corev1.Pod {
	var out []*corev1.Pod
	for _, p := range n.Pods {
		if such(p) && slices.ContainsFunc(lack.Names(), func(name corev1.ResourceName) bool { return n.Contribution(p, name) > 0 }) {
			out = append(out, p)
		}
	}
	return out
}

// waitGone is for pods that are being deleted.
func waitGone(cause diagnosis.CauseID, leaving []*corev1.Pod) edit.Change {
	gone := view.Gone(leaving)
	return edit.Change{Kind: diagnosis.Wait, Cause: cause, Victims: leaving, Manual: true, Risk: diagnosis.NoRisk, Minutes: 1, Until: gone, Title: "wait until " + gone,
		Commands: []string{fmt.Sprintf("kubectl -n %s get pod %s -w", leaving[0].Namespace, leaving[0].Name)}}
}

// endOverdue is for the pod that its kubelet should have ended long ago: nobody takes its place meanwhile, and to wait
// does not help. To take it out of the API while something of it runs gives away twice what it has.
func endOverdue(cause diagnosis.CauseID, p *corev1.Pod) edit.Change {
	at, node := fmt.Sprintf("kubectl -n %s ", p.Namespace), p.Spec.NodeName
	ch := edit.LookAt(cause, fmt.Sprintf("see why %s/%s does not end on %s, whose time was over at %s UTC", p.Namespace, p.Name, node, p.DeletionTimestamp.UTC().Format("15:04:05")), "what of a pod still runs on its node is in no object",
		at+"describe pod "+p.Name+"  # its last events (FailedKillPod)",
		at+"get pod "+p.Name+" -o jsonpath='{.metadata.finalizers}'  # who set them has to take them off",
		"kubectl get node "+node+"  # a kubelet that is away ends nothing",
		fmt.Sprintf("kubectl debug node/%s -it --image=busybox --profile=sysadmin -- chroot /host sh -c 'crictl pods --name %s; nvidia-smi'  # a process that hangs in the driver ends with a reboot", node, p.Name),
		at+"delete pod "+p.Name+" --grace-period=0 --force  # only once nothing of it runs there: else what it has is given away twice")
	ch.Risk, ch.Minutes = diagnosis.MediumRisk, 10
	return ch
}
