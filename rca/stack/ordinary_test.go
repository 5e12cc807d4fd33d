package stack

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/stack/parts"
	"github.com/unpend/unpend/rca/view"
)

// mounts has the device plugin's DaemonSet mount ConfigMaps of its namespace.
func (l *lab) mounts(names ...string) {
	spec := &l.sets[parts.Plugin].Spec.Template.Spec
	for _, name := range names {
		spec.Volumes = append(spec.Volumes, corev1.Volume{VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}}})
	}
}

// A configuration that was written after the device plugin began, and has it offer GPUs more often,
// is not in force; scripts that it mounts beside are none.
func TestAConfigurationIsReadOnce(t *testing.T) {
	const says = "its device plugin has started before ConfigMap gpu-operator/cm was last written, which shares each GPU 4 times, and offers each 2 times"
	for name, k := range map[string]struct {
		entry    string
		replicas string
		ago      time.Duration // since it was written; 0: not told
		want     string
		offers   int64 // afterwards, where the node offers 6 now; 0: nobody knows
	}{
		"it was written since":    {bySlices, "2", time.Hour, says, 12},
		"nobody says how often":   {bySlices, "", time.Hour, strings.TrimSuffix(says, ", and offers each 2 times"), 0},
		"it says that none was":   {bySlices, "1", time.Hour, strings.Replace(says, "2 times", "1 times", 1), 24},
		"by another name":         {strings.Replace(bySlices, "resources", "renameByDefault: true, resources", 1), "2", time.Hour, says, 0},
		"it was written before":   {bySlices, "2", 3 * time.Hour, "", 0},
		"nobody says when":        {bySlices, "2", 0, "ConfigMap gpu-operator/cm shares each GPU 4 times, and its device plugin offers each 2 times, as if it had started before that was written", 0},
		"nor how often":           {bySlices, "", 0, "", 0},
		"it asks what is there":   {bySlices, "4", time.Hour, "", 0},
		"it asks less":            {bySlices, "8", time.Hour, "", 0},
		"it shares others":        {strings.Replace(bySlices, "nvidia.com/gpu", "nvidia.com/mig-1g.5gb", 1), "2", time.Hour, "", 0},
		"it shares nothing":       {"version: v1", "2", time.Hour, "", 0},
		"nobody says of how many": {strings.Replace(bySlices, ", replicas: 4", "", 1), "2", time.Hour, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab()
			n := l.gpuNode("n")
			n.Labels["nvidia.com/gpu.replicas"] = k.replicas
			n.Status.Allocatable = corev1.ResourceList{view.WholeGPU: resource.MustParse("6")}
			l.mounts("entrypoint", "cm")
			cm := configMap("gpu-operator", "cm", "any", k.entry)
			if k.ago > 0 {
				cm.ManagedFields = []metav1.ManagedFieldsEntry{{Time: new(metav1.NewTime(noon.Add(-k.ago)))}, {}, {Time: new(metav1.NewTime(noon.Add(-30 * time.Hour)))}}
			}
			l.ConfigMaps = append(l.ConfigMaps, configMap("gpu-operator", "entrypoint", "entrypoint.sh", "#!/bin/bash\nexec x"), cm)
			l.pod(parts.Plugin, "n", nil)
			w := view.New(l.State)
			got := ""
			if m := Of(w).Misread(w.Nodes["n"]); m != nil {
				offers := m.Mend.Offers[view.WholeGPU]
				if got = m.Says; m.Mend.Kind != diagnosis.RestartDevicePlugin || offers.Value() != k.offers || (m.Mend.Unproven == "") != (k.offers > 0) || len(m.Evidence) != 2 {
					t.Errorf("%+v", m)
				}
			}
			if got != k.want {
				t.Errorf("%q, want %q", got, k.want)
			}
		})
	}
}

