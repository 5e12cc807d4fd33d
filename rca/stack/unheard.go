package stack

import (
	"fmt"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/stack/parts"
)

const hasGPUs = "has GPUs and offers none: "

// unheard: the device plugin's DaemonSet gives its pods another folder of the machine than that in which the
// kubelet hears of plugins, as where somebody has taken the kubelet's files to be where its distribution keeps
// the rest. nil where it is the kubelet's.
func (p *part) unheard() *Finding {
	d := p.s.kit.SetOf(p.pod)
	if d == nil {
		return nil
	}
	volume, folder := parts.Astray(&d.Spec.Template.Spec)
	if folder == "" {
		return nil
	}
	f := p.finding(Registration, Failed, diagnosis.DevicePluginDown, fmt.Sprintf("%sits device plugin runs and announces them in %s, where no kubelet listens: it does in %s", hasGPUs, folder, parts.Sockets))
	f.Certainty = diagnosis.Likely // the one may be a link to the other
	f.Evidence = append(f.Evidence, diagnosis.Fact(d.Ref(), fmt.Sprintf("volume %s is the machine's %s", volume, folder), diagnosis.That("spec.template.spec.volumes[name="+volume+"].hostPath.path", "", diagnosis.Is, folder)))
	f.Mends = []Mend{{Kind: diagnosis.RepairDeviceStack, Title: fmt.Sprintf("give the device plugin the kubelet's folder: %s for volume %s", parts.Sockets, volume), Until: "the device plugin of " + p.n.Name + " has announced its GPUs", Risk: diagnosis.LowRisk, Minutes: 5, Stops: d.Rolled(p.s.w), Commands: []string{fmt.Sprintf(`kubectl -n %s patch daemonset %s --type=strategic -p '{"spec":{"template":{"spec":{"volumes":[{"name":"%s","hostPath":{"path":"%s"}}]}}}}'`, d.Namespace, d.Name, volume, parts.Sockets),
		fmt.Sprintf("kubectl -n %s rollout status daemonset %s", d.Namespace, d.Name), "kubectl get node " + p.n.Name + " -o jsonpath='{.status.allocatable}'"}}}
	return f
}
