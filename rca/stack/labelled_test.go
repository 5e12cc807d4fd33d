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

// byChart is a cluster with the device plugin's chart in place of the GPU Operator: nodes are
// chosen by labels that node feature discovery writes.
func byChart() *lab {
	l := newLab()
	d := l.sets[parts.Plugin]
	d.Spec.Template.Spec.NodeSelector = nil
	d.Spec.Template.Spec.RuntimeClassName = new("nvidia")
	var terms []corev1.NodeSelectorTerm
	for _, key := range []string{view.GPULabels[0], gpuPresent} {
		terms = append(terms, corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{"true"}}}})
	}
	d.Spec.Template.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms}}}
	l.DaemonSets = []*appsv1.DaemonSet{d, l.sets[parts.Discovery]}
	return l
}

// chartNode is one of it, by its cloud's word with a GPU.
func (l *lab) chartNode(labels map[string]string, taints ...corev1.Taint) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", CreationTimestamp: metav1.NewTime(noon.Add(-24 * time.Hour)), Labels: labels}, Spec: corev1.NodeSpec{Taints: taints}}
	l.Nodes = append(l.Nodes, n)
	return n
}

// A device plugin that goes by labels is kept off by what keeps node feature discovery off, and
// by nothing else of that.
func TestWhatKeepsTheLabelsOff(t *testing.T) {
	cloud := map[string]string{"k8s.amazonaws.com/accelerator": "nvidia-a10g"}
	taint := corev1.Taint{Key: "nvidia.com/gpu", Value: "true", Effect: corev1.TaintEffectNoSchedule}
	present := []corev1.Toleration{{Key: "nvidia.com/gpu", Value: "present", Effect: corev1.TaintEffectNoSchedule}}
	for name, k := range map[string]struct {
		edit func(l *lab)
		link Link
		says string
	}{
		"its worker does not tolerate the taint's value": {func(l *lab) {
			l.chartNode(cloud, taint)
			l.sets[parts.Discovery].Spec.Template.Spec.Tolerations = present
		}, Discovery, "whose DaemonSet does not run there: it does not tolerate taint nvidia.com/gpu=true:NoSchedule"},
		"the plugin does not either": {func(l *lab) {
			l.chartNode(cloud, taint)
			l.sets[parts.Discovery].Spec.Template.Spec.Tolerations = present
			l.sets[parts.Plugin].Spec.Template.Spec.Tolerations = present
		}, Discovery, "it does not tolerate taint nvidia.com/gpu=true:NoSchedule"},
		"its worker is there and has told": {func(l *lab) {
			l.chartNode(map[string]string{"k8s.amazonaws.com/accelerator": "nvidia-a10g", view.GPULabels[1]: "true"}, taint)
		}, PluginOnNode, "its node affinity wants " + view.GPULabels[0] + "=true"},
		"it is not installed": {func(l *lab) {
			l.chartNode(cloud)
			l.DaemonSets = l.DaemonSets[:1]
		}, PluginOnNode, "its node affinity wants"},
		"the plugin goes by another label": {func(l *lab) {
			l.chartNode(cloud, taint)
			l.sets[parts.Discovery].Spec.Template.Spec.Tolerations = present
			l.sets[parts.Plugin].Spec.Template.Spec.NodeSelector, l.sets[parts.Plugin].Spec.Template.Spec.Affinity = map[string]string{"team": "ml"}, nil
		}, PluginOnNode, "it selects nodes by label team=ml, which is absent"},
	} {
		t.Run(name, func(t *testing.T) {
			l := byChart()
			k.edit(l)
			w := view.New(l.State)
			if f := Of(w).On(w.Nodes["n"]); f == nil || f.Link != k.link || f.Cause != diagnosis.GPUStackNotOnNode || f.Certainty != diagnosis.Proven || !strings.Contains(f.Says, k.says) {
				t.Errorf("got %+v", f)
			}
		})
	}
}

