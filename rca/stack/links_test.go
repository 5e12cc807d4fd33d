package stack

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/stack/parts"
	"github.com/unpend/unpend/rca/view"
)

// linkRows are what breaks, on a node of the GPU Operator's whose stack is whole otherwise, and
// what is told of it: link, state, cause, certainty, sentence, and the mends with whether it is
// known that they help.
type linkRows map[string]struct {
	edit func(l *lab, n *corev1.Node)
	want string
}

func (rows linkRows) run(t *testing.T) {
	t.Helper()
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			l := newLab()
			row.edit(l, l.gpuNode("n"))
			w := view.New(l.State)
			got := "whole"
			if f := Of(w).On(w.Nodes["n"]); f != nil {
				got = fmt.Sprintf("%d %s %s %s: %s", f.Link, f.State, f.Cause, f.Certainty, f.Says)
				for _, m := range f.Mends {
					got += " | " + strings.TrimSpace(string(m.Kind)+" "+m.Title)
					if m.Unproven != "" {
						got += "?"
					}
				}
			}
			if got != row.want {
				t.Errorf("%s\nwant\n%s", got, row.want)
			}
		})
	}
}

// age has a pod be of that age, and its container run since then and not be ready.
func age(d time.Duration) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		at := metav1.NewTime(noon.Add(-d))
		p.CreationTimestamp, p.Status.StartTime = at, &at
		p.Status.ContainerStatuses[0].Ready, p.Status.ContainerStatuses[0].State.Running.StartedAt = false, at
	}
}

func imageMissing(p *corev1.Pod) {
	p.Status.ContainerStatuses[0].Ready = false
	p.Status.ContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "not found"}}
}

func imageLimited(p *corev1.Pod) {
	imageMissing(p)
	p.Status.ContainerStatuses[0].State.Waiting.Message = "429 Too Many Requests"
}

// all has edits made one after the other.
func all(edits ...func(*corev1.Pod)) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		for _, edit := range edits {
			edit(p)
		}
	}
}

// waitsFor has a pod of that age wait in an init container.
func waitsFor(container string, d time.Duration) func(*corev1.Pod) {
	return all(age(d), waitsIn(container), func(p *corev1.Pod) {
		p.Status.InitContainerStatuses[0].State.Running.StartedAt = metav1.NewTime(noon.Add(-d))
	})
}

// noImage has an image not be there.
func noImage(image string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		imageMissing(p)
		p.Spec.Containers[0].Image = image
	}
}

// runsFor has a pod run since then.
func runsFor(d time.Duration) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(noon.Add(-d))}}}}
	}
}

// user has a pod of a user hold a GPU of the node.
func (l *lab) user(edits ...func(*corev1.Pod)) {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "held"}, Spec: corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{view.WholeGPU: *quantity(1)}}}}}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
	for _, edit := range edits {
		edit(p)
	}
	l.Pods = append(l.Pods, p)
}

// Where the platform runs the device plugin on the machine, nothing is to be installed: the
// node's image or driver is at fault.
func TestPluginsOnTheMachine(t *testing.T) {
	image := func(name string) func(*lab, *corev1.Node) {
		return func(l *lab, n *corev1.Node) { n.Status.NodeInfo.OSImage, l.DaemonSets = name, nil }
	}
	const rocket = "Bottlerocket OS 1.20 (aws-k8s-1.30-nvidia)"
	created := func(ago time.Duration) func(*lab, *corev1.Node) {
		return func(l *lab, n *corev1.Node) {
			image(rocket)(l, n)
			n.CreationTimestamp = metav1.NewTime(noon.Add(-ago))
		}
	}
	conditions := func(all ...corev1.NodeCondition) func(*lab, *corev1.Node) {
		return func(l *lab, n *corev1.Node) { n.Status.Conditions, l.DaemonSets = all, nil }
	}
	linkRows{
		"Bottlerocket's":               {image(rocket), "8 failed DevicePluginDown proven: has GPUs and offers none: Bottlerocket runs the device plugin on the machine, so its image or driver is at fault | RepairDeviceStack replace n, or give it the platform's image with NVIDIA's driver?"},
		"Bottlerocket's without":       {image("Bottlerocket OS 1.20 (aws-k8s-1.30)"), "1 missing GPUStackMissing proven: has GPUs, and no device plugin is installed that announces them | RepairDeviceStack give n Bottlerocket's image for GPUs, which has driver and device plugin"},
		"another image of NVIDIA's":    {image("Ubuntu nvidia"), "1 missing GPUStackMissing proven: has GPUs, and no device plugin is installed that announces them | RepairDeviceStack install NVIDIA's GPU Operator, which announces the GPUs of n"},
		"Auto Mode's":                  {func(l *lab, n *corev1.Node) { n.Labels["eks.amazonaws.com/compute-type"], l.DaemonSets = "auto", nil }, "8 failed DevicePluginDown proven: has GPUs and offers none: EKS Auto Mode runs the device plugin on the machine, so its image or driver is at fault | RepairDeviceStack replace n, or give it the platform's image with NVIDIA's driver?"},
		"not Auto Mode's":              {func(l *lab, n *corev1.Node) { n.Labels["eks.amazonaws.com/compute-type"], l.DaemonSets = "hybrid", nil }, "1 missing GPUStackMissing proven: has GPUs, and no device plugin is installed that announces them | RepairDeviceStack install NVIDIA's GPU Operator, which announces the GPUs of n"},
		"it is new":                    {created(2 * time.Minute), "8 starting DevicePluginDown proven: is new: Bottlerocket's own device plugin announces its GPUs in a few minutes | Wait wait until the device plugin of n is ready, normally within 3 min"},
		"it was new":                   {created(5 * time.Minute), "8 failed DevicePluginDown proven: has GPUs and offers none: Bottlerocket runs the device plugin on the machine, so its image or driver is at fault | RepairDeviceStack replace n, or give it the platform's image with NVIDIA's driver?"},
		"nobody knows since when":      {func(l *lab, n *corev1.Node) { image(rocket)(l, n); n.CreationTimestamp = metav1.Time{} }, "8 failed DevicePluginDown proven: has GPUs and offers none: Bottlerocket runs the device plugin on the machine, so its image or driver is at fault | RepairDeviceStack replace n, or give it the platform's image with NVIDIA's driver?"},
		"AKS's":                        {conditions(corev1.NodeCondition{Type: "Ready", Status: "True"}, corev1.NodeCondition{Type: "GPUMissing", Status: "False"}), "8 failed DevicePluginDown proven: has GPUs and offers none: AKS runs the device plugin on the machine, so its image or driver is at fault | RepairDeviceStack replace n, or give it the platform's image with NVIDIA's driver?"},
		"AKS's by what it says":        {conditions(corev1.NodeCondition{Type: "XIDErrors", Status: "False"}, corev1.NodeCondition{Type: "GPUMissing", Status: "True", Reason: "Gone"}, corev1.NodeCondition{Type: "UnhealthyNvidiaDevicePlugin", Status: "True", Reason: "Late"}), "8 failed DevicePluginDown proven: has GPUs and offers none: AKS runs the device plugin on the machine, so its image or driver is at fault; its condition GPUMissing is True | RepairDeviceStack replace n, or give it the platform's image with NVIDIA's driver?"},
		"of other conditions":          {conditions(corev1.NodeCondition{Type: "Ready", Status: "True"}), "1 missing GPUStackMissing proven: has GPUs, and no device plugin is installed that announces them | RepairDeviceStack install NVIDIA's GPU Operator, which announces the GPUs of n"},
		"a plugin has a pod there too": {func(l *lab, n *corev1.Node) { n.Status.NodeInfo.OSImage = rocket; l.pod(parts.Plugin, "n", nil) }, "4 kept off GPUStackNotOnNode likely: has no pod of the driver gpu-operator/nvidia-driver-ctr, which selects it | RepairDeviceStack see why gpu-operator/nvidia-driver-ctr makes no pod for n"},
	}.run(t)
}

