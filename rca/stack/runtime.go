package stack

import (
	"fmt"
	"strings"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/stack/homes"
	"github.com/unpend/unpend/rca/stack/parts"
	"github.com/unpend/unpend/rca/view"
)

// toolkit is the link that the container runtime's part is, where the GPU Operator installs
// it; nil where it is whole, or the machine's own.
func (s *Stack) toolkit(n *view.Node) *Finding {
	l := s.part(n, parts.Toolkit)
	until := "the runtime of " + n.Name + " knows NVIDIA's, and its device plugin has announced its GPUs"
	if l.pod == nil {
		for _, d := range s.kit.Sets(parts.Toolkit) {
			m := d.Misses(n)
			if m.None() {
				return s.refusedPod(n, d, Runtime)
			}
			if n.Labels[parts.Deploys+"container-toolkit"] == "pre-installed" || len(m.Taints) == 0 && n.Labels[parts.Deploys+"container-toolkit"] == "false" {
				continue // the machine's own
			}
			f := s.finding(Runtime, KeptOff, diagnosis.RuntimeNotConfigured, fmt.Sprintf("has no container toolkit: %s/%s does not run there: %s", d.Namespace, d.Name, d.Text(n, m)), d.Ref(), d.Text(n, m), d.Claims(n, m)...)
			if len(m.Taints) > 0 {
				f.Cause = diagnosis.GPUStackNotOnNode
			}
			f.Mends = []Mend{s.letOn(n, d, m, until)}
			return f
		}
		return nil
	}
	if l.State == "" {
		return nil
	}
	if l.State != parts.Failed && !l.Loops {
		if left := podTime - s.since(l.Since); left > 0 {
			f := l.finding(Runtime, Starting, diagnosis.RuntimeNotConfigured, "is starting: its container toolkit is being set up")
			f.Mends = []Mend{waitFor(n, "container toolkit", left)}
			return f
		}
	}
	if l.Where == "driver-validation" && !strings.Contains(l.Whole, "Image") {
		return l.unaccepted()
	}
	f := l.finding(Runtime, Failed, diagnosis.RuntimeNotConfigured, "has a container runtime that does not hand out GPUs: its container toolkit fails at "+l.Text())
	if l.State != parts.Failed {
		f.Certainty = s.aged()
	}
	f.Mends = []Mend{{Kind: diagnosis.RepairDeviceStack, Title: "mend the container toolkit of " + n.Name, Until: until, Risk: diagnosis.LowRisk, Minutes: 10,
		Commands: []string{fmt.Sprintf("kubectl -n %s logs %s --all-containers --tail=50", l.pod.Namespace, l.pod.Name), fmt.Sprintf("kubectl -n %s delete pod %s  # its DaemonSet makes it again", l.pod.Namespace, l.pod.Name)}}}
	if strings.Contains(l.Whole, "Image") {
		l.pull(&f.Mends[0], "container toolkit")
		return f
	}
	s.untoldHome(n, f)
	return f
}

// unaccepted: the driver's pod is Ready, and the toolkit's waits until the GPU Operator's validation accepts that driver.
func (p *part) unaccepted() *Finding {
	n := p.n
	until := "the driver of " + n.Name + " is accepted and its device plugin has announced its GPUs"
	f := p.finding(Driver, Waiting, diagnosis.DriverNotReady, "has a driver that the GPU Operator's validation does not accept: its container toolkit waits at "+p.Text())
	f.Certainty = diagnosis.Likely
	m := Mend{Kind: diagnosis.RepairDeviceStack, Title: "see why driver-validation accepts no driver of " + n.Name, Until: until, Risk: diagnosis.LowRisk, Minutes: 10,
		Steps:    []string{"see what driver-validation says: of a version mismatch, the modules of the release before are loaded still, and a reboot loads the new ones"},
		Commands: []string{fmt.Sprintf("kubectl -n %s logs %s -c driver-validation --tail=30", p.pod.Namespace, p.pod.Name), "kubectl debug node/" + n.Name + " -it --image=busybox -- chroot /host cat /proc/driver/nvidia/version  # what is loaded"}}
	if d := p.s.part(n, parts.Driver); d.pod != nil {
		f.Evidence = append(f.Evidence, diagnosis.Fact(podRef(d.pod), "the driver is "+d.Text(), d.Claims...))
		m.Commands = append(m.Commands, fmt.Sprintf("kubectl -n %s exec %s -- nvidia-smi  # what was installed", d.pod.Namespace, d.pod.Name))
	}
	f.Mends = []Mend{m, afterUpgrade(n, until)}
	return f
}

