package stack

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// AMDPrefix begins the resources that AMD's device plugin announces (ROCm/k8s-device-plugin).
const AMDPrefix = "amd.com/"

// amdPlugin is AMD's device plugin. Nothing of NVIDIA's has a part in what it announces.
const amdPlugin role = "device plugin of AMD's"

// isAMDPlugin tells it by its image; its labeller has another name, or a tag of the same.
func isAMDPlugin(c corev1.Container) bool {
	image := c.Image[strings.LastIndex(c.Image, "/")+1:]
	ofAMD := strings.Contains(c.Image, "rocm") || strings.Contains(c.Image, "amd")
	return ofAMD && strings.HasPrefix(image, "k8s-device-plugin") && !strings.Contains(image, "labeller")
}

// amdLabels say that a node has a GPU of AMD's: of node feature discovery, with the rules of
// AMD's operator or by the class of the device (display, 3D, accelerator).
var amdLabels = []string{
	"feature.node.kubernetes.io/amd-gpu", "feature.node.kubernetes.io/amd-vgpu", "feature.node.kubernetes.io/pci-1002.present",
	"feature.node.kubernetes.io/pci-0300_1002.present", "feature.node.kubernetes.io/pci-0380_1002.present", "feature.node.kubernetes.io/pci-1200_1002.present",
}

// amdSign is the label by which a node is known to have a GPU of AMD's; empty for none.
// AMD's labeller writes the properties of the card as labels.
func amdSign(n *view.Node) string {
	for _, key := range amdLabels {
		if n.Labels[key] == "true" {
			return key
		}
	}
	var written []string
	for key := range n.Labels {
		if strings.HasPrefix(key, "amd.com/gpu.") || strings.HasPrefix(key, "beta.amd.com/gpu.") {
			written = append(written, key)
		}
	}
	if len(written) == 0 {
		return ""
	}
	return slices.Min(written)
}

// AMD is why a node that has GPUs of AMD's offers none of a resource; nil where it offers some,
// and where nothing says that it has one.
func (s *Stack) AMD(n *view.Node, resource corev1.ResourceName) *Finding {
	offered, had := n.Status.Allocatable[resource], false
	if !offered.IsZero() {
		return nil
	}
	sign := amdSign(n)
	if _, had = n.Status.Capacity[resource]; sign == "" && !had {
		return nil
	}
	f := s.ofAMD(n, resource, had)
	seen := []diagnosis.Evidence{diagnosis.Fact(n.Ref(), "allocatable "+string(resource)+"=0", diagnosis.That(diagnosis.Allocatable, string(resource), diagnosis.Is, "0"))}
	if sign != "" {
		seen = append(seen, diagnosis.Fact(n.Ref(), "label "+sign+"="+n.Labels[sign], n.Labelled(sign)...))
	}
	f.Evidence = append(seen, f.Evidence...)
	return f
}