// The driver is loading for as long as that may take; then it is not there, for its own words, or
// for who holds the one before.
func TestDriversThatAreNotReady(t *testing.T) {
	of := func(edit func(*corev1.Pod)) func(*lab, *corev1.Node) {
		return func(l *lab, _ *corev1.Node) { l.pod(parts.Driver, "n", edit) }
	}
	manager := func(d time.Duration, edits ...func(*corev1.Pod)) func(*lab, *corev1.Node) {
		return func(l *lab, _ *corev1.Node) {
			l.pod(parts.Driver, "n", all(append([]func(*corev1.Pod){waitsFor(driverManager, d)}, edits...)...))
			l.user()
		}
	}
	labelled := func(value string, edits ...func(l *lab)) func(*lab, *corev1.Node) {
		return func(l *lab, n *corev1.Node) {
			n.Labels[DeployDriver] = value
			for _, edit := range edits {
				edit(l)
			}
		}
	}
	waiting := func(r parts.Role, d time.Duration, edits ...func(*corev1.Pod)) func(l *lab) {
		return func(l *lab) {
			l.pod(r, "n", all(append([]func(*corev1.Pod){waitsFor("driver-validation", d)}, edits...)...))
		}
	}
	linkRows{
		"it is loading":                {of(age(20 * time.Minute)), "4 starting DriverNotReady proven: is starting: its driver is being loaded for 20 min, which takes up to 21 min | Wait wait until the driver of n is ready, normally within 1 min"},
		"for as long as it may":        {of(age(21 * time.Minute)), "4 failed DriverNotReady proven: has no driver: its driver's pod is not ready after 21 min, where 21 min are normal | RepairDeviceStack mend the driver of n"},
		"it crashes":                   {of(crashes("no headers")), "4 failed DriverNotReady proven: has no driver: its driver's pod fails at nvidia-driver-ctr CrashLoopBackOff (9 restarts; last exit 1: no headers) | RepairDeviceStack mend the driver of n"},
		"it crashed thrice, and loads": {of(all(age(time.Minute), func(p *corev1.Pod) { p.Status.ContainerStatuses[0].RestartCount = 3 })), "4 failed DriverNotReady proven: has no driver: its driver's pod fails at nvidia-driver-ctr running and not ready | RepairDeviceStack mend the driver of n"},
		"it crashes, with a pod from before it": {func(l *lab, _ *corev1.Node) {
			l.pod(parts.Driver, "n", all(age(time.Hour), crashes("no headers")))
			l.user(runsFor(2 * time.Hour))
		}, "4 failed DriverNotReady proven: has no driver: its driver's pod fails at nvidia-driver-ctr CrashLoopBackOff (9 restarts; last exit 1: no headers); ml/held has run with the one before, and may hold it | RepairDeviceStack mend the driver of n"},
		"it crashes, with a pod from after it": {func(l *lab, _ *corev1.Node) {
			l.pod(parts.Driver, "n", all(age(time.Hour), crashes("no headers")))
			l.user(runsFor(time.Minute))
		}, "4 failed DriverNotReady proven: has no driver: its driver's pod fails at nvidia-driver-ctr CrashLoopBackOff (9 restarts; last exit 1: no headers) | RepairDeviceStack mend the driver of n"},
		"its manager crashes, and nobody has a GPU": {of(all(waitsIn(driverManager), func(p *corev1.Pod) {
			p.Status.InitContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
		})), "4 failed DriverNotReady proven: has no driver: its driver's pod fails at k8s-driver-manager CrashLoopBackOff | RepairDeviceStack see what keeps the driver's modules in use on n: its manager fails, and no pod there has a GPU"},
		"it waits for its node": {func(l *lab, n *corev1.Node) {
			l.pod(parts.Driver, "n", age(time.Hour))
			n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse}}
		}, "4 failed DriverNotReady proven: has no driver: its driver's pod is not ready after 1 h, where 21 min are normal | RepairDeviceStack mend the driver of n"},
		"there is none for the system":                   {of(noImage("nvcr.io/nvidia/driver:580.95.05-debian13")), "4 failed DriverNotReady proven: has no driver: its driver's pod fails at nvidia-driver-ctr ErrImagePull: not found; by its platform support NVIDIA publishes no driver image for debian13, in no version | RepairDeviceStack have a driver of the machine's own on n, and the GPU Operator install none there"},
		"there is none of that version":                  {of(noImage("nvcr.io/nvidia/driver:580.95.05-ubuntu24.04")), "4 failed DriverNotReady proven: has no driver: its driver's pod fails at nvidia-driver-ctr ErrImagePull: not found | RepairDeviceStack name a driver image that exists for the OS and kernel of n"},
		"there is none in a registry of one's own":       {of(noImage("registry.example/nvidia/driver:580.95.05-debian13")), "4 failed DriverNotReady proven: has no driver: its driver's pod fails at nvidia-driver-ctr ErrImagePull: not found | RepairDeviceStack name a driver image that exists for the OS and kernel of n"},
		"its image is limited":                           {of(imageLimited), "4 failed DriverNotReady proven: has no driver: its driver's pod fails at nvidia-driver-ctr ErrImagePull: 429 Too Many Requests | RepairDeviceStack let n pull the image of its driver: its registry limits how many pulls it serves"},
		"its image is not there":                         {of(imageMissing), "4 failed DriverNotReady proven: has no driver: its driver's pod fails at nvidia-driver-ctr ErrImagePull: not found | RepairDeviceStack name a driver image that exists for the OS and kernel of n"},
		"it waits for the network's, which nobody loads": {func(l *lab, _ *corev1.Node) { l.pod(parts.Driver, "n", waitsFor(networkDriver, time.Hour)) }, "4 failed DriverNotReady proven: has no driver: its driver's pod waits for NVIDIA's network driver (MOFED) for 1 h, and the Network Operator has no pod there that loads it | RepairDeviceStack have NVIDIA's network driver (MOFED) loaded on n, or do without GPUDirect RDMA"},
		"it waits for the network's, which a pod loads": {func(l *lab, _ *corev1.Node) {
			l.pod(parts.Driver, "n", waitsFor(networkDriver, time.Hour))
			l.user(func(p *corev1.Pod) { p.Name = "mofed-ubuntu22.04-ds-x" })
		}, "4 failed DriverNotReady proven: has no driver: its driver's pod waits for NVIDIA's network driver (MOFED) for 1 h, which ml/mofed-ubuntu22.04-ds-x loads | RepairDeviceStack see why ml/mofed-ubuntu22.04-ds-x has not loaded NVIDIA's network driver (MOFED) on n"},
		"its manager waits for that": {func(l *lab, _ *corev1.Node) {
			l.sets[parts.Driver].Spec.Template.Spec.InitContainers = []corev1.Container{{Name: driverManager, Env: []corev1.EnvVar{{Name: "OTHER"}, {Name: rdmaAsked}}}}
			l.pod(parts.Driver, "n", waitsFor(driverManager, time.Hour))
		}, "4 failed DriverNotReady likely: has no driver: its driver's pod waits for NVIDIA's network driver (MOFED) for 1 h, and the Network Operator has no pod there that loads it | RepairDeviceStack have NVIDIA's network driver (MOFED) loaded on n, or do without GPUDirect RDMA"},
		"its manager waits for something": {func(l *lab, _ *corev1.Node) {
			l.sets[parts.Driver].Spec.Template.Spec.InitContainers = []corev1.Container{{Name: driverManager, Env: []corev1.EnvVar{{Name: "OTHER"}}}, {Name: "other", Env: []corev1.EnvVar{{Name: rdmaAsked}}}}
			l.pod(parts.Driver, "n", waitsFor(driverManager, time.Hour))
		}, "4 failed DriverNotReady proven: has no driver: its driver's pod is not ready after 1 h, where 21 min are normal | RepairDeviceStack mend the driver of n"},
		"a user holds the one before": {manager(6 * time.Minute), "4 waiting DriverNotReady proven: cannot load its driver again while 1 pod of users holds the old one | EvictPods evict ml/held from n, so that its driver can be loaded again | RebootNode reboot n: no module is loaded then?"},
		"the upgrade controller is to evict": {func(l *lab, n *corev1.Node) {
			manager(6*time.Minute)(l, n)
			n.Annotations = map[string]string{upgradeBy: "true"}
		}, "4 waiting DriverNotReady proven: cannot load its driver again while 1 pod of users holds the old one | EvictPods evict ml/held from n, so that its driver can be loaded again | RepairDeviceStack have the upgrade controller evict who holds the driver of n, and load it again | RebootNode reboot n: no module is loaded then?"},
		"it is to, and passes the node by": {func(l *lab, n *corev1.Node) {
			manager(6*time.Minute)(l, n)
			n.Annotations = map[string]string{upgradeBy: "true"}
			n.Labels[upgradeSkip] = "true"
		}, "4 waiting DriverNotReady proven: cannot load its driver again while 1 pod of users holds the old one | EvictPods evict ml/held from n, so that its driver can be loaded again | RepairDeviceStack take label nvidia.com/gpu-driver-upgrade.skip off n, and have its driver's upgrade tried again | RebootNode reboot n: no module is loaded then?"},
		"a user holds it, a moment ago": {manager(5 * time.Minute), "4 starting DriverNotReady proven: is starting: its driver is being loaded for 5 min, which takes up to 21 min | Wait wait until the driver of n is ready, normally within 16 min"},
		"a user holds it, and it loops": {manager(time.Minute, func(p *corev1.Pod) { p.Status.InitContainerStatuses[0].RestartCount = 3 }), "4 waiting DriverNotReady proven: cannot load its driver again while 1 pod of users holds the old one | EvictPods evict ml/held from n, so that its driver can be loaded again | RebootNode reboot n: no module is loaded then?"},
		"who held it leaves": {func(l *lab, n *corev1.Node) {
			manager(6*time.Minute)(l, n)
			l.Pods[1].DeletionTimestamp = &metav1.Time{Time: noon}
		}, "4 starting DriverNotReady proven: is starting: its driver is being loaded for 6 min, which takes up to 21 min | Wait wait until the driver of n is ready, normally within 15 min"},
		"who held it does not leave": {func(l *lab, n *corev1.Node) {
			manager(6*time.Minute)(l, n)
			l.Pods[1].DeletionTimestamp = &metav1.Time{Time: noon.Add(-6 * time.Minute)}
		}, "4 waiting DriverNotReady likely: cannot load its driver before ml/held has ended, which is overdue by 6 min | RepairDeviceStack end ml/held on n by force: its driver's manager waits for that"},
		"nor another": {func(l *lab, n *corev1.Node) {
			manager(6*time.Minute)(l, n)
			l.Pods[1].DeletionTimestamp, l.Pods[1].Finalizers = &metav1.Time{Time: noon.Add(-6 * time.Minute)}, []string{"f"}
			l.user(func(p *corev1.Pod) { p.Name, p.DeletionTimestamp = "other", l.Pods[1].DeletionTimestamp })
		}, "4 waiting DriverNotReady likely: cannot load its driver before 2 pods (ml/held, …) have ended, which are overdue | RepairDeviceStack end 2 pods (ml/held, …) on n by force: its driver's manager waits for that"},
		"it may still leave": {func(l *lab, n *corev1.Node) {
			manager(6*time.Minute)(l, n)
			l.Pods[1].DeletionTimestamp = &metav1.Time{Time: noon.Add(time.Second - 5*time.Minute)}
		}, "4 starting DriverNotReady proven: is starting: its driver is being loaded for 6 min, which takes up to 21 min | Wait wait until the driver of n is ready, normally within 15 min"},
		"a user holds no GPU": {func(l *lab, n *corev1.Node) {
			manager(6*time.Minute)(l, n)
			l.Pods[1].Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": *quantity(1)}
		}, "4 starting DriverNotReady proven: is starting: its driver is being loaded for 6 min, which takes up to 21 min | Wait wait until the driver of n is ready, normally within 15 min"},
		"the machine has one":                                    {labelled("pre-installed"), "5 kept off GPUStackNotOnNode likely: has no pod of the container toolkit gpu-operator/nvidia-container-toolkit-ctr, which selects it | RepairDeviceStack see why gpu-operator/nvidia-container-toolkit-ctr makes no pod for n"},
		"the machine's does not work":                            {labelled("pre-installed", waiting(parts.Toolkit, 6*time.Minute)), "4 missing DriverNotReady likely: has no driver that the GPU Operator's validation accepts: label nvidia.com/gpu.deploy.driver=pre-installed keeps the operator's off | RepairDeviceStack see why driver-validation accepts no driver of the machine of n, or give it one | RebootNode reboot n, where its driver was upgraded: the modules from before stay loaded until then?"},
		"the machine's may work soon":                            {labelled("pre-installed", waiting(parts.Toolkit, 4*time.Minute)), "5 starting RuntimeNotConfigured proven: is starting: its container toolkit is being set up | Wait wait until the container toolkit of n is ready, normally within 1 min"},
		"the machine's loops":                                    {labelled("pre-installed", waiting(parts.Toolkit, 4*time.Minute, func(p *corev1.Pod) { p.Status.InitContainerStatuses[0].RestartCount = 3 })), "4 missing DriverNotReady likely: has no driver that the GPU Operator's validation accepts: label nvidia.com/gpu.deploy.driver=pre-installed keeps the operator's off | RepairDeviceStack see why driver-validation accepts no driver of the machine of n, or give it one | RebootNode reboot n, where its driver was upgraded: the modules from before stay loaded until then?"},
		"a person keeps it off, and none works":                  {labelled("false", waiting(parts.Toolkit, 6*time.Minute)), "4 missing DriverNotReady likely: has no driver: label nvidia.com/gpu.deploy.driver=false keeps the operator's off, and the machine has none that works | RepairDeviceStack give n a driver"},
		"a person keeps it off, and the toolkit waits elsewhere": {labelled("false", func(l *lab) { l.pod(parts.Toolkit, "n", waitsFor("toolkit-validation", 6*time.Minute)) }), "5 failed RuntimeNotConfigured proven: has a container runtime that does not hand out GPUs: its container toolkit fails at toolkit-validation running | RepairDeviceStack mend the container toolkit of n"},
		"nobody brings one": {labelled("true", func(l *lab) {
			l.DaemonSets = []*appsv1.DaemonSet{l.sets[parts.Discovery], l.sets[parts.Toolkit], l.sets[parts.Plugin]}
		}, waiting(parts.Toolkit, 6*time.Minute)), "4 missing DriverNotReady likely: has no driver: nothing loads one there, and the machine has none that works | RepairDeviceStack give n a driver"},
		"its change is paused, and it runs": {func(l *lab, n *corev1.Node) {
			n.Labels[deployPlugin] = "paused-for-driver-upgrade"
			l.pod(parts.Driver, "n", nil)
		}, "4 paused DriverNotReady proven: has its device plugin paused for a change of the driver: label nvidia.com/gpu.deploy.device-plugin=paused-for-driver-upgrade | RepairDeviceStack end the driver's change on n"},
		"its own label is paused": {labelled("paused-for-driver-upgrade"), "4 paused DriverNotReady proven: has its driver paused for a change of the driver: label nvidia.com/gpu.deploy.driver=paused-for-driver-upgrade | RepairDeviceStack end the driver's change on n"},
		"a taint keeps it off": {func(_ *lab, n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: "team", Effect: corev1.TaintEffectNoSchedule}}
		}, "4 kept off GPUStackNotOnNode proven: has no driver: gpu-operator/nvidia-driver-ctr does not run there: it does not tolerate taint team:NoSchedule | RepairDeviceStack have gpu-operator/nvidia-driver-ctr tolerate team:NoSchedule"},
		"of two the one that least is wrong for": {func(l *lab, _ *corev1.Node) {
			other := l.sets[parts.Driver].DeepCopy()
			other.Name = "other"
			other.Spec.Template.Spec.NodeSelector = map[string]string{"a": "b", "c": "d"}
			l.sets[parts.Driver].Spec.Template.Spec.NodeSelector = map[string]string{"a": "b"}
			l.DaemonSets = append([]*appsv1.DaemonSet{other}, l.DaemonSets...)
		}, "4 kept off DriverNotReady proven: has no driver: gpu-operator/nvidia-driver-ctr does not run there: it selects nodes by label a=b, which is absent | RepairDeviceStack label n a=b"},
	}.run(t)
}

