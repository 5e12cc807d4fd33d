package stack

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/stack/parts"
	"github.com/unpend/unpend/rca/view"
)

const bySlices = "version: v1\nsharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}"

func configMap(namespace, name string, pairs ...string) *corev1.ConfigMap {
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string]string{}}
	for i := 0; i < len(pairs); i += 2 {
		cm.Data[pairs[i]] = pairs[i+1]
	}
	return cm
}

// The node's label names an entry that shares its GPUs, and the plugin there has no part that
// looks at the label. Where the ConfigMap was not read the label is told of all the same.
func TestLabelThatNobodyReads(t *testing.T) {
	const unread = "its label nvidia.com/device-plugin.config=four is read by nobody: the device plugin gpu-operator/nvidia-device-plugin runs without a config manager"
	const patch, helm = "patch clusterpolicy cluster-policy", "helm upgrade RELEASE"
	chart := func(l *lab) { l.sets[parts.Plugin].Spec.Template.Spec.NodeSelector = nil }
	for name, k := range map[string]struct {
		edit          func(l *lab, n *corev1.Node)
		want, command string
		facts         int
	}{
		"of the operator": {func(l *lab, _ *corev1.Node) {
			l.ConfigMaps = []*corev1.ConfigMap{configMap("x", "other", "four", bySlices), configMap("gpu-operator", "plugin", "four", bySlices)}
		}, unread, `"config":{"name":"plugin"}`, 3},
		"of a chart": {func(l *lab, _ *corev1.Node) {
			chart(l)
			l.sets[parts.Plugin].Labels = map[string]string{"app.kubernetes.io/managed-by": "Helm"}
		}, unread, helm, 2},
		"of a manifest": {func(l *lab, _ *corev1.Node) {
			chart(l)
			l.ConfigMaps = []*corev1.ConfigMap{configMap("b", "plugin", "four", bySlices), configMap("a", "plugin", "four", bySlices)}
		}, unread, "-n a --set config.name=plugin", 3},
		"its entry shares nothing": {func(l *lab, _ *corev1.Node) {
			l.ConfigMaps = []*corev1.ConfigMap{configMap("gpu-operator", "plugin", "four", "version: v1")}
		}, unread, patch, 2},
		"GPU feature discovery says that they are shared": {func(_ *lab, n *corev1.Node) { n.Labels["nvidia.com/gpu.replicas"] = "4" }, "", "", 0},
		"it has a config manager by name": {func(l *lab, _ *corev1.Node) {
			l.sets[parts.Plugin].Spec.Template.Spec.Containers = append(l.sets[parts.Plugin].Spec.Template.Spec.Containers, corev1.Container{Name: "config-manager"})
		}, "", "", 0},
		"by command": {func(l *lab, _ *corev1.Node) {
			l.sets[parts.Plugin].Spec.Template.Spec.InitContainers = []corev1.Container{{Name: "init", Command: []string{"config-manager"}}}
		}, "", "", 0},
		"by its environment": {func(l *lab, _ *corev1.Node) {
			l.sets[parts.Plugin].Spec.Template.Spec.InitContainers = []corev1.Container{{Name: "init", Env: []corev1.EnvVar{{Name: "NODE_LABEL"}}}}
		}, "", "", 0},
		"there is no label":  {func(_ *lab, n *corev1.Node) { delete(n.Labels, pluginConfigLabel) }, "", "", 0},
		"there is no plugin": {func(l *lab, _ *corev1.Node) { l.DaemonSets = nil; l.sets[parts.Plugin].Name = "other" }, "", "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab()
			n := l.gpuNode("n")
			n.Labels[pluginConfigLabel] = "four"
			k.edit(l, n)
			l.pod(parts.Plugin, "n", nil)
			w := view.New(l.State)
			m := Of(w).Misread(w.Nodes["n"])
			if k.want == "" {
				if m != nil {
					t.Errorf("%+v", m)
				}
				return
			}
			if m == nil || m.Says != k.want || len(m.Evidence) != k.facts || m.Mend.Unproven == "" || !strings.Contains(strings.Join(m.Mend.Commands, "\n"), k.command) {
				t.Errorf("%+v", m)
			}
		})
	}
}

// A ConfigMap in the plugin's environment is no file, and a line in the wrong place is not read.
func TestConfigurationsOutOfPlace(t *testing.T) {
	const renames = "version: v1\nflags: {renameByDefault: true}\nsharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}"
	l := newLab()
	l.gpuNode("n")
	spec := &l.sets[parts.Plugin].Spec.Template.Spec
	spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{}, {ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "cm"}}}}
	l.ConfigMaps = []*corev1.ConfigMap{configMap("x", "cm", "any", bySlices), configMap("gpu-operator", "cm", "any", bySlices, "b", "no: [")}
	l.pod(parts.Plugin, "n", nil)
	w := view.New(l.State)
	if m := Of(w).Misread(w.Nodes["n"]); m == nil || m.Says != "ConfigMap gpu-operator/cm is only in the environment of the device plugin, which reads its configuration from a file" {
		t.Errorf("%+v", m)
	}
	for entry, want := range map[string]string{
		renames: "renameByDefault stands below flags in ConfigMap gpu-operator/cm, where the device plugin does not look",
		strings.Replace(renames, "timeSlicing: {", "timeSlicing: {renameByDefault: true, ", 1): "",
		strings.Replace(renames, "true", "false", 1):                                           "",
		bySlices:  "",
		"sharing": "",
	} {
		l := newLab()
		l.gpuNode("n")
		l.sets[parts.Plugin].Spec.Template.Spec.Volumes = []corev1.Volume{{}, {VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "cm"}}}}}
		l.ConfigMaps = []*corev1.ConfigMap{configMap("gpu-operator", "cm", "any", entry)}
		l.pod(parts.Plugin, "n", nil)
		w := view.New(l.State)
		got := ""
		if m := Of(w).Misnamed(w.Nodes["n"]); m != nil {
			got = m.Says
		}
		if got != want {
			t.Errorf("%s: %q, want %q", entry, got, want)
		}
	}
	l = newLab()
	l.gpuNode("n")
	w = view.New(l.State)
	if m := Of(w).Misnamed(w.Nodes["n"]); m != nil {
		t.Errorf("of no plugin: %+v", m)
	}
}

