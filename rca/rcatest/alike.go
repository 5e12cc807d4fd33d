package rcatest

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/cluster"
)

// ManyAlike is a random cluster of a few sorts of GPU nodes, several nodes of each, so
// that much is the same on them and never all: holders differ in priority, age, gang and
// budget, and now and then a node has something of its own.
func ManyAlike(r *rand.Rand) *cluster.State {
	st := &cluster.State{Now: Noon, Taken: true, Geometries: map[string]*nodeprobe.NodeGeometry{}, Unread: map[string]string{}}
	sorts := make([]sim.Node, 2+r.IntN(3))
	for i := range sorts {
		sorts[i] = randomSort(r)
	}
	for i := range 4 + r.IntN(9) {
		n := sorts[r.IntN(len(sorts))]
		n.Name = fmt.Sprintf("gpu-%02d", i)
		o, geo := n.Object(Noon.Add(-time.Hour)), n.Geometry(Noon)
		for k := range r.IntN(12) {
			p := holderOn(o, geo, k)
			randomHolder(r, p)
			st.Pods = append(st.Pods, p)
		}
		randomTrouble(r, o, geo)
		if st.Nodes = append(st.Nodes, o); r.IntN(12) > 0 {
			st.Geometries[n.Name] = geo
		}
	}
	for _, app := range []string{"serve", "train"} {
		if r.IntN(3) == 0 {
			st.PDBs = append(st.PDBs, BudgetFor(app, int32(r.IntN(4))))
		}
	}
	randomConfig(r, st)
	for i, asks := range []string{"mig-1g.5gb", "mig-2g.10gb", "mig-3g.20gb", "mig-7g.40gb", "gpu", "gpu.shared", "mig-9g.90gb"} {
		st.Pods = append(st.Pods, randomWaiting(r, fmt.Sprintf("waiting-%d", i), "nvidia.com/"+asks))
	}
	return st
}

func randomSort(r *rand.Rand) sim.Node {
	model := []string{"A100-40GB", "A100-40GB", "A30-24GB"}[r.IntN(3)]
	n := sim.Node{Model: model, GPUs: 1 + r.IntN(3), Labels: map[string]string{"zone": fmt.Sprint(r.IntN(2))}, Cordoned: r.IntN(10) == 0,
		Strategy: []string{"mixed", "mixed", "mixed", "mixed", "single"}[r.IntN(5)]}
	profiles := []string{"1g.5gb", "2g.10gb", "3g.20gb", "7g.40gb"}
	if model == "A30-24GB" {
		profiles = []string{"1g.6gb", "2g.12gb"}
	}
	for g := range n.GPUs {
		profile := profiles[r.IntN(len(profiles))]
		n.Config = "all-" + profile
		if r.IntN(5) == 0 {
			n.MIGOff = append(n.MIGOff, g)
			n.Layouts = append(n.Layouts, nil)
			continue
		}
		placed := sim.All(model, profile)
		n.Layouts = append(n.Layouts, placed[:r.IntN(len(placed)+1)])
	}
	if r.IntN(5) == 0 {
		n.Taints = []corev1.Taint{{Key: "team", Value: "x", Effect: corev1.TaintEffectNoSchedule}}
	}
	return n
}

func randomHolder(r *rand.Rand, p *corev1.Pod) {
	prio := int32(r.IntN(3) - 1)
	p.Spec.Priority = &prio
	p.Status.StartTime = &metav1.Time{Time: Noon.Add(-time.Duration(1+r.IntN(5)) * time.Hour)}
	p.Labels = map[string]string{"app": []string{"serve", "train", "other"}[r.IntN(3)]}
	switch r.IntN(12) {
	case 0:
		p.Labels["pod-group.scheduling.sigs.k8s.io"] = fmt.Sprint("gang-", r.IntN(3))
	case 1:
		p.OwnerReferences[0].Kind = "DaemonSet"
	case 2:
		p.OwnerReferences = nil
	case 3:
		p.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("60")
	}
}

