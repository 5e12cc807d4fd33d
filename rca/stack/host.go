package stack

import (
	"strings"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/stack/parts"
	"github.com/unpend/unpend/rca/view"
)

// onHost is for platforms whose device plugin runs on the machine, without a pod: there a
// node without the key is one of the node's image and driver, and nothing is to be installed.
func (s *Stack) onHost(n *view.Node) *Finding {
	platform := ""
	switch image := n.Status.NodeInfo.OSImage; {
	case strings.Contains(image, "Bottlerocket") && strings.Contains(image, "nvidia"):
		platform = "Bottlerocket"
	case n.Labels["eks.amazonaws.com/compute-type"] == "auto":
		platform = "EKS Auto Mode"
	}
	is, says := diagnosis.Fact(n.Ref(), "image "+n.Status.NodeInfo.OSImage, diagnosis.That("status.nodeInfo.osImage", "", diagnosis.Is, n.Status.NodeInfo.OSImage)), ""
	if k := parts.OfAKS(n); platform == "" && k != nil {
		platform, is = "AKS", parts.OfCondition(n, *k)
	}
	if ill := parts.Ailing(n); len(ill) > 0 {
		kind, _, _ := strings.Cut(strings.TrimPrefix(ill[0].Fact, "condition "), ":")
		is, says = ill[0], "; its condition "+strings.Replace(kind, "=", " is ", 1)
	}
	if platform == "" || s.kit.Pod(n, parts.Plugin) != nil {
		return nil
	}
	if young := s.since(n.CreationTimestamp.Time); young < podTime && !n.CreationTimestamp.IsZero() {
		f := s.finding(Registration, Starting, diagnosis.DevicePluginDown, "is new: "+platform+"'s own device plugin announces its GPUs in a few minutes", n.Ref(), "node is "+view.Age(young)+" old")
		f.Mends = []Mend{waitFor(n, "device plugin", podTime-young)}
		return f
	}
	f := s.finding(Registration, Failed, diagnosis.DevicePluginDown, "has GPUs and offers none: "+platform+" runs the device plugin on the machine, so its image or driver is at fault"+says, n.Ref(), is.Fact, is.Claims...)
	f.Mends = []Mend{{Kind: diagnosis.RepairDeviceStack, Title: "replace " + n.Name + ", or give it the platform's image with NVIDIA's driver", Risk: diagnosis.MediumRisk, Minutes: 15,
		Steps:    []string{"install no second device plugin: the platform's own runs on the machine", "see what it says there, then replace the machine"},
		Commands: []string{"kubectl debug node/" + n.Name + " -it --image=busybox -- chroot /host journalctl -u nvidia-k8s-device-plugin --no-pager -n 50", "kubectl drain " + n.Name + " --ignore-daemonsets --delete-emptydir-data", "# delete the machine with the cloud's or the autoscaler's own command"},
		Unproven: "what the machine itself says cannot be read here"}}
	return f
}

// Ailing are the conditions of a node by which its cloud says that a GPU of it is not well.
func Ailing(n *view.Node) []diagnosis.Evidence { return parts.Ailing(n) }
