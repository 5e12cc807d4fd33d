package gangs

import (
	"fmt"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// asks claims what the pod asks of a resource.
func (c *Workload) asks(name corev1.ResourceName) []diagnosis.Claim {
	q := c.Wants[name]
	return c.Claims(diagnosis.That(diagnosis.Requests, string(name), diagnosis.Is, q.String()))
}

// mayUse claims how much of a resource the nodes have that the pod may use; nothing where more
// than its selector, affinity and tolerations decides that.
func (c *Workload) mayUse(s *scarce, total int64) []diagnosis.Claim {
	if !counted(c.Verdict) {
		return nil
	}
	return c.Claims(diagnosis.That("sum(nodes.status.allocatable["+string(s.name)+"])", "", diagnosis.Is, s.amount(total)))
}

// maxUnavailable is how many of a rollout's pods may be away, and whether that is written.
func maxUnavailable(d *appsv1.Deployment) (share intstr.IntOrString, written bool) {
	if r := d.Spec.Strategy.RollingUpdate; r != nil && r.MaxUnavailable != nil {
		return *r.MaxUnavailable, true
	}
	return intstr.FromString("25%"), false // the API server's default
}

// rollout is the Deployment that the incident is of; nil for any other workload.
func (c *Workload) rollout() *appsv1.Deployment {
	w := c.roller()
	owner, _ := c.Cluster.State.Owner(w.Kind, w.Namespace, w.Name)
	d, _ := owner.(*appsv1.Deployment)
	return d
}

// daemons is the DaemonSet that the incident is of; nil for any other workload.
func (c *Workload) daemons() *appsv1.DaemonSet {
	w := c.roller()
	owner, _ := c.Cluster.State.Owner(w.Kind, w.Namespace, w.Name)
	d, _ := owner.(*appsv1.DaemonSet)
	return d
}

// keepsSays is why a rollout stops none of its pods first: a share of a few pods is rounded down.
func (c *Workload) keepsSays() string {
	if d := c.daemons(); d != nil {
		return "maxSurge is " + d.Spec.UpdateStrategy.RollingUpdate.MaxSurge.String()
	}
	if d := c.rollout(); d != nil {
		share, written := maxUnavailable(d)
		switch text := share.String(); {
		case text == "0" || text == "0%":
		case written:
			return fmt.Sprintf("maxUnavailable %s of %d is none", text, ptr.Deref(d.Spec.Replicas, 1))
		default:
			return fmt.Sprintf("maxUnavailable is not set, and the default share of %d is none", ptr.Deref(d.Spec.Replicas, 1))
		}
	}
	return "maxUnavailable is 0"
}

// keeps claims what a rollout says of that.
func (c *Workload) keeps() []diagnosis.Claim {
	if d := c.daemons(); d != nil {
		return []diagnosis.Claim{diagnosis.That("spec.updateStrategy.rollingUpdate.maxSurge", "", diagnosis.Is, d.Spec.UpdateStrategy.RollingUpdate.MaxSurge.String()).Of(view.ObjectRef("DaemonSet", d.Namespace, d.Name))}
	}
	d := c.rollout()
	if d == nil {
		return nil
	}
	ref, share := view.ObjectRef("Deployment", d.Namespace, d.Name), diagnosis.That("spec.strategy.rollingUpdate.maxUnavailable", "", diagnosis.Absent, "")
	if is, written := maxUnavailable(d); written {
		share = diagnosis.That(share.Path, "", diagnosis.Is, is.String())
	}
	out := []diagnosis.Claim{share.Of(ref)}
	if d.Spec.Replicas != nil {
		out = append(out, diagnosis.That("spec.replicas", "", diagnosis.Is, strconv.Itoa(int(*d.Spec.Replicas))).Of(ref))
	}
	return out
}

// together claims of who makes pods, where one does and makes no others, how many there are and
// what they ask of a resource, where it is one that matters.
func (c *Workload) together(pods []*corev1.Pod, s *scarce) []diagnosis.Claim {
	if len(pods) == 0 {
		return nil
	}
	by := metav1.GetControllerOfNoCopy(pods[0])
	if by == nil {
		return nil
	}
	sum, made := int64(0), 0
	for _, p := range c.Cluster.State.Pods {
		if p.Namespace == c.Pod.Namespace && slices.ContainsFunc(p.OwnerReferences, func(o metav1.OwnerReference) bool { return o.Kind == by.Kind && o.Name == by.Name }) {
			made++
			if s != nil {
				sum += s.of(view.PodRequests(p))
			}
			if !slices.Contains(pods, p) {
				return nil
			}
		}
	}
	if made != len(pods) {
		return nil
	}
	ref := view.ObjectRef(by.Kind, c.Pod.Namespace, by.Name)
	out := []diagnosis.Claim{diagnosis.That("count(pods)", "", diagnosis.Is, strconv.Itoa(made)).Of(ref)}
	if s == nil {
		return out
	}
	return append(out, diagnosis.That("sum(pods.requests["+string(s.name)+"])", "", diagnosis.Is, s.amount(sum)).Of(ref))
}