// The container toolkit is set up within minutes, or it fails, or is kept off; where the machine
// has its own it is nobody's matter.
func TestToolkitsThatAreNotReady(t *testing.T) {
	of := func(edit func(*corev1.Pod)) func(*lab, *corev1.Node) {
		return func(l *lab, _ *corev1.Node) { l.pod(parts.Driver, "n", nil); l.pod(parts.Toolkit, "n", edit) }
	}
	labelled := func(value string, taints ...corev1.Taint) func(*lab, *corev1.Node) {
		return func(l *lab, n *corev1.Node) {
			l.pod(parts.Driver, "n", nil)
			n.Labels[parts.Deploys+"container-toolkit"], n.Spec.Taints = value, taints
		}
	}
	team := corev1.Taint{Key: "team", Effect: corev1.TaintEffectNoSchedule}
	linkRows{
		"it is set up":               {of(age(4 * time.Minute)), "5 starting RuntimeNotConfigured proven: is starting: its container toolkit is being set up | Wait wait until the container toolkit of n is ready, normally within 1 min"},
		"for as long as it may be":   {of(age(5 * time.Minute)), "5 failed RuntimeNotConfigured proven: has a container runtime that does not hand out GPUs: its container toolkit fails at nvidia-container-toolkit-ctr running and not ready | RepairDeviceStack mend the container toolkit of n"},
		"it crashes":                 {of(crashes("no config")), "5 failed RuntimeNotConfigured proven: has a container runtime that does not hand out GPUs: its container toolkit fails at nvidia-container-toolkit-ctr CrashLoopBackOff (9 restarts; last exit 1: no config) | RepairDeviceStack mend the container toolkit of n"},
		"it crashed thrice":          {of(all(age(time.Minute), func(p *corev1.Pod) { p.Status.ContainerStatuses[0].RestartCount = 3 })), "5 failed RuntimeNotConfigured proven: has a container runtime that does not hand out GPUs: its container toolkit fails at nvidia-container-toolkit-ctr running and not ready | RepairDeviceStack mend the container toolkit of n"},
		"its driver is not accepted": {of(waitsFor("driver-validation", time.Hour)), "4 waiting DriverNotReady likely: has a driver that the GPU Operator's validation does not accept: its container toolkit waits at driver-validation running | RepairDeviceStack see why driver-validation accepts no driver of n | RebootNode reboot n, where its driver was upgraded: the modules from before stay loaded until then?"},
		"its image is not there":     {of(imageMissing), "5 failed RuntimeNotConfigured proven: has a container runtime that does not hand out GPUs: its container toolkit fails at nvidia-container-toolkit-ctr ErrImagePull: not found | RepairDeviceStack let n pull the image of its container toolkit, or name one that is published"},
		"the machine has its own":    {labelled("pre-installed"), "6 kept off GPUStackNotOnNode likely: has no pod of the device plugin gpu-operator/nvidia-device-plugin, which selects it | RepairDeviceStack see why gpu-operator/nvidia-device-plugin makes no pod for n"},
		"a person keeps it off":      {labelled("false"), "6 kept off GPUStackNotOnNode likely: has no pod of the device plugin gpu-operator/nvidia-device-plugin, which selects it | RepairDeviceStack see why gpu-operator/nvidia-device-plugin makes no pod for n"},
		"and a taint does too":       {labelled("false", team), "5 kept off GPUStackNotOnNode proven: has no container toolkit: gpu-operator/nvidia-container-toolkit-ctr does not run there: it selects nodes by label nvidia.com/gpu.deploy.container-toolkit=true, here it is \"false\"; it does not tolerate taint team:NoSchedule | RepairDeviceStack label n nvidia.com/gpu.deploy.container-toolkit=true; have gpu-operator/nvidia-container-toolkit-ctr tolerate team:NoSchedule"},
		"it is paused":               {labelled("paused"), "5 kept off RuntimeNotConfigured proven: has no container toolkit: gpu-operator/nvidia-container-toolkit-ctr does not run there: it selects nodes by label nvidia.com/gpu.deploy.container-toolkit=true, here it is \"paused\" | RepairDeviceStack label n nvidia.com/gpu.deploy.container-toolkit=true"},
		"a taint keeps it off":       {labelled("true", team), "5 kept off GPUStackNotOnNode proven: has no container toolkit: gpu-operator/nvidia-container-toolkit-ctr does not run there: it does not tolerate taint team:NoSchedule | RepairDeviceStack have gpu-operator/nvidia-container-toolkit-ctr tolerate team:NoSchedule"},
		"the machine's, and a taint": {labelled("pre-installed", team), "6 kept off GPUStackNotOnNode proven: has no pod of the device plugin gpu-operator/nvidia-device-plugin: it does not tolerate taint team:NoSchedule | RepairDeviceStack have gpu-operator/nvidia-device-plugin tolerate team:NoSchedule"},
		"it makes no pod":            {labelled("true"), "5 kept off GPUStackNotOnNode likely: has no pod of the container toolkit gpu-operator/nvidia-container-toolkit-ctr, which selects it | RepairDeviceStack see why gpu-operator/nvidia-container-toolkit-ctr makes no pod for n"},
	}.run(t)
}

