package stack

import (
	"cmp"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/stack/homes"
	"github.com/unpend/unpend/rca/stack/parts"
	"github.com/unpend/unpend/rca/view"
)

// missing: no DaemonSet of the cluster is a device plugin.
func (s *Stack) missing(n *view.Node) *Finding {
	if slice := s.offered[n.Name]; slice != "" {
		return byClass(s.finding(Installed, Missing, diagnosis.GPUStackMissing, "offers its GPUs through DRA alone, and no device plugin is installed that offers them by name", "ResourceSlice/"+slice, "driver "+draDriver+" offers its devices", append([]diagnosis.Claim{diagnosis.That("spec.driver", "", diagnosis.Is, draDriver), diagnosis.That("spec.nodeName", "", diagnosis.Is, n.Name)}, noPlugin()...)...))
	}
	unread := s.notSeen()
	if len(n.Facts().Stocks()) > 0 || unread != "" && (managed(n) || n.Labels["nvidia.com/gpu.product"] != "") {
		return s.unseen(n, unread) // a device plugin was there once, whatever it is
	}
	if unread != "" {
		f := s.finding(Installed, Unseen, diagnosis.GPUStackMissing, "has GPUs, and nothing was seen that announces them", n.Ref(), unread, s.notSeenClaims()...)
		f.Certainty, f.Mends = diagnosis.Possible, []Mend{s.install(n)}
		return f
	}
	if operated(s, n) && !s.plain && len(s.kit.Sets(parts.Discovery)) > 0 && (parts.Unlooked(n) || s.kit.ByHand(n)) {
		f := s.undiscovered(n) // the GPU Operator installs the rest once a node is labelled
		if reason, message := parts.PolicySays(s.w.State.ClusterPolicies); reason == reconcileFailed {
			f.Evidence = append(f.Evidence, diagnosis.Fact("ClusterPolicy/"+s.policy, reason+": "+view.Told(view.Quotable(message, 600), maxWords), diagnosis.Says(message)))
		}
		return unsure(s, n, f)
	}
	if e := parts.ByClaims(s.w.State.GPUClusters); e != nil && s.policy == "" {
		return byClass(s.finding(Installed, Missing, diagnosis.GPUStackMissing, "has GPUs that the GPU Operator is to hand out by claims alone (DRA): "+e.Ref+" brings no device plugin", e.Ref, e.Fact, append(e.Claims, noPlugin()...)...))
	}
	if f := s.operatorDown(n); f != nil {
		return f
	}
	says, fact := "has GPUs, and no device plugin is installed that announces them", "no DaemonSet of the cluster is NVIDIA's device plugin"
	ref, claims := n.Ref(), noPlugin()
	if s.policy != "" {
		ref = "ClusterPolicy/" + s.policy
		if s.plain {
			says, fact = "has GPUs, and the GPU Operator is told to install no device plugin", "spec.devicePlugin.enabled is false"
			claims = []diagnosis.Claim{diagnosis.That("spec.devicePlugin.enabled", "", diagnosis.Is, "false")}
		} else if reason, message := parts.PolicySays(s.w.State.ClusterPolicies); reason != "" {
			fact += "; " + reason + ": " + view.Told(view.Quotable(message, 600), maxWords)
			claims = append(claims, diagnosis.Says(message))
			if len(s.kit.Sets(parts.Discovery)) == 0 && (reason == "NFDLabelsMissing" || reason == "NoGPUNodes") {
				says = "has GPUs, and the GPU Operator installs nothing: node feature discovery is not there to label them"
			} else if reason == reconcileFailed {
				says = "has GPUs, and the GPU Operator cannot make what announces them: " + view.Told(view.Quotable(message, 600), maxWords)
			}
		}
	}
	f := s.finding(Installed, Missing, diagnosis.GPUStackMissing, says, ref, fact, claims...)
	f.Mends = []Mend{s.install(n)}
	return unsure(s, n, f)
}

