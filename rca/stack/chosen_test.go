package stack

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/rca/stack/homes"
	"github.com/unpend/unpend/rca/stack/parts"
	"github.com/unpend/unpend/rca/view"
)

// driverOf adds an NVIDIADriver that chooses nodes by labels.
func (l *lab) driverOf(name string, labels ...string) {
	selector := map[string]any{}
	for _, label := range labels {
		key, value, _ := strings.Cut(label, "=")
		selector[key] = value
	}
	l.NVIDIADrivers = append(l.NVIDIADrivers, &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": name}, "spec": map[string]any{"nodeSelector": selector}}})
}

// says gives the newest NVIDIADriver a condition.
func (l *lab) says(reason, status string) {
	l.NVIDIADrivers[len(l.NVIDIADrivers)-1].Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Error", "reason": reason, "status": status, "message": "m"}}}
}

// Where the GPU Operator makes drivers by NVIDIADrivers, a node that none of them chooses has none, and
// no DaemonSet that would say so.
func TestNodesThatNoDriverChooses(t *testing.T) {
	by := func(on bool, edits ...func(l *lab, n *corev1.Node)) func(*lab, *corev1.Node) {
		return func(l *lab, n *corev1.Node) {
			l.policy(map[string]any{"driver": map[string]any{"useNvidiaDriverCRD": on}})
			for _, edit := range edits {
				edit(l, n)
			}
		}
	}
	of := func(name string, labels ...string) func(*lab, *corev1.Node) {
		return func(l *lab, _ *corev1.Node) { l.driverOf(name, labels...) }
	}
	labelled := func(key, value string) func(*lab, *corev1.Node) {
		return func(_ *lab, n *corev1.Node) { n.Labels[key] = value }
	}
	const (
		none = "4 missing DriverNotReady proven: has no driver: the GPU Operator makes drivers by NVIDIADrivers, and there is none | RepairDeviceStack make an NVIDIADriver, or leave the driver to the ClusterPolicy again"
		pool = "4 kept off DriverNotReady proven: has no driver: the GPU Operator makes drivers by NVIDIADrivers, and none chooses it: a: it selects nodes by label pool=x, which is absent | RepairDeviceStack label n pool=x, by which NVIDIADriver a chooses nodes, or have that choose others"
	)
	conflict := func(name, reason, status string, labels ...string) func(*lab, *corev1.Node) {
		return func(l *lab, _ *corev1.Node) { l.driverOf(name, labels...); l.says(reason, status) }
	}
	const clash = "4 kept off DriverNotReady proven: has no driver: NVIDIADriver a chooses it, and the GPU Operator makes none by it: it says that another chooses the same nodes | RepairDeviceStack have "
	whole := func(got string) string { return strings.Split(got, ":")[0] }
	rows := linkRows{
		"two choose it":         {by(true, conflict("a", "ConflictingNodeSelector", "True", "pool=x"), of("b"), labelled("pool", "x")), clash + "NVIDIADriver a or b choose other nodes: no two may choose one"},
		"none does any more":    {by(true, conflict("a", "ConflictingNodeSelector", "True", "pool=x"), of("b", "pool=y"), labelled("pool", "x")), clash + "the GPU Operator look at NVIDIADriver a again: no other chooses one of its nodes any more"},
		"none is there":         {by(true), none},
		"it is of other nodes":  {by(true, of("a", "pool=x")), pool},
		"and of another kind":   {by(true, of("a", "pool=x"), labelled("pool", "y")), strings.Replace(pool, "which is absent", `here it is "y"`, 1)},
		"the nearest is named":  {by(true, of("b", "pool=x", "zone=1"), of("a", "pool=x"), of("c", "pool=z", "zone=2")), pool},
		"all that it lacks":     {by(true, of("a", "pool=x", "gpu=on")), "4 kept off DriverNotReady proven: has no driver: the GPU Operator makes drivers by NVIDIADrivers, and none chooses it: a: it selects nodes by label gpu=on, which is absent; it selects nodes by label pool=x, which is absent | RepairDeviceStack label n gpu=on pool=x, by which NVIDIADriver a chooses nodes, or have that choose others"},
		"one of all with a GPU": {by(true, of("a"), labelled(gpuPresent, "")), strings.ReplaceAll(strings.Replace(pool, "which is absent", `here it is ""`, 1), "pool=x", gpuPresent+"=true")},
	}
	rows.run(t)
	for name, edit := range map[string]func(*lab, *corev1.Node){
		"it was in conflict":      by(true, conflict("a", "ConflictingNodeSelector", "False")),
		"it is not ready":         by(true, conflict("a", "DriverNotReady", "True")),
		"one chooses it":          by(true, of("b", "pool=x"), of("a", gpuPresent+"=true")),
		"one takes all":           by(true, of("a")),
		"the policy makes it":     by(false, of("a", "pool=x")),
		"the policy does not say": func(l *lab, _ *corev1.Node) { l.policy(nil); l.driverOf("a", "pool=x") },
		"there is no policy":      func(l *lab, _ *corev1.Node) { l.driverOf("a", "pool=x") },
		"they are not read":       by(true, func(l *lab, _ *corev1.Node) { l.Unread["NVIDIADriver"] = "x" }),
		"the machine has its own": by(true, labelled(DeployDriver, "pre-installed")),
		"a person keeps it off":   by(true, labelled(DeployDriver, "false")),
		"of a policy that is not it": func(l *lab, n *corev1.Node) {
			by(true)(l, n)
			l.ClusterPolicies = append([]*unstructured.Unstructured{{Object: map[string]any{"metadata": map[string]any{"name": "first"}}}}, l.ClusterPolicies...)
		},
	} {
		l := newLab()
		edit(l, l.gpuNode("n"))
		w := view.New(l.State)
		if f := Of(w).On(w.Nodes["n"]); f != nil && strings.Contains(f.Says, "NVIDIADriver") {
			t.Errorf("%s: %s", name, whole(f.Says))
		}
	}
}

// A driver that is made for what the node runs, and does not come for a label that node feature
// discovery has not written: the label is mended, and not the driver.
func TestLabelsThatAreNotWritten(t *testing.T) {
	const key, said = parts.OSTreeLabel, "412.86.202403280709-0"
	wants := func(labels ...string) func(*lab, *corev1.Node) {
		return func(l *lab, n *corev1.Node) {
			n.Status.NodeInfo.OSImage, n.Status.NodeInfo.KernelVersion = "Red Hat Enterprise Linux CoreOS "+said+" (Ootpa)", "4.18.0+1"
			selector := map[string]string{}
			for _, label := range labels {
				k, v, _ := strings.Cut(label, "=")
				selector[k] = v
			}
			l.sets[parts.Driver].Spec.Template.Spec.NodeSelector = selector
		}
	}
	with := func(edit func(*lab, *corev1.Node), key, value string) func(*lab, *corev1.Node) {
		return func(l *lab, n *corev1.Node) { edit(l, n); n.Labels[key] = value }
	}
	const kept = "4 kept off DriverNotReady proven: has no driver: gpu-operator/nvidia-driver-ctr does not run there: it selects nodes by label "
	write := func(key string) string {
		return "RepairDeviceStack have node feature discovery write label " + key + " on n: a newer version does where this one has not"
	}
	const again, other = "RepairDeviceStack have node feature discovery look at n again, so that its driver is made for the kernel that it runs", "RepairDeviceStack have a driver made for the kernel and OS of n?"
	linkRows{
		"the OS' is absent":          {wants(key + "=" + said), kept + key + "=" + said + ", which is absent | " + write(key)},
		"the kernel's is absent":     {wants(parts.KernelLabel + "=4.18.0_1"), kept + parts.KernelLabel + "=4.18.0_1, which is absent | " + write(parts.KernelLabel)},
		"it is of before":            {with(wants(key+"="+said), key, "411"), kept + key + "=" + said + `, here it is "411" | ` + again},
		"for another OS":             {wants(key + "=413"), kept + key + "=413, which is absent | " + other},
		"for another kernel":         {wants(parts.KernelLabel + "=5"), kept + parts.KernelLabel + "=5, which is absent | " + other},
		"for a part of its name":     {wants(key + "=412.86"), kept + key + "=412.86, which is absent | " + other},
		"one of two is another's":    {wants(key+"="+said, parts.KernelLabel+"=5"), kept + parts.KernelLabel + "=5, which is absent; it selects nodes by label " + key + "=" + said + ", which is absent | " + other},
		"both are absent":            {wants(key+"="+said, parts.KernelLabel+"=4.18.0_1"), kept + parts.KernelLabel + "=4.18.0_1, which is absent; it selects nodes by label " + key + "=" + said + ", which is absent | " + write(key)},
		"of what it does not report": {wants(nfdLabels + "system-os_release.ID=rhcos"), kept + nfdLabels + "system-os_release.ID=rhcos, which is absent | " + other},
		"a taint is there too": {func(l *lab, n *corev1.Node) {
			wants(key+"="+said)(l, n)
			n.Spec.Taints = []corev1.Taint{{Key: "team", Effect: corev1.TaintEffectNoSchedule}}
		}, "4 kept off GPUStackNotOnNode proven: has no driver: gpu-operator/nvidia-driver-ctr does not run there: it selects nodes by label " + key + "=" + said + ", which is absent; it does not tolerate taint team:NoSchedule | " + other},
	}.run(t)
}

// A toolkit that fails where containerd is in a place of its own is told of it, if it was not; what it
// was told stays.
func TestToolkitsThatAreNotToldWhereContainerdIs(t *testing.T) {
	env := func(names ...string) map[string]any {
		var list []any
		for _, name := range names {
			list = append(list, map[string]any{"name": name, "value": "x"})
		}
		return map[string]any{"toolkit": map[string]any{"env": list}}
	}
	fails := func(kubelet, runtime string, spec map[string]any, edits ...func(*lab, *corev1.Node)) func(*lab, *corev1.Node) {
		return func(l *lab, n *corev1.Node) {
			l.pod(parts.Driver, "n", nil)
			l.pod(parts.Toolkit, "n", crashes("dial"))
			n.Status.NodeInfo.KubeletVersion, n.Status.NodeInfo.ContainerRuntimeVersion = kubelet, runtime
			if spec != nil {
				l.policy(spec)
			}
			for _, edit := range edits {
				edit(l, n)
			}
		}
	}
	const broken = "5 failed RuntimeNotConfigured proven: has a container runtime that does not hand out GPUs: its container toolkit fails at nvidia-container-toolkit-ctr CrashLoopBackOff (9 restarts; last exit 1: dial)"
	const mends, rke2 = " | RepairDeviceStack mend the container toolkit of n", "CONTAINERD_SOCKET=/run/k3s/containerd/containerd.sock"
	const snap = "CONTAINERD_CONFIG=/var/snap/microk8s/current/args/containerd-template.toml"
	told := func(name, what string) string {
		return broken + "; " + name + " keeps its containerd in a place of its own, and the GPU Operator's toolkit is not told: " + what + " | RepairDeviceStack tell the container toolkit where the containerd of n is: " + what + mends
	}
	micro := func(_ *lab, n *corev1.Node) { n.Labels["microk8s.io/cluster"] = "true" }
	linkRows{
		"RKE2's":                 {fails("v1.30.4+rke2r1", "containerd://1.7.20-k3s1", env()), told("RKE2", rke2)},
		"k3s'":                   {fails("v1.30.4+k3s1", "containerd://1.7.20-k3s1", env("A")), told("k3s", rke2)},
		"MicroK8s' is half told": {fails("v1.30.4", "containerd://1.6", env("A", homes.SocketEnv), micro), told("MicroK8s", snap)},
		"MicroK8s'":              {fails("v1.30.4", "containerd://1.6", env(), micro), told("MicroK8s", "CONTAINERD_SOCKET=/var/snap/microk8s/common/run/containerd.sock "+snap)},
		"it is told":             {fails("v1.30.4+rke2r1", "containerd://1.7.20-k3s1", env(homes.SocketEnv)), broken + mends},
		"another runtime runs":   {fails("v1.30.4+k3s1", "docker://24", env()), broken + mends},
		"in the usual place":     {fails("v1.30.4", "containerd://1.7", env()), broken + mends},
		"there is no policy":     {fails("v1.30.4+rke2r1", "containerd://1.7.20-k3s1", nil), broken + mends},
		"another policy is told": {fails("v1.30.4+rke2r1", "containerd://1.7.20-k3s1", env(), func(l *lab, _ *corev1.Node) {
			other := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "z"}, "spec": env(homes.SocketEnv)}}
			l.ClusterPolicies = append(l.ClusterPolicies, other)
		}), told("RKE2", rke2)},
	}.run(t)
}