// Where nothing says of any node that it has a GPU, it is told as possible that nobody looked,
// and only where nobody has.
func TestUntold(t *testing.T) {
	for name, k := range map[string]struct {
		edit func(l *lab)
		want bool
	}{
		"nobody looks":                {func(l *lab) { l.chartNode(nil); l.DaemonSets = l.DaemonSets[:1] }, true},
		"a distribution's own type":   {func(l *lab) { l.chartNode(map[string]string{"node.kubernetes.io/instance-type": "k3s"}) }, true},
		"discovery has spoken":        {func(l *lab) { l.chartNode(map[string]string{nfdLabels + "cpu-hardware_multithreading": "true"}) }, false},
		"discovery has a pod there":   {func(l *lab) { l.chartNode(nil); l.pod(parts.Discovery, "n", nil) }, false},
		"a cloud names the machine":   {func(l *lab) { l.chartNode(map[string]string{"node.kubernetes.io/instance-type": "m5.large"}) }, false},
		"another node has one":        {func(l *lab) { l.chartNode(nil); l.gpuNode("other") }, false},
		"it is told that it has none": {func(l *lab) { l.chartNode(map[string]string{gpuPresent: "false"}) }, false},
		"a person chooses the nodes": {func(l *lab) {
			l.chartNode(nil)
			l.sets[parts.Plugin].Spec.Template.Spec.NodeSelector = map[string]string{"gpu": "on"}
		}, false},
		"no plugin is installed":       {func(l *lab) { l.chartNode(nil); l.DaemonSets = nil }, false},
		"what is installed is unread":  {func(l *lab) { l.chartNode(nil); l.Unread["DaemonSet"] = "no right" }, false},
		"the plugin runs there anyway": {func(l *lab) { l.chartNode(nil); l.pod(parts.Plugin, "n", nil) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			l := byChart()
			k.edit(l)
			w := view.New(l.State)
			f := Of(w).Untold(w.Nodes["n"])
			if f != nil != k.want || f != nil && (f.Certainty != diagnosis.Possible || f.Cause != diagnosis.GPUStackNotOnNode || len(f.Mends) != 1 || f.Mends[0].Unproven == "") {
				t.Errorf("got %+v", f)
			}
		})
	}
}

// A label of a GPU is a person's where node feature discovery cannot have written it: it is installed,
// has no pod there, is kept off, and nothing else of it is there.
func TestLabelsByHand(t *testing.T) {
	taint := corev1.Taint{Key: "team", Effect: corev1.TaintEffectNoSchedule}
	gpu := map[string]string{view.GPULabels[0]: "true"}
	for name, k := range map[string]struct {
		edit func(l *lab)
		want bool
	}{
		"it is kept off":            {func(l *lab) { l.chartNode(gpu, taint) }, true},
		"it selects the node":       {func(l *lab) { l.chartNode(gpu) }, false},
		"it has a pod there":        {func(l *lab) { l.chartNode(gpu, taint); l.pod(parts.Discovery, "n", nil) }, false},
		"it has told of the system": {func(l *lab) { l.chartNode(map[string]string{view.GPULabels[0]: "true", nfdLabels + "cpu": "x"}, taint) }, false},
		"it is not installed":       {func(l *lab) { l.chartNode(gpu, taint); l.DaemonSets = l.DaemonSets[:1] }, false},
	} {
		l := byChart()
		k.edit(l)
		w := view.New(l.State)
		if got := Of(w).kit.ByHand(w.Nodes["n"]); got != k.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

const withMPS = "version: v1\nsharing: {mps: {resources: [{name: nvidia.com/gpu, replicas: 10}]}}"

// A device plugin that runs and offers nothing waits for the MPS daemon only where it is told
// to share by that, and the daemon is not there.
func TestMPSDaemon(t *testing.T) {
	for name, k := range map[string]struct {
		edit func(l *lab, n *corev1.Node)
		want diagnosis.CauseID
	}{
		"told to, and it is kept off": {func(*lab, *corev1.Node) {}, diagnosis.GPUStackNotOnNode},
		"by the node's label": {func(l *lab, n *corev1.Node) {
			n.Labels[pluginConfigLabel] = "x"
			l.ConfigMaps[0].Data = map[string]string{"x": withMPS, "y": ""}
		}, diagnosis.GPUStackNotOnNode},
		"another entry is in force": {func(l *lab, n *corev1.Node) {
			n.Labels[pluginConfigLabel] = "y"
			l.ConfigMaps[0].Data = map[string]string{"x": withMPS, "y": ""}
		}, diagnosis.DevicePluginDown},
		"told to slice time": {func(l *lab, _ *corev1.Node) {
			l.ConfigMaps[0].Data["config"] = strings.Replace(withMPS, "mps:", "timeSlicing:", 1)
		}, diagnosis.DevicePluginDown},
		"its configuration was unread": {func(l *lab, _ *corev1.Node) { l.ConfigMaps = nil }, diagnosis.DevicePluginDown},
		"of another namespace":         {func(l *lab, _ *corev1.Node) { l.ConfigMaps[0].Namespace = "other" }, diagnosis.DevicePluginDown},
		"the daemon is let on":         {func(_ *lab, n *corev1.Node) { n.Labels[mpsCapable] = "true" }, diagnosis.DevicePluginDown},
		"the daemon is there":          {func(l *lab, _ *corev1.Node) { l.pod(parts.MPS, "n", nil) }, diagnosis.DevicePluginDown},
		"the daemon crashes":           {func(l *lab, _ *corev1.Node) { l.pod(parts.MPS, "n", crashes("Not Supported")) }, diagnosis.DevicePluginDown},
	} {
		t.Run(name, func(t *testing.T) {
			l := byChart()
			n := l.chartNode(map[string]string{gpuPresent: "true"})
			daemon := l.sets[parts.Discovery].DeepCopy()
			daemon.Name, daemon.UID = "mps", "mps"
			daemon.Spec.Template.Spec.NodeSelector, daemon.Spec.Template.Spec.Containers = map[string]string{mpsCapable: "true"}, []corev1.Container{{Name: view.MPSName + "-ctr"}}
			l.sets[parts.MPS], l.DaemonSets = daemon, append(l.DaemonSets, daemon)
			l.sets[parts.Plugin].Spec.Template.Spec.Volumes = []corev1.Volume{{Name: "available-configs", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "shares"}}}}}
			l.ConfigMaps = []*corev1.ConfigMap{{ObjectMeta: metav1.ObjectMeta{Namespace: "gpu-operator", Name: "shares"}, Data: map[string]string{"config": withMPS}}}
			l.pod(parts.Plugin, "n", nil)
			k.edit(l, n)
			w := view.New(l.State)
			f := Of(w).On(w.Nodes["n"])
			if f == nil || f.Cause != k.want || f.Link != Registration || strings.Contains(f.Says, mpsCapable) != (k.want == diagnosis.GPUStackNotOnNode) {
				t.Fatalf("got %+v", f)
			}
			if crashes := strings.Contains(name, "crashes"); strings.Contains(f.Says, "waits for the MPS daemon, which fails") != crashes || (f.Certainty == diagnosis.Likely && f.Mends[0].Kind == diagnosis.RepairDeviceStack) != (crashes || k.want == diagnosis.GPUStackNotOnNode) {
				t.Errorf("got %+v", f)
			}
		})
	}
}