// A device plugin that is to share GPUs by MPS does so with a daemon: where none is installed that is
// why it does not run. Where one is installed, it is not.
func TestMPSWithoutItsDaemon(t *testing.T) {
	for name, k := range map[string]struct {
		entry  string
		daemon string // namespace
		want   string
	}{
		"none is installed":     {withMPS, "", "has GPUs and offers none: its device plugin is to share them by MPS, and no MPS daemon is installed: it is " + "nvidia-device-plugin CrashLoopBackOff (9 restarts; last exit 1)"},
		"it is, somewhere else": {withMPS, "other", "has GPUs and offers none: its device plugin fails at nvidia-device-plugin CrashLoopBackOff (9 restarts; last exit 1)"},
		"it shares by time":     {bySlices, "", "has GPUs and offers none: its device plugin fails at nvidia-device-plugin CrashLoopBackOff (9 restarts; last exit 1)"},
	} {
		l := newLab()
		l.gpuNode("n")
		l.mounts("cm")
		l.ConfigMaps = append(l.ConfigMaps, configMap("gpu-operator", "cm", "any", k.entry))
		for _, r := range []parts.Role{parts.Driver, parts.Toolkit} {
			l.pod(r, "n", nil)
		}
		l.pod(parts.Plugin, "n", crashes(""))
		if k.daemon != "" {
			ds := l.sets[parts.Plugin].DeepCopy()
			ds.Namespace, ds.Name, ds.Spec.Template.Spec.Containers = k.daemon, "mps", []corev1.Container{{Name: "mps-control-daemon-ctr"}}
			l.DaemonSets = append(l.DaemonSets, ds)
		}
		w := view.New(l.State)
		f := Of(w).On(w.Nodes["n"])
		if f == nil || f.Cause != diagnosis.DevicePluginDown || f.Says != k.want {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

// A maker's device plugin that goes by what Kernel Module Management says waits for its driver; that
// label is never written by hand.
func TestADriverThatIsLoadedByOthers(t *testing.T) {
	const key = "kmm.node.kubernetes.io/amd.config.ready"
	for name, k := range map[string]struct {
		selector map[string]string
		worker   bool
		cause    diagnosis.CauseID
		says     string
		command  string
	}{
		"its worker fails":      {map[string]string{key: ""}, true, diagnosis.DriverNotReady, "writes once the driver is loaded: worker CrashLoopBackOff", "logs kmm-worker-n-config"},
		"there is no worker":    {map[string]string{key: ""}, false, diagnosis.DriverNotReady, "writes once the driver is loaded", "get modules.kmm.sigs.x-k8s.io config"},
		"a label of a person's": {map[string]string{"team": "a"}, true, diagnosis.GPUStackNotOnNode, "by label team=a", "kubectl label node n team=a"},
	} {
		l := newLab()
		n := l.gpuNode("n")
		n.Labels = map[string]string{"feature.node.kubernetes.io/amd-gpu": "true"}
		ds := l.sets[parts.Plugin].DeepCopy()
		ds.Name, ds.Spec.Template.Spec.Containers, ds.Spec.Template.Spec.NodeSelector = "amd", []corev1.Container{{Image: "rocm/k8s-device-plugin:latest"}}, k.selector
		l.DaemonSets = append(l.DaemonSets, ds)
		if k.worker {
			l.pod(parts.Discovery, "n", crashes(""))
			p := l.Pods[len(l.Pods)-1]
			p.Name, p.Namespace, p.OwnerReferences = "kmm-worker-n-config", "amd", nil
			p.Labels = map[string]string{"app.kubernetes.io/component": "worker", "kmm.node.kubernetes.io/module.name": "config"}
			p.Status.ContainerStatuses[0].Name = "worker"
		}
		w := view.New(l.State)
		f := Of(w).OfMaker(w.Nodes["n"], "amd.com/gpu")
		if f == nil || f.Cause != k.cause || !strings.Contains(f.Says, k.says) {
			t.Fatalf("%s: %+v", name, f)
		}
		commands := strings.Join(f.Mends[0].Commands, "\n")
		if !strings.Contains(commands, k.command) || strings.Contains(commands, key) {
			t.Errorf("%s: %s", name, commands)
		}
	}
	for _, key := range []string{"kmm.node.kubernetes.io/config.ready", "kmm.node.kubernetes.io/a.b.device-plugin", "team/a.b.ready"} {
		if _, _, is := parts.ModuleOf(key); is {
			t.Errorf("%s is no module's", key)
		}
	}
}

// A device plugin that runs by the node's own runtime and sees no GPU, where nothing says whether
// there is one: neither may it be said that the cluster has none.
func TestAPluginThatSeesNothing(t *testing.T) {
	for name, k := range map[string]struct {
		edit func(l *lab, p *corev1.Pod)
		want string
	}{
		"it runs":           {func(*lab, *corev1.Pod) {}, "runs there and announces none"},
		"it crashes":        {func(_ *lab, p *corev1.Pod) { crashes("")(p) }, "crashes there"},
		"it has just begun": {func(_ *lab, p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(noon.Add(-time.Minute)) }, ""},
		"it names NVIDIA's": {func(_ *lab, p *corev1.Pod) { p.Spec.RuntimeClassName = new("nvidia") }, ""},
		"it names NVIDIA's, and crashes": {func(_ *lab, p *corev1.Pod) {
			p.Spec.RuntimeClassName = new("nvidia")
			crashes("")(p)
		}, "crashes there"},
		"Talos' cloud controller names none": {func(l *lab, _ *corev1.Pod) {
			l.Nodes[0].Labels = map[string]string{"node.kubernetes.io/instance-type": "metal"}
		}, "runs there and announces none"},
		"vSphere's names a virtual machine": {func(l *lab, _ *corev1.Pod) {
			l.Nodes[0].Labels, l.Nodes[0].Spec.ProviderID = map[string]string{"node.kubernetes.io/instance-type": "vsphere-vm.cpu-8.mem-32gb.os-ubuntu"}, "vsphere://4211"
		}, "runs there and announces none"},
		"it names NVIDIA's in WSL2": {func(l *lab, p *corev1.Pod) {
			p.Spec.RuntimeClassName = new("nvidia")
			l.Nodes[0].Status.NodeInfo.KernelVersion = "5.15.146.1-microsoft-standard-WSL2"
		}, "runs there and announces none"},
		"and the operator's toolkit is there": {func(l *lab, p *corev1.Pod) {
			p.Spec.RuntimeClassName = new("nvidia")
			l.Nodes[0].Status.NodeInfo.KernelVersion = "5.15.146.1-microsoft-standard-WSL2"
			l.pod(parts.Toolkit, "n", nil)
		}, ""},
		"a cloud names its type": {func(l *lab, _ *corev1.Pod) {
			l.Nodes[0].Labels = map[string]string{"node.kubernetes.io/instance-type": "m5.large"}
		}, ""},
		"another node has a GPU":    {func(l *lab, _ *corev1.Pod) { l.gpuNode("other") }, ""},
		"discovery looked, in vain": {func(l *lab, _ *corev1.Pod) { l.Nodes[0].Labels = map[string]string{nfdLabels + "cpu": "x"} }, ""},
	} {
		l := newLab()
		l.sets[parts.Plugin].Spec.Template.Spec.NodeSelector = nil
		l.chartNode(nil)
		l.pod(parts.Plugin, "n", nil)
		k.edit(l, l.Pods[0])
		w := view.New(l.State)
		s := Of(w)
		f := s.Untold(w.Nodes["n"])
		if f == nil != (k.want == "") || f != nil && (!strings.Contains(f.Says, k.want) || f.Cause != map[bool]diagnosis.CauseID{true: diagnosis.DevicePluginDown, false: diagnosis.RuntimeNotConfigured}[name == "it names NVIDIA's, and crashes"] || f.Certainty != diagnosis.Possible || f.Mends[0].Unproven == "") {
			t.Errorf("%s: %+v", name, f)
		}
		if s.Unlooked() != (k.want != "") {
			t.Errorf("%s: unlooked %v", name, s.Unlooked())
		}
	}
}

// Where a container runtime is configured, by who ships it.
func TestWhereARuntimeIsConfigured(t *testing.T) {
	for want, info := range map[string]corev1.NodeSystemInfo{
		"--config=/etc/k0s/containerd.d/nvidia.toml":               {KubeletVersion: "v1.33.4+k0s"},
		"talosctl -n n get extensions":                             {OSImage: "Talos (v1.11.3)"},
		"--runtime=containerd --set-as-default":                    {ContainerRuntimeVersion: "containerd://2.1.4"},
		"/var/snap/microk8s/current/args/containerd-template.toml": {KubeletVersion: "v1.33.4"},
	} {
		l := newLab()
		n := l.gpuNode("n")
		n.Status.NodeInfo = info
		if strings.Contains(want, "microk8s") {
			n.Labels["microk8s.io/cluster"] = "true"
		}
		w := view.New(l.State)
		if got := strings.Join(Of(w).configure(w.Nodes["n"]).Commands, "\n"); !strings.Contains(got, want) {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// By strategy single, a plugin that crashes beside a labeller that does may lack instances.
func TestMIGWithoutInstances(t *testing.T) {
	for name, k := range map[string]struct {
		edit func(l *lab, n *corev1.Node)
		want bool
	}{
		"both crash":       {func(*lab, *corev1.Node) {}, true},
		"another strategy": {func(l *lab, _ *corev1.Node) { l.policy(map[string]any{"mig": map[string]any{"strategy": "mixed"}}) }, false},
		"the labeller is well": {func(l *lab, _ *corev1.Node) {
			l.Pods[0].Status.ContainerStatuses[0] = corev1.ContainerStatus{Ready: true}
		}, false},
		"there is no labeller":  {func(l *lab, _ *corev1.Node) { l.Pods = nil }, false},
		"MIG manager is let on": {func(_ *lab, n *corev1.Node) { n.Labels[parts.Deploys+"mig-manager"] = "true" }, false},
		"it has spoken":         {func(_ *lab, n *corev1.Node) { n.Labels["nvidia.com/mig.capable"] = "false" }, false},
	} {
		l := newLab()
		n := l.gpuNode("n")
		l.policy(map[string]any{"mig": map[string]any{"strategy": "single"}})
		l.sets[parts.Features] = l.sets[parts.Plugin].DeepCopy()
		l.sets[parts.Features].Name, l.sets[parts.Features].Spec.Template.Spec.Containers = "gfd", []corev1.Container{{Name: "gpu-feature-discovery"}}
		l.DaemonSets = append(l.DaemonSets, l.sets[parts.Features])
		l.pod(parts.Features, "n", crashes(""))
		k.edit(l, n)
		w := view.New(l.State)
		if got := Of(w).mayLackInstances(w.Nodes["n"]); got != k.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