// What it is told already is not taken away.
func TestWhatTheToolkitIsToldStays(t *testing.T) {
	for want, env := range map[string][]any{
		`kubectl patch clusterpolicy cluster-policy --type=merge -p '{"spec":{"toolkit":{"env":[{"name":"CONTAINERD_SOCKET","value":"/run/k0s/containerd.sock"},{"name":"CONTAINERD_CONFIG","value":"/etc/k0s/containerd.d/nvidia.toml"}]}}}'`:                                                                       nil,
		`kubectl patch clusterpolicy cluster-policy --type=json -p '[{"op":"add","path":"/spec/toolkit/env/-","value":{"name":"CONTAINERD_SOCKET","value":"/run/k0s/containerd.sock"}},{"op":"add","path":"/spec/toolkit/env/-","value":{"name":"CONTAINERD_CONFIG","value":"/etc/k0s/containerd.d/nvidia.toml"}}]'`: {map[string]any{"name": "A"}},
	} {
		l := newLab()
		n := l.gpuNode("n")
		l.pod(parts.Driver, "n", nil)
		l.pod(parts.Toolkit, "n", crashes("dial"))
		n.Status.NodeInfo.KubeletVersion = "v1.31.1+k0s"
		l.policy(map[string]any{"toolkit": map[string]any{"env": env}})
		w := view.New(l.State)
		if got := Of(w).On(w.Nodes["n"]).Mends[0].Commands[0]; got != want {
			t.Errorf("%s\nwant\n%s", got, want)
		}
	}
}