// A pod that no container of was started is told by the volume that it lacks; what a kubelet said
// before one was is over.
func TestVolumeOfThePlugin(t *testing.T) {
	words := `MountVolume.SetUp failed for volume "c" : configmap "shares" not found`
	for name, k := range map[string]struct {
		ago      time.Duration // the kubelet said so
		started  time.Duration // the first container; 0: it was not
		message  string
		want     string
		commands string
	}{
		"it is not there":     {time.Minute, 0, words, "configmap shares is not in namespace gpu-operator", "-n gpu-operator apply -f -"},
		"another volume":      {time.Minute, 0, `MountVolume.SetUp failed for volume "nfs" : mount failed: exit status 32`, "its device plugin fails at FailedMount: MountVolume.SetUp failed", "describe pod nvidia-device-plugin-n"},
		"it came later":       {time.Hour, 30 * time.Minute, words, "has its device plugin waiting for the container toolkit", "nvidia-operator-validator"},
		"nobody said a thing": {0, 0, "", "has its device plugin waiting for the container toolkit", "nvidia-operator-validator"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab()
			l.gpuNode("n")
			l.ConfigMaps = []*corev1.ConfigMap{{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "shares"}}}
			l.pod(parts.Driver, "n", nil)
			l.pod(parts.Toolkit, "n", nil)
			l.pod(parts.Plugin, "n", func(p *corev1.Pod) {
				waits := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "PodInitializing"}}
				p.Status.Phase, p.Status.ContainerStatuses[0].Ready, p.Status.ContainerStatuses[0].State = corev1.PodPending, false, waits
				p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "toolkit-validation", State: waits}}
				if k.started > 0 {
					p.Status.InitContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{FinishedAt: metav1.NewTime(noon.Add(-k.started))}
				}
			})
			if k.message != "" {
				at := metav1.NewTime(noon.Add(-k.ago))
				l.Events = []*corev1.Event{{InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: "gpu-operator", Name: "nvidia-device-plugin-n"}, Reason: "FailedMount", Message: k.message, LastTimestamp: at}}
			}
			w := view.New(l.State)
			f := Of(w).On(w.Nodes["n"])
			if f == nil || f.Certainty != diagnosis.Likely || !strings.Contains(f.Says, k.want) || !strings.Contains(strings.Join(f.Mends[len(f.Mends)-1].Commands, "\n"), k.commands) {
				t.Errorf("got %+v", f)
			}
		})
	}
}
