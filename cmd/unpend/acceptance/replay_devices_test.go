package acceptance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/testdata/controlplane"
)

// devices makes what drivers and people make: classes, slices, templates, and the
// claims that no template becomes. What is allocated is the real scheduler's to say.
func (r *replay) devices(t *testing.T) {
	t.Helper()
	dra, ctx := r.c.Client().ResourceV1(), context.WithoutCancel(t.Context())
	for _, from := range r.st.DeviceClasses {
		_, err := dra.DeviceClasses().Create(t.Context(), strip(from.DeepCopy()), metav1.CreateOptions{})
		must(t, err)
		t.Cleanup(func() { must(t, dra.DeviceClasses().Delete(ctx, from.Name, metav1.DeleteOptions{})) })
	}
	for _, from := range r.st.ResourceSlices {
		_, err := dra.ResourceSlices().Create(t.Context(), strip(from.DeepCopy()), metav1.CreateOptions{})
		must(t, err)
		t.Cleanup(func() { must(t, dra.ResourceSlices().Delete(ctx, from.Name, metav1.DeleteOptions{})) })
	}
	for _, from := range r.st.ClaimTemplates {
		o := strip(from.DeepCopy())
		_, err := dra.ResourceClaimTemplates(o.Namespace).Create(t.Context(), o, metav1.CreateOptions{})
		must(t, err)
	}
	for _, from := range r.st.ResourceClaims {
		if metav1.GetControllerOf(from) != nil {
			continue // the claim controller makes it, or the scheduler
		}
		o := strip(from.DeepCopy())
		o.Status = resourcev1.ResourceClaimStatus{}
		_, err := dra.ResourceClaims(o.Namespace).Create(t.Context(), o, metav1.CreateOptions{})
		must(t, err)
	}
}

// claiming says whether a pod's devices come from a driver by claims.
func (r *replay) claiming(p *corev1.Pod) bool {
	return len(p.Spec.ResourceClaims) > 0 || slices.ContainsFunc(r.st.ResourceClaims, func(c *resourcev1.ResourceClaim) bool {
		owner := metav1.GetControllerOf(c)
		return owner != nil && owner.Kind == "Pod" && owner.Name == p.Name && c.Namespace == p.Namespace
	})
}

