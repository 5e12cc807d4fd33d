package stack

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/stack/parts"
	"github.com/unpend/unpend/rca/view"
)

// A node that the device plugin selects by a label of a person's is to have GPUs, and nobody has looked where
// the API server refuses the plugin's pods; one that selects every node says nothing by that.
func TestANodeThatARefusedPluginSelects(t *testing.T) {
	for name, k := range map[string]struct {
		selector map[string]string
		message  string
		want     string
	}{
		"by a label, and refused":    {map[string]string{"gpu": "yes"}, "Error creating: no luck", "likely: is to have GPUs, for the device plugin selects it by label, and has no pod of the device plugin"},
		"of every node, and refused": {nil, "Error creating: no luck", "possible: may have GPUs that nobody has looked for: has no pod of the device plugin"},
		"by a label, and not":        {map[string]string{"gpu": "yes"}, "", ""},
		"of every node, and not":     {nil, "", ""},
	} {
		l := newLab()
		l.sets[parts.Plugin].Spec.Template.Spec.NodeSelector = k.selector
		l.DaemonSets = []*appsv1.DaemonSet{l.sets[parts.Plugin]}
		l.chartNode(map[string]string{"gpu": "yes"})
		if k.message != "" {
			l.Events = []*corev1.Event{{InvolvedObject: corev1.ObjectReference{Kind: "DaemonSet", Namespace: "gpu-operator", Name: "nvidia-device-plugin"}, Reason: "FailedCreate", Message: k.message}}
		}
		w := view.New(l.State)
		f := Of(w).Untold(w.Nodes["n"])
		if (f != nil) != (k.want != "") {
			t.Errorf("%s: %+v", name, f)
		}
		if f != nil && (!strings.HasPrefix(string(f.Certainty)+": "+f.Says, k.want) || f.Mends[0].Until != "" || f.Mends[0].Unproven == "") {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

// Where the GPU Operator is installed and node feature discovery is not, nobody has looked for GPUs.
func TestTheOperatorGoesByLabels(t *testing.T) {
	for name, k := range map[string]struct {
		fill func(*lab)
		want string
	}{
		"nobody looks":           {func(*lab) {}, "may have GPUs that nobody has looked for: the GPU Operator gpu-operator/op goes by labels that node feature discovery writes, which is not installed"},
		"discovery is installed": {func(l *lab) { l.DaemonSets = []*appsv1.DaemonSet{l.sets[parts.Discovery]} }, ""},
		"there is no operator":   {func(l *lab) { l.Pods = nil }, ""},
		"the machine is told":    {func(l *lab) { l.Nodes[0].Labels["node.kubernetes.io/instance-type"] = "m5.large" }, ""},
	} {
		l := newLab()
		l.chartNode(map[string]string{})
		l.DaemonSets = nil
		l.Pods = append(l.Pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "gpu-operator", Name: "op", Labels: map[string]string{"app": "gpu-operator"}}, Spec: corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{{Name: "gpu-operator"}}}})
		k.fill(l)
		w := view.New(l.State)
		f := Of(w).Untold(w.Nodes["n"])
		if f == nil != (k.want == "") || f != nil && (f.Says != k.want || f.Cause != diagnosis.GPUStackMissing || f.Certainty != diagnosis.Possible || f.Mends[0].Unproven == "") {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

// That a machine has no GPU can be said where something has looked for one, or its type tells; elsewhere nobody knows.
func TestWhereSomethingHasLooked(t *testing.T) {
	for name, tc := range map[string]struct {
		labels map[string]string
		want   bool
	}{
		"nothing":              {map[string]string{"kubernetes.io/arch": "amd64"}, false},
		"feature discovery":    {map[string]string{"feature.node.kubernetes.io/cpu-model.family": "6"}, true},
		"a cloud's machine":    {map[string]string{corev1.LabelInstanceTypeStable: "m5.large"}, true},
		"a distribution's":     {map[string]string{corev1.LabelInstanceTypeStable: "k3s"}, false},
		"the GPU Operator":     {map[string]string{gpuPresent: "false"}, true},
		"Karpenter, of no GPU": {map[string]string{view.LabelGPUCount: "0"}, true},
	} {
		n := &view.Node{Node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: tc.labels}}}
		if got := Looked(n); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// A person's taint that alone keeps the device plugin, or the discovery that it goes by, off a node leaves open whether
// that has GPUs; the control plane's says nothing.
func TestANodeThatATaintShuts(t *testing.T) {
	const announces, looks = "may have GPUs that nobody announces: the device plugin ", "may have GPUs that nobody has looked for: node feature discovery "
	for name, k := range map[string]struct {
		taint    string
		selector map[string]string
		want     string
		commands int
		beside   bool // another node has no taint
	}{
		"a person's":                     {"team", nil, announces, 2, true},
		"the control plane's":            {"node-role.kubernetes.io/control-plane", nil, "", 0, true},
		"and there is no other node":     {"node-role.kubernetes.io/control-plane", nil, announces, 2, false},
		"of what is looked for":          {"team", map[string]string{gpuPresent: "true"}, looks, 3, false},
		"of a label that nobody finds":   {"team", map[string]string{"team": "a"}, "", 0, false},
		"what is looked for, and theirs": {"CriticalAddonsOnly", map[string]string{gpuPresent: "true"}, "", 0, false},
	} {
		l := newLab()
		l.sets[parts.Plugin].Spec.Template.Spec.NodeSelector = k.selector
		l.DaemonSets = []*appsv1.DaemonSet{l.sets[parts.Plugin], l.sets[parts.Discovery]}
		l.chartNode(map[string]string{})
		l.Nodes[0].Spec.Taints = []corev1.Taint{{Key: k.taint, Effect: corev1.TaintEffectNoSchedule}}
		if k.beside {
			l.Nodes = append(l.Nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker"}})
		}
		w := view.New(l.State)
		f := Of(w).Untold(w.Nodes["n"])
		if (f != nil) != (k.want != "") {
			t.Fatalf("%s: %+v", name, f)
		}
		if f == nil {
			continue
		}
		if m := f.Mends[0]; !strings.HasPrefix(f.Says, k.want) || f.Cause != diagnosis.GPUStackNotOnNode || f.Certainty != diagnosis.Possible || m.Unproven == "" || m.Until != "" || len(m.Commands) != k.commands {
			t.Errorf("%s: %s %+v", name, f.Says, m)
		}
	}
}

// A runtime that finds no such program as it is to run starts no pod of the node, so it is told of the plugin's, whose own
// pod has no word of it; the words of another program say nothing of NVIDIA's.
func TestARuntimeThatTheMachineLacks(t *testing.T) {
	for program, want := range map[string]diagnosis.CauseID{"nvidia-container-runtime": diagnosis.RuntimeNotConfigured, "runc": diagnosis.DevicePluginDown} {
		l := newLab()
		l.sets[parts.Plugin].Spec.Template.Spec.NodeSelector, l.DaemonSets = nil, []*appsv1.DaemonSet{l.sets[parts.Plugin]}
		l.chartNode(map[string]string{"karpenter.k8s.aws/instance-gpu-name": "l4", corev1.LabelInstanceTypeStable: "g6.xlarge"})
		begun := func(p *corev1.Pod) {
			p.CreationTimestamp = metav1.NewTime(noon.Add(-time.Hour))
			p.Status.StartTime, p.Status.Phase, p.Status.Conditions = &p.CreationTimestamp, corev1.PodPending, nil
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: p.Spec.Containers[0].Name, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}}}
		}
		l.pod(parts.Plugin, "n", begun)
		other := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "aws-node-x", UID: "x"}, Spec: corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{{Name: "c"}}}}
		begun(other)
		l.Pods = append(l.Pods, other)
		l.Events = append(l.Events, &corev1.Event{InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: "kube-system", Name: "aws-node-x"}, Reason: "FailedCreatePodSandBox", LastTimestamp: metav1.NewTime(noon),
			Message: `Failed to create pod sandbox: rpc error: code = Unknown desc = failed to create containerd task: OCI runtime create failed: unable to retrieve OCI runtime error (open log.json: no such file or directory): exec: "` + program + `": executable file not found in $PATH: unknown`})
		w := view.New(l.State)
		f := Of(w).On(w.Nodes["n"])
		if f == nil || f.Cause != want {
			t.Fatalf("%s: %+v", program, f)
		}
		if want == diagnosis.RuntimeNotConfigured && (f.Certainty != diagnosis.Likely || !strings.HasSuffix(f.Says, `FailedCreatePodSandBox: exec: "nvidia-container-runtime": executable file not found in $PATH: unknown`) || f.Mends[0].Title != "give n a machine image that has NVIDIA's container toolkit") {
			t.Errorf("%s: %+v", program, f)
		}
	}
}
