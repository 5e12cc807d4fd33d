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

// Drawn is what was drawn for one node: its first broken link, 0 where none is, and the cause of what is the matter with it.
type Drawn struct {
	Link  Link
	Cause diagnosis.CauseID
}

// NewLab is for tests that see the causes behind the links, which this room does not.
func NewLab() *lab { return newLab() }

// Draw breaks links of some nodes at random: of the whole cluster, where nobody has installed what announces GPUs, and of each node, up
// to devices that are announced and not healthy. It says what is first on each.
func (l *lab) Draw(r *rapid.T) map[string]Drawn {
	out := map[string]Drawn{}
	installed := rapid.IntRange(0, 3).Draw(r, "installed") > 0
	if !installed { // whatever its nodes say: node feature discovery may be there by itself
		l.DaemonSets = nil
		if rapid.Bool().Draw(r, "discovery alone") {
			l.DaemonSets = append(l.DaemonSets, l.sets[parts.Discovery])
		}
	}
	for i := range rapid.IntRange(1, 4).Draw(r, "nodes") {
		name := fmt.Sprintf("gpu-%d", i)
		n, first := l.gpuNode(name), Drawn{}
		broken := func(link Link, cause diagnosis.CauseID) bool {
			is := rapid.Bool().Draw(r, fmt.Sprintf("%s/%d", name, link))
			if is && first.Link == 0 {
				first = Drawn{link, cause}
			}
			return is
		}
		if installed {
			l.drawn(r, n, broken, func() bool { return first.Link != 0 })
		} else {
			first = Drawn{Installed, diagnosis.GPUStackMissing}
			if broken(Discovery, "") {
				delete(n.Labels, view.GPULabels[0])
			}
			if broken(Labels, "") {
				delete(n.Labels, deployPlugin)
			}
		}
		if first.Link == 0 && n.Status.Capacity != nil && rapid.Bool().Draw(r, name+"/health") {
			left := rapid.Int64Range(0, 3).Draw(r, name+"/healthy")
			n.Status.Allocatable = corev1.ResourceList{view.WholeGPU: *quantity(left)}
			first.Cause = diagnosis.GPUUnhealthy
		}
		out[name] = first
	}
	l.Nodes = append(l.Nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "cpu", Labels: map[string]string{"karpenter.azure.com/sku-gpu-count": "0"}}})
	return out
}

// drawn makes what one node of a cluster with the GPU Operator has, by what is broken there.
func (l *lab) drawn(r *rapid.T, n *corev1.Node, broken func(Link, diagnosis.CauseID) bool, any func() bool) {
	stops := func(is bool, otherwise string) func(*corev1.Pod) {
		switch {
		case is:
			return crashes("words of " + n.Name)
		case any():
			return waitsIn(otherwise)
		}
		return nil
	}
	if broken(Discovery, diagnosis.GPUStackNotOnNode) { // then nothing of the operator's is there
		for _, key := range []string{view.GPULabels[0], gpuPresent, DeployDriver, parts.Deploys + "container-toolkit", deployPlugin} {
			delete(n.Labels, key)
		}
		n.Spec.Taints = []corev1.Taint{{Key: "nvidia.com/gpu", Value: n.Name, Effect: corev1.TaintEffectNoExecute}}
		return
	}
	l.pod(parts.Discovery, n.Name, nil)
	if broken(Labels, diagnosis.GPUStackNotOnNode) {
		n.Labels[deployPlugin] = rapid.SampledFrom([]string{"false", view.Paused}).Draw(r, "label")
		return
	}
	l.pod(parts.Driver, n.Name, stops(broken(Driver, diagnosis.DriverNotReady), driverManager))
	l.pod(parts.Toolkit, n.Name, stops(broken(Runtime, diagnosis.RuntimeNotConfigured), "driver-validation"))
	l.pod(parts.Plugin, n.Name, stops(broken(Plugin, diagnosis.DevicePluginDown), "toolkit-validation"))
	if broken(Registration, diagnosis.DevicePluginDown) || any() {
		return
	}
	n.Status.Capacity = corev1.ResourceList{view.WholeGPU: *quantity(4)}
	n.Status.Allocatable = n.Status.Capacity
	n.Labels[DeployDriver] = rapid.SampledFrom([]string{"true", "paused-for-driver-upgrade"}).Draw(r, "flapping")
}

// Of links that are broken at random the first is named, from what is installed up, on each node by
// itself; a node whose GPUs are offered, or known and not healthy, has no broken link whatever its labels say, and one
// without GPUs has no stack.
func TestFirstBrokenLinkIsNamed(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		l := newLab()
		want := l.Draw(r)
		w := view.New(l.State)
		for _, n := range w.SortedNodes() {
			f := Of(w).On(n)
			switch link := want[n.Name].Link; {
			case link == 0 && f != nil:
				r.Fatalf("%s is whole, got %+v", n.Name, f)
			case link != 0 && (f == nil || f.Link != link || f.Cause != want[n.Name].Cause || f.Certainty != diagnosis.Proven || f.State == Starting || len(f.Mends) == 0):
				r.Fatalf("%s breaks at link %d by %s, got %+v", n.Name, link, want[n.Name].Cause, f)
			}
		}
	})
}