// The device plugin's pod is started, or says itself what it waits for or fails at.
func TestPluginsThatAreNotReady(t *testing.T) {
	of := func(edit func(*corev1.Pod)) func(*lab, *corev1.Node) {
		return func(l *lab, _ *corev1.Node) {
			l.pod(parts.Driver, "n", nil)
			l.pod(parts.Toolkit, "n", nil)
			l.pod(parts.Plugin, "n", edit)
		}
	}
	bare := func(edit func(*corev1.Pod)) func(*lab, *corev1.Node) { // nothing of the operator's is there
		return func(l *lab, n *corev1.Node) {
			n.Labels = map[string]string{"karpenter.k8s.aws/instance-gpu-name": "a10g"}
			l.sets[parts.Plugin].Spec.Template.Spec.NodeSelector = nil
			l.DaemonSets = []*appsv1.DaemonSet{l.sets[parts.Plugin]}
			l.pod(parts.Plugin, "n", edit)
		}
	}
	class := func(name string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Spec.RuntimeClassName = &name }
	}
	sandbox := func(edits ...func(*corev1.Pod)) func(*lab, *corev1.Node) {
		return func(l *lab, n *corev1.Node) {
			bare(all(append(edits, func(p *corev1.Pod) { p.Status.Phase, p.Status.ContainerStatuses = corev1.PodPending, nil })...))(l, n)
			l.Events = []*corev1.Event{{InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: "gpu-operator", Name: "nvidia-device-plugin-n"}, Reason: "FailedCreatePodSandBox", Message: `rpc error: code = Unknown desc = no runtime for "nvidia" is configured`}}
		}
	}
	linkRows{
		"it is starting":                   {of(age(4 * time.Minute)), "7 starting DevicePluginDown proven: is starting: its device plugin's pod began 4 min ago | Wait wait until the device plugin of n is ready, normally within 1 min"},
		"it has been starting for long":    {of(age(5 * time.Minute)), "7 failed DevicePluginDown proven: has GPUs and offers none: its device plugin's pod is not ready: nvidia-device-plugin running and not ready | RepairDeviceStack mend the device plugin of n"},
		"it crashes":                       {of(crashes("no card")), "7 failed DevicePluginDown proven: has GPUs and offers none: its device plugin fails at nvidia-device-plugin CrashLoopBackOff (9 restarts; last exit 1: no card) | RepairDeviceStack mend the device plugin of n"},
		"its image is not there":           {of(imageMissing), "7 failed DevicePluginDown proven: has GPUs and offers none: its device plugin fails at nvidia-device-plugin ErrImagePull: not found | RepairDeviceStack let n pull the image of its device plugin, or name one that is published"},
		"it waits for the driver":          {of(waitsFor("driver-validation", 4*time.Minute)), "4 starting DriverNotReady proven: is starting: its device plugin waits for the driver | Wait wait until the device plugin of n is ready, normally within 1 min"},
		"it waits for the driver for long": {of(waitsFor("driver-validation", 5*time.Minute)), "4 waiting DriverNotReady likely: has its device plugin waiting for the driver: init container driver-validation running | RestartDevicePlugin? | RepairDeviceStack see why the driver of n is not validated?"},
		"its validator fails": {func(l *lab, n *corev1.Node) {
			of(waitsFor("toolkit-validation", time.Hour))(l, n)
			l.pod(parts.Toolkit, "n", nil)
			v := l.sets[parts.Toolkit].DeepCopy()
			v.Name, v.UID, v.Spec.Template.Spec.Containers = "v", "v", []corev1.Container{{Name: "nvidia-operator-validator"}}
			l.DaemonSets, l.sets[parts.Validator] = append(l.DaemonSets, v), v
			l.pod(parts.Validator, "n", crashes("error running hook: exit status 1"))
		}, "5 waiting RuntimeNotConfigured likely: has its device plugin waiting for the container toolkit: init container toolkit-validation running; its validator fails at nvidia-operator-validator CrashLoopBackOff (9 restarts; last exit 1: error running hook: exit status 1) | RepairDeviceStack see why the container toolkit of n is not validated?"},
		"its validator asks for a newer system": {func(l *lab, n *corev1.Node) {
			of(waitsFor("toolkit-validation", time.Hour))(l, n)
			n.Labels[DeployDriver] = "pre-installed"
			l.Pods = slices.DeleteFunc(l.Pods, func(p *corev1.Pod) bool { return strings.Contains(p.Name, "driver") })
			l.pod(parts.Toolkit, "n", nil)
			v := l.sets[parts.Toolkit].DeepCopy()
			v.Name, v.UID, v.Spec.Template.Spec.Containers = "v", "v", []corev1.Container{{Name: "nvidia-operator-validator"}}
			l.DaemonSets, l.sets[parts.Validator] = append(l.DaemonSets, v), v
			l.pod(parts.Validator, "n", crashes("/lib64/libc.so.6: version `GLIBC_2.27' not found (required by /usr/local/nvidia/toolkit/libnvidia-container.so.1): unknown"))
		}, "5 waiting RuntimeNotConfigured likely: has its device plugin waiting for the container toolkit: init container toolkit-validation running; its validator fails at nvidia-operator-validator CrashLoopBackOff (9 restarts; last exit 1: /lib64/libc.so.6: version `GLIBC_2.27' not found (required by /usr/local/nvidia/toolkit/libnvidia-container.so.1): unknown) | RepairDeviceStack switch the GPU Operator's container toolkit off (toolkit.enabled=false): it needs GLIBC_2.27, which the system of n does not have?"},
		"it waits for GKE's driver":           {bare(waitsFor("nvidia-driver-installer", 5*time.Minute)), "4 waiting DriverNotReady likely: has its device plugin waiting for the driver: init container nvidia-driver-installer running | RepairDeviceStack see why the driver of n is not validated"},
		"it waits for the toolkit, and loops": {of(all(waitsFor("toolkit-validation", time.Minute), func(p *corev1.Pod) { p.Status.InitContainerStatuses[0].RestartCount = 3 })), "5 waiting RuntimeNotConfigured likely: has its device plugin waiting for the container toolkit: init container toolkit-validation running | RepairDeviceStack see why the container toolkit of n is not validated?"},
		"the toolkit's validation is not started": {of(all(waitsFor("toolkit-validation", time.Hour), func(p *corev1.Pod) {
			p.Status.InitContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "RunContainerError", Message: "nvidia-container-cli: initialization error: nvml error: driver/library version mismatch: unknown"}}
		})), "4 failed DriverNotReady likely: has no driver that serves its GPU: NVIDIA's container runtime cannot start its device plugin: toolkit-validation RunContainerError: nvidia-container-cli: initialization error: nvml error: driver/library version mismatch: unknown | RebootNode reboot n: its driver's libraries are not of the version of the module that is loaded, and the next boot loads theirs"},
		"its config is not there": {func(l *lab, n *corev1.Node) {
			n.Labels[pluginConfigLabel] = "x"
			of(waitsFor("config-manager-init", 9*time.Minute))(l, n)
		}, "7 failed DevicePluginDown proven: has GPUs and offers none: its device plugin's pod is not ready: config-manager-init running | RepairDeviceStack name a config of the device plugin that exists: nvidia.com/device-plugin.config=x on n"},
		"its config is not there, and no label": {of(waitsFor("config-manager-init", 9*time.Minute)), "7 failed DevicePluginDown proven: has GPUs and offers none: its device plugin's pod is not ready: config-manager-init running | RepairDeviceStack mend the device plugin of n"},
		"it crashes by the node's own runtime":  {bare(crashes("no card")), "5 failed RuntimeNotConfigured likely: has a device plugin that crashes: its pod names no RuntimeClass, so it sees GPUs only if NVIDIA's is the runtime by default | RepairDeviceStack configure NVIDIA's runtime on n"},
		"it cannot load NVML":                   {bare(all(age(time.Minute), crashes("could not load NVML library"))), "5 failed RuntimeNotConfigured likely: has a device plugin that cannot load NVML: its pod names no RuntimeClass, so it sees GPUs only if NVIDIA's is the runtime by default | RepairDeviceStack configure NVIDIA's runtime on n"},
		"NVML, by NVIDIA's runtime":             {bare(all(class("nvidia"), crashes("could not load NVML library"))), "7 failed DevicePluginDown proven: has GPUs and offers none: its device plugin fails at nvidia-device-plugin CrashLoopBackOff (9 restarts; last exit 1: could not load NVML library) | RepairDeviceStack mend the device plugin of n"},
		"NVML, by an empty class":               {bare(all(class(""), crashes("could not load NVML library"))), "5 failed RuntimeNotConfigured likely: has a device plugin that cannot load NVML: its pod names no RuntimeClass, so it sees GPUs only if NVIDIA's is the runtime by default | RepairDeviceStack configure NVIDIA's runtime on n"},
		"it crashes by NVIDIA's runtime":        {bare(all(class("nvidia"), crashes("no card"))), "7 failed DevicePluginDown proven: has GPUs and offers none: its device plugin fails at nvidia-device-plugin CrashLoopBackOff (9 restarts; last exit 1: no card) | RepairDeviceStack mend the device plugin of n"},
		"its image, by the node's own runtime":  {bare(imageMissing), "7 failed DevicePluginDown proven: has GPUs and offers none: its device plugin fails at nvidia-device-plugin ErrImagePull: not found | RepairDeviceStack let n pull the image of its device plugin, or name one that is published"},
		"NVIDIA's runtime could be named": {func(l *lab, n *corev1.Node) {
			l.RuntimeClasses = []*nodev1.RuntimeClass{{ObjectMeta: metav1.ObjectMeta{Name: "nvidia"}}}
			bare(crashes("no card"))(l, n)
		}, "5 failed RuntimeNotConfigured likely: has a device plugin that crashes: its pod names no RuntimeClass, so it sees GPUs only if NVIDIA's is the runtime by default | RepairDeviceStack run the device plugin by RuntimeClass nvidia"},
		"its runtime is not known":         {sandbox(), "5 failed RuntimeNotConfigured likely: has a container runtime that does not know NVIDIA's: the device plugin's pod is not started: FailedCreatePodSandBox: no runtime for \"nvidia\" is configured | RepairDeviceStack configure NVIDIA's runtime on n"},
		"its class's runtime is not known": {sandbox(class("nvidia")), "5 failed RuntimeNotConfigured proven: has a container runtime that does not know NVIDIA's: the device plugin's pod is not started: FailedCreatePodSandBox: no runtime for \"nvidia\" is configured | RepairDeviceStack configure NVIDIA's runtime on n"},
	}.run(t)
}