// boundPods makes what has a node, the oldest first. Pods with claims are scheduled
// for it, and must be given the very devices that they have in the scenario.
func (r *replay) boundPods(t *testing.T) {
	t.Helper()
	pods := slices.Clone(r.st.Pods)
	slices.SortStableFunc(pods, func(a, b *corev1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	for _, p := range pods {
		switch {
		case p.Spec.NodeName == "", r.daemonsPod(p):
		case r.claiming(p):
			r.scheduledPod(t, p)
		default:
			r.boundPod(t, p)
		}
	}
	want := allocated(r.st.ResourceClaims)
	live, err := r.c.Client().ResourceV1().ResourceClaims(metav1.NamespaceAll).List(t.Context(), metav1.ListOptions{})
	must(t, err)
	var claims []*resourcev1.ResourceClaim
	for i := range live.Items {
		claims = append(claims, &live.Items[i])
	}
	if got := allocated(claims); !slices.Equal(got, want) {
		t.Fatalf("the scheduler allocated %v, the scenario has %v", got, want)
	}
}

// scheduledPod leaves the choice of a node and of devices to the scheduler.
func (r *replay) scheduledPod(t *testing.T, from *corev1.Pod) {
	t.Helper()
	p := strip(from.DeepCopy())
	p.Spec.NodeName, p.Status = "", corev1.PodStatus{}
	if stuck(from) {
		doesNotRun(p)
	}
	pods := r.c.Client().CoreV1().Pods(p.Namespace)
	_, err := pods.Create(t.Context(), p, metav1.CreateOptions{})
	must(t, err)
	controlplane.Eventually(t, 20*time.Second, p.Name+" is on "+from.Spec.NodeName, func() (bool, string) {
		got, err := pods.Get(t.Context(), p.Name, metav1.GetOptions{})
		return err == nil && got.Spec.NodeName == from.Spec.NodeName && got.Status.Phase == from.Status.Phase, fmt.Sprintf("%+v, %v", got.Status, err)
	})
}

// allocated lists who holds which devices.
func allocated(claims []*resourcev1.ResourceClaim) []string {
	var out []string
	for _, c := range claims {
		if c.Status.Allocation == nil {
			continue
		}
		for _, d := range c.Status.Allocation.Devices.Results {
			for _, u := range c.Status.ReservedFor {
				out = append(out, fmt.Sprintf("%s/%s: %s/%s/%s", c.Namespace, u.Name, d.Driver, d.Pool, d.Device))
			}
		}
	}
	slices.Sort(out)
	return out
}

// simulated says whether the simulated kubelet is at work on a node.
func (r *replay) simulated(node string) bool {
	i := slices.IndexFunc(r.st.Nodes, func(n *corev1.Node) bool { return n.Name == node })
	return controlplane.Ready(r.st.Nodes[i])
}

// wrote makes a node written to as long ago as in the scenario, where that tells of a
// pending layout: since when it is pending nothing else tells. A scenario without
// managedFields has a node that lost them, as some tools that restore nodes do.
func (r *replay) wrote(t *testing.T, from *corev1.Node) {
	t.Helper()
	if from.Labels[nodeprobe.LabelMIGConfigState] != "pending" {
		return
	}
	nodes := r.c.Client().CoreV1().Nodes()
	controlplane.Eventually(t, 20*time.Second, "node "+from.Name+" was written to when the scenario says", func() (bool, string) {
		n, err := nodes.Get(t.Context(), from.Name, metav1.GetOptions{})
		must(t, err)
		for i := range n.ManagedFields {
			for _, m := range from.ManagedFields {
				n.ManagedFields[i].Manager = m.Manager // times alone are no change to the API server
				n.ManagedFields[i].Time = new(metav1.NewTime(m.Time.Add(r.shift)))
			}
		}
		if len(from.ManagedFields) == 0 {
			n.ManagedFields = []metav1.ManagedFieldsEntry{{}} // the API server's word for none
		}
		_, err = nodes.Update(t.Context(), n, metav1.UpdateOptions{FieldManager: "scenario"}) // who writes, writes now
		return err == nil, fmt.Sprint(err)                                                    // controllers write to a new node too
	})
}

// unprepared says whether an event is a kubelet's about devices.
func unprepared(e *corev1.Event) bool {
	return e.Source.Component == "kubelet" && e.Reason == "FailedPrepareDynamicResources"
}

// kubeletSays writes the events of the scenario's kubelets, as they would now.
func (r *replay) kubeletSays(t *testing.T) {
	t.Helper()
	core := r.c.Client().CoreV1()
	for _, from := range r.st.Events {
		if !unprepared(from) {
			continue
		}
		e := strip(from.DeepCopy())
		pod, err := core.Pods(e.Namespace).Get(t.Context(), e.InvolvedObject.Name, metav1.GetOptions{})
		must(t, err)
		e.InvolvedObject.UID, e.InvolvedObject.ResourceVersion = pod.UID, ""
		e.FirstTimestamp, e.LastTimestamp = metav1.NewTime(e.FirstTimestamp.Add(r.shift)), metav1.NewTime(e.LastTimestamp.Add(r.shift))
		_, err = core.Events(e.Namespace).Create(t.Context(), e, metav1.CreateOptions{})
		must(t, err)
	}
}

// hadTime passes the time that somebody is given to speak: nothing is said of their
// silence before.
func (r *replay) hadTime(t *testing.T, who string, given time.Duration) {
	t.Helper()
	began := time.Now()
	controlplane.Eventually(t, given+time.Minute, who+" had time", func() (bool, string) { return time.Since(began) > given+time.Second, "" })
}

// runs says whether a ReplicaSet has a pod on a node.
func (r *replay) runs(rs *appsv1.ReplicaSet) bool {
	return slices.ContainsFunc(r.st.Pods, func(p *corev1.Pod) bool {
		owner := metav1.GetControllerOf(p)
		return owner != nil && owner.Name == rs.Name && p.Namespace == rs.Namespace && p.Spec.NodeName != ""
	})
}

// unclaimed takes away claims and templates, and waits until the devices are free.
func (r *replay) unclaimed(ctx context.Context, namespace string) error {
	dra := r.c.Client().ResourceV1()
	err := errors.Join(
		dra.ResourceClaimTemplates(namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}),
		dra.ResourceClaims(namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}),
		r.c.Client().CoreV1().Events(namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{FieldSelector: "reason=FailedPrepareDynamicResources"}))
	for range 200 {
		if err != nil {
			break
		}
		left, listErr := dra.ResourceClaims(namespace).List(ctx, metav1.ListOptions{})
		if listErr == nil && len(left.Items) == 0 {
			return nil
		}
		<-time.After(50 * time.Millisecond)
	}
	return errors.Join(err, fmt.Errorf("claims are left in %s", namespace))
}
