package kubelet

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// Hindrance is what objects tell about why devices could not be prepared, beyond the words
// of the kubelet or the driver.
type Hindrance struct {
	Says         string // completes "could not prepare its devices: …"; empty where the words say it
	Evidence     []diagnosis.Evidence
	Title        string
	Unproven     string
	Commands     []string
	Risk         diagnosis.Risk
	StopsUnknown bool
	Minutes      int
}

// Hindered looks for what hinders the first of the pods; nil where no object tells.
func Hindered(w *view.Cluster, unprepared []*corev1.Pod) *Hindrance {
	if len(unprepared) == 0 || w.State.Unread["ResourceClaim"] != "" {
		return nil
	}
	p := unprepared[0]
	for _, look := range []func(*view.Cluster, *corev1.Pod, string) *Hindrance{notReserved, heldByDriver, unseenByDriver, helperAway, pluginAway, gone, unprepares, lingers, withoutPlugin, leftOut} {
		if h := look(w, p, UnpreparedSays(p)); h != nil {
			return h
		}
	}
	return nil
}

// notAllowed is the kubelet's word where a claim is not reserved for the pod
// (pkg/kubelet/cm/dra/manager.go, prepareResources; "resource claim x(uid)" up to 1.32).
var notAllowed = regexp.MustCompile(`is not allowed to use (?:ResourceClaim|resource claim) ([^\s(]+) ?\(`)

// notReserved: the claim is reserved for others, or for nobody. Its driver was not even asked.
func notReserved(w *view.Cluster, p *corev1.Pod, says string) *Hindrance {
	m := notAllowed.FindStringSubmatch(says)
	if m == nil {
		return nil
	}
	claim := claimNamed(w, p.Namespace, m[1])
	if claim == nil || slices.ContainsFunc(claim.Status.ReservedFor, func(r resourcev1.ResourceClaimConsumerReference) bool { return r.UID == p.UID }) {
		return nil
	}
	at := "ResourceClaim/" + claim.Namespace + "/" + claim.Name
	whom, facts := "nobody", []diagnosis.Claim{diagnosis.That("count(status.reservedFor)", "", diagnosis.Is, "0")}
	if len(claim.Status.ReservedFor) > 0 {
		r := claim.Status.ReservedFor[0]
		whom, facts = r.Name, []diagnosis.Claim{diagnosis.That("status.reservedFor", "", diagnosis.Contains, r.Name), diagnosis.That("status.reservedFor", "", diagnosis.ContainsNot, string(p.UID))}
		if w.State.Pod(claim.Namespace, r.Name) == nil && w.State.Unread["Pod"] == "" && r.Resource == "pods" {
			whom += ", which is not there"
			facts = append(facts, diagnosis.That("", "", diagnosis.Absent, "").Of("Pod/"+claim.Namespace+"/"+r.Name))
		}
	}
	if claim.Status.Allocation == nil && len(claim.Status.ReservedFor) == 0 {
		return notAllocated(p, claim, facts)
	}
	return &Hindrance{Says: fmt.Sprintf("ResourceClaim %s is not reserved for it, but for %s", claim.Name, whom),
		Evidence: []diagnosis.Evidence{diagnosis.Fact(at, "is reserved for "+whom, facts...)},
		Title:    fmt.Sprintf("make %s again: who schedules it has to reserve ResourceClaim %s for it", p.Name, claim.Name),
		Unproven: "why the claim was not reserved for it is in no object", Risk: diagnosis.LowRisk, Minutes: 2,
		Commands: []string{fmt.Sprintf("kubectl -n %s get resourceclaim %s -o yaml  # status.reservedFor, and who made it: metadata.ownerReferences", claim.Namespace, claim.Name), madeAgain(p)}}
}

