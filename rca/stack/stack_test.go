package stack

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/stack/parts"
	"github.com/unpend/unpend/rca/view"
)

func quantity(n int64) *resource.Quantity { return resource.NewQuantity(n, resource.DecimalSI) }

// operatorPod is the GPU Operator's own, Ready where it has a node.
func operatorPod(node string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "gpu-operator-1", Labels: map[string]string{"app": "gpu-operator"}}, Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "gpu-operator"}}}}
	if node != "" {
		p.Status = corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{Name: "gpu-operator", Ready: true}}}
	}
	return p
}

// pulls is of a driver whose image is not found.
func pulls(p *corev1.Pod) {
	p.Status = corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{{Name: "nvidia-driver-ctr", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}}}}
}

// policy gives the cluster a ClusterPolicy.
func (l *lab) policy(spec map[string]any) {
	l.ClusterPolicies = []*unstructured.Unstructured{{Object: map[string]any{"metadata": map[string]any{"name": "cluster-policy"}, "spec": spec}}}
}

// What is wrong with one node, and what it is called; each row breaks one thing of a node
// whose stack is whole otherwise.
func TestStates(t *testing.T) {
	for name, k := range map[string]struct {
		edit  func(l *lab, n *corev1.Node)
		link  Link
		state State
		cause diagnosis.CauseID
		says  string
		mend  string // part of the commands and the title of the first
	}{
		"no DaemonSet": {func(l *lab, _ *corev1.Node) { l.DaemonSets = nil }, Installed, Missing, diagnosis.GPUStackMissing, "no device plugin is installed", "helm install gpu-operator"},
		"DaemonSets not read": {func(l *lab, n *corev1.Node) {
			l.DaemonSets, l.Unread["DaemonSet"] = nil, "no right to list"
			n.Labels = map[string]string{"karpenter.k8s.aws/instance-gpu-name": "a10g"}
		}, Installed, Unseen, diagnosis.GPUStackMissing, "nothing was seen that announces them", "helm install"},
		"refused by a quota": {func(l *lab, _ *corev1.Node) {
			l.pod(parts.Driver, "n", nil)
			l.pod(parts.Toolkit, "n", nil)
			l.Events = []*corev1.Event{{InvolvedObject: corev1.ObjectReference{Kind: "DaemonSet", Namespace: "gpu-operator", Name: "nvidia-device-plugin"}, Reason: "FailedCreate", Message: "Error creating: insufficient quota to match these scopes: [{PriorityClass In [system-node-critical]}]"}}
		}, PluginOnNode, KeptOff, diagnosis.GPUStackNotOnNode, "insufficient quota to match these scopes", "scopeSelector"},
		"refused for its class": {func(l *lab, _ *corev1.Node) {
			l.pod(parts.Driver, "n", nil)
			l.pod(parts.Toolkit, "n", nil)
			l.Events = []*corev1.Event{{InvolvedObject: corev1.ObjectReference{Kind: "DaemonSet", Namespace: "gpu-operator", Name: "nvidia-device-plugin"}, Reason: "FailedCreate", Message: `Error creating: pods "x" is forbidden: pods with system-node-critical priorityClass is not permitted in gpu-operator namespace`}}
		}, PluginOnNode, KeptOff, diagnosis.GPUStackNotOnNode, "priorityClass is not permitted", `"path":"/spec/template/spec/priorityClassName"`},
		"refused by pod security": {func(l *lab, _ *corev1.Node) {
			l.pod(parts.Driver, "n", nil)
			l.pod(parts.Toolkit, "n", nil)
			l.Events = []*corev1.Event{{InvolvedObject: corev1.ObjectReference{Kind: "DaemonSet", Namespace: "gpu-operator", Name: "nvidia-device-plugin"}, Reason: "FailedCreate", Message: `Error creating: pods "x" is forbidden: violates PodSecurity "restricted:latest": privileged`}}
		}, PluginOnNode, KeptOff, diagnosis.GPUStackNotOnNode, "violates PodSecurity", "pod-security.kubernetes.io/enforce=privileged"},
		"node feature discovery refused, and nothing else installed": {func(l *lab, n *corev1.Node) {
			n.Labels = map[string]string{"karpenter.k8s.aws/instance-gpu-name": "a10g"}
			l.DaemonSets = []*appsv1.DaemonSet{l.sets[parts.Discovery]}
			l.ClusterPolicies = []*unstructured.Unstructured{{Object: map[string]any{"metadata": map[string]any{"name": "cluster-policy"}}}}
			l.Events = []*corev1.Event{{InvolvedObject: corev1.ObjectReference{Kind: "DaemonSet", Namespace: "gpu-operator", Name: "nfd-worker"}, Reason: "FailedCreate", Message: `Error creating: pods "x" is forbidden: unable to validate against any security context constraint: []`}}
		}, Discovery, KeptOff, diagnosis.GPUStackNotOnNode, "unable to validate against any security context constraint", "add-scc-to-user privileged"},
		"driver not made yet": {func(_ *lab, n *corev1.Node) { n.CreationTimestamp = metav1.NewTime(noon.Add(-time.Minute)) }, Driver, Starting, diagnosis.DriverNotReady, "in a few minutes", "wait until"},
		"no driver for its kernel": {func(l *lab, _ *corev1.Node) {
			l.sets[parts.Driver].Spec.Template.Spec.NodeSelector = map[string]string{DeployDriver: "true", "feature.node.kubernetes.io/kernel-version.full": "5.15.0-1"}
		}, Driver, KeptOff, diagnosis.DriverNotReady, "kernel-version.full=5.15.0-1", "nvidiadrivers"},
		"driver paused": {func(_ *lab, n *corev1.Node) {
			for _, key := range []string{DeployDriver, deployPlugin} {
				n.Labels[key] = "paused-for-driver-upgrade"
			}
		}, Driver, Paused, diagnosis.DriverNotReady, "paused for a change of the driver", deployPlugin + "=true"},
		"upgrade held by a pod": {func(l *lab, n *corev1.Node) {
			n.Labels[UpgradeState] = "wait-for-jobs-required"
			l.Pods = append(l.Pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "held"}, Spec: corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{view.WholeGPU: *quantity(1)}}}}}, Status: corev1.PodStatus{Phase: corev1.PodRunning}})
		}, Driver, Waiting, diagnosis.DriverNotReady, "cannot upgrade its driver while pods of users hold it", "evict ml/held"},
		"given to virtual machines": {func(_ *lab, n *corev1.Node) { n.Labels[workloadKind] = "vm-passthrough" }, Labels, KeptOff, diagnosis.GPUStackNotOnNode, "gives its GPUs to virtual machines", workloadKind + "=container"},
		"given to virtual machines by default": {func(l *lab, n *corev1.Node) {
			delete(n.Labels, deployPlugin)
			n.Labels[view.GPULabels[0]] = "true"
			l.policy(map[string]any{"sandboxWorkloads": map[string]any{"enabled": true, "defaultWorkload": "vm-passthrough"}})
		}, Labels, KeptOff, diagnosis.GPUStackNotOnNode, "the GPU Operator's default is vm-passthrough", workloadKind + "=container"},
		"and that is switched off": {func(l *lab, n *corev1.Node) {
			delete(n.Labels, deployPlugin)
			n.Labels[view.GPULabels[0]] = "true"
			l.policy(map[string]any{"sandboxWorkloads": map[string]any{"enabled": false, "defaultWorkload": "vm-passthrough"}})
		}, Labels, Missing, diagnosis.GPUStackNotOnNode, "has not labelled it", deployPlugin + "=true"},
		"the operator has no node": {func(l *lab, n *corev1.Node) {
			l.DaemonSets, n.Labels = nil, map[string]string{view.GPULabels[0]: "true"}
			l.Pods = append(l.Pods, operatorPod(""))
		}, Installed, Failed, diagnosis.GPUStackMissing, "does not run: not scheduled", "unpend why pod/gpu-operator-1 -n ops"},
		"the operator crashes": {func(l *lab, n *corev1.Node) {
			l.DaemonSets, n.Labels = nil, map[string]string{view.GPULabels[0]: "true"}
			l.Pods = append(l.Pods, operatorPod("n"))
			l.Pods[0].Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "gpu-operator", RestartCount: 9, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}}}
		}, Installed, Failed, diagnosis.GPUStackMissing, "does not run: gpu-operator CrashLoopBackOff", "logs gpu-operator-1 -c gpu-operator --previous"},
		"the operator has no policy": {func(l *lab, n *corev1.Node) {
			l.DaemonSets, n.Labels = nil, map[string]string{view.GPULabels[0]: "true"}
			l.Pods = append(l.Pods, operatorPod("n"))
		}, Installed, Missing, diagnosis.GPUStackMissing, "no ClusterPolicy", "alm-examples"},
		"the policy makes nothing": {func(l *lab, n *corev1.Node) {
			l.DaemonSets, n.Labels = nil, map[string]string{view.GPULabels[0]: "true"}
			l.Pods = append(l.Pods, operatorPod("n"))
			l.policy(map[string]any{})
		}, Installed, Missing, diagnosis.GPUStackMissing, "no device plugin is installed", "see why the GPU Operator makes no DaemonSet of a device plugin"},
		"no driver is precompiled": {func(l *lab, _ *corev1.Node) {
			l.pod(parts.Driver, "n", pulls)
			l.Pods[0].Labels = map[string]string{"nvidia.com/precompiled": "true"}
		}, Driver, Failed, diagnosis.DriverNotReady, "ImagePullBackOff", `{"driver":{"usePrecompiled":false,`},
		"nor for an NVIDIADriver": {func(l *lab, _ *corev1.Node) {
			l.policy(map[string]any{"driver": map[string]any{"usePrecompiled": true}})
			l.sets[parts.Driver].OwnerReferences = []metav1.OwnerReference{{Kind: "NVIDIADriver", Name: "gold", Controller: new(true)}}
			l.pod(parts.Driver, "n", pulls)
		}, Driver, Failed, diagnosis.DriverNotReady, "ImagePullBackOff", `patch nvidiadriver gold --type=merge -p '{"spec":{"usePrecompiled":false`},
		"an image of another kind": {func(l *lab, _ *corev1.Node) {
			l.policy(map[string]any{"driver": map[string]any{"usePrecompiled": true}})
			l.pod(parts.Driver, "n", pulls)
			l.Pods[0].Labels = map[string]string{"nvidia.com/precompiled": "false"}
		}, Driver, Failed, diagnosis.DriverNotReady, "ImagePullBackOff", `{"driver":{"version":"VERSION"}}`},
		"built for the kernel before": {func(l *lab, n *corev1.Node) {
			n.Labels[parts.KernelLabel], n.Status.NodeInfo.KernelVersion = "5.14.0-1.x86_64", "5.14.0-2.x86_64"
			l.pod(parts.Driver, "n", pulls)
			l.pod(parts.Discovery, "n", nil)
		}, Driver, Failed, diagnosis.DriverNotReady, "labelled it for kernel 5.14.0-1.x86_64, and it runs 5.14.0-2.x86_64", "delete pod nfd-worker-n"},
		"of a name that labels cannot have": {func(l *lab, n *corev1.Node) {
			n.Labels[parts.KernelLabel], n.Status.NodeInfo.KernelVersion = "5.14.0-1.x86_64_rt", "5.14.0-1.x86_64+rt"
			l.pod(parts.Driver, "n", pulls)
		}, Driver, Failed, diagnosis.DriverNotReady, "ImagePullBackOff", "name a driver image"},
		"plugin waits for room": {func(l *lab, _ *corev1.Node) {
			l.pod(parts.Driver, "n", nil)
			l.pod(parts.Toolkit, "n", nil)
			l.pod(parts.Plugin, "", func(p *corev1.Pod) {
				p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"n"}}}}}}}}
				p.Status = corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "0/1 nodes are available: 1 Too many pods."}}}
			})
		}, PluginOnNode, KeptOff, diagnosis.GPUStackNotOnNode, "Too many pods", "make room"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab()
			k.edit(l, l.gpuNode("n"))
			w := view.New(l.State)
			f := Of(w).On(w.Nodes["n"])
			if f == nil || f.Link != k.link || f.State != k.state || f.Cause != k.cause || !strings.Contains(f.Says, k.says) {
				t.Fatalf("got %+v", f)
			}
			if m := f.Mends[0]; !strings.Contains(m.Title+strings.Join(m.Commands, "\n"), k.mend) {
				t.Errorf("mends %+v", f.Mends)
			} else if grants := strings.Contains(k.mend, "add-scc-to-user"); grants && m.Risk != diagnosis.MediumRisk {
				t.Errorf("every pod of the account may be privileged then: %s", m.Risk)
			}
		})
	}
}