// What it is told stands in no dump: where it is told something, a person compares that with where containerd listens.
func TestWhereContainerdListensIsSaid(t *testing.T) {
	l := newLab()
	n := l.gpuNode("n")
	l.pod(parts.Driver, "n", nil)
	l.pod(parts.Toolkit, "n", crashes("dial"))
	n.Status.NodeInfo.KubeletVersion, n.Status.NodeInfo.ContainerRuntimeVersion = "v1.30.4+rke2r1", "containerd://1.7.20-k3s1"
	l.policy(map[string]any{"toolkit": map[string]any{"env": []any{map[string]any{"name": homes.SocketEnv}}}})
	w := view.New(l.State)
	commands := Of(w).On(w.Nodes["n"]).Mends[0].Commands
	const want = "kubectl get clusterpolicy cluster-policy -o jsonpath='{.spec.toolkit.env}'  # RKE2's containerd listens on /run/k3s/containerd/containerd.sock"
	if got := commands[len(commands)-1]; got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// Where node feature discovery fails on a node, nobody has looked for its GPUs, whatever others have; where
// it runs, or has looked, it has none.
func TestDiscoveryThatFails(t *testing.T) {
	for name, k := range map[string]struct {
		edit func(l *lab, n *corev1.Node)
		want string
	}{
		"it crashes": {func(l *lab, _ *corev1.Node) { l.pod(parts.Discovery, "n", crashes("no")) }, "may have GPUs that nobody has looked for: node feature discovery, which does, fails there at nfd-worker CrashLoopBackOff (9 restarts; last exit 1: no)"},
		"it crashed thrice": {func(l *lab, _ *corev1.Node) {
			l.pod(parts.Discovery, "n", func(p *corev1.Pod) {
				p.Status.ContainerStatuses[0].Ready, p.Status.ContainerStatuses[0].RestartCount = false, 3
			})
		}, "may have GPUs that nobody has looked for: node feature discovery, which does, fails there at nfd-worker running and not ready"},
		"it runs": {func(l *lab, _ *corev1.Node) { l.pod(parts.Discovery, "n", nil) }, ""},
		"it is not ready": {func(l *lab, _ *corev1.Node) {
			l.pod(parts.Discovery, "n", func(p *corev1.Pod) { p.Status.ContainerStatuses[0].Ready = false })
		}, ""},
		"it is not there": {func(*lab, *corev1.Node) {}, ""},
		"it has looked": {func(l *lab, n *corev1.Node) {
			l.pod(parts.Discovery, "n", crashes("no"))
			n.Labels = map[string]string{nfdLabels + "cpu": "x"}
		}, ""},
		"a cloud tells": {func(l *lab, n *corev1.Node) {
			l.pod(parts.Discovery, "n", crashes("no"))
			n.Labels = map[string]string{corev1.LabelInstanceTypeStable: "m5.large"}
		}, ""},
		"no plugin waits": {func(l *lab, _ *corev1.Node) {
			l.pod(parts.Discovery, "n", crashes("no"))
			l.DaemonSets = l.DaemonSets[:0]
			l.DaemonSets = append(l.DaemonSets, l.sets[parts.Discovery])
		}, ""},
		"pods are unread": {func(l *lab, _ *corev1.Node) { l.pod(parts.Discovery, "n", crashes("no")); l.Unread["Pod"] = "x" }, ""},
	} {
		for _, others := range []bool{false, true} {
			l := newLab()
			k.edit(l, l.chartNode(nil))
			if others {
				l.gpuNode("other")
			}
			w, got := view.New(l.State), ""
			f := Of(w).Untold(w.Nodes["n"])
			if f != nil {
				got = f.Says
			}
			if others && f != nil && (f.Link != Discovery || f.Certainty != "possible" || f.Mends[0].Unproven == "" || f.Mends[0].Title != "see why node feature discovery writes no labels for n") {
				t.Errorf("%s: %+v", name, f)
			}
			if (others || k.want != "") && got != k.want {
				t.Errorf("%s, others %t: %q, want %q", name, others, got, k.want)
			}
		}
	}
}
