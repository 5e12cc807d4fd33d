package live

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/rca/cluster"
)

// Whose diagnoses a change concerns: all of them, those of namespace a, or nobody's.
func TestConcerns(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	meta := metav1.ObjectMeta{Namespace: "a", Name: "x", ResourceVersion: "1", Generation: 1}
	pod := func(edit func(*corev1.Pod)) cluster.Object {
		p := &corev1.Pod{ObjectMeta: *meta.DeepCopy(), Spec: corev1.PodSpec{NodeName: "gpu-1"}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
		edit(p)
		return p
	}
	as := func(*corev1.Pod) {}
	pending := func(p *corev1.Pod) { p.Spec.NodeName, p.Status.Phase = "", corev1.PodPending }
	node := func(edit func(*corev1.Node)) cluster.Object {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "gpu-1", Labels: map[string]string{"nvidia.com/mig.config.state": "success"}}, Status: corev1.NodeStatus{
			Allocatable: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("8")},
			Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.NewTime(now)}}}}
		edit(n)
		return n
	}
	report := func(at time.Time, healthy bool) cluster.Object {
		return &nodeprobe.NodeGeometry{ObjectMeta: metav1.ObjectMeta{Name: "gpu-1"}, Report: nodeprobe.Report{ObservedAt: metav1.NewTime(at), GPUs: []nodeprobe.GPU{{Healthy: healthy}}}}
	}
	quota := func(version string) cluster.Object {
		q := &corev1.ResourceQuota{ObjectMeta: *meta.DeepCopy()}
		q.ResourceVersion = version
		return q
	}
	set := func(generation int64, ready int32) cluster.Object {
		d := &appsv1.DaemonSet{ObjectMeta: *meta.DeepCopy(), Status: appsv1.DaemonSetStatus{NumberReady: ready}}
		d.Generation = generation
		return d
	}
	replicas := func(generation int64, version string) cluster.Object {
		r := &appsv1.ReplicaSet{ObjectMeta: *meta.DeepCopy()}
		r.Generation, r.ResourceVersion = generation, version
		return r
	}
	claim := func(version string) cluster.Object {
		c := &resourcev1.ResourceClaim{ObjectMeta: *meta.DeepCopy()}
		c.ResourceVersion = version
		return c
	}
	const everybody, nobody = "", "nobody"
	for name, c := range map[string]struct {
		kind          string
		before, after cluster.Object
		want          string
	}{
		"a pod that waits comes":              {"Pod", nil, pod(pending), nobody},
		"a pod that waits goes":               {"Pod", pod(pending), nil, nobody},
		"a pod is bound":                      {"Pod", pod(pending), pod(as), everybody},
		"a pod that ran is gone":              {"Pod", pod(as), nil, everybody},
		"a pod is being deleted":              {"Pod", pod(as), pod(func(p *corev1.Pod) { at := metav1.NewTime(now); p.DeletionTimestamp = &at }), everybody},
		"a pod has ended":                     {"Pod", pod(as), pod(func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }), everybody},
		"a pod is nominated":                  {"Pod", pod(pending), pod(func(p *corev1.Pod) { pending(p); p.Status.NominatedNodeName = "gpu-1" }), everybody},
		"a pod tells of its container":        {"Pod", pod(as), pod(func(p *corev1.Pod) { p.Status.PodIP = "10.0.0.1" }), nobody},
		"the scheduler tells why a pod waits": {"Pod", pod(pending), pod(func(p *corev1.Pod) { pending(p); p.Status.Message = "0/3 nodes" }), nobody},
		"a node lives":                        {"Node", node(func(*corev1.Node) {}), node(func(n *corev1.Node) { n.Status.Conditions[0].LastHeartbeatTime = metav1.NewTime(now.Add(time.Minute)) }), nobody},
		"a node is not ready":                 {"Node", node(func(*corev1.Node) {}), node(func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown }), everybody},
		"MIG manager fails":                   {"Node", node(func(*corev1.Node) {}), node(func(n *corev1.Node) { n.Labels = map[string]string{"nvidia.com/mig.config.state": "failed"} }), everybody},
		"a node is cordoned":                  {"Node", node(func(*corev1.Node) {}), node(func(n *corev1.Node) { n.Spec.Unschedulable = true }), everybody},
		"a GPU is gone":                       {"Node", node(func(*corev1.Node) {}), node(func(n *corev1.Node) { n.Status.Allocatable["nvidia.com/gpu"] = resource.MustParse("7") }), everybody},
		"the same report again":               {"NodeGeometry", report(now, true), report(now.Add(time.Minute), true), nobody},
		"a GPU is sick":                       {"NodeGeometry", report(now, true), report(now.Add(time.Minute), false), everybody},
		"the same after the last was too old": {"NodeGeometry", report(now, true), report(now.Add(6*time.Minute), true), everybody},
		"a node has no report any more":       {"NodeGeometry", report(now, true), nil, everybody},
		"a quota is raised":                   {"ResourceQuota", quota("1"), quota("2"), "a"},
		"a quota is listed again":             {"ResourceQuota", quota("1"), quota("1"), nobody},
		"a device plugin is not ready":        {"DaemonSet", set(1, 3), set(1, 2), everybody},
		"a DaemonSet is looked after":         {"DaemonSet", set(1, 3), set(1, 3), nobody},
		"a ReplicaSet counts its pods":        {"ReplicaSet", replicas(1, "1"), replicas(1, "2"), nobody},
		"a ReplicaSet wants fewer":            {"ReplicaSet", replicas(1, "1"), replicas(2, "2"), "a"},
		"a claim is allocated":                {"ResourceClaim", claim("1"), claim("2"), everybody},
	} {
		namespace, yes := concerns(cluster.KindNamed(c.kind), c.before, c.after)
		if !yes {
			namespace = nobody
		}
		if namespace != c.want {
			t.Errorf("%s: concerns %q, want %q", name, namespace, c.want)
		}
	}
}
