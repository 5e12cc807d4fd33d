package kubelet

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/rcatest"
	"github.com/unpend/unpend/rca/view"
	"github.com/unpend/unpend/watcher/incident"
)

// stoppedIn is pod a/w on node n, which is not begun for a reason.
func stoppedIn(w *rcatest.World, reason, says string) []*corev1.Pod {
	node(w)
	p := w.Wait
	p.Spec.NodeName = "n"
	w.Asking(rcatest.List("nvidia.com/gpu", "1"))
	if incident.Hinders(reason) {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReadyToStartContainers, Reason: reason, Message: says}}
	} else {
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: says}}}}
	}
	return []*corev1.Pod{p}
}

// claimOf has the pod use a claim, beside others who use others.
func claimOf(w *rcatest.World, volume string) {
	using := func(claim string) []corev1.Volume {
		return []corev1.Volume{{Name: "scratch"}, {Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}}}
	}
	claim := func(ns, name, volume string) *corev1.PersistentVolumeClaim {
		return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Spec: corev1.PersistentVolumeClaimSpec{VolumeName: volume}}
	}
	pod := func(ns, name, on, uses string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Spec: corev1.PodSpec{NodeName: on, Volumes: using(uses)}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
	}
	w.Wait.Spec.Volumes = using("model")
	w.PVCs = append(w.PVCs, claim("b", "model", volume), claim("a", "aside", volume), claim("a", "model", "pv-of-it"), claim("a", "model", volume))
	w.Pods = append(w.Pods, pod("b", "a1", "m", "model"), pod("a", "a2", "", "model"), pod("a", "a3", "m", "aside"))
}

// userOn is another pod that uses the claim.
func userOn(w *rcatest.World, name, on string, phase corev1.PodPhase, made, hash string) {
	yes := true
	owners := []metav1.OwnerReference{{Kind: "Notebook", Name: "x"}, {Kind: "ReplicaSet", Name: made + "-" + hash, Controller: &yes}}
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name, Labels: map[string]string{"pod-template-hash": hash}, OwnerReferences: owners},
		Spec: corev1.PodSpec{NodeName: on, Volumes: w.Wait.Spec.Volumes}, Status: corev1.PodStatus{Phase: phase}}
	w.Pods = append(w.Pods, p)
}

// downAt has a node's kubelet no longer answer, with its pods on their way out or not.
func downAt(name string, leave bool) func(*rcatest.World) {
	return func(w *rcatest.World) {
		w.AddNode(sim.Node{Name: name})
		n := w.Nodes[len(w.Nodes)-1]
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeDiskPressure, Status: corev1.ConditionUnknown}, {Type: corev1.NodeReady, Status: corev1.ConditionUnknown}}
		for _, p := range w.Pods {
			if leave && p.Spec.NodeName == name {
				p.DeletionTimestamp = &metav1.Time{Time: rcatest.Noon}
			}
		}
	}
}

// csiPlugin is the DaemonSet that registers a driver, and taints node n.
func csiPlugin(w *rcatest.World, tolerations ...corev1.Toleration) {
	d := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "s", Name: "plugin"}, Spec: appsv1.DaemonSetSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Tolerations: tolerations,
		Containers: []corev1.Container{{Name: "registrar", Args: []string{"--v=2", "--kubelet-registration-path=/var/lib/kubelet/plugins/d.example/csi.sock"}}}}}}}
	w.Nodes[0].Spec.Taints = []corev1.Taint{{Key: "node.kubernetes.io/unreachable", Effect: corev1.TaintEffectNoExecute}, {Key: "soft", Effect: corev1.TaintEffectPreferNoSchedule}, {Key: "gpu", Value: "yes", Effect: corev1.TaintEffectNoSchedule}}
	w.DaemonSets = append(w.DaemonSets, d)
	yes := true
	for _, of := range [][3]string{{"s", "ReplicaSet", "plugin"}, {"s", "DaemonSet", "another"}, {"t", "DaemonSet", "plugin"}} {
		w.Pods = append(w.Pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: of[0], Name: of[1] + of[2], OwnerReferences: []metav1.OwnerReference{{Kind: of[1], Name: of[2], Controller: &yes}}}, Spec: corev1.PodSpec{NodeName: "n"}})
	}
	w.Pods = append(w.Pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "s", Name: "elsewhere", OwnerReferences: []metav1.OwnerReference{{Kind: "DaemonSet", Name: "plugin", Controller: &yes}}}, Spec: corev1.PodSpec{NodeName: "o"}})
}