// A plugin that runs has a moment to announce the GPUs; then what it needs is at fault, or it
// sees none.
func TestPluginsThatAnnounceNothing(t *testing.T) {
	of := func(edits ...func(l *lab, n *corev1.Node)) func(*lab, *corev1.Node) {
		return func(l *lab, n *corev1.Node) {
			l.pod(parts.Driver, "n", nil)
			l.pod(parts.Toolkit, "n", nil)
			l.pod(parts.Plugin, "n", nil)
			for _, edit := range edits {
				edit(l, n)
			}
		}
	}
	ready := func(ago time.Duration) func(l *lab, n *corev1.Node) {
		return func(l *lab, _ *corev1.Node) {
			p := l.Pods[len(l.Pods)-1]
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(noon.Add(-ago))}}
		}
	}
	capacity := func(n int64) func(l *lab, o *corev1.Node) {
		return func(_ *lab, o *corev1.Node) {
			o.Status.Capacity, o.Status.Allocatable = corev1.ResourceList{view.WholeGPU: *quantity(n)}, corev1.ResourceList{view.WholeGPU: *quantity(0)}
		}
	}
	alone := func(edits ...func(l *lab, n *corev1.Node)) func(*lab, *corev1.Node) {
		return func(l *lab, n *corev1.Node) {
			n.Labels = map[string]string{"karpenter.k8s.aws/instance-gpu-name": "a10g"}
			l.sets[parts.Plugin].Spec.Template.Spec.NodeSelector = nil
			l.DaemonSets = []*appsv1.DaemonSet{l.sets[parts.Plugin]}
			l.pod(parts.Plugin, "n", nil)
			for _, edit := range edits {
				edit(l, n)
			}
		}
	}
	linkRows{
		"it runs":                         {of(), "8 failed DevicePluginDown proven: has GPUs and offers none, though its device plugin runs | RepairDeviceStack mend the device plugin of n? | RestartDevicePlugin?"},
		"since a moment ago":              {of(ready(time.Minute)), "8 starting DevicePluginDown proven: is starting: its device plugin is ready for 1 min and has still to announce the GPUs | Wait wait until the device plugin of n is ready, normally within 1 min"},
		"for as long as it may take":      {of(ready(2 * time.Minute)), "8 failed DevicePluginDown proven: has GPUs and offers none, though its device plugin runs | RepairDeviceStack mend the device plugin of n? | RestartDevicePlugin?"},
		"it announces none":               {of(capacity(0)), "8 failed DevicePluginDown proven: has GPUs and offers none, though its device plugin runs | RestartDevicePlugin | RepairDeviceStack mend the device plugin of n?"},
		"they are sick":                   {of(capacity(4)), "whole"},
		"its driver fails":                {of(func(l *lab, _ *corev1.Node) { crashes("gone")(l.Pods[0]) }), "4 failed DriverNotReady proven: has no driver: its driver's pod fails at nvidia-driver-ctr CrashLoopBackOff (9 restarts; last exit 1: gone) | RepairDeviceStack mend the driver of n"},
		"they are sick since it fails":    {of(capacity(4), func(l *lab, _ *corev1.Node) { crashes("gone")(l.Pods[0]) }), "4 failed DriverNotReady proven: has no driver: its driver's pod fails at nvidia-driver-ctr CrashLoopBackOff (9 restarts; last exit 1: gone) | RepairDeviceStack mend the driver of n"},
		"they are sick, it is starting":   {of(capacity(4), func(l *lab, _ *corev1.Node) { age(time.Minute)(l.Pods[0]) }), "whole"},
		"they are sick, and known of now": {of(ready(time.Minute), capacity(4)), "whole"},
		"its driver is starting":          {of(func(l *lab, _ *corev1.Node) { age(time.Minute)(l.Pods[0]) }), "8 failed DevicePluginDown proven: has GPUs and offers none, though its device plugin runs | RepairDeviceStack mend the device plugin of n? | RestartDevicePlugin?"},
		"its toolkit fails":               {of(func(l *lab, _ *corev1.Node) { crashes("gone")(l.Pods[1]) }), "5 failed RuntimeNotConfigured proven: has a container runtime that does not hand out GPUs: its container toolkit fails at nvidia-container-toolkit-ctr CrashLoopBackOff (9 restarts; last exit 1: gone) | RepairDeviceStack mend the container toolkit of n"},
		"by the node's own runtime":       {alone(), "5 failed RuntimeNotConfigured likely: has a device plugin that runs and finds no GPU: its pod names no RuntimeClass, so it sees GPUs only if NVIDIA's is the runtime by default | RepairDeviceStack configure NVIDIA's runtime on n"},
		"by it, and it has announced any": {alone(capacity(0)), "8 failed DevicePluginDown proven: has GPUs and offers none, though its device plugin runs | RestartDevicePlugin | RepairDeviceStack mend the device plugin of n?"},
		"of GKE's":                        {alone(func(_ *lab, n *corev1.Node) { n.Labels["cloud.google.com/gke-accelerator"] = "nvidia-l4" }), "8 failed DevicePluginDown proven: has GPUs and offers none, though its device plugin runs | RepairDeviceStack mend the device plugin of n? | RestartDevicePlugin?"},
	}.run(t)
}

