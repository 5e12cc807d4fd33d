package edit

import (
	"fmt"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
	"github.com/unpend/unpend/watcher/incident"
)

// EditTemplate fills in how the pod spec of the workload is changed: by a patch
// of the template where it may change, of the waiting pods where the API allows
// that (live) and all of them are named, else by recreating the workload.
func (c *Workload) EditTemplate(ch *Change, spec map[string]any, live bool) {
	ch.template, ch.live = spec, live
	w := c.Incident.Workload
	resource := c.WorkloadName()
	defer func() {
		for i := range ch.Actions {
			ch.Actions[i].Stops = view.StopTargets(c.Cluster.State, ch.Actions[i])
		}
	}()
	owner, known := c.Cluster.State.Owner(w.Kind, w.Namespace, w.Name)
	template := diagnosis.MustJSON(map[string]any{"spec": map[string]any{"template": map[string]any{"spec": spec}}})
	switch {
	case w.Kind == "Deployment" || w.Kind == "StatefulSet" || w.Kind == "ReplicaSet" || w.Kind == "DaemonSet":
		ch.Commands = append(ch.Commands, fmt.Sprintf("kubectl -n %s patch %s --type=strategic -p '%s'", w.Namespace, resource, template))
		if !known {
			ch.Manual = true
			return
		}
		c.roll(ch, owner)
		ch.Steps = append(ch.Steps, "patch the template of "+resource)
		ch.Actions = append(ch.Actions, diagnosis.Action{Verb: diagnosis.VerbPatch, Target: diagnosis.Target{Kind: w.Kind, Namespace: w.Namespace, Name: w.Name, UID: string(owner.GetUID())}, Patch: template})
	case live && len(c.WaitingPods()) > 0 && (w.Kind == "Pod" || (w.Kind == "Job" || grouped(w)) && c.Incident.Waiting <= len(c.Incident.Pods)):
		patch := diagnosis.MustJSON(map[string]any{"spec": spec})
		for _, p := range c.WaitingPods() {
			ch.Commands = append(ch.Commands, fmt.Sprintf("kubectl -n %s patch pod/%s --type=strategic -p '%s'", p.Namespace, p.Name, patch))
			ch.Steps = append(ch.Steps, "patch pod/"+p.Name)
			ch.Actions = append(ch.Actions, diagnosis.Action{Verb: diagnosis.VerbPatch, Target: view.PodTarget(p), Patch: diagnosis.MustJSON(map[string]any{"spec": livePatch(p, spec)})})
		}
	case w.Kind == "Job" && known:
		c.roll(ch, owner)
		if n := len(ch.Rolling.Running); n > 0 {
			ch.Commands = append(ch.Commands, fmt.Sprintf("# to keep %s: leave %s as it is, and make a second Job for the rest, with the change", view.CountOf(n, "running pod"), resource))
		}
		c.MakeAgain(ch, owner, resource, spec)
		ch.Steps = append(ch.Steps, "recreate "+resource+" (its template cannot change)")
		ch.Actions = append(ch.Actions, diagnosis.Action{Verb: diagnosis.VerbRecreate, Target: diagnosis.Target{Kind: w.Kind, Namespace: w.Namespace, Name: w.Name, UID: string(owner.GetUID())}, Patch: template})
	case w.Kind == "Pod" && spawner(c.Pod) != "":
		ch.Manual, ch.Commands = true, append(ch.Commands, fmt.Sprintf("# %s made this pod, and would make the next one like it: change %s in its own configuration, then have it start again there", spawner(c.Pod), diagnosis.MustJSON(spec)))
	case w.Kind == "Pod":
		c.MakeAgain(ch, c.Pod, resource, spec)
		ch.Steps = append(ch.Steps, "recreate "+resource)
		ch.Actions = append(ch.Actions, diagnosis.Action{Verb: diagnosis.VerbRecreate, Target: view.PodTarget(c.Pod), Patch: diagnosis.MustJSON(map[string]any{"spec": spec})})
	case grouped(w):
		ch.Manual, ch.StopsUnknown = true, len(c.RunningPods()) > 0
		ch.Commands = append(ch.Commands, c.EditByHand(string(diagnosis.MustJSON(spec))))
	default:
		ch.Manual = true
		if known && places[w.Kind].Once { // all of it stops, and is made again
			ch.Drained = append(ch.Drained, c.RunningPods()...)
			c.MakeAgain(ch, owner, resource, spec)
		} else {
			ch.StopsUnknown = len(c.RunningPods()) > 0
			ch.Commands = append(ch.Commands, c.EditByHand("change "+c.written(spec)))
		}
		if _, tolerates := spec["tolerations"]; !live || !tolerates {
			return
		}
		for _, p := range c.WaitingPods() { // who owns it may not make it again for that
			ch.Commands = append(ch.Commands, fmt.Sprintf("kubectl -n %s patch pod/%s --type=strategic -p '%s'  # the pod that waits takes it as it is", p.Namespace, p.Name, diagnosis.MustJSON(map[string]any{"spec": livePatch(p, spec)})))
		}
	}
}