// What stops a pod on its node is told by the words of who says it, and by the objects that they
// name; each has its cause and what a person does about it.
func TestStopOf(t *testing.T) {
	const (
		noRuntime = `Failed to create pod sandbox: rpc error: code = Unknown desc = failed to get sandbox runtime: no runtime for "nvidia" is configured`
		multi     = `Multi-Attach error for volume "pv-1" Volume is already used by pod(s) old`
		late      = "Unable to attach or mount volumes: unmounted volumes=[data], unattached volumes=[]: out of time"
		notInTime = "VolumeConflict Manual: it has its node, and the kubelet of n cannot mount its volumes | see why n cannot mount the pod's volume: Unable to attach or mou … s=[data], unattached volumes=[]: out of time"
		away      = "MountVolume.MountDevice failed for volume \"pv-1\" : driver name d.example not found in the list of registered CSI drivers"
		cdi       = "failed to create containerd container: CDI device injection failed: unresolvable CDI devices nvidia.com/gpu=0"
	)
	named := func(handler string) func(*rcatest.World) {
		return func(w *rcatest.World) {
			name := "mine"
			w.Wait.Spec.RuntimeClassName = &name
			w.RuntimeClasses = append(w.RuntimeClasses, &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: "other"}, Handler: "x"}, &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: "mine"}, Handler: handler})
		}
	}
	with := func(edits ...func(*rcatest.World)) func(*rcatest.World) {
		return func(w *rcatest.World) {
			claimOf(w, "pv-1")
			for _, edit := range edits {
				edit(w)
			}
		}
	}
	user := func(name, on string, phase corev1.PodPhase) func(*rcatest.World) {
		return func(w *rcatest.World) { userOn(w, name, on, phase, "serve", "1") }
	}
	once := func(modes ...corev1.PersistentVolumeAccessMode) func(*rcatest.World) {
		return func(w *rcatest.World) { w.PVCs[len(w.PVCs)-1].Spec.AccessModes = modes }
	}
	hook := "error running hook #0: exit status 1, stderr: nvidia-container-cli: mount error: file creation failed: /usr/bin/nvidia-smi: file exists: unknown"
	twin := func(kind, image string) func(*rcatest.World) {
		return func(w *rcatest.World) {
			yes := true
			by := []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "serve-1", UID: "rs", Controller: &yes}}
			w.Wait.OwnerReferences = by
			w.AddNode(sim.Node{Name: "m"})
			w.Nodes[0].Labels[corev1.LabelInstanceTypeStable], w.Nodes[1].Labels[corev1.LabelInstanceTypeStable] = "g5.xlarge", kind
			if image != "" {
				w.Nodes[0].Status.NodeInfo.OSImage, w.Nodes[1].Status.NodeInfo.OSImage = "newer", image
			}
			w.Pods = append(w.Pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "as", OwnerReferences: by}, Spec: corev1.PodSpec{NodeName: "m"},
				Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}})
		}
	}
	whoStops := map[string]string{"not in time, and used elsewhere": "old", "used on another": "old", "down, and it is to stay": "old", "used by its predecessor": "old", "several use it": "old2 old1 other", "a pod of nobody's": "mine", "by a Job": "run", "its driver is kept off": "elsewhere", "and tolerates others": "elsewhere", "its driver is there": "plugin-x"}
	for name, c := range map[string]struct {
		reason, says string
		edit         func(*rcatest.World)
		want         string // cause, kind, what is said without its quote, title
		has          string // in its commands, or evidence
	}{
		"no runtime":                  {incident.FailedSandbox, noRuntime, nil, `RuntimeNotConfigured RepairDeviceStack: the container runtime of n has no handler "nvidia", which the pod asks for | configure NVIDIA's runtime on n, as handler "nvidia"`, "nvidia-ctk runtime configure --runtime=containerd"},
		"no runtime of its class":     {incident.FailedSandbox, noRuntime, named("nvidia"), `RuntimeNotConfigured RepairDeviceStack: the container runtime of n has no handler "nvidia", which RuntimeClass mine names | configure NVIDIA's runtime on n, as handler "nvidia"`, "handler: nvidia"},
		"in CRI-O's words":            {incident.FailedSandbox, `failed to find runtime handler nvidia from runtime list map[runc:0x1]`, nil, `RuntimeNotConfigured RepairDeviceStack: the container runtime of n has no handler "nvidia", which the pod asks for | configure NVIDIA's runtime on n, as handler "nvidia"`, ""},
		"another runtime":             {incident.FailedSandbox, `no runtime for "kata-qemu" is configured`, nil, `RuntimeNotConfigured RepairDeviceStack: the container runtime of n has no handler "kata-qemu", which the pod asks for | configure a runtime on n with handler "kata-qemu", or name a RuntimeClass that it has`, "kubectl get runtimeclasses"},
		"Kata without a port":         {incident.FailedContainer, "CreateContainer failed: cold_plug_vfio= or hot_plug_vfio= port is not set for device 0000:5e:02.1 (BridgePort | RootPort | SwitchPort)", nil, `RuntimeNotConfigured RepairDeviceStack: Kata Containers on n has no port to plug 0000:5e:02.1 into its machine: the configuration that it reads sets none | set hot_plug_vfio or cold_plug_vfio of Kata Containers on n, in the file that its handler reads`, "'runtimes.kata'"},
		"and for its sandbox":         {incident.FailedSandbox, "Failed to create pod sandbox: cold_plug_vfio= or hot_plug_vfio= port is not set for device 0000:5e:02.1 (BridgePort | RootPort | SwitchPort): unknown", named("kata-qemu"), `RuntimeNotConfigured RepairDeviceStack: Kata Containers on n has no port to plug 0000:5e:02.1 into its machine: the configuration that it reads sets none | set hot_plug_vfio or cold_plug_vfio of Kata Containers on n, in the file that its handler kata-qemu reads`, "'runtimes.kata-qemu'"},
		"no network":                  {incident.FailedSandbox, `(combined from similar events): Failed to create pod sandbox: rpc error: code = Unknown desc = no network`, nil, `Unknown Manual: it has its node: the kubelet of n cannot begin its sandbox | see on n why the kubelet cannot begin its sandbox: no network`, "FailedCreatePodSandBox: Failed to create pod sandbox"},
		"a CDI device":                {incident.FailedContainer, cdi, nil, `RuntimeNotConfigured RepairDeviceStack: the container runtime of n knows no CDI device nvidia.com/gpu=0: no specification on the machine describes it | have CDI's specification of its GPUs written on n`, "nvidia-ctk cdi generate"},
		"one of the operator's":       {incident.FailedContainer, strings.ReplaceAll(cdi, "nvidia.com/gpu=0", "management.nvidia.com/gpu=GPU-1"), named("nvidia"), `RuntimeNotConfigured RepairDeviceStack: the container runtime of n knows no CDI device management.nvidia.com/gpu=GPU-1: no specification on the machine describes it; of that kind NVIDIA's toolkit describes all GPUs as one, for the operator's own pods, and the pod comes there by RuntimeClass mine | take RuntimeClass mine from the pod's template, or have CDI's specification of each GPU written on n`, "nvidia-ctk cdi generate --vendor=management.nvidia.com --class=gpu --device-name-strategy=uuid --output=/etc/cdi/management.nvidia.com-gpu-each.yaml"},
		"all of the operator's":       {incident.FailedContainer, strings.ReplaceAll(cdi, "nvidia.com/gpu=0", "management.nvidia.com/gpu=all"), named("nvidia"), `RuntimeNotConfigured RepairDeviceStack: the container runtime of n knows no CDI device management.nvidia.com/gpu=all: no specification on the machine describes it | have CDI's specification of its GPUs written on n`, "--vendor=management.nvidia.com"},
		"another maker's":             {incident.FailedContainer, strings.ReplaceAll(cdi, "nvidia.com/gpu=0", "intel.cdi.k8s.io/gpu=card0"), nil, `RuntimeNotConfigured RepairDeviceStack: the container runtime of n knows no CDI device intel.cdi.k8s.io/gpu=card0: no specification on the machine describes it where the runtime looks; the device plugin or driver of intel.cdi.k8s.io is to describe it | have the runtime of n find what the device plugin or driver of intel.cdi.k8s.io describes`, "is intel.cdi.k8s.io-*.yaml there?"},
		"the plugin's":                {incident.FailedContainer, strings.ReplaceAll(cdi, "nvidia.com/gpu=0", "k8s.device-plugin.nvidia.com/gpu=GPU-1, k8s.device-plugin.nvidia.com/gpu=GPU-2"), nil, `RuntimeNotConfigured RepairDeviceStack: the container runtime of n knows no CDI device k8s.device-plugin.nvidia.com/gpu=GPU-1: no specification on the machine describes it where the runtime looks; NVIDIA's device plugin is to describe it | have the runtime of n find what NVIDIA's device plugin describes`, "is k8s.device-plugin.nvidia.com-*.yaml there?"},
		"the driver":                  {incident.FailedRun, "nvidia-container-cli: initialization error: nvml error: driver not loaded", nil, `DriverNotReady RepairDeviceStack: NVIDIA's driver does not answer the container runtime of n | have NVIDIA's driver of n answer again`, "lsmod"},
		"libraries of another driver": {incident.FailedRun, "nvidia-container-cli: initialization error: nvml error: driver/library version mismatch: unknown", nil, `DriverNotReady RebootNode: NVIDIA's driver does not answer the container runtime of n: its libraries are not of the version of the module that is loaded | reboot n: its driver's libraries are not of the version of the module that is loaded, and the next boot loads theirs`, "kubectl drain n"},
		"NVIDIA's runtime":            {incident.FailedRun, "nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.8", nil, `RuntimeNotConfigured RepairDeviceStack: NVIDIA's container runtime fails on n | mend NVIDIA's container runtime on n`, ""},
		"NVIDIA's hook":               {incident.FailedRun, hook, nil, `RuntimeNotConfigured RepairDeviceStack: NVIDIA's container runtime is configured on n, and its hook fails | see why the hook of NVIDIA's container runtime fails on n`, "nvidia-container-cli -k"},
		"and works on one alike":      {incident.FailedRun, hook, twin("g5.xlarge", ""), `RuntimeNotConfigured RepairDeviceStack: NVIDIA's container runtime is configured on n, and its hook fails; on m, a machine of the same kind, another pod of its owner runs | see what the hook of NVIDIA's container runtime finds on n that it does not on m`, "is a g5.xlarge"},
		"and on one of another kind":  {incident.FailedRun, hook, twin("g4dn.xlarge", "older"), `RuntimeNotConfigured RepairDeviceStack: NVIDIA's container runtime is configured on n, and its hook fails | see why the hook of NVIDIA's container runtime fails on n`, ""},
		"and on one of another image": {incident.FailedRun, hook, twin("g5.xlarge", "older"), `RuntimeNotConfigured RepairDeviceStack: NVIDIA's container runtime is configured on n, and its hook fails; on m, a machine of the same kind with another image (older), another pod of its owner runs | give n the image of m, on which it works (older): have it made again with that`, "kubectl drain n"},
		"on a Jetson":                 {incident.FailedRun, strings.ReplaceAll(cdi, "=0", "=tegra"), func(w *rcatest.World) { w.Nodes[0].Status.NodeInfo.KernelVersion = "5.15.148-tegra" }, `RuntimeNotConfigured RepairDeviceStack: the container runtime of n knows no CDI device nvidia.com/gpu=tegra: no specification on the machine describes it | have NVIDIA's container runtime of n, which is a Jetson, give the GPU by its lists of files (mode csv), not by CDI`, "mode=csv"},
		"another container's trouble": {incident.FailedContainer, "no such user", nil, `Unknown Manual: it has its node: the kubelet of n cannot begin its container | see on n why the kubelet cannot begin its container: no such user`, "c: CreateContainerError: no such user"},
		"attached to a node":          {incident.FailedAttach, multi, with(), `VolumeConflict Manual: it has its node n, and volume pv-1 of PersistentVolumeClaim model is attached to another, as it may be to one at a time | have the node that has volume pv-1 of PersistentVolumeClaim model give it back`, "out-of-service"},
		"used on another":             {incident.FailedAttach, multi, with(user("old", "m", corev1.PodRunning)), `VolumeConflict Manual: it has its node n, and volume pv-1 of PersistentVolumeClaim model is attached to m, where a/old uses it, as it may be to one at a time | stop a/old on m, for volume pv-1 of PersistentVolumeClaim model, or give the pod one of its own`, "scale replicaset/serve-1 --replicas=0"},
		"used by its predecessor": {incident.FailedAttach, multi, with(func(w *rcatest.World) {
			yes := true
			no := false
			w.Wait.Labels, w.Wait.OwnerReferences = map[string]string{"pod-template-hash": "2"}, []metav1.OwnerReference{{Kind: "Set", Name: "y", Controller: &no}, {Kind: "ReplicaSet", Name: "serve-2", Controller: &yes}}
			for _, name := range []string{"serve-1", "serve-2"} {
				w.ReplicaSets = append(w.ReplicaSets, &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name, OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "serve", Controller: &yes}}}})
			}
		}, user("old", "m", corev1.PodRunning)), `VolumeConflict Manual: it has its node n, and volume pv-1 of PersistentVolumeClaim model is attached to m, where a/old uses it, as it may be to one at a time | have the rollout of deployment/serve stop its old pods before it makes new ones (strategy Recreate): they have volume pv-1 of PersistentVolumeClaim model`, `"type":"Recreate"`},
		"several use it":                  {incident.FailedAttach, multi, with(user("old2", "m", corev1.PodRunning), user("old1", "m", corev1.PodRunning), user("other", "o", corev1.PodRunning)), `VolumeConflict Manual: it has its node n, and volume pv-1 of PersistentVolumeClaim model is attached to m, where 2 pods (a/old1, …) use it, as it may be to one at a time | stop 2 pods (a/old1, …) on m, for volume pv-1 of PersistentVolumeClaim model, or give the pod one of its own`, "scale replicaset/serve-1 --replicas=0"},
		"a pod of nobody's":               {incident.FailedAttach, multi, with(user("mine", "m", corev1.PodRunning), func(w *rcatest.World) { w.Pods[len(w.Pods)-1].OwnerReferences = nil }), `VolumeConflict Manual: it has its node n, and volume pv-1 of PersistentVolumeClaim model is attached to m, where a/mine uses it, as it may be to one at a time | stop a/mine on m, for volume pv-1 of PersistentVolumeClaim model, or give the pod one of its own`, "delete pod mine"},
		"by a Job":                        {incident.FailedAttach, multi, with(user("run", "m", corev1.PodRunning), func(w *rcatest.World) { w.Pods[len(w.Pods)-1].OwnerReferences[1].Kind = "Job" }), `VolumeConflict Manual: it has its node n, and volume pv-1 of PersistentVolumeClaim model is attached to m, where a/run uses it, as it may be to one at a time | stop a/run on m, for volume pv-1 of PersistentVolumeClaim model, or give the pod one of its own`, "get job serve-1 -o yaml"},
		"who used it has ended":           {incident.FailedAttach, multi, with(user("old", "m", corev1.PodSucceeded)), `VolumeConflict Manual: it has its node n, and volume pv-1 of PersistentVolumeClaim model is attached to another, as it may be to one at a time | have the node that has volume pv-1 of PersistentVolumeClaim model give it back`, ""},
		"who uses it is here too":         {incident.FailedAttach, multi, with(user("old", "n", corev1.PodRunning)), `VolumeConflict Manual: it has its node n, and volume pv-1 of PersistentVolumeClaim model is attached to another, as it may be to one at a time | have the node that has volume pv-1 of PersistentVolumeClaim model give it back`, ""},
		"not in time, and used elsewhere": {incident.FailedMount, late, with(once(corev1.ReadWriteOnce), user("old", "m", corev1.PodRunning)), `VolumeConflict Manual: it has its node n, and volume pv-1 of PersistentVolumeClaim model is attached to m, where a/old uses it, as it may be to one at a time | stop a/old on m, for volume pv-1 of PersistentVolumeClaim model, or give the pod one of its own`, "scale replicaset/serve-1 --replicas=0"},
		"not in time, and for many":       {incident.FailedMount, late, with(once(corev1.ReadWriteOnce, corev1.ReadWriteMany), user("old", "m", corev1.PodRunning)), notInTime, ""},
		"not in time, and used by nobody": {incident.FailedMount, late, with(once(corev1.ReadWriteOnce), user("old", "m", corev1.PodPending)), notInTime, ""},
		"another is not in time":          {incident.FailedMount, strings.Replace(late, "data", "other", 1), with(once(corev1.ReadWriteOnce), user("old", "m", corev1.PodRunning)), strings.Replace(notInTime, "s=[data]", "=[other]", 1), ""},
		"claims not read":                 {incident.FailedAttach, multi, nil, `VolumeConflict Manual: it has its node n, and volume pv-1 is attached to another, as it may be to one at a time | have the node that has volume pv-1 give it back`, ""},
		"no ConfigMap":                    {incident.FailedMount, `MountVolume.SetUp failed for volume "conf" : configmap "settings" not found`, nil, `VolumeConflict Manual: it has its node, and its volume conf is made from ConfigMap settings, which is not there | make ConfigMap settings in namespace a, which volume conf of the pod names`, "get configmaps"},
		"no Secret":                       {incident.FailedMount, `MountVolume.SetUp failed for volume "key" : references non-optional: secrets "token" not found`, nil, `VolumeConflict Manual: it has its node, and its volume key is made from Secret token, which is not there | make Secret token in namespace a, which volume key of the pod names`, "get secrets"},
		"another mount":                   {incident.FailedMount, `MountVolume.SetUp failed for volume "nfs" : exit status 32`, nil, `VolumeConflict Manual: it has its node, and the kubelet of n cannot mount its volumes | see why n cannot mount the pod's volume: MountVolume.SetUp failed for volume "nfs" : exit status 32`, "describe pod w"},
		"no driver":                       {incident.FailedMount, away, nil, `VolumeConflict Manual: it has its node, and the plugin of CSI driver d.example, which mounts its volume, is not registered on n | have the node plugin of d.example run on n`, "get daemonsets -A"},
		"its driver is kept off":          {incident.FailedMount, away, func(w *rcatest.World) { csiPlugin(w) }, `VolumeConflict Manual: it has its node, and the plugin of CSI driver d.example, which mounts its volume, is not registered on n: DaemonSet s/plugin has no pod there: it does not tolerate taint gpu=yes:NoSchedule | have s/plugin tolerate gpu=yes:NoSchedule: it is the node plugin of d.example`, `"tolerations":[{"key":"gpu"`},
		"and tolerates others": {incident.FailedMount, away, func(w *rcatest.World) {
			csiPlugin(w, corev1.Toleration{Key: "other", Operator: corev1.TolerationOpExists})
		}, `VolumeConflict Manual: it has its node, and the plugin of CSI driver d.example, which mounts its volume, is not registered on n: DaemonSet s/plugin has no pod there: it does not tolerate taint gpu=yes:NoSchedule | have s/plugin tolerate gpu=yes:NoSchedule: it is the node plugin of d.example`, `"tolerations":[{"key":"other","operator":"Exists"},{"key":"gpu"`},
		"its driver tolerates all": {incident.FailedMount, away, func(w *rcatest.World) { csiPlugin(w, corev1.Toleration{Operator: corev1.TolerationOpExists}) }, `VolumeConflict Manual: it has its node, and the plugin of CSI driver d.example, which mounts its volume, is not registered on n | see why s/plugin, the node plugin of d.example, is not registered on n`, "is its pod refused?"},
		"its driver is there": {incident.FailedMount, away, func(w *rcatest.World) {
			csiPlugin(w)
			yes := true
			w.Pods = append(w.Pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "s", Name: "plugin-x", OwnerReferences: []metav1.OwnerReference{{Kind: "DaemonSet", Name: "plugin", Controller: &yes}}}, Spec: corev1.PodSpec{NodeName: "n"}})
		}, `VolumeConflict Manual: it has its node, and the plugin of CSI driver d.example, which mounts its volume, is not registered on n | see why s/plugin, the node plugin of d.example, is not registered on n`, "logs plugin-x"},
		"others register here": {incident.FailedMount, away, func(w *rcatest.World) {
			w.CSINodes = append(w.CSINodes, &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{{Name: "e.example"}}}})
		}, `VolumeConflict Manual: it has its node, and the plugin of CSI driver d.example, which mounts its volume, is not registered on n | have the node plugin of d.example run on n`, "has no driver d.example"},
		"on a node that is down":  {incident.FailedAttach, multi, with(user("old", "m", corev1.PodRunning), downAt("m", true)), `VolumeConflict Manual: it has its node n, and volume pv-1 of PersistentVolumeClaim model is attached to m, where a/old uses it, as it may be to one at a time; m does not answer, so that it cannot end there | once m is surely off, say so by taint node.kubernetes.io/out-of-service: volume pv-1 of PersistentVolumeClaim model is let go of then`, "out-of-service=nodeshutdown:NoExecute"},
		"down, and it is to stay": {incident.FailedAttach, multi, with(user("old", "m", corev1.PodRunning), downAt("m", false)), `VolumeConflict Manual: it has its node n, and volume pv-1 of PersistentVolumeClaim model is attached to m, where a/old uses it, as it may be to one at a time | stop a/old on m, for volume pv-1 of PersistentVolumeClaim model, or give the pod one of its own`, "scale"},
		"devices of claims":       {incident.FailedPrepare, "no such GPU", nil, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := rcatest.NewWorld()
			pods := stoppedIn(w, c.reason, c.says)
			if c.edit != nil {
				c.edit(w)
			}
			got, all := "", ""
			if s := StopOf(view.New(w.State), pods); s != nil {
				says, quote, _ := strings.Cut(s.Says, "; it said: ")
				got = fmt.Sprintf("%s %s: %s | %s", s.Cause, s.Kind, says, s.Title)
				all = strings.Join(s.Commands, "\n") + fmt.Sprint(s.Evidence)
				var stops []string
				for _, p := range s.Drained {
					stops = append(stops, p.Name)
				}
				if got := strings.Join(stops, " "); got != whoStops[name] {
					t.Errorf("%q stop, want %q", got, whoStops[name])
				}
				if quote == "" || s.Unproven == "" || s.Words == "" || len(s.Words) > 35 || (s.Certainty == diagnosis.Proven) == (name == "not in time, and used elsewhere") {
					t.Errorf("quote %q, unproven %q, headline %q, %s", quote, s.Unproven, s.Words, s.Certainty)
				}
			}
			if got != c.want || !strings.Contains(all, c.has) {
				t.Errorf("got  %s\nwant %s\n%s", got, c.want, all)
			}
		})
	}
}

