package claims

import (
	"fmt"
	"strings"

	"github.com/unpend/unpend/rca/devices"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/view"
)

// giveBack frees what claims hold for pods that are gone. That is the work of Kubernetes'
// own controller, so it is looked at first; and a pod that was deleted by force can still run
// on its node, where freeing its devices would have two use one.
func giveBack(n *view.Node, orphans []devices.Orphan) edit.Change {
	var names, commands []string
	commands = append(commands, "kubectl -n kube-system get pods -l component=kube-controller-manager  # its resource claim controller frees such claims, once it runs and minds them")
	for _, o := range orphans {
		names = append(names, o.Claim.Namespace+"/"+o.Claim.Name)
		for _, g := range o.Gone {
			commands = append(commands, fmt.Sprintf("kubectl debug node/%s -it --image=busybox --profile=sysadmin -- chroot /host crictl pods --namespace %s --name %s  # none may be Ready: a pod deleted by force can run on", n.Name, g.Namespace, g.Name))
		}
		commands = append(commands, fmt.Sprintf(`kubectl -n %s patch resourceclaim %s --subresource=status --type=merge -p '{"status":{"reservedFor":null,"allocation":null}}'`, o.Claim.Namespace, o.Claim.Name))
		if o.Claim.DeletionTimestamp != nil && len(o.Claim.Finalizers) > 0 {
			commands = append(commands, fmt.Sprintf(`kubectl -n %s patch resourceclaim %s --type=merge -p '{"metadata":{"finalizers":null}}'`, o.Claim.Namespace, o.Claim.Name))
		}
	}
	title := fmt.Sprintf("free ResourceClaim %s, whose pod is gone", names[0])
	if len(orphans) > 1 {
		title = fmt.Sprintf("free %d ResourceClaims whose pods are gone: %s", len(orphans), strings.Join(names[:min(len(names), 3)], ", "))
		if len(orphans) > 3 {
			title += fmt.Sprintf(" and %d more", len(orphans)-3)
		}
	}
	ch := edit.LookAt(diagnosis.DRADevicesInUse, title, "whether a container of theirs still uses the devices only the node tells", commands...)
	ch.Risk, ch.Minutes = diagnosis.MediumRisk, 5
	return ch
}