// spawner is the program that made a pod without owning it, by its labels; empty for none that is
// known. It takes the end of such a pod for the end of the work, and makes the next one as this was.
func spawner(p *corev1.Pod) string {
	switch l := p.Labels; {
	case l["app.kubernetes.io/managed-by"] == "kubespawner", l["component"] == "singleuser-server" && l["hub.jupyter.org/username"] != "":
		return "JupyterHub" // kubespawner/spawner.py, common_labels
	case l["kubernetes_pod_operator"] == "True", l["kubernetes_executor"] == "True":
		return "Airflow" // providers/cncf/kubernetes, operators/pod.py and pod_generator.py
	}
	return ""
}

// MakeAgain adds how a person makes a Job or a bare pod again. What Kueue has admitted holds
// the selectors and tolerations of its flavor: made again from that spec it would keep them in
// another flavor, so its owner makes it from what was written first.
func (c *Workload) MakeAgain(ch *Change, o metav1.Object, resource string, spec map[string]any) {
	change := c.standing(string(diagnosis.MustJSON(spec)))
	if queue, admitted := view.AdmittedBy(o, c.Cluster.State.QueuedWorkloads); admitted {
		ch.Manual = true
		ch.Commands = append(ch.Commands, fmt.Sprintf("kubectl -n %s delete %s  # then make it again from your own manifest with %s: Kueue has admitted it through queue %s, and put its flavor's selectors and tolerations into this one", o.GetNamespace(), resource, change, queue))
		return
	}
	kind, _, _ := strings.Cut(resource, "/")
	ch.Commands = append(ch.Commands, saved(o, o.GetNamespace(), resource, kind, "change "+change))
}

// OfOneJob is what the API server writes into a Job from its uid, and refuses of another once that one is gone
// (pkg/registry/batch/job/strategy.go, generateSelector, 1.30 to 1.37): as jq deletes it.
const OfOneJob = `.spec.selector, .spec.template.metadata.labels["controller-uid", "batch.kubernetes.io/controller-uid"]`

// saved has a person write an object into a file, change that, and make it again, without what would be refused of the next
// one, or have it go where the first one was.
func saved(o metav1.Object, namespace, resource, file, change string) string {
	of := ""
	switch o := o.(type) {
	case *batchv1.Job:
		if !ptr.Deref(o.Spec.ManualSelector, false) {
			of = OfOneJob
		}
	case *corev1.Pod:
		if o.Spec.NodeName != "" {
			of = ".spec.nodeName"
		}
	}
	if of == "" {
		return fmt.Sprintf("kubectl -n %s get %s -o yaml > %s.yaml  # %s, then kubectl replace --force -f %s.yaml", namespace, resource, file, change, file)
	}
	return fmt.Sprintf("kubectl -n %s get %s -o json | jq 'del(%s)' > %s.json  # %s, then kubectl replace --force -f %s.json", namespace, resource, of, file, change, file)
}

// livePatch keeps the tolerations a pod was given by admission: its list may
// only grow.
func livePatch(p *corev1.Pod, spec map[string]any) map[string]any {
	added, ok := spec["tolerations"].([]corev1.Toleration)
	if !ok {
		return spec
	}
	list := slices.Clone(p.Spec.Tolerations)
	for _, t := range added {
		if !slices.Contains(list, t) {
			list = append(list, t)
		}
	}
	return map[string]any{"tolerations": list}
}

// grouped says whether a workload is a group of pods that nobody owns.
func grouped(w incident.Ref) bool { return w.Kind == incident.KindOf(incident.KueueWorkload) }

// EditByHand is the command by which a person changes the pod spec of the workload.
func (c *Workload) EditByHand(change string) string { return c.EditObject(c.standing(change)) }

// EditObject is the command by which a person changes the workload: what of a Pod or a Job's template cannot
// change while it exists is made again.
func (c *Workload) EditObject(change string) string {
	w := c.Incident.Workload
	if grouped(w) {
		return fmt.Sprintf("kubectl -n %s get pods -l %s=%s -o yaml > pods.yaml  # %s in each, then kubectl replace --force -f pods.yaml", w.Namespace, incident.GroupLabel, w.Name, change)
	}
	if w.Kind == "Pod" || w.Kind == "Job" || places[w.Kind].Once {
		return c.Replace(change)
	}
	return fmt.Sprintf("kubectl -n %s edit %s  # %s", w.Namespace, c.WorkloadName(), change)
}

// Replace is the command by which a person makes the workload again, with a change.
func (c *Workload) Replace(change string) string {
	w := c.Incident.Workload
	o, known := c.Cluster.State.Owner(w.Kind, w.Namespace, w.Name)
	if w.Kind == "Job" && !known {
		o = &batchv1.Job{} // few write a selector of their own
	}
	return saved(o, w.Namespace, c.WorkloadName(), "workload", change)
}