// A plugin that has no pod on a node is kept off by what the node lacks, is refused, or is still
// to come.
func TestPluginsThatAreKeptOff(t *testing.T) {
	whole := func(l *lab) { l.pod(parts.Driver, "n", nil); l.pod(parts.Toolkit, "n", nil) }
	refused := func(message string, edits ...func(*lab)) func(*lab, *corev1.Node) {
		return func(l *lab, _ *corev1.Node) {
			whole(l)
			l.Events = []*corev1.Event{{InvolvedObject: corev1.ObjectReference{Kind: "DaemonSet", Namespace: "gpu-operator", Name: "nvidia-device-plugin"}, Reason: "FailedCreate", Message: message}}
			for _, edit := range edits {
				edit(l)
			}
		}
	}
	scheduled := func(has, wants int32) func(*lab) {
		return func(l *lab) {
			l.sets[parts.Plugin].Status.CurrentNumberScheduled, l.sets[parts.Plugin].Status.DesiredNumberScheduled = has, wants
		}
	}
	aged := func(node, set time.Duration) func(*lab, *corev1.Node) {
		return func(l *lab, n *corev1.Node) {
			whole(l)
			n.CreationTimestamp, l.sets[parts.Plugin].CreationTimestamp = metav1.NewTime(noon.Add(-node)), metav1.NewTime(noon.Add(-set))
		}
	}
	classed := func(name string, edits ...func(*lab)) func(*lab, *corev1.Node) {
		return func(l *lab, _ *corev1.Node) {
			whole(l)
			l.sets[parts.Plugin].Spec.Template.Spec.RuntimeClassName = &name
			l.RuntimeClasses = []*nodev1.RuntimeClass{{ObjectMeta: metav1.ObjectMeta{Name: "other"}}}
			for _, edit := range edits {
				edit(l)
			}
		}
	}
	const quota = `Error creating: pods "x" is forbidden: exceeded quota: q`
	linkRows{
		"by a quota":                    {refused(quota), "6 kept off GPUStackNotOnNode proven: has no pod of the device plugin gpu-operator/nvidia-device-plugin: the API server refuses it: exceeded quota: q | RepairDeviceStack raise the quota of gpu-operator for nvidia-device-plugin"},
		"by nobody known":               {refused("Error creating: no luck"), "6 kept off GPUStackNotOnNode proven: has no pod of the device plugin gpu-operator/nvidia-device-plugin: the API server refuses it: no luck | RepairDeviceStack have the API server accept the pods of gpu-operator/nvidia-device-plugin"},
		"though all its pods are there": {refused(quota, scheduled(2, 2)), "6 kept off GPUStackNotOnNode likely: has no pod of the device plugin gpu-operator/nvidia-device-plugin: the API server refuses it: exceeded quota: q | RepairDeviceStack raise the quota of gpu-operator for nvidia-device-plugin"},
		"and one is not there":          {refused(quota, scheduled(1, 2)), "6 kept off GPUStackNotOnNode proven: has no pod of the device plugin gpu-operator/nvidia-device-plugin: the API server refuses it: exceeded quota: q | RepairDeviceStack raise the quota of gpu-operator for nvidia-device-plugin"},
		"it makes no pod":               {aged(time.Hour, time.Hour), "6 kept off GPUStackNotOnNode likely: has no pod of the device plugin gpu-operator/nvidia-device-plugin, which selects it | RepairDeviceStack see why gpu-operator/nvidia-device-plugin makes no pod for n"},
		"the node is new":               {aged(4*time.Minute, time.Hour), "6 starting DevicePluginDown proven: is to get its pod of the device plugin in a few minutes | Wait wait until the device plugin of n is ready, normally within 1 min"},
		"the DaemonSet is new":          {aged(time.Hour, 4*time.Minute), "6 starting DevicePluginDown proven: is to get its pod of the device plugin in a few minutes | Wait wait until the device plugin of n is ready, normally within 1 min"},
		"both were new":                 {aged(5*time.Minute, 5*time.Minute), "6 kept off GPUStackNotOnNode likely: has no pod of the device plugin gpu-operator/nvidia-device-plugin, which selects it | RepairDeviceStack see why gpu-operator/nvidia-device-plugin makes no pod for n"},
		"no such RuntimeClass":          {classed("nvidia"), "5 missing RuntimeNotConfigured proven: has no pod of gpu-operator/nvidia-device-plugin, which asks RuntimeClass nvidia: that does not exist | RepairDeviceStack make RuntimeClass nvidia"},
		"there is such a RuntimeClass":  {classed("other"), "6 kept off GPUStackNotOnNode likely: has no pod of the device plugin gpu-operator/nvidia-device-plugin, which selects it | RepairDeviceStack see why gpu-operator/nvidia-device-plugin makes no pod for n"},
		"an empty RuntimeClass":         {classed(""), "6 kept off GPUStackNotOnNode likely: has no pod of the device plugin gpu-operator/nvidia-device-plugin, which selects it | RepairDeviceStack see why gpu-operator/nvidia-device-plugin makes no pod for n"},
		"RuntimeClasses were not read":  {classed("nvidia", func(l *lab) { l.Unread["RuntimeClass"] = "no right" }), "6 kept off GPUStackNotOnNode likely: has no pod of the device plugin gpu-operator/nvidia-device-plugin, which selects it | RepairDeviceStack see why gpu-operator/nvidia-device-plugin makes no pod for n"},
		"a taint": {func(l *lab, n *corev1.Node) {
			whole(l)
			n.Spec.Taints = []corev1.Taint{{Key: "team", Value: "ml", Effect: corev1.TaintEffectNoSchedule}}
		}, "6 kept off GPUStackNotOnNode proven: has no pod of the device plugin gpu-operator/nvidia-device-plugin: it does not tolerate taint team=ml:NoSchedule | RepairDeviceStack have gpu-operator/nvidia-device-plugin tolerate team=ml:NoSchedule"},
		"a taint, and not the operator's": {func(l *lab, n *corev1.Node) {
			n.Labels = map[string]string{"karpenter.k8s.aws/instance-gpu-name": "a10g"}
			n.Spec.Taints = []corev1.Taint{{Key: "team", Effect: corev1.TaintEffectNoSchedule}}
			l.sets[parts.Plugin].Spec.Template.Spec.NodeSelector = nil
			l.DaemonSets = []*appsv1.DaemonSet{l.sets[parts.Plugin]}
		}, "6 kept off GPUStackNotOnNode proven: has no pod of the device plugin gpu-operator/nvidia-device-plugin: it does not tolerate taint team:NoSchedule | RepairDeviceStack have gpu-operator/nvidia-device-plugin tolerate team:NoSchedule"},
		"a label of a young node": {func(l *lab, n *corev1.Node) {
			n.Labels = map[string]string{"karpenter.k8s.aws/instance-gpu-name": "a10g"}
			n.CreationTimestamp = metav1.NewTime(noon.Add(-4 * time.Minute))
			l.sets[parts.Plugin].Spec.Template.Spec.NodeSelector = map[string]string{"team": "ml"}
			l.DaemonSets = []*appsv1.DaemonSet{l.sets[parts.Plugin]}
		}, "6 starting GPUStackNotOnNode proven: is new: what labels nodes is to label it in a few minutes | Wait wait until the device plugin of n is ready, normally within 17 min"},
		"a label": {func(l *lab, n *corev1.Node) {
			n.Labels = map[string]string{"karpenter.k8s.aws/instance-gpu-name": "a10g"}
			n.CreationTimestamp = metav1.NewTime(noon.Add(-5 * time.Minute))
			l.sets[parts.Plugin].Spec.Template.Spec.NodeSelector = map[string]string{"team": "ml"}
			l.DaemonSets = []*appsv1.DaemonSet{l.sets[parts.Plugin]}
		}, "6 kept off GPUStackNotOnNode proven: has no pod of the device plugin gpu-operator/nvidia-device-plugin: it selects nodes by label team=ml, which is absent | RepairDeviceStack label n team=ml"},
	}.run(t)
}