// notAllocated: the pod has a node and its claim nothing at all, though a scheduler that knows claims does both at once.
// Before 1.34 one knows them only with the feature gate, which the API server may have alone.
func notAllocated(p *corev1.Pod, claim *resourcev1.ResourceClaim, facts []diagnosis.Claim) *Hindrance {
	facts = append(facts, diagnosis.That("status.allocation", "", diagnosis.Absent, ""))
	return &Hindrance{Says: fmt.Sprintf("ResourceClaim %s is neither allocated nor reserved: who gave the pod its node does not know claims", claim.Name),
		Evidence: []diagnosis.Evidence{diagnosis.Fact("ResourceClaim/"+claim.Namespace+"/"+claim.Name, "has no allocation and is reserved for nobody", facts...)},
		Title:    fmt.Sprintf("make %s again by a scheduler that allocates claims (DynamicResourceAllocation on): ResourceClaim %s is not", p.Name, claim.Name),
		Unproven: "what its scheduler is told to do is in no object", Risk: diagnosis.LowRisk, Minutes: 5,
		Commands: []string{
			"kubectl -n kube-system get pods -l 'component in (kube-scheduler, kube-controller-manager)' -o yaml | grep -e image: -e feature-gates  # before v1.34 both need --feature-gates=DynamicResourceAllocation=true, as the API server does",
			fmt.Sprintf("kubectl -n %s get pod %s -o jsonpath='{.spec.schedulerName}'  # another scheduler, or who names the node in the pod itself (spec.nodeName), may leave claims out too", p.Namespace, p.Name),
			madeAgain(p)}}
}

// madeAgain is the command after which a scheduler decides of the pod once more.
func madeAgain(p *corev1.Pod) string {
	if view.ComesBack(p) {
		return fmt.Sprintf("kubectl -n %s delete pod %s  # its owner makes another", p.Namespace, p.Name)
	}
	return fmt.Sprintf("kubectl -n %s get pod %s -o json | jq 'del(.spec.nodeName, .status, .metadata.uid, .metadata.resourceVersion)' | kubectl replace --force -f -", p.Namespace, p.Name)
}

// alreadyHeld is the word of NVIDIA's driver where its own record on the node has the device for
// another claim (kubernetes-sigs/dra-driver-nvidia-gpu, device_state.go).
var alreadyHeld = regexp.MustCompile(`requested device (\S+) is already allocated to different claim ([0-9a-f-]{36})`)

// heldByDriver: what the API has free, the driver's record on the node has not. Where that
// claim is gone, nobody tells the driver so (kubernetes-sigs/dra-driver-nvidia-gpu#1278).
func heldByDriver(w *view.Cluster, p *corev1.Pod, says string) *Hindrance {
	m := alreadyHeld.FindStringSubmatch(says)
	if m == nil {
		return nil
	}
	node, device, uid := p.Spec.NodeName, m[1], m[2]
	look := "kubectl get pods -A -o wide --field-selector spec.nodeName=" + node
	if i := slices.IndexFunc(w.State.ResourceClaims, func(r *resourcev1.ResourceClaim) bool { return string(r.UID) == uid }); i >= 0 {
		other := w.State.ResourceClaims[i]
		name := other.Namespace + "/" + other.Name
		return &Hindrance{Says: fmt.Sprintf("its driver has device %s for ResourceClaim %s", device, name),
			Evidence: []diagnosis.Evidence{diagnosis.Fact("ResourceClaim/"+name, "has the uid that the driver names", diagnosis.That("metadata.uid", "", diagnosis.Is, uid))},
			Title:    fmt.Sprintf("see who uses ResourceClaim %s, for which the driver on %s has device %s", name, node, device), Unproven: "when the driver gives the device back is in no object", Risk: diagnosis.NoRisk,
			Commands: []string{fmt.Sprintf("kubectl -n %s get resourceclaim %s -o yaml  # status.reservedFor; the driver gives the device back once those pods have ended", other.Namespace, other.Name), look}}
	}
	own, driver := deviceOf(w, p, device)
	if own == "" {
		return nil // the words are of another time
	}
	file := "/var/lib/kubelet/plugins/" + driver + "/checkpoint.json"
	debug := fmt.Sprintf("kubectl debug node/%s -it --image=busybox --profile=sysadmin -- chroot /host ", node)
	return &Hindrance{Says: fmt.Sprintf("its driver holds device %s for a ResourceClaim that is not there any more (uid %s)", device, uid),
		Evidence: []diagnosis.Evidence{diagnosis.Fact("ResourceClaim/"+own, "has "+device+", which the driver holds for uid "+uid+", and no ResourceClaim of the cluster has that", diagnosis.That("status.allocation", "", diagnosis.Contains, device), diagnosis.That("metadata.uid", "", diagnosis.IsNot, uid).Of("ResourceClaim/*"))},
		Title:    fmt.Sprintf("have the driver on %s forget claim %s, which is not there any more", node, uid), Unproven: "what the driver has noted on the node is in no object", Risk: diagnosis.MediumRisk, StopsUnknown: true, Minutes: 15,
		Commands: []string{look + "  # none of these may use " + device, debug + "cat " + file, "kubectl cordon " + node,
			"kubectl drain " + node + " --ignore-daemonsets --delete-emptydir-data  # where the file has claims of other pods too: the driver has to give those back first",
			debug + "mv " + file + " " + file + ".old", "# then delete the driver's pod on " + node + ": it starts with an empty record", "kubectl uncordon " + node}}
}