// runtimeClass: a DaemonSet's pods ask for a RuntimeClass that does not exist.
func (s *Stack) runtimeClass(n *view.Node, d *parts.Set) *Finding {
	name := d.Spec.Template.Spec.RuntimeClassName
	if name == nil || *name == "" || s.runtimes[*name] || s.unread("RuntimeClass") != "" {
		return nil
	}
	f := s.finding(Runtime, Missing, diagnosis.RuntimeNotConfigured, fmt.Sprintf("has no pod of %s/%s, which asks RuntimeClass %s: that does not exist", d.Namespace, d.Name, *name), d.Ref(), "spec.template.spec.runtimeClassName is "+*name+", and no RuntimeClass has that name",
		diagnosis.That("spec.template.spec.runtimeClassName", "", diagnosis.Is, *name), diagnosis.That("", "", diagnosis.Absent, "").Of("RuntimeClass/"+*name))
	f.Mends = []Mend{{Kind: diagnosis.RepairDeviceStack, Title: "make RuntimeClass " + *name, Until: "the device plugin of " + n.Name + " has announced its GPUs", Risk: diagnosis.LowRisk, Minutes: 3,
		Commands: []string{fmt.Sprintf(`kubectl apply -f - <<'END'
apiVersion: node.k8s.io/v1
kind: RuntimeClass
metadata: {name: %s}
handler: %s
END`, *name, *name), fmt.Sprintf("kubectl -n %s rollout status daemonset %s", d.Namespace, d.Name)}}}
	return f
}

// handler: the node's container runtime does not know the handler of a pod's RuntimeClass.
func (l *pluginLink) handler() *Finding {
	f := l.s.finding(Runtime, Failed, diagnosis.RuntimeNotConfigured, "has a container runtime that does not know NVIDIA's: the device plugin's pod is not started: "+l.Words, podRef(l.pod), l.Words, l.Claims...)
	if l.pod.Spec.RuntimeClassName == nil {
		f.Certainty = diagnosis.Likely // its words alone
	}
	f.Mends = []Mend{l.s.configure(l.n)}
	if t := l.s.part(l.n, parts.Toolkit); t.pod != nil {
		if t.State == "" && l.n.Labels[view.LabelGKE] == "" {
			f.Mends[0].Title = "have the runtime of " + l.n.Name + " read what the container toolkit wrote there"
			f.Mends[0].Steps, f.Mends[0].Commands = homes.TakeIn(l.n, t.pod)
			f.Says += "; the container toolkit runs there, and that runtime has not taken in what it wrote"
			f.Evidence = append(f.Evidence, diagnosis.Fact(podRef(t.pod), "it runs", diagnosis.That("status.phase", "", diagnosis.Is, "Running")))
		}
		l.s.untoldHome(l.n, f)
	}
	return f
}

// configure has a node's container runtime know NVIDIA's.
func (s *Stack) configure(n *view.Node) Mend {
	m := Mend{Kind: diagnosis.RepairDeviceStack, Title: "configure NVIDIA's runtime on " + n.Name, Until: "the runtime of " + n.Name + " knows NVIDIA's, and its device plugin has announced its GPUs", Risk: diagnosis.MediumRisk, Minutes: 10,
		Steps: []string{"install NVIDIA's container toolkit on the machine (the GPU Operator does it with toolkit.enabled=true)", "write its runtime into the container runtime's configuration, and restart that"}}
	if n.Labels[view.LabelGKE] != "" {
		return s.configureGKE(n, m)
	}
	if homes.Talos(n.Status.NodeInfo.OSImage) {
		m.Steps = []string{"build NVIDIA's driver and container toolkit into the machine's image: they are system extensions of Talos", "name its runtime in the pods (RuntimeClass nvidia), or have it be the default: machine.files, /etc/cri/conf.d/20-customization.part"}
		m.Commands = homes.Extensions(n)
		return m
	}
	if steps, commands := homes.ForGPUs(n); steps != nil {
		m.Title, m.Steps, m.Commands, m.StopsUnknown = "give "+n.Name+" EKS's image for GPUs, which has driver and runtime", steps, commands, true
		return m
	}
	m.Commands = homes.Configure(n)
	m.StopsUnknown = strings.HasPrefix(n.Status.NodeInfo.ContainerRuntimeVersion, "docker:") // its containers end with it, but for live-restore
	return m
}

// configureGKE: GKE's machines keep no change that is made on them, and have one folder for what
// is installed (NVIDIA's guide for GKE; since 1.33 the toolkit has to be told to write a file).
func (s *Stack) configureGKE(n *view.Node, m Mend) Mend {
	m.Steps = []string{"change nothing on the machine: GKE makes it again without that", "have the GPU Operator's toolkit write NVIDIA's runtime where GKE's containerd reads it, or leave driver and device plugin to GKE: a node pool without the label gke-no-default-nvidia-gpu-device-plugin"}
	m.Commands = []string{fmt.Sprintf(`kubectl patch clusterpolicy %s --type=merge -p '{"spec":{"driver":{"enabled":false},"hostPaths":{"driverInstallDir":"/home/kubernetes/bin/nvidia"},"toolkit":{"installDir":"/home/kubernetes/bin/nvidia","env":[{"name":"RUNTIME_CONFIG_SOURCE","value":"file"}]},"cdi":{"enabled":true,"default":true}}}'`, s.policyName()),
		"kubectl get pods -A -o wide -w --field-selector spec.nodeName=" + n.Name}
	return m
}