// What tells that a machine has GPUs, and what does not.
func TestHardware(t *testing.T) {
	for label, has := range map[string]bool{
		"node.kubernetes.io/instance-type=p5en.48xlarge": true, "node.kubernetes.io/instance-type=p6-b200.48xlarge": true, "node.kubernetes.io/instance-type=g4dn.xlarge": true, "node.kubernetes.io/instance-type=gr6.4xlarge": true,
		"node.kubernetes.io/instance-type=g4ad.xlarge": false, "node.kubernetes.io/instance-type=dl1.24xlarge": false, "node.kubernetes.io/instance-type=m5.large": false, "node.kubernetes.io/instance-type=g2-standard-4": true,
		"node.kubernetes.io/instance-type=a3-highgpu-8g": true, "node.kubernetes.io/instance-type=n1-standard-4": false, "node.kubernetes.io/instance-type=Standard_NC24ads_A100_v4": true, "node.kubernetes.io/instance-type=Standard_NV4as_v4": false,
		"node.kubernetes.io/instance-type=Standard_ND96isr_MI300X_v5": false, "node.kubernetes.io/instance-type=Standard_NP10s": false, "node.kubernetes.io/instance-type=Standard_NV36ads_A10_v5": true, "karpenter.azure.com/sku-gpu-count=0": false,
		"karpenter.azure.com/sku-gpu-count=2": true, "cloud.google.com/gke-accelerator=nvidia-l4": true, "kubernetes.azure.com/accelerator=nvidia": true, "accelerator=amd": false, "feature.node.kubernetes.io/pci-0300_10de.present=true": true,
		"feature.node.kubernetes.io/pci-1002.present=true": false, "nvidia.com/gpu.present=false": false, "extensions.talos.dev/nvidia-container-toolkit-lts=1": true, "extensions.talos.dev/iscsi-tools=1": false, "eks.amazonaws.com/instance-gpu-name=l4": true,
	} {
		key, value, _ := strings.Cut(label, "=")
		l := newLab()
		l.Nodes = []*corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{key: value}}}}
		if n := view.New(l.State).Nodes["n"]; n.HasGPUs() != has || len(n.Hardware()) > 0 != has {
			t.Errorf("%s: GPUs %v, signs %v", label, n.HasGPUs(), n.Hardware())
		}
	}
}