// notSeen is NVML's word for a GPU that NVIDIA's driver does not serve, though it has been offered
// (kubernetes-sigs/dra-driver-nvidia-gpu, nvlib.go).
var notSeen = regexp.MustCompile(`device handle from UUID '?(GPU-[0-9A-Za-z-]+)'?: ?(Not Found|GPU is lost)`)

// unseenByDriver: the devices were published while the kernel's driver served the GPU, and it does
// not now: it is bound to another (kubernetes-sigs/dra-driver-nvidia-gpu#1330), or lost.
func unseenByDriver(w *view.Cluster, p *corev1.Pod, says string) *Hindrance {
	m := notSeen.FindStringSubmatch(says)
	if m == nil {
		return nil
	}
	node, uuid := p.Spec.NodeName, m[1]
	h := &Hindrance{Says: "NVIDIA's driver does not serve " + uuid + " any more: it is bound to another driver (vfio-pci), or lost",
		Title: "see which driver serves " + uuid + " of " + node + ", and give it back to NVIDIA's", Unproven: "which driver serves a GPU is in no object", Risk: diagnosis.MediumRisk, StopsUnknown: true, Minutes: 10,
		Commands: []string{fmt.Sprintf("kubectl debug node/%s -it --image=busybox -- chroot /host sh -c 'lspci -nnk -d 10de:; nvidia-smi -L'  # Kernel driver in use: vfio-pci", node),
			"kubectl get pods -A -o wide --field-selector spec.nodeName=" + node + "  # a virtual machine that still runs may have it",
			"# on the machine, where nobody has it: echo ADDRESS > /sys/bus/pci/drivers/vfio-pci/unbind; echo ADDRESS > /sys/bus/pci/drivers/nvidia/bind",
			"# then delete the DRA driver's pod on " + node + ": it publishes what is there"}}
	for _, r := range w.State.ResourceSlices {
		for _, d := range r.Spec.Devices {
			if a := d.Attributes["uuid"].StringValue; a != nil && *a == uuid {
				h.Evidence = []diagnosis.Evidence{diagnosis.Fact("ResourceSlice/"+r.Name, "offers "+d.Name+", which is "+uuid, diagnosis.That("spec.devices", "", diagnosis.Contains, uuid))}
			}
		}
	}
	return h
}

// deviceOf is the claim of the pod that has a device, as namespace/name, with the device's driver;
// empty where none has.
func deviceOf(w *view.Cluster, p *corev1.Pod, device string) (claim, driver string) {
	for _, name := range ClaimsOf(p) {
		ns, n, _ := strings.Cut(name, "/")
		c := claimNamed(w, ns, n)
		if c == nil || c.Status.Allocation == nil {
			continue
		}
		for _, r := range c.Status.Allocation.Devices.Results {
			if r.Device == device {
				return name, r.Driver
			}
		}
	}
	return "", ""
}

func claimNamed(w *view.Cluster, namespace, name string) *resourcev1.ResourceClaim {
	for _, r := range w.State.ResourceClaims {
		if r.Namespace == namespace && r.Name == name {
			return r
		}
	}
	return nil
}
