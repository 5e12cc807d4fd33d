package stack

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/stack/parts"
	"github.com/unpend/unpend/rca/view"
)

// Where no device plugin is installed, what is there already says why, and what installs one.
func TestWhatInstallsAPlugin(t *testing.T) {
	policy := func(plugin any, conditions ...map[string]any) func(*lab) {
		return func(l *lab) {
			var list []any
			for _, c := range conditions {
				list = append(list, c)
			}
			spec := map[string]any{}
			if plugin != nil {
				spec["devicePlugin"] = map[string]any{"enabled": plugin}
			}
			l.ClusterPolicies = []*unstructured.Unstructured{{Object: map[string]any{"metadata": map[string]any{"name": "cp"}, "spec": spec, "status": map[string]any{"conditions": list}}}}
		}
	}
	condition := func(reason, status, message string) map[string]any {
		return map[string]any{"reason": reason, "status": status, "message": message}
	}
	offered := func(driver, node string, devices int) func(*lab) {
		return func(l *lab) {
			s := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: node + "-gpu.nvidia.com-x2k8q"}, Spec: resourcev1.ResourceSliceSpec{Driver: driver, NodeName: &node, Devices: make([]resourcev1.Device, devices)}}
			l.ResourceSlices = append(l.ResourceSlices, s)
		}
	}
	const none, nobody = "has GPUs, and no device plugin is installed that announces them", "no DaemonSet of the cluster is NVIDIA's device plugin"
	for name, k := range map[string]struct {
		edit  func(*lab)
		says  string
		fact  string
		title string
		last  string // part of the steps and commands
	}{
		"nothing is there": {func(*lab) {}, none, nobody, "install NVIDIA's GPU Operator, which announces the GPUs of n", "helm install gpu-operator"},
		"GKE's":            {func(l *lab) { l.Nodes[0].Labels["cloud.google.com/gke-accelerator"] = "nvidia-l4" }, none, nobody, "give GKE's node its device plugin back", "gcloud container node-pools describe"},
		"with taints": {func(l *lab) {
			l.Nodes[0].Spec.Taints = []corev1.Taint{{Key: "team", Effect: corev1.TaintEffectNoSchedule}, {Key: "nvidia.com/gpu", Effect: corev1.TaintEffectNoExecute}}
		}, none, nobody, "install NVIDIA's GPU Operator, which announces the GPUs of n", "tolerate its taints in daemonsets.tolerations: team:NoSchedule, nvidia.com/gpu:NoExecute"},
		"the operator's alone": {policy(nil), none, nobody, "have the GPU Operator find GPUs: install node feature discovery", "nfd.enabled=true"},
		"switched off":         {policy(false), "has GPUs, and the GPU Operator is told to install no device plugin", "spec.devicePlugin.enabled is false", "have the GPU Operator install its device plugin", "devicePlugin"},
		"switched on":          {policy(true), none, nobody, "have the GPU Operator find GPUs: install node feature discovery", "nfd.enabled=true"},
		"it finds no labels":   {policy(nil, condition("Reconciled", "True", "x"), condition("NFDLabelsMissing", "True", "no labels")), "has GPUs, and the GPU Operator installs nothing: node feature discovery is not there to label them", nobody + "; NFDLabelsMissing: no labels", "have the GPU Operator find GPUs: install node feature discovery", "nfd.enabled=true"},
		"it finds no nodes":    {policy(nil, condition("NoGPUNodes", "True", "no nodes")), "has GPUs, and the GPU Operator installs nothing: node feature discovery is not there to label them", nobody + "; NoGPUNodes: no nodes", "have the GPU Operator find GPUs: install node feature discovery", "nfd.enabled=true"},
		"it found none before": {policy(nil, condition("NoGPUNodes", "False", "no nodes")), none, nobody, "have the GPU Operator find GPUs: install node feature discovery", "nfd.enabled=true"},
		"it cannot make them":  {policy(nil, condition("ReconcileFailed", "True", "no right")), "has GPUs, and the GPU Operator cannot make what announces them: no right", nobody + "; ReconcileFailed: no right", "mend what keeps the GPU Operator from making its DaemonSets: see ClusterPolicy cp", "kubectl describe clusterpolicy cp"},
		"by DRA alone":         {offered("gpu.nvidia.com", "n", 1), "offers its GPUs through DRA alone, and no device plugin is installed that offers them by name", "driver gpu.nvidia.com offers its devices", "let DeviceClass gpu.nvidia.com stand behind nvidia.com/gpu, or ask by a ResourceClaim", "extendedResourceName"},
		"by no device":         {offered("gpu.nvidia.com", "n", 0), none, nobody, "install NVIDIA's GPU Operator, which announces the GPUs of n", "helm install gpu-operator"},
		"another driver's":     {offered("dra.example.com", "n", 1), none, nobody, "install NVIDIA's GPU Operator, which announces the GPUs of n", "helm install gpu-operator"},
		"another node's":       {offered("gpu.nvidia.com", "m", 1), none, nobody, "install NVIDIA's GPU Operator, which announces the GPUs of n", "helm install gpu-operator"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab()
			n := l.gpuNode("n")
			n.Labels = map[string]string{"karpenter.k8s.aws/instance-gpu-name": "a10g"}
			l.DaemonSets = []*appsv1.DaemonSet{}
			k.edit(l)
			w := view.New(l.State)
			f := Of(w).On(w.Nodes["n"])
			if f == nil || f.Link != Installed || f.State != Missing || f.Cause != diagnosis.GPUStackMissing || f.Says != k.says {
				t.Fatalf("%+v", f)
			}
			if taints := len(l.Nodes[0].Spec.Taints); taints == 0 && strings.Contains(strings.Join(f.Mends[0].Steps, "\n"), "taints") {
				t.Errorf("of no taint: %q", f.Mends[0].Steps)
			}
			last := f.Evidence[len(f.Evidence)-1]
			if last.Fact != k.fact {
				t.Errorf("%q, want %q", last.Fact, k.fact)
			}
			if slice, is := strings.CutPrefix(last.Ref, "ResourceSlice/"); is && slice != l.ResourceSlices[0].Name {
				t.Errorf("shown by slice %q, which does not exist", slice)
			}
			if m := f.Mends[0]; m.Title != k.title || !strings.Contains(strings.Join(append(m.Steps, m.Commands...), "\n"), k.last) {
				t.Errorf("%+v", m)
			}
		})
	}
}

