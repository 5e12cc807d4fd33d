package changes

import (
	"fmt"

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

// waitGone is for pods that are being deleted.
func waitGone(cause diagnosis.CauseID, leaving []*corev1.Pod) edit.Change {
	return edit.Change{Kind: diagnosis.Wait, Cause: cause, Victims: leaving, Manual: true, Risk: diagnosis.NoRisk, Minutes: 1, Until: view.PodList(leaving) + " is gone",
		Title:    "wait until " + view.PodList(leaving) + " is gone",
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