// A layout that the node's label asks for is carried out by nobody where MIG manager is kept off;
// where it is there, or has said something, or is not to be seen at all, nothing is told.
func TestLayoutThatNobodyCarriesOut(t *testing.T) {
	const label = parts.Deploys + "mig-manager"
	for name, k := range map[string]struct {
		edit func(l *lab, n *corev1.Node)
		want bool
	}{
		"kept off":             {func(*lab, *corev1.Node) {}, true},
		"nothing is asked":     {func(_ *lab, n *corev1.Node) { delete(n.Labels, view.LabelMIGConfig) }, false},
		"it has said so":       {func(_ *lab, n *corev1.Node) { n.Labels[view.LabelMIGState] = "success" }, false},
		"it is let on":         {func(_ *lab, n *corev1.Node) { n.Labels[label] = "true" }, false},
		"it is there":          {func(l *lab, _ *corev1.Node) { l.pod(parts.MIGManager, "n", nil) }, false},
		"it is not to be seen": {func(l *lab, _ *corev1.Node) { l.DaemonSets = l.DaemonSets[:4] }, false},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab()
			n := l.gpuNode("n")
			n.Labels[view.LabelMIGConfig] = "all-1g.5gb"
			ds := l.sets[parts.Plugin].DeepCopy()
			ds.Name, ds.UID = view.MIGManagerName, "mig"
			ds.Spec.Template.Spec.Containers[0].Name, ds.Spec.Template.Spec.NodeSelector = view.MIGManagerName, map[string]string{label: "true"}
			l.sets[parts.MIGManager], l.DaemonSets = ds, append(l.DaemonSets, ds)
			k.edit(l, n)
			w := view.New(l.State)
			m := Of(w).LayoutUnread(w.Nodes["n"])
			if (m != nil) != k.want {
				t.Fatalf("%+v", m)
			}
			if m != nil && (m.Says != "its label nvidia.com/mig.config=all-1g.5gb is read by nobody: gpu-operator/nvidia-mig-manager has no pod there: it selects nodes by label nvidia.com/gpu.deploy.mig-manager=true, which is absent" || m.Mend.Title != "label n "+label+"=true" || m.Mend.Unproven == "") {
				t.Errorf("%+v", m)
			}
		})
	}
}

// What is tolerated already is written out again: a list replaces the one before. Clouds' own
// machines are mended in their own way.
func TestWhatACommandWrites(t *testing.T) {
	l := newLab()
	n := l.gpuNode("n")
	n.Spec.Taints = []corev1.Taint{{Key: "team", Value: "a", Effect: corev1.TaintEffectNoSchedule}, {Key: "late", Effect: corev1.TaintEffectNoExecute}}
	l.sets[parts.Driver].Spec.Template.Spec.Tolerations = []corev1.Toleration{{Key: "old", Operator: corev1.TolerationOpExists}}
	w := view.New(l.State)
	s := Of(w)
	const gpus, both = `{"key":"nvidia.com/gpu","operator":"Exists","effect":"NoSchedule"}`, `{"key":"team","operator":"Equal","value":"a","effect":"NoSchedule"},{"key":"late","operator":"Exists","effect":"NoExecute"}]}}`
	if got, want := s.tolerate(s.kit.Sets(parts.Driver)[0], n.Spec.Taints), `kubectl patch clusterpolicy cluster-policy --type=merge -p '{"spec":{"daemonsets":{"tolerations":[`+gpus+`,{"key":"old","operator":"Exists"},`+both+`}'`; got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	n.Labels = map[string]string{"kubernetes.azure.com/agentpool": "gpus"}
	got := s.install(w.Nodes["n"])
	if want := `kubectl -n kube-system patch daemonset nvidia-device-plugin-daemonset --type=merge -p '{"spec":{"template":{"spec":{"tolerations":[` + gpus + `,` + both + `}}'`; len(got.Commands) != 3 || got.Commands[1] != want {
		t.Errorf("%q", got.Commands)
	}
	n.Labels = map[string]string{"cloud.google.com/gke-accelerator": "nvidia-l4"}
	if got := s.configure(w.Nodes["n"]); !strings.Contains(got.Commands[0], "RUNTIME_CONFIG_SOURCE") || strings.Contains(strings.Join(got.Commands, "\n"), "nvidia-ctk") {
		t.Errorf("%q", got.Commands)
	}
}