// A GPU Operator that is seen, by its Deployment or by the labels that it gives nodes, may be told to bring nothing: where its
// ClusterPolicy was not read, that is said, nothing is proven by what is not there, and it is not installed a second time.
func TestPolicyThatWasNotRead(t *testing.T) {
	labelled := func(l *lab) { l.Nodes[0].Labels[deployPlugin] = "true" }
	deployed := func(l *lab) {
		d := &appsv1.Deployment{}
		d.Spec.Template.Labels, d.Spec.Template.Spec.Containers = map[string]string{"app": "gpu-operator"}, []corev1.Container{{Name: "gpu-operator"}}
		l.Deployments = append(l.Deployments, d)
	}
	forDRA := func(l *lab) {
		labelled(l)
		l.GPUClusters = []*unstructured.Unstructured{{Object: map[string]any{"metadata": map[string]any{"name": "g"}}}}
	}
	discovery := func(l *lab) {
		labelled(l)
		l.DaemonSets = []*appsv1.DaemonSet{l.sets[parts.Discovery]}
		l.Nodes[0].Spec.Taints = []corev1.Taint{{Key: "team", Effect: corev1.TaintEffectNoSchedule}}
	}
	unlabelled := func(l *lab) {
		deployed(l)
		for _, r := range []parts.Role{parts.Discovery, parts.Plugin} {
			l.DaemonSets = append(l.DaemonSets, l.sets[r])
		}
	}
	young := func(l *lab) { unlabelled(l); l.Nodes[0].CreationTimestamp = metav1.NewTime(noon) }
	const none, unsure, install = "has GPUs, and no device plugin is installed that announces them", "; what the GPU Operator is told to install was not seen", "install NVIDIA's GPU Operator, which announces the GPUs of n"
	const see = "see why the GPU Operator makes no DaemonSet of a device plugin: ClusterPolicy cluster-policy, and its log"
	for name, k := range map[string]struct {
		edit  func(*lab)
		read  bool
		want  string
		title string
	}{
		"it is not seen":             {func(*lab) {}, false, "proven: " + none, install},
		"it has labelled the node":   {labelled, false, "likely: " + none + unsure, see},
		"it is deployed":             {deployed, false, "likely: " + none + unsure, see},
		"there is none":              {labelled, true, "proven: " + none, install},
		"it brings DRA":              {forDRA, false, "proven: has GPUs that the GPU Operator is to hand out by claims alone (DRA): GPUCluster/g brings no device plugin", "let DeviceClass gpu.nvidia.com stand behind nvidia.com/gpu, or ask by a ResourceClaim"},
		"discovery is kept off":      {discovery, false, "likely: has feature.node.kubernetes.io/pci-10de.present and no other label of node feature discovery, whose DaemonSet does not run there: it does not tolerate taint team:NoSchedule" + unsure, "have gpu-operator/nfd-worker tolerate team:NoSchedule"},
		"it does not label the node": {unlabelled, false, "likely: is known to have a GPU, and the GPU Operator has not labelled it for its device plugin" + unsure, "give n the labels of the GPU Operator's parts, or see why it does not"},
		"it has still to":            {young, false, "proven: is new: GPU Operator is to label it in a few minutes", ""},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab()
			l.gpuNode("n").Labels = map[string]string{"karpenter.k8s.aws/instance-gpu-name": "a10g", view.GPULabels[0]: "true"}
			l.DaemonSets = nil
			if !k.read {
				l.Unread["ClusterPolicy"] = "no right"
			}
			k.edit(l)
			w := view.New(l.State)
			f := Of(w).On(w.Nodes["n"])
			if got := string(f.Certainty) + ": " + f.Says; got != k.want || k.title != "" && f.Mends[0].Title != k.title {
				t.Errorf("%s\n%s", got, f.Mends[0].Title)
			}
			if last := f.Evidence[len(f.Evidence)-1]; strings.HasSuffix(k.want, unsure) != (last.Fact == "ClusterPolicy: no right") {
				t.Errorf("%+v", last)
			}
		})
	}
}

