package outside

import (
	"cmp"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/scaling"
)

// Where the controller of an autoscaler runs, and what is asked of it there.

// ofStatus is the ConfigMap in which it writes of itself, unless it is told another name.
const ofStatus = "cluster-autoscaler-status"

// autoscaler is the Deployment of the cluster autoscaler; nil where a cloud runs it, or Deployments were not read.
func autoscaler(c *edit.Workload) *appsv1.Deployment {
	if all := scaling.ClusterAutoscalers(c.Cluster.State); len(all) > 0 {
		return all[0]
	}
	return nil
}

// statusAt is the namespace in which the cluster autoscaler writes of itself, as far as that is seen: that of its own.
func statusAt(c *edit.Workload) string {
	o := c.Cluster.Outlook()
	refs := []string{}
	if o.Status != nil {
		refs = append(refs, o.Status.Ref)
	}
	for i := range o.Failures {
		refs = append(refs, o.Failures[i].Ref)
	}
	for _, ref := range refs {
		if parts := strings.Split(ref, "/"); len(parts) == 3 {
			return parts[1]
		}
	}
	if d := autoscaler(c); d != nil {
		return d.Namespace
	}
	return "kube-system"
}

// showStatus is the command that shows what the cluster autoscaler writes of itself.
func showStatus(c *edit.Workload) string {
	return "kubectl -n " + statusAt(c) + " get configmap " + ofStatus + " -o yaml"
}

// showStatusEvents is the command that shows what it says of its groups.
func showStatusEvents(c *edit.Workload) string {
	return "kubectl -n " + statusAt(c) + " get events --field-selector involvedObject.name=" + ofStatus
}

// showFlags is the command that shows those of its flags that have such a part.
func showFlags(c *edit.Workload, part string) string {
	named := "-l app.kubernetes.io/name=cluster-autoscaler"
	if d := autoscaler(c); d != nil {
		return fmt.Sprintf("kubectl -n %s get deployment %s -o yaml | grep -- %s", d.Namespace, d.Name, part)
	}
	return fmt.Sprintf("kubectl -n %s get deployment %s -o yaml | grep -- %s", statusAt(c), named, part)
}

// startCommands look at the cluster autoscaler that has stopped writing of itself.
func startCommands(c *edit.Workload) []string {
	if d := autoscaler(c); d != nil {
		return []string{fmt.Sprintf("kubectl -n %s get deployment %s", d.Namespace, d.Name), fmt.Sprintf("kubectl -n %s describe deployment %s", d.Namespace, d.Name), fmt.Sprintf("kubectl -n %s logs deployment/%s --tail=50", d.Namespace, d.Name)}
	}
	at := "kubectl -n " + statusAt(c)
	return []string{at + " get deployments,pods -l app.kubernetes.io/name=cluster-autoscaler", at + " describe pods -l app.kubernetes.io/name=cluster-autoscaler"}
}

// readLog is for what the cluster autoscaler decides and says in its log alone.
func readLog(c *edit.Workload) edit.Change {
	log := "kubectl get pods -A | grep cluster-autoscaler  # then its log, where no cloud runs it"
	if d := autoscaler(c); d != nil {
		log = fmt.Sprintf("kubectl -n %s logs deployment/%s --tail=500 | grep -i -e expansion -e filter -e %s", d.Namespace, d.Name, c.Pod.Name)
	}
	return Growing(diagnosis.AutoscalerCannotHelp, "see in the cluster autoscaler's log why it left the node group out", log, showStatus(c), showStatusEvents(c))
}

// haveRun is for the autoscaler whose controller is there and does not run.
func haveRun(c *edit.Workload) edit.Change {
	down := c.Growth().Down
	at := "kubectl -n " + down.Namespace
	ch := Growing(diagnosis.AutoscalerCannotHelp, "have "+down.Ref()+" run, which brings nodes")
	switch {
	case down.Stopped:
		ch.Title = "scale " + down.Ref() + " up from 0 replicas: it brings nodes"
		ch.Commands = []string{at + " scale deployment " + down.Name + " --replicas=1"}
	case down.Pod == nil:
		ch.Title += ": it has no pod"
		ch.Commands = []string{at + " describe deployment " + down.Name, at + " get events --field-selector involvedObject.kind=ReplicaSet  # why no pod of it is made"}
	default:
		if down.Crashes {
			ch.Title += ": container " + down.Container + " ends again and again"
			ch.Commands = append(ch.Commands, fmt.Sprintf("%s logs %s -c %s --previous --tail=50  # what it ended with", at, down.Pod.Name, down.Container))
		}
		ch.Commands = append(ch.Commands, at+" describe pod "+down.Pod.Name)
	}
	ch.Commands = append(ch.Commands, fmt.Sprintf("kubectl -n %s get pod %s -w", c.Pod.Namespace, cmp.Or(c.Pod.Name, "POD")))
	return ch
}