// The GPU Operator's labels tell whether a node is meant to have a device plugin, and by what it
// would be known to have a GPU.
func TestLabelsOfANode(t *testing.T) {
	label := func(key, value string) func(*lab, *corev1.Node) {
		return func(_ *lab, n *corev1.Node) { n.Labels[key] = value }
	}
	unlabelled := func(created time.Duration, keep ...string) func(*lab, *corev1.Node) {
		return func(_ *lab, n *corev1.Node) {
			labels := map[string]string{"karpenter.k8s.aws/instance-gpu-name": "a10g"}
			for _, key := range keep {
				labels[key] = "true"
			}
			n.Labels, n.CreationTimestamp = labels, metav1.NewTime(noon.Add(-created))
		}
	}
	with := func(first func(*lab, *corev1.Node), edits ...func(*lab, *corev1.Node)) func(*lab, *corev1.Node) {
		return func(l *lab, n *corev1.Node) {
			first(l, n)
			for _, edit := range edits {
				edit(l, n)
			}
		}
	}
	linkRows{
		"for virtual machines":         {label(workloadKind, "vm-vgpu"), "3 kept off GPUStackNotOnNode likely: gives its GPUs to virtual machines: label nvidia.com/gpu.workload.config=vm-vgpu | RepairDeviceStack label n nvidia.com/gpu.workload.config=container"},
		"for containers":               {label(workloadKind, "container"), "4 kept off GPUStackNotOnNode likely: has no pod of the driver gpu-operator/nvidia-driver-ctr, which selects it | RepairDeviceStack see why gpu-operator/nvidia-driver-ctr makes no pod for n"},
		"paused":                       {label(deployPlugin, "paused-for-something"), "3 paused GPUStackNotOnNode proven: has its device plugin paused: label nvidia.com/gpu.deploy.device-plugin=paused-for-something | RepairDeviceStack label n nvidia.com/gpu.deploy.device-plugin=true"},
		"switched off":                 {label(deployPlugin, "false"), "3 kept off GPUStackNotOnNode proven: has its device plugin switched off: label nvidia.com/gpu.deploy.device-plugin=false | RepairDeviceStack label n nvidia.com/gpu.deploy.device-plugin=true"},
		"all switched off":             {with(unlabelled(time.Hour), label(operands, "false")), "3 kept off GPUStackNotOnNode proven: has all of the GPU Operator's parts switched off: label nvidia.com/gpu.deploy.operands=false | RepairDeviceStack label n nvidia.com/gpu.deploy.operands=true"},
		"all switched on":              {with(unlabelled(time.Hour), label(operands, "true")), "2 kept off GPUStackNotOnNode likely: has no pod of the node feature discovery gpu-operator/nfd-worker, which selects it | RepairDeviceStack see why gpu-operator/nfd-worker makes no pod for n"},
		"known, and not labelled":      {unlabelled(time.Hour, view.GPULabels[0]), "3 missing GPUStackNotOnNode proven: is known to have a GPU, and the GPU Operator has not labelled it for its device plugin | RepairDeviceStack give n the labels of the GPU Operator's parts, or see why it does not"},
		"known by its own word":        {unlabelled(time.Hour, gpuPresent), "3 missing GPUStackNotOnNode proven: is known to have a GPU, and the GPU Operator has not labelled it for its device plugin | RepairDeviceStack give n the labels of the GPU Operator's parts, or see why it does not"},
		"known, and new":               {unlabelled(4*time.Minute, gpuPresent), "3 starting GPUStackNotOnNode proven: is new: GPU Operator is to label it in a few minutes | Wait wait until the device plugin of n is ready, normally within 17 min"},
		"known, and was new":           {unlabelled(5*time.Minute, gpuPresent), "3 missing GPUStackNotOnNode proven: is known to have a GPU, and the GPU Operator has not labelled it for its device plugin | RepairDeviceStack give n the labels of the GPU Operator's parts, or see why it does not"},
		"not known":                    {unlabelled(time.Hour), "2 kept off GPUStackNotOnNode likely: has no pod of the node feature discovery gpu-operator/nfd-worker, which selects it | RepairDeviceStack see why gpu-operator/nfd-worker makes no pod for n"},
		"not known, and new":           {unlabelled(4 * time.Minute), "2 starting GPUStackNotOnNode proven: is new: node feature discovery is to label it in a few minutes | Wait wait until the device plugin of n is ready, normally within 17 min"},
		"not known, though looked for": {unlabelled(time.Hour, nfdLabels+"cpu"), "2 failed GPUStackNotOnNode proven: has none of the labels that the device plugin goes by (feature.node.kubernetes.io/pci-10de.present, feature.node.kubernetes.io/pci-0302_10de.present, feature.node.kubernetes.io/pci-0300_10de.present), though node feature discovery runs there: the device plugin is kept off | RepairDeviceStack see why node feature discovery sees no NVIDIA device on n?"},
		"discovery has a pod there":    {with(unlabelled(time.Hour), func(l *lab, _ *corev1.Node) { l.pod(parts.Discovery, "n", nil) }), "2 failed GPUStackNotOnNode proven: has no label of node feature discovery, whose pod there has written none: the device plugin is kept off | RepairDeviceStack see why node feature discovery writes no labels for n"},
		"discovery is not installed": {with(unlabelled(time.Hour), func(l *lab, _ *corev1.Node) {
			l.DaemonSets = l.DaemonSets[:0]
			for _, r := range []parts.Role{parts.Driver, parts.Toolkit, parts.Plugin} {
				l.DaemonSets = append(l.DaemonSets, l.sets[r])
			}
		}), "2 missing GPUStackNotOnNode proven: has no label of node feature discovery, which is not installed: the device plugin is kept off | RepairDeviceStack install node feature discovery, which labels n"},
		"discovery is kept off": {with(unlabelled(time.Hour), func(_ *lab, n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: "team", Effect: corev1.TaintEffectNoSchedule}}
		}), "2 kept off GPUStackNotOnNode proven: has no label of node feature discovery, whose DaemonSet does not run there: it does not tolerate taint team:NoSchedule | RepairDeviceStack have gpu-operator/nfd-worker tolerate team:NoSchedule"},
	}.run(t)
}