// Taints that the operator's parts do not tolerate are named: not the one for GPUs, nor those of
// the node's state, nor preferences.
func TestForeignTaints(t *testing.T) {
	for _, k := range []struct {
		taint corev1.Taint
		want  string
	}{
		{corev1.Taint{Key: "team", Value: "ml", Effect: corev1.TaintEffectNoSchedule}, "team=ml:NoSchedule"},
		{corev1.Taint{Key: "team", Effect: corev1.TaintEffectPreferNoSchedule}, ""},
		{corev1.Taint{Key: "node.kubernetes.io/not-ready", Effect: corev1.TaintEffectNoExecute}, ""},
		{corev1.Taint{Key: "nvidia.com/gpu", Effect: corev1.TaintEffectNoSchedule}, ""},
		{corev1.Taint{Key: "nvidia.com/gpu", Effect: corev1.TaintEffectNoExecute}, "nvidia.com/gpu:NoExecute"},
	} {
		n := &view.Node{Node: &corev1.Node{Spec: corev1.NodeSpec{Taints: []corev1.Taint{k.taint}}}}
		if got := strings.Join(parts.Foreign(n), ", "); got != k.want {
			t.Errorf("%+v: %q", k.taint, got)
		}
	}
}

// By a GPUCluster the GPU Operator hands GPUs out by claims: no device plugin comes, and the operator is not to be installed again.
func TestAClusterThatHandsOutByClaims(t *testing.T) {
	for name, tc := range map[string]struct{ status, want string }{
		"it is ready":     {"{state: ready, conditions: [{type: Ready, status: 'True', reason: Ready}]}", "the GPU Operator brings NVIDIA's DRA driver by it, and no device plugin"},
		"it says why not": {"{state: notReady, conditions: [{type: Ready, status: 'False', reason: Error}, {type: Error, status: 'True', reason: PrerequisiteNotMet, message: no DeviceClass}]}", "the GPU Operator brings NVIDIA's DRA driver by it, and no device plugin; PrerequisiteNotMet: no DeviceClass"},
		"Ready says it":   {"{state: notReady, conditions: [{type: Ready, status: 'False', reason: PrerequisiteNotMet, message: no DeviceClass}]}", "the GPU Operator brings NVIDIA's DRA driver by it, and no device plugin; PrerequisiteNotMet: no DeviceClass"},
		"it says nothing": {"{}", "the GPU Operator brings NVIDIA's DRA driver by it, and no device plugin"},
	} {
		l := newLab()
		l.DaemonSets = nil
		l.chartNode(map[string]string{gpuPresent: "true"})
		g := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte("{metadata: {name: gc}, status: "+tc.status+"}"), &g.Object); err != nil {
			t.Fatal(err)
		}
		l.GPUClusters = []*unstructured.Unstructured{g}
		w := view.New(l.State)
		f := Of(w).missing(w.Nodes["n"])
		if e := f.Evidence[0]; f.Cause != diagnosis.GPUStackMissing || f.Says != "has GPUs that the GPU Operator is to hand out by claims alone (DRA): GPUCluster/gc brings no device plugin" || e.Ref != "GPUCluster/gc" || e.Fact != tc.want || !strings.HasPrefix(f.Mends[0].Title, "let DeviceClass gpu.nvidia.com") {
			t.Errorf("%s: %+v", name, f)
		}
	}
}
