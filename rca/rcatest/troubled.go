package rcatest

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/cluster"
)

// Troubled is a cluster of every sort of GPU node there is trouble with: laid out with
// each profile, whole, tainted, of another zone, cordoned, being re-made, failed, with
// GPUs that are sick; ten pods on each hold what it has. A pod waits for each of asks.
func Troubled(nodes int, asks ...string) *cluster.State {
	st := &cluster.State{Now: Noon, Taken: true, Geometries: map[string]*nodeprobe.NodeGeometry{}, Unread: map[string]string{}}
	const model = "A100-40GB"
	profiles := []string{"1g.5gb", "2g.10gb", "3g.20gb", "7g.40gb"}
	for i := range nodes {
		n := sim.Node{Name: fmt.Sprintf("gpu-%05d", i), Model: model, GPUs: 8, Labels: map[string]string{"zone": fmt.Sprint(i % 3)}, Cordoned: i%16 == 5}
		profile := profiles[i%len(profiles)]
		n.Config = "all-" + profile
		for range n.GPUs {
			n.Layouts = append(n.Layouts, sim.All(model, profile))
		}
		if i%8 == 3 {
			n.Layouts, n.MIGOff, n.Config = nil, []int{0, 1, 2, 3, 4, 5, 6, 7}, "all-disabled"
		}
		if i%8 == 6 {
			n.Taints = []corev1.Taint{{Key: "team", Value: "x", Effect: corev1.TaintEffectNoSchedule}}
		}
		o := n.Object(Noon.Add(-time.Hour))
		switch i % 32 {
		case 9:
			o.Labels["nvidia.com/mig.config.state"] = "pending"
		case 10:
			o.Labels["nvidia.com/mig.config.state"] = "failed"
		case 11:
			o.Status.Allocatable["nvidia.com/gpu"] = resource.MustParse("7")
		}
		geo := n.Geometry(Noon)
		for k := range 10 {
			st.Pods = append(st.Pods, holderOn(o, geo, k))
		}
		st.Nodes, st.Geometries[n.Name] = append(st.Nodes, o), geo
	}
	for i, a := range asks {
		p := benchPod(fmt.Sprintf("waiting-%d", i), a)
		p.Spec.NodeSelector = map[string]string{"zone": "1"}
		p.Status.Phase = corev1.PodPending
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
		st.Pods = append(st.Pods, p)
	}
	return st
}

func benchPod(name, asks string) *corev1.Pod {
	p := Victim(name, 0, 0, time.Hour, "serve")
	p.Spec.NodeName = ""
	list := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceName(asks): resource.MustParse("1")}
	p.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: list, Limits: list}
	p.OwnerReferences[0].Name = name
	return p
}

// holderOn is the k-th pod of a node: it holds what comes next of its first GPUs.
func holderOn(n *corev1.Node, geo *nodeprobe.NodeGeometry, k int) *corev1.Pod {
	name := fmt.Sprintf("serve-%s-%d", n.Name, k)
	holder := nodeprobe.Holder{Namespace: "a", Pod: name, Container: "c"}
	asks := "example.com/none"
	for g := range geo.Report.GPUs {
		gpu := &geo.Report.GPUs[g]
		if !gpu.MIG.Current {
			if k--; k < 0 {
				gpu.Holders, asks = append(gpu.Holders, holder), "nvidia.com/gpu"
				break
			}
			continue
		}
		if k < len(gpu.Instances) {
			gpu.Instances[k].Holder, asks = &holder, "nvidia.com/mig-"+gpu.Instances[k].Profile
			break
		}
		k -= len(gpu.Instances)
	}
	p := benchPod(name, asks)
	p.OwnerReferences[0].Name = "serve-" + n.Name
	p.Spec.NodeName, p.Status.Phase = n.Name, corev1.PodRunning
	p.Status.StartTime = &metav1.Time{Time: Noon.Add(-time.Hour)}
	return p
}