// Each of the pods is told that has the reason of the first; who has pods whose devices are not prepared hears of them
// elsewhere.
func TestStopOfMany(t *testing.T) {
	w := rcatest.NewWorld()
	pods := stoppedIn(w, incident.FailedMount, "no")
	second, third := pods[0].DeepCopy(), pods[0].DeepCopy()
	second.Name, third.Name = "x", "y"
	second.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: incident.FailedRun, Message: "of a time before"}}}}
	third.Status.Conditions[0].Reason = incident.FailedPrepare
	s := StopOf(view.New(w.State), []*corev1.Pod{third, pods[0], second})
	var refs []string
	for _, e := range s.Evidence {
		refs = append(refs, e.Ref)
	}
	if got := strings.Join(refs, " "); got != "Pod/a/x Pod/a/x Pod/a/w Pod/a/w" || s.Evidence[1].Fact != "FailedMount: no" {
		t.Errorf("%s: %q", got, s.Evidence[1].Fact)
	}
	if got := Unprepared([]*corev1.Pod{third, pods[0], second}); len(got) != 1 || got[0] != third {
		t.Errorf("%d are not prepared", len(got))
	}
}

// Who has a volume that is on one node at a time keeps a pod from another node, unless that leaves first.
func TestClaimsThatAreHeldElsewhere(t *testing.T) {
	for name, tc := range map[string]struct {
		node   string
		leaves bool
		edit   func(*rcatest.World)
		want   string
	}{
		"another has it":       {"m", false, nil, "model old"},
		"on the same node":     {"n", false, nil, ""},
		"that leaves":          {"m", true, nil, ""},
		"that has ended":       {"m", false, func(w *rcatest.World) { w.Pods[len(w.Pods)-1].Status.Phase = corev1.PodSucceeded }, ""},
		"of another namespace": {"m", false, func(w *rcatest.World) { w.Pods[len(w.Pods)-1].Namespace = "b" }, ""},
		"it is not bound yet":  {"m", false, func(w *rcatest.World) { w.PVCs[3].Spec.VolumeName = "" }, ""},
		"many nodes may have it": {"m", false, func(w *rcatest.World) {
			w.PVCs[3].Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
		}, ""},
		"it is a folder of the node": {"m", false, func(w *rcatest.World) {
			w.PVs = []*corev1.PersistentVolume{{ObjectMeta: metav1.ObjectMeta{Name: "pv-1"}, Spec: corev1.PersistentVolumeSpec{PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{}}}}}
		}, ""},
	} {
		w := rcatest.NewWorld()
		claimOf(w, "pv-1")
		w.PVCs[3].Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
		userOn(w, "old", "n", corev1.PodRunning, "serve", "1")
		if tc.edit != nil {
			tc.edit(w)
		}
		got := ""
		if claim, by := HeldElsewhere(view.New(w.State), w.Wait, tc.node, func(*corev1.Pod) bool { return tc.leaves }); by != nil {
			got = claim + " " + by.Name
		}
		if got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