// byClass offers how who asks for whole GPUs by name gets what DRA hands out.
func byClass(f *Finding) *Finding {
	f.Mends = []Mend{{Kind: diagnosis.RepairDeviceStack, Title: "let DeviceClass " + draDriver + " stand behind " + string(view.WholeGPU) + ", or ask by a ResourceClaim", Risk: diagnosis.LowRisk, Minutes: 5, Unproven: "whether the API server has the gate DRAExtendedResource on is not known",
		Commands: []string{"kubectl get deviceclass " + draDriver + " -o yaml", fmt.Sprintf(`kubectl patch deviceclass %s --type=merge -p '{"spec":{"extendedResourceName":"%s"}}'  # needs the gate DRAExtendedResource`, draDriver, view.WholeGPU)}}}
	return f
}

// notSeen says which of the kinds that would show a device plugin was not read.
func (s *Stack) notSeen() string {
	var kinds []string
	for _, kind := range []string{"DaemonSet", "Pod"} {
		if why := s.unread(kind); why != "" {
			kinds = append(kinds, kind+": "+why)
		}
	}
	return strings.Join(kinds, "; ")
}

// notSeenClaims are of the kinds that were not read that none is there to be seen.
func (s *Stack) notSeenClaims() []diagnosis.Claim {
	var out []diagnosis.Claim
	for _, kind := range []string{"DaemonSet", "Pod"} {
		if s.unread(kind) != "" {
			out = append(out, diagnosis.That("", "", diagnosis.Absent, "").Of(kind+"/*"))
		}
	}
	return out
}

// noPlugin claims that no DaemonSet is NVIDIA's device plugin.
func noPlugin() []diagnosis.Claim {
	return []diagnosis.Claim{diagnosis.That("spec.template.spec.containers", "", diagnosis.ContainsNot, "k8s-device-plugin").Of("DaemonSet/*")}
}

// unseen: something has announced GPUs here, and what became of it cannot be told.
func (s *Stack) unseen(n *view.Node, unread string) *Finding {
	f := &Finding{Link: PluginOnNode, State: Unseen, Cause: diagnosis.DevicePluginDown, Certainty: diagnosis.Possible, Says: "has GPUs and offers none"}
	fact, claims := "no DaemonSet of the cluster is NVIDIA's device plugin", noPlugin()
	if unread != "" {
		fact, claims = "which device plugin there is was not seen: "+unread, s.notSeenClaims()
	}
	f.Evidence, f.Mends = []diagnosis.Evidence{diagnosis.Fact(n.Ref(), fact, claims...)}, []Mend{{Kind: diagnosis.RestartDevicePlugin}}
	if unread == "" {
		f.Mends = append(f.Mends, s.install(n))
	}
	return f
}

