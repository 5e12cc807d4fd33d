package stack

import (
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/stack/parts"
	"github.com/unpend/unpend/rca/view"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// lab is a cluster of the GPU Operator's whose nodes' links are broken one by one.
type lab struct {
	*cluster.State
	sets map[parts.Role]*appsv1.DaemonSet
}

func newLab() *lab {
	l := &lab{State: &cluster.State{Now: noon, Live: true, Unread: map[string]string{}}, sets: map[parts.Role]*appsv1.DaemonSet{}}
	for r, c := range map[parts.Role]string{parts.Discovery: "nfd-worker", parts.Driver: "nvidia-driver-ctr", parts.Toolkit: "nvidia-container-toolkit-ctr", parts.Plugin: "nvidia-device-plugin"} {
		ds := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "gpu-operator", Name: c, UID: types.UID(c), CreationTimestamp: metav1.NewTime(noon.Add(-48 * time.Hour))}}
		ds.Spec.Template.Spec.Containers = []corev1.Container{{Name: c}}
		ds.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Key: "nvidia.com/gpu", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}}
		if key := map[parts.Role]string{parts.Driver: DeployDriver, parts.Toolkit: parts.Deploys + "container-toolkit", parts.Plugin: deployPlugin}[r]; key != "" {
			ds.Spec.Template.Spec.NodeSelector = map[string]string{key: "true"}
		}
		l.sets[r] = ds
		l.DaemonSets = append(l.DaemonSets, ds)
	}
	return l
}

// gpuNode is one whose machine has four GPUs, by its cloud's word, with the operator's labels.
func (l *lab) gpuNode(name string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(noon.Add(-24 * time.Hour)), Labels: map[string]string{
		"karpenter.k8s.aws/instance-gpu-name": "a10g", "karpenter.k8s.aws/instance-gpu-count": "4",
		view.GPULabels[0]: "true", gpuPresent: "true", DeployDriver: "true", parts.Deploys + "container-toolkit": "true", deployPlugin: "true"}}}
	l.Nodes = append(l.Nodes, n)
	return n
}

// runs has a DaemonSet's pod run on a node; fails, and waits, have it do that.
func (l *lab) pod(r parts.Role, node string, edit func(*corev1.Pod)) {
	ds, yes := l.sets[r], true
	began := metav1.NewTime(noon.Add(-2 * time.Hour))
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: ds.Namespace, Name: ds.Name + "-" + node, CreationTimestamp: began, OwnerReferences: []metav1.OwnerReference{{Kind: "DaemonSet", Name: ds.Name, UID: ds.UID, Controller: &yes}}}, Spec: *ds.Spec.Template.Spec.DeepCopy()}
	p.Spec.NodeName, p.Status.Phase, p.Status.StartTime = node, corev1.PodRunning, &began
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: p.Spec.Containers[0].Name, Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: began}}}}
	if edit != nil {
		edit(p)
	}
	l.Pods = append(l.Pods, p)
}

func crashes(words string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		s := &p.Status.ContainerStatuses[0]
		s.Ready, s.RestartCount = false, 9
		s.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
		s.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 1, Message: words}
	}
}

func waitsIn(container string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.ContainerStatuses[0] = corev1.ContainerStatus{Name: p.Spec.Containers[0].Name, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "PodInitializing"}}}
		p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: container, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(noon.Add(-time.Hour))}}}}
	}
}

// Of links that are broken at random the first is named, from the board up, on each node by
// itself; a node whose GPUs are offered has no broken link whatever its labels say, and one
// without GPUs has no stack.
func TestFirstBrokenLinkIsNamed(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		l := newLab()
		want := map[string]Link{}
		for i := range rapid.IntRange(1, 4).Draw(r, "nodes") {
			name := fmt.Sprintf("gpu-%d", i)
			n := l.gpuNode(name)
			broken := func(link Link) bool {
				if !rapid.Bool().Draw(r, fmt.Sprintf("%s/%d", name, link)) {
					return false
				}
				if want[name] == 0 {
					want[name] = link
				}
				return true
			}
			stops := func(is bool, otherwise string) func(*corev1.Pod) {
				switch {
				case is:
					return crashes("words of " + name)
				case want[name] != 0:
					return waitsIn(otherwise)
				}
				return nil
			}
			if broken(Discovery) { // then nothing of the operator's is there
				for _, key := range []string{view.GPULabels[0], gpuPresent, DeployDriver, parts.Deploys + "container-toolkit", deployPlugin} {
					delete(n.Labels, key)
				}
				n.Spec.Taints = []corev1.Taint{{Key: "nvidia.com/gpu", Value: name, Effect: corev1.TaintEffectNoExecute}}
				continue
			}
			l.pod(parts.Discovery, name, nil)
			if broken(Labels) {
				n.Labels[deployPlugin] = rapid.SampledFrom([]string{"false", view.Paused}).Draw(r, "label")
				continue
			}
			l.pod(parts.Driver, name, stops(broken(Driver), driverManager))
			l.pod(parts.Toolkit, name, stops(broken(Runtime), "driver-validation"))
			l.pod(parts.Plugin, name, stops(broken(Plugin), "toolkit-validation"))
			if broken(Registration) || want[name] != 0 {
				continue
			}
			n.Status.Capacity = corev1.ResourceList{view.WholeGPU: *quantity(4)}
			n.Status.Allocatable = n.Status.Capacity
			n.Labels[DeployDriver] = rapid.SampledFrom([]string{"true", "paused-for-driver-upgrade"}).Draw(r, "flapping")
		}
		l.Nodes = append(l.Nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "cpu", Labels: map[string]string{"karpenter.azure.com/sku-gpu-count": "0"}}})
		w := view.New(l.State)
		for _, n := range w.SortedNodes() {
			f := Of(w).On(n)
			switch link := want[n.Name]; {
			case link == 0 && f != nil:
				r.Fatalf("%s is whole, got %+v", n.Name, f)
			case link != 0 && (f == nil || f.Link != link || f.Certainty != diagnosis.Proven || f.State == Starting || len(f.Mends) == 0):
				r.Fatalf("%s breaks at link %d, got %+v", n.Name, link, f)
			}
		}
	})
}
