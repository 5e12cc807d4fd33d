package stack

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/stack/parts"
	"github.com/unpend/unpend/rca/view"
)

// mpsCapable is what the MPS daemon goes by; GPU feature discovery writes it where the
// device plugin's configuration shares GPUs by MPS.
const mpsCapable = "nvidia.com/mps.capable"

// sharing: the device plugin is told to share GPUs by MPS, and waits without an end for a
// daemon that has no pod on the node, or one that fails (k8s-device-plugin internal/plugin/mps.go). Its chart
// installs the daemon's DaemonSet also where nobody asks for MPS, so that alone says nothing.
func (c *pluginConfig) sharing() *Finding {
	s, n := c.s, c.n
	if !parts.ByMPS(c.entry) {
		return nil
	}
	if daemon := s.kit.Pod(n, parts.MPS); daemon != nil {
		return c.daemonFails(daemon)
	}
	if len(s.kit.Sets(parts.MPS)) == 0 {
		return c.withoutMPS()
	}
	i := slices.IndexFunc(s.kit.Sets(parts.MPS), func(d *parts.Set) bool { return d.Namespace == c.pod.Namespace })
	if i < 0 {
		return nil
	}
	d := s.kit.Sets(parts.MPS)[i]
	m := d.Misses(n)
	if m.None() {
		return nil
	}
	f := s.finding(Registration, KeptOff, diagnosis.GPUStackNotOnNode, fmt.Sprintf("has GPUs and offers none: its device plugin waits for the MPS daemon, and %s/%s has no pod there: %s", d.Namespace, d.Name, d.Text(n, m)), d.Ref(), d.Text(n, m), d.Claims(n, m)...)
	f.Certainty = diagnosis.Likely // that it waits for this, only its log says
	f.Evidence = append(f.Evidence, diagnosis.Fact(c.ref(), "shares GPUs by MPS", diagnosis.That("data", "", diagnosis.Contains, "mps:")))
	until := "the MPS daemon runs on " + n.Name
	mend := s.letOn(n, d, m, until)
	if slices.Contains(m.Labels, mpsCapable+"=true") && s.kit.Pod(n, parts.Features) == nil {
		mend = Mend{Kind: diagnosis.RepairDeviceStack, Title: "have GPU feature discovery run on " + n.Name + ", which labels it " + mpsCapable + "=true", Until: until, Risk: diagnosis.LowRisk, Minutes: 5,
			Commands: []string{"helm list -n " + d.Namespace, d.Reuse("nvdp/nvidia-device-plugin") + "--set gfd.enabled=true", "kubectl get node " + n.Name + " -L " + mpsCapable}}
	}
	mend.Unproven = "nobody knows how the GPUs of " + n.Name + " are shared before they are announced"
	f.Mends = []Mend{mend}
	return f
}

// daemonFails: the same, where the daemon's own pod fails: another pod of the device plugin waits as well.
func (c *pluginConfig) daemonFails(daemon *corev1.Pod) *Finding {
	look := c.s.kit.Look(daemon)
	if look.State != parts.Failed || c.State != "" {
		return nil
	}
	space, name := c.from.Namespace, c.from.Name
	f := c.s.finding(Registration, Failed, diagnosis.DevicePluginDown, "has GPUs and offers none: its device plugin waits for the MPS daemon, which fails at "+look.Text(), podRef(daemon), look.Text(), look.Claims...)
	f.Certainty = diagnosis.Likely // that it waits for this, only its log says
	f.Evidence = append(f.Evidence, diagnosis.Fact(c.ref(), "shares GPUs by MPS", diagnosis.That("data", "", diagnosis.Contains, "mps:")))
	f.Mends = []Mend{{Kind: diagnosis.RepairDeviceStack, Title: "see why the MPS daemon fails on " + c.n.Name + ", or share its GPUs by timeSlicing", Until: "the MPS daemon runs on " + c.n.Name, Risk: diagnosis.LowRisk, Minutes: 10,
		Steps: []string{"see by its log whether MPS knows the GPUs of this machine: it does not know every one", "write timeSlicing for mps in the ConfigMap where it does not: no limit of memory is kept then"},
		Commands: []string{fmt.Sprintf("kubectl -n %s logs %s -c %s --previous --tail=50", daemon.Namespace, daemon.Name, look.Where),
			fmt.Sprintf("kubectl -n %s edit configmap %s  # timeSlicing for mps", space, name),
			fmt.Sprintf("kubectl -n %s delete pod %s  # its DaemonSet makes it again, with what was changed", c.pod.Namespace, c.pod.Name)},
		Unproven: "nobody knows how the GPUs of " + c.n.Name + " are shared before they are announced"}}
	return f
}

// withoutMPS: the same, where nobody has installed the daemon: the chart of the device plugin and the
// GPU Operator bring it, a DaemonSet made by hand does not, and there the plugin does not even
// start (it wants --mps-root; k8s-device-plugin cmd/nvidia-device-plugin).
func (c *pluginConfig) withoutMPS() *Finding {
	pod := c.pod
	f := c.s.finding(Plugin, Missing, diagnosis.DevicePluginDown, "has GPUs and offers none: its device plugin is to share them by MPS, and no MPS daemon is installed: it is "+c.Text(), c.ref(), "shares GPUs by MPS", diagnosis.That("data", "", diagnosis.Contains, "mps:"))
	f.Certainty = diagnosis.Likely // that it stops for this, only its log says
	f.Evidence = append(f.Evidence, diagnosis.Fact(podRef(pod), c.Text()+"; no DaemonSet is the MPS daemon", append(c.Claims, diagnosis.That("spec.template.spec.containers", "", diagnosis.ContainsNot, view.MPSName).Of("DaemonSet/*"))...))
	title, step, commands := parts.BringMPS(c.s.w, c.n, pod, c.made, c.from)
	f.Mends = []Mend{{Kind: diagnosis.RepairDeviceStack, Title: title, Risk: diagnosis.MediumRisk, Minutes: 10, Steps: []string{step}, Commands: commands,
		Unproven: "nobody knows how the GPUs of " + c.n.Name + " are shared before they are announced"}}
	return f
}

// tooFewShares: the plugin ends on a configuration that has it offer a GPU fewer times than twice, which it takes for no
// sharing at all (k8s-device-plugin api/config/v1/replicas.go: "number of replicas must be >= 2"); so does GPU feature
// discovery, which reads the same.
func (c *pluginConfig) tooFewShares(f *Finding) {
	at := parts.FewerThanTwo(c.entry)
	entry := c.from.Namespace + "/" + c.from.Name
	what := "ConfigMap " + entry
	if name := c.n.Labels[pluginConfigLabel]; name != "" {
		what = "entry " + name + " of " + what
	}
	f.Says += "; " + what + " shares " + at + " fewer than twice, which it does not take"
	f.Certainty = diagnosis.Likely // that it ends on this, only its log says
	f.Evidence = append(f.Evidence, diagnosis.Fact(c.ref(), "shares "+at+" fewer than twice", diagnosis.That("data", "", diagnosis.Contains, "replicas: ")))
	m := &f.Mends[0]
	m.Title = fmt.Sprintf("have %s share %s twice or more, or not at all", what, at)
	m.Commands = append([]string{fmt.Sprintf("kubectl -n %s edit configmap %s  # replicas: 2 or more, or no sharing", c.from.Namespace, c.from.Name),
		fmt.Sprintf("kubectl -n %s delete pod %s  # it reads that when it starts", c.pod.Namespace, c.pod.Name)}, m.Commands...)
}