func (s *Stack) ofAMD(n *view.Node, resource corev1.ResourceName, had bool) *Finding {
	if unread := s.notSeen(); unread != "" {
		f := s.finding(Installed, Unseen, diagnosis.DevicePluginDown, "has GPUs of AMD's and offers no "+string(resource), n.Ref(), "which device plugin there is was not seen: "+unread)
		f.Certainty, f.Mends = diagnosis.Possible, []Mend{s.mendAMD(n, nil)}
		return f
	}
	pod := s.podOf(n, amdPlugin)
	sets := s.sets[amdPlugin]
	switch {
	case pod != nil:
		l := s.look(pod)
		if left := podTime - s.since(pod.CreationTimestamp.Time); left > 0 && l.state != Failed && !l.loops {
			f := s.finding(Plugin, Starting, diagnosis.DevicePluginDown, "is starting: the pod of AMD's device plugin is "+view.Age(podTime-left)+" old", podRef(pod), orReady(l), l.claims...)
			f.Mends = []Mend{waitFor(n, "device plugin", left)}
			return s.finishAMD(n, f)
		}
		says := "AMD's device plugin runs there and announces none, as where the driver (amdgpu) serves no card"
		if l.state != "" {
			says = "AMD's device plugin fails at " + orReady(l)
		}
		f := s.finding(Registration, Failed, diagnosis.DevicePluginDown, "has GPUs of AMD's and offers no "+string(resource)+": "+says, podRef(pod), orReady(l), l.claims...)
		f.Certainty, f.Mends = diagnosis.Likely, []Mend{s.mendAMD(n, pod)}
		return f
	case len(sets) > 0:
		d := sets[0]
		m := d.misses(n)
		if m.none() {
			return s.finishAMD(n, s.refusedPod(n, d, PluginOnNode))
		}
		f := s.finding(PluginOnNode, KeptOff, diagnosis.GPUStackNotOnNode, fmt.Sprintf("has GPUs of AMD's and offers no %s: %s/%s does not run there: %s", resource, d.Namespace, d.Name, d.text(n, m)), d.ref(), d.text(n, m), d.claims(n, m)...)
		f.Mends = []Mend{s.letOn(n, d, m, "")}
		return s.finishAMD(n, f)
	}
	f := s.finding(Installed, Missing, diagnosis.GPUStackMissing, "has GPUs of AMD's, and no device plugin of AMD's is installed that announces "+string(resource), n.Ref(), "no DaemonSet of the cluster is AMD's device plugin",
		diagnosis.That("spec.template.spec.containers", "", diagnosis.ContainsNot, "rocm/k8s-device-plugin").Of("DaemonSet/*"))
	if had { // it was announced once, by whatever does
		f.Cause, f.Certainty = diagnosis.DevicePluginDown, diagnosis.Likely
	}
	f.Mends = []Mend{{Kind: diagnosis.RepairDeviceStack, Title: "install AMD's device plugin, which announces the GPUs of " + n.Name, Risk: diagnosis.LowRisk, Minutes: 10,
		Steps: []string{"see that the machine's driver shows the card: /dev/kfd is there", "install AMD's device plugin, or its GPU operator with a DeviceConfig that selects the node"},
		Commands: []string{"kubectl create -f https://raw.githubusercontent.com/ROCm/k8s-device-plugin/master/k8s-ds-amdgpu-dp.yaml", "kubectl get deviceconfigs -A -o yaml  # of AMD's GPU operator: spec.selector has to be a label of " + n.Name,
			"kubectl get node " + n.Name + " -o jsonpath='{.status.allocatable}'"}}}
	return s.finishAMD(n, f)
}

// finishAMD says of each mend that what it brings is not known.
func (s *Stack) finishAMD(n *view.Node, f *Finding) *Finding {
	for i := range f.Mends {
		f.Mends[i].Until, f.Mends[i].Unproven = "", "nothing says how many GPUs "+n.Name+" has"
	}
	return f
}

// mendAMD is where to look when the plugin runs, or may run, and nothing came of it.
func (s *Stack) mendAMD(n *view.Node, pod *corev1.Pod) Mend {
	look := "kubectl get pods -A -o wide --field-selector spec.nodeName=" + n.Name + "  # AMD's device plugin has to run here"
	if pod != nil {
		look = fmt.Sprintf("kubectl -n %s logs %s --tail=50", pod.Namespace, pod.Name)
	}
	return Mend{Kind: diagnosis.RepairDeviceStack, Title: "see why AMD's device plugin announces nothing on " + n.Name, Risk: diagnosis.LowRisk, Minutes: 15, Unproven: "only its log and the machine tell why it announces nothing",
		Steps:    []string{"see what the plugin says", "see on the machine that the driver (amdgpu) is loaded and serves the card"},
		Commands: []string{look, "kubectl debug node/" + n.Name + " -it --image=busybox -- chroot /host ls /sys/module/amdgpu /dev/kfd /dev/dri"}}
}
