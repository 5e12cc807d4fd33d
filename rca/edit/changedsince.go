package edit

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// changedSince is the StatefulSet that makes the pod, where its template is another than the pod was made from, and it
// replaces no pod that waits: in order it goes on to none behind one that does not run, nor to that one
// (kubernetes/kubernetes issue 67250). Nil else.
func (c *Workload) changedSince() *appsv1.StatefulSet {
	owner, _ := c.Cluster.State.Owner(c.Incident.Workload.Kind, c.Incident.Workload.Namespace, c.Incident.Workload.Name)
	set, ok := owner.(*appsv1.StatefulSet)
	if !ok || c.Unborn || set.Spec.PodManagementPolicy == appsv1.ParallelPodManagement {
		return nil
	}
	made := c.Pod.Labels[appsv1.StatefulSetRevisionLabel]
	if made == "" || set.Status.UpdateRevision == "" || made == set.Status.UpdateRevision {
		return nil
	}
	return set
}

// madeAgain is for what the template asks by now, as the change would have it: nothing is to be changed, and the pod that
// waits is to be deleted.
func (c *Workload) madeAgain(ch Change, set *appsv1.StatefulSet) Change {
	now := set.Spec.Template.Spec
	ch.Title = fmt.Sprintf("delete pod %s: %s has been changed since it was made, and waits for it", c.Pod.Name, c.WorkloadName())
	if asks := c.asksNow(&now); asks != "" {
		ch.Title += "; it asks for " + asks + " by now"
	}
	ch.Pod = func(p *corev1.Pod) {
		take := func(into, from []corev1.Container) {
			for i := range into {
				if k := slices.IndexFunc(from, func(f corev1.Container) bool { return f.Name == into[i].Name }); k >= 0 {
					into[i].Resources = *from[k].Resources.DeepCopy()
				}
			}
		}
		take(p.Spec.Containers, now.Containers)
		take(p.Spec.InitContainers, now.InitContainers)
	}
	c.roll(&ch, set)
	return ch
}

// asksNow says of what the template asks less than the pod.
func (c *Workload) asksNow(now *corev1.PodSpec) string {
	var texts []string
	for i := range now.Containers {
		k := &now.Containers[i]
		at := slices.IndexFunc(c.Pod.Spec.Containers, func(o corev1.Container) bool { return o.Name == k.Name })
		if at < 0 {
			continue
		}
		was := &c.Pod.Spec.Containers[at]
		for name := range was.Resources.Requests {
			is, asked := Asked(&k.Resources, name), Asked(&was.Resources, name)
			switch {
			case is.Cmp(asked) >= 0:
			case is.IsZero():
				texts = append(texts, "no "+string(name))
			default:
				texts = append(texts, is.String()+" "+string(name))
			}
		}
	}
	slices.Sort(texts)
	return strings.Join(texts, ", ")
}