func randomTrouble(r *rand.Rand, o *corev1.Node, geo *nodeprobe.NodeGeometry) {
	switch r.IntN(20) {
	case 0:
		o.Labels["nvidia.com/mig.config.state"] = "pending"
	case 1:
		o.Labels["nvidia.com/mig.config.state"] = "failed"
	case 2:
		o.Labels["nvidia.com/mig.config"] = "nobody-knows"
	case 3:
		geo.Report.ObservedAt = metav1.NewTime(Noon.Add(-time.Hour))
	case 4:
		geo.Report.GPUs[0].Healthy = false
		for name, q := range o.Status.Allocatable {
			if strings.HasPrefix(string(name), "nvidia.com/") && q.Value() > 0 {
				q.Sub(resource.MustParse("1"))
				o.Status.Allocatable[name] = q
			}
		}
	case 5:
		if m := geo.Report.GPUs[0].MIG; m != nil {
			m.Pending = !m.Pending
		}
	case 6:
		geo.Report.Source = nodeprobe.SourceLabels
	case 7:
		o.Labels["zone"] = "9"
	case 8:
		for i := range geo.Report.GPUs {
			geo.Report.GPUs[i].Index += 2
		}
	case 9:
		for name := range o.Status.Allocatable {
			if strings.HasPrefix(string(name), "nvidia.com/") {
				o.Status.Allocatable[name] = resource.Quantity{}
			}
		}
	}
}

// randomConfig has the MIG manager read a config of a person, which may be added to.
func randomConfig(r *rand.Rand, st *cluster.State) {
	if r.IntN(2) == 0 {
		return
	}
	var text strings.Builder
	text.WriteString("version: v1\nmig-configs:\n")
	for _, e := range []string{
		"all-1g.5gb: [{devices: all, mig-enabled: true, mig-devices: {1g.5gb: 7}}]", "all-2g.10gb: [{devices: all, mig-enabled: true, mig-devices: {2g.10gb: 3}}]",
		"first: [{devices: [0], mig-enabled: true, mig-devices: {3g.20gb: 2}}, {devices: [1], mig-enabled: true, mig-devices: {2g.10gb: 2, 1g.5gb: 1}}]",
		"mixed: [{devices: all, mig-enabled: true, mig-devices: {1g.5gb: 2, 2g.10gb: 1, 3g.20gb: 1}}]", "all-disabled: [{devices: all, mig-enabled: false}]",
		"filtered: [{device-filter: [\"0x1\"], devices: all, mig-enabled: true, mig-devices: {1g.6gb: 4}}]", "much: [{devices: all, mig-enabled: true, mig-devices: {7g.40gb: 3}}]",
	} {
		if r.IntN(3) > 0 {
			text.WriteString("  " + e + "\n")
		}
	}
	st.ConfigMaps = append(st.ConfigMaps, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "gpu-operator", Name: "own"}, Data: map[string]string{"config.yaml": text.String()}})
	if r.IntN(3) > 0 {
		st.ClusterPolicies = append(st.ClusterPolicies, &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"migManager": map[string]any{"config": map[string]any{"name": "own"}}}}})
	} else {
		st.ConfigMaps[0].Name = "default-mig-parted-config"
	}
}

func randomWaiting(r *rand.Rand, name, asks string) *corev1.Pod {
	p := benchPod(name, asks)
	prio := int32(r.IntN(2))
	p.Spec.Priority = &prio
	for _, list := range []corev1.ResourceList{p.Spec.Containers[0].Resources.Requests, p.Spec.Containers[0].Resources.Limits} {
		list[corev1.ResourceName(asks)] = *resource.NewQuantity(1+int64(r.IntN(8))/4, resource.DecimalSI)
		list[corev1.ResourceCPU] = *resource.NewQuantity([]int64{1, 1, 50, 200}[r.IntN(4)], resource.DecimalSI)
	}
	switch r.IntN(4) {
	case 0:
		p.Spec.NodeSelector = map[string]string{"zone": "1"}
	case 1:
		p.Spec.NodeSelector = map[string]string{"kubernetes.io/hostname": "gpu-01"}
	}
	p.Status.Phase = corev1.PodPending
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
	return p
}