// install is how the stack comes into a cluster: what is there already decides which.
func (s *Stack) install(n *view.Node) Mend {
	m := Mend{Kind: diagnosis.RepairDeviceStack, Risk: diagnosis.LowRisk, Minutes: 10, Title: "install NVIDIA's GPU Operator, which announces the GPUs of " + n.Name, Until: "a device plugin has announced the GPUs of " + n.Name}
	helm := []string{"helm repo add nvidia https://helm.ngc.nvidia.com/nvidia && helm repo update"}
	switch {
	case s.policy != "" && s.plain:
		m.Title = "have the GPU Operator install its device plugin"
		m.Commands = []string{fmt.Sprintf(`kubectl patch clusterpolicy %s --type=merge -p '{"spec":{"devicePlugin":{"enabled":true}}}'`, s.policy)}
	case s.policy != "" && s.unreconciled():
		m.Title = "mend what keeps the GPU Operator from making its DaemonSets: see ClusterPolicy " + s.policy
		m.Commands = []string{"kubectl describe clusterpolicy " + s.policy + "  # the condition Error says which part fails, and why", "kubectl get pods -A -l app=gpu-operator  # then its log"}
	case operated(s, n) && knownGPU(n):
		m.Title = "see why the GPU Operator makes no DaemonSet of a device plugin: ClusterPolicy " + s.policyName() + ", and its log"
		m.Commands = []string{"kubectl get pods -A -l app=gpu-operator  # none: it is not installed, and has left its ClusterPolicy", "kubectl describe clusterpolicy " + s.policyName(), "kubectl logs -n gpu-operator deploy/gpu-operator --tail=50  # in the namespace that the first shows"}
	case operated(s, n):
		m.Title = "have the GPU Operator find GPUs: install node feature discovery"
		m.Commands = append(helm, parts.ReuseOperator(s.w, "")+"--set nfd.enabled=true", "kubectl describe clusterpolicy "+s.policyName())
	case n.Labels[view.LabelGKE] != "":
		m.Title = "give GKE's node its device plugin back"
		m.Commands = []string{"kubectl -n kube-system get daemonsets | grep gpu-device-plugin  # GKE's own: none is there",
			"curl -fsSL " + googlesPlugin + " | grep -v addonmanager | kubectl apply -f -  # Google's, for all nodes with label " + view.LabelGKE + "; the line left out would let GKE's addon manager take it away again",
			"# or have GKE bring its own: gcloud container clusters upgrade CLUSTER --master, or a new pool: gcloud container node-pools describe " + cmp.Or(n.Labels[gkePool], "POOL") + " --cluster CLUSTER  # shows what it was made with"}
	case n.Labels["kubernetes.azure.com/agentpool"] != "":
		m.Title = "install NVIDIA's device plugin, which announces the GPUs of " + n.Name
		m.Steps = []string{"install the device plugin alone: AKS' images for GPUs have driver and container toolkit, unless the node pool was made without (--gpu-driver none)"}
		m.Commands = []string{"kubectl apply -f https://raw.githubusercontent.com/NVIDIA/k8s-device-plugin/v0.18.0/deployments/static/nvidia-device-plugin.yml"}
		if taints := parts.ForeignTaints(n); len(taints) > 0 {
			m.Commands = append(m.Commands, parts.Tolerate("kube-system", view.PluginName+"-daemonset", []corev1.Toleration{ofGPUs}, taints))
		}
	case strings.HasPrefix(n.Status.NodeInfo.OSImage, "Bottlerocket"): // on which no driver is installed
		m.Title, m.Risk, m.StopsUnknown = "give "+n.Name+" Bottlerocket's image for GPUs, which has driver and device plugin", diagnosis.MediumRisk, true
		m.Steps, m.Commands = homes.ForGPUs(n)
	default:
		m.Steps = []string{"install the GPU Operator (driver, container toolkit, node feature discovery, device plugin)", "where the machines' image has driver and toolkit already, add --set driver.enabled=false --set toolkit.enabled=false"}
		m.Commands = append(helm, "helm install gpu-operator nvidia/gpu-operator -n gpu-operator --create-namespace --wait")
		if n.Labels["eks.amazonaws.com/nodegroup"] != "" { // the images that EKS offers for GPUs have both, and no plugin
			m.Steps = []string{"install the GPU Operator without driver and container toolkit: the images of EKS for GPUs have them (with another image leave the two --set out)"}
			m.Commands[len(m.Commands)-1] += " --set driver.enabled=false --set toolkit.enabled=false"
		}
		if taints := parts.Foreign(n); len(taints) > 0 {
			m.Steps = append(m.Steps, "tolerate its taints in daemonsets.tolerations: "+strings.Join(taints, ", "))
		}
	}
	m.Commands = append(m.Commands, "kubectl get node "+n.Name+" -o jsonpath='{.status.allocatable}'")
	return m
}

// reconcileFailed is the GPU Operator's reason where it could not write one of its objects.
const reconcileFailed = "ReconcileFailed"

func (s *Stack) unreconciled() bool {
	reason, _ := parts.PolicySays(s.w.State.ClusterPolicies)
	return reason == reconcileFailed
}
